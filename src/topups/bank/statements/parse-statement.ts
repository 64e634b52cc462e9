import { type DecimalMark, decimalMarkOf, type Parsed } from "./amount.ts";
import { checkLine } from "../check-line.ts";
import { findExact, findReferences, type FoundReferences } from "../find-reference.ts";
import { differsIn, type StatementLine } from "../line.ts";
import { readCamt } from "./statement-camt.ts";
import { readCsv, type RawRow } from "./statement-csv.ts";

/** Longer statements are imported in parts. */
const MOST_LINES = 500;

/** A parsed bank statement. */
export interface Statement {
  format: "CSV" | "camt";
  /** Lines, each with its row in the text and the references in its text; those with a typo only if none is exact. */
  lines: { at: number; line: StatementLine; references: FoundReferences }[];
  /** Rows that repeat the line of an earlier row, which is imported once. */
  repeated: { at: number; line: StatementLine; first: number }[];
  /** Rows that cannot be imported, and why. */
  refused: { at: number; problem: string }[];
  /** The number of entries that are not booked credits. */
  skipped: number;
}

/** A statement with every row checked, or the problem with the whole text. */
export type ReadStatement = { ok: true; statement: Statement } | { ok: false; problem: string };

/** The bank of the statement, and the accepted currencies. */
export interface StatementOptions {
  bank: string;
  currencies: readonly string[];
}

/** How the amounts of a statement are read. */
interface RowOptions extends StatementOptions {
  decimalMark: DecimalMark | null;
}

/** Parses a bank statement: ISO 20022 XML if it begins with `<`, else CSV with a header. */
export function parseStatement(text: string, { bank, currencies }: StatementOptions): ReadStatement {
  const isXml = text.trimStart().startsWith("<");
  const read: Parsed<{ rows: RawRow[]; skipped: number }> = isXml ? readCamt(text) : readCsv(text, MOST_LINES + 1);
  if (!read.ok) return read;
  const { rows, skipped } = read.value;
  // the CSV reader stops above the limit, and debits count: otherwise a row behind them would be lost unnoticed
  if (rows.length + (isXml ? 0 : skipped) > MOST_LINES)
    return { ok: false, problem: `expected at most ${MOST_LINES} lines in one import, got more; import them in parts` };
  const statement: Statement = { format: isXml ? "camt" : "CSV", lines: [], repeated: [], refused: [], skipped };
  const sound = rows.flatMap(({ fields, problem }) => (problem === undefined ? (fields["amount"] ?? []) : []));
  const decimalMark = isXml ? "." : decimalMarkOf(sound);
  for (const row of rows) addRow(statement, row, { bank, currencies, decimalMark });
  return { ok: true, statement };
}

function addRow(statement: Statement, { at, fields, isBankRef, problem }: RawRow, options: RowOptions): void {
  const refuse = (why: string) => void statement.refused.push({ at, problem: why });
  if (problem !== undefined) return refuse(problem);
  const checked = checkRow(fields, options);
  if (!checked.ok) return refuse(checked.problem);
  const line = checked.value;
  const first = statement.lines.find((known) => known.line.bankRef === line.bankRef);
  if (first === undefined) {
    statement.lines.push({ at, line, references: referencesIn(line.remittance) });
    return;
  }
  const differs = differsIn(first.line, line).join(", ");
  if (differs === "" && isBankRef) statement.repeated.push({ at, line, first: first.at });
  else if (differs === "") {
    refuse(
      `the same reference as row ${first.at}: ${line.bankRef}, which the bank did not give; if this is another payment, enter it manually with another reference`,
    );
  } else refuse(`the same bank reference as row ${first.at}: ${line.bankRef}, with another ${differs}`);
}

function referencesIn(text: string): FoundReferences {
  const exact = findExact(text);
  return exact.length > 0 ? { exact, close: [] } : findReferences(text);
}

function checkRow(fields: RawRow["fields"], { bank, currencies, decimalMark }: RowOptions): Parsed<StatementLine> {
  const field = (name: string) => fields[name] ?? "";
  const typed = { bank, bankRef: field("bankRef"), valueDate: field("valueDate"), amount: field("amount") };
  const rest = { currency: field("currency"), sender: field("sender"), remittance: field("remittance") };
  return checkLine({ ...typed, ...rest }, currencies, decimalMark);
}
