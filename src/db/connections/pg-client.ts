import type pg from "pg";
import { Connection } from "./connection.ts";

/** Statements on a connection of one's own read the catalog; what may take longer states its own deadline. */
const DEADLINE_MS = 15_000;

/**
 * Runs `work` on a new connection, outside any pool, and closes it. Each statement has `deadlineMs`; past it the
 * statement is rejected and the connection destroyed when `work` ends.
 * @throws the driver's error when the database cannot be reached, or is lost meanwhile.
 */
export async function withPgClient<Result>(
  url: string,
  name: string,
  work: (client: pg.Client) => Promise<Result>,
  { deadlineMs = DEADLINE_MS }: { deadlineMs?: number } = {},
): Promise<Result> {
  const client = new Connection({
    connectionString: url,
    application_name: `roundhouse ${name}`,
    query_timeout: deadlineMs,
  });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}
