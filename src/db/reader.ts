import postgres from "postgres";
import { within } from "../within.ts";
import { ConnectionLostError } from "./errors.ts";

/** Statements that only read, as templates with bound values; what runs them may be a {@link withReader} or any connection. */
export interface Reader {
  <Row extends readonly object[]>(
    strings: TemplateStringsArray,
    ...values: readonly (string | number)[]
  ): PromiseLike<Row>;
}

const STATEMENT_MS = 60_000;
const DEADLINE_MS = STATEMENT_MS + 5_000;

/**
 * Reads on one connection whose transactions are read-only, with the `postgres` driver as it is: for a command that reads
 * many rows and then ends. A service uses `connect`: with this driver (3.4.9) a connection that is cut at the wrong moment
 * can end the process or leave a statement waiting forever (porsager/postgres#1066, #1154, #1208).
 * @throws ConnectionLostError when a statement gets no response in 65 s; the driver's error for anything else.
 */
export async function withReader<Result>(url: string, work: (read: Reader) => Promise<Result>): Promise<Result> {
  const sql = postgres(url, {
    max: 1,
    connect_timeout: 10,
    connection: {
      application_name: "roundhouse reader",
      TimeZone: "UTC",
      statement_timeout: STATEMENT_MS,
      default_transaction_read_only: true,
    },
  });
  try {
    const read = <Row extends readonly object[]>(...statement: Parameters<Reader>) =>
      within(DEADLINE_MS, silence, sql<Row>(...statement));
    return await work(read);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function silence(): ConnectionLostError {
  return new ConnectionLostError(`PostgreSQL did not respond within ${DEADLINE_MS} ms`, { isSilent: true });
}
