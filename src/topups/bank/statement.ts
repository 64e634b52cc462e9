import { checkLine } from "./check-line.ts";
import type { StatementLine } from "./line.ts";
import { readCamt } from "./statement-camt.ts";
import { readCsv, type RawRow } from "./statement-csv.ts";

/** More lines than these are taken in several goes. */
const MOST_LINES = 500;

/** A statement that was pasted. */
export interface Statement {
  format: "CSV" | "camt";
  /** Each with its place in the text. */
  lines: { at: number; line: StatementLine }[];
  /** Rows that cannot be taken, and why. */
  refused: { at: number; problem: string }[];
  /** Entries that are no money that came in. */
  skipped: number;
}

/** A statement as it was pasted, every row checked; or what is wrong with it as a whole. */
export type ReadStatement = { ok: true; statement: Statement } | { ok: false; problem: string };

/** Reads a statement of a bank: XML of ISO 20022 where it begins with `<`, else CSV with a header. */
export function readStatement(
  text: string,
  { bank, currencies }: { bank: string; currencies: readonly string[] },
): ReadStatement {
  const isXml = text.trimStart().startsWith("<");
  const read = isXml ? readCamt(text) : withNoneSkipped(readCsv(text));
  if (!read.ok) return read;
  const { rows, skipped } = read.value;
  if (rows.length > MOST_LINES) {
    return {
      ok: false,
      problem: `expected at most ${MOST_LINES} lines at once, got ${rows.length}; paste them in parts`,
    };
  }
  const statement: Statement = { format: isXml ? "camt" : "CSV", lines: [], refused: [], skipped };
  const seen = new Map<string, number>();
  for (const { at, fields } of rows) {
    const field = (name: string) => fields[name] ?? "";
    const typed = { bank, bankRef: field("bankRef"), valueDate: field("valueDate"), amount: field("amount") };
    const rest = { currency: field("currency"), sender: field("sender"), remittance: field("remittance") };
    const checked = checkLine({ ...typed, ...rest }, currencies);
    const first = checked.ok ? seen.get(checked.value.bankRef) : undefined;
    if (!checked.ok) statement.refused.push({ at, problem: checked.problem });
    else if (first !== undefined)
      statement.refused.push({ at, problem: `the same bank reference as in ${first}: ${checked.value.bankRef}` });
    else {
      seen.set(checked.value.bankRef, at);
      statement.lines.push({ at, line: checked.value });
    }
  }
  return { ok: true, statement };
}

function withNoneSkipped(
  read: ReturnType<typeof readCsv>,
): { ok: true; value: { rows: RawRow[]; skipped: number } } | { ok: false; problem: string } {
  return read.ok ? { ok: true, value: { rows: read.value, skipped: 0 } } : read;
}
