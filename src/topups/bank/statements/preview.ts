import type { Queryable } from "../../../db/client.ts";
import { type ExpectedTransfer, findTransfers } from "../expected-store.ts";
import { compareLines, listTwinsOfEach, type Twin } from "../line-store.ts";
import type { StatementLine } from "../line.ts";
import type { Statement } from "./parse-statement.ts";

/** What importing a row of a statement would do, and which top-up its money would be matched with. */
export type Verdict =
  /** Its text has the reference of this transfer; `isTypo`: with a typo, so an operator has to check it. */
  | { is: "matched"; transfer: ExpectedTransfer; isTypo: boolean }
  /** Its text has references of several transfers. */
  | { is: "ambiguous"; transfers: ExpectedTransfer[] }
  /** Its text has a well-formed reference that we have not given to anybody. */
  | { is: "unknown"; reference: string }
  | { is: "no-reference" }
  /** It is stored already, with the same facts. */
  | { is: "duplicate"; id: bigint }
  /** It repeats an earlier row of the statement. */
  | { is: "repeated"; row: number }
  /** Another line has its bank reference. */
  | { is: "conflict"; id: bigint; differs: string[] }
  /** It cannot be read. */
  | { is: "refused"; problem: string };

/** A row of a statement; refused ones have no line. */
export interface PreviewRow {
  /** Its row in the file. */
  at: number;
  line: StatementLine | null;
  verdict: Verdict;
  /** Stored lines of the same day, amount and sender, if importing the row stores its line. */
  twins: Twin[];
}

/** The numbers of rows by what importing does with them. */
export interface PreviewCounts {
  /** Rows that are imported: `matched`, `unmatched` and `notCreditable` of them. */
  imported: number;
  /** They name one transfer. */
  matched: number;
  /** They name none, several, or an unknown one: an operator decides. */
  unmatched: number;
  /** They name a transfer of a closed account, which cannot be credited. */
  notCreditable: number;
  /** Imported rows that may be stored already under another bank reference. */
  possibleDuplicates: number;
  duplicates: number;
  conflicts: number;
  refused: number;
}

/** Returns every row of a statement in the order of the file, with what importing it would do. Writes nothing. */
export async function previewStatement(sql: Queryable, statement: Statement): Promise<PreviewRow[]> {
  const { lines, repeated, refused } = statement;
  const read = lines.map(({ line }) => line);
  const [compared, twins] = await Promise.all([compareLines(sql, read), listTwinsOfEach(sql, read)]);
  const names = lines.flatMap(({ references: { exact, close } }) => [...exact, ...close]);
  const transfers = new Map((await findTransfers(sql, names)).map((transfer) => [transfer.reference, transfer]));
  const found = (references: readonly string[]) => references.flatMap((name) => transfers.get(name) ?? []);
  const verdictOf = ({ references: { exact, close } }: Statement["lines"][number], place: number): Verdict => {
    const stored = compared[place];
    if (stored?.is === "same") return { is: "duplicate", id: stored.id };
    if (stored?.is === "other") return { is: "conflict", id: stored.id, differs: stored.differs };
    const [first, ...more] = found(exact.length > 0 ? exact : close);
    if (first !== undefined && more.length > 0) return { is: "ambiguous", transfers: [first, ...more] };
    if (first !== undefined) return { is: "matched", transfer: first, isTypo: exact.length === 0 };
    const [reference] = exact;
    return reference === undefined ? { is: "no-reference" } : { is: "unknown", reference };
  };
  const rows = lines.map((row, place): PreviewRow => {
    const isNew = compared[place]?.is === "new";
    return { at: row.at, line: row.line, verdict: verdictOf(row, place), twins: isNew ? (twins[place] ?? []) : [] };
  });
  const again = repeated.map(({ at, line, first }): PreviewRow => ({
    at,
    line,
    verdict: { is: "repeated", row: first },
    twins: [],
  }));
  const left = refused.map(({ at, problem }): PreviewRow => ({
    at,
    line: null,
    verdict: { is: "refused", problem },
    twins: [],
  }));
  return [...rows, ...again, ...left].toSorted((a, b) => a.at - b.at);
}

/** Whether importing a row stores its line. */
export function isImported({ verdict }: PreviewRow): boolean {
  return !["duplicate", "repeated", "conflict", "refused"].includes(verdict.is);
}

/** Counts rows by what importing does with them. */
export function countRows(rows: readonly PreviewRow[]): PreviewCounts {
  const count = (is: Verdict["is"]) => rows.filter(({ verdict }) => verdict.is === is).length;
  const notCreditable = rows.filter(({ verdict }) => verdict.is === "matched" && verdict.transfer.isClosed).length;
  const matched = count("matched") - notCreditable;
  const imported = rows.filter(isImported).length;
  return {
    imported,
    matched,
    notCreditable,
    possibleDuplicates: rows.filter(({ twins }) => twins.length > 0).length,
    unmatched: imported - matched - notCreditable,
    duplicates: count("duplicate") + count("repeated"),
    conflicts: count("conflict"),
    refused: count("refused"),
  };
}
