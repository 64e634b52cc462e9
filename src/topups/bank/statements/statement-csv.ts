import { CsvError, parse } from "csv-parse/sync";
import type { Parsed } from "./amount.ts";

/** A row of a statement before it is checked. */
export interface RawRow {
  /** Its row in the text, counted from 1. */
  at: number;
  fields: Readonly<Record<string, string>>;
  /** Why it cannot be imported, if that is already known. */
  problem?: string;
}

/** Accepted column titles, in lower case and without punctuation. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  bankRef: ["bankref", "bankreference", "transactionid", "entryreference", "ref"],
  valueDate: ["valuedate", "date", "valuta"],
  amount: ["amount", "credit"],
  currency: ["currency", "ccy"],
  sender: ["sender", "sendername", "name", "debtor", "from", "payer", "payername"],
  remittance: ["remittance", "remittancetext", "text", "details", "description", "purpose", "reference"],
};
/** Accepted titles of the column that distinguishes credits from debits. */
const DIRECTION = "debitcredit creditdebit dc cd drcr crdr creditdebitindicator indicator direction sollhaben".split(
  " ",
);
/** Many banks list kinds of payments in it, such as FPI, BGC, DD and CR, next to amounts with a sign. */
const MAYBE_DIRECTION = "type";
const CREDITS = ["credit", "c", "cr", "crdt", "h", "haben", "in", "incoming"];
const DEBITS = ["debit", "d", "dr", "dbit", "s", "soll", "out", "outgoing"];
const NOT_CLOSED = "a quote is not closed in this line; enter this line manually";
const REQUIRED = ["bankRef", "valueDate", "amount", "currency", "sender"];

/** A line that is not empty. */
interface CsvRecord {
  /** Empty if the line cannot be read. */
  cells: string[];
  /** Its number, counted from 1. */
  at: number;
  /** Why it cannot be read. */
  problem?: string;
}

/**
 * Reads the rows of a CSV statement, at most `mostRows` of them. Each line is a row. The separator is a comma, semicolon
 * or tab, whichever is most frequent in the header. Columns may be in any order and have several names; unknown ones are
 * ignored. If a column states the direction, `skipped` counts the debits, and a row without a known direction has a
 * problem.
 *
 * Not every bank quotes or escapes the texts of payers. So a row has a problem if separators or quotes in a text may have
 * moved its cells, or if it may be part of a text with line breaks.
 *
 * @example
 * readCsv("bank_ref;value_date;amount;currency;sender;text\nA1;2026-11-20;10,00;EUR;\"Doe; Ann\";hi", 500).value.rows[0].fields.sender; // => "Doe; Ann"
 * readCsv("ref;date;amount;currency;Payer\nA1;22.11.2026;10,00;EUR;Ann", 500).value.rows[0].fields.sender; // => "Ann"
 * readCsv("ref;date;amount;currency;payer;D/C\nA1;2026-11-20;10,00;EUR;Ann;D", 500).value.skipped; // => 1
 * readCsv("ref;date;amount;currency;payer;type\nA1;2026-11-20;10,00;EUR;Ann;DD", 500).value.skipped; // => 0
 * readCsv("a,b\n1,2", 500).problem; // => "the header has no column for bank_ref, value_date, amount, currency, sender"
 */
export function readCsv(text: string, mostRows: number): Parsed<{ rows: RawRow[]; skipped: number }> {
  const [titles, ...records] = recordsOf(text, mostRows + 1);
  if (titles?.problem !== undefined) return { ok: false, problem: `expected CSV with a header: ${titles.problem}` };
  const columns = titles?.cells.map(columnOf) ?? [];
  const missing = REQUIRED.filter((name) => !columns.includes(name));
  if (missing.length > 0) {
    return { ok: false, problem: `the header has no column for ${missing.map(snake).join(", ")}` };
  }
  const twice = columns.find((name, place) => name !== null && columns.indexOf(name) !== place);
  if (twice != null) return { ok: false, problem: `the header has two columns for ${snake(twice)}` };
  const found = directionColumn(titles?.cells ?? [], records);
  if (!found.ok) return found;
  const column = found.value;
  const listed = column === null ? records : records.filter((one) => !DEBITS.includes(wordAt(one, column.place)));
  const rows = listed.map((record) => {
    const fields = columns.flatMap((name, place) =>
      name === null ? [] : [[name, record.cells[place] ?? ""] as const],
    );
    const problem =
      record.problem ??
      surplusProblem(record, columns.length) ??
      (column === null ? undefined : directionProblem(record, column));
    return { at: record.at, fields: Object.fromEntries(fields), ...(problem !== undefined && { problem }) };
  });
  return { ok: true, value: { rows, skipped: records.length - rows.length } };
}

/** The column that states the direction of each row. */
interface DirectionColumn {
  place: number;
  title: string;
}

/** The column that states the direction, if there is one. It is refused if it has no direction in any row. */
function directionColumn(titles: readonly string[], records: readonly CsvRecord[]): Parsed<DirectionColumn | null> {
  const bare = titles.map(bareTitle);
  const places = [...bare.keys()].filter((place) => DIRECTION.includes(bare[place] ?? ""));
  const maybe = [...bare.keys()].filter((place) => {
    const words = records.map((record) => wordAt(record, place)).filter((word) => word !== "");
    return bare[place] === MAYBE_DIRECTION && words.length > 0 && words.every(isDirection);
  });
  const [place, another] = places.length > 0 ? places : maybe;
  if (place === undefined) return { ok: true, value: null };
  if (another !== undefined) return { ok: false, problem: "the header has two columns for direction" };
  const column = { place, title: titles[place] ?? "" };
  if (records.length > 0 && !records.some((record) => isDirection(wordAt(record, place)))) {
    const other = records.find((record) => wordAt(record, place) !== "");
    const got =
      other === undefined
        ? "nothing in any row"
        : `none of them in any row, but ${shownAt(other, place)} in line ${other.at}`;
    const advice = "replace its values, or rename the column if it does not state the direction";
    return { ok: false, problem: `${expectedIn(column)}, got ${got}; ${advice}` };
  }
  return { ok: true, value: column };
}

function directionProblem(record: CsvRecord, column: DirectionColumn): string | undefined {
  if (isDirection(wordAt(record, column.place))) return undefined;
  return `${expectedIn(column)}, got ${shownAt(record, column.place)}`;
}

function expectedIn({ title }: DirectionColumn): string {
  return `expected ${oneOf(CREDITS)}, or ${oneOf(DEBITS)}, in the column "${title.slice(0, 40)}"`;
}

function shownAt({ cells }: CsvRecord, place: number): string {
  const cell = cells[place]?.trim() ?? "";
  return cell === "" ? "nothing" : `"${cell.slice(0, 40)}"`;
}

/** The cell in lower case; the parser does not trim inside quotes. */
function wordAt({ cells }: CsvRecord, place: number): string {
  return (cells[place] ?? "").trim().toLowerCase();
}

function isDirection(word: string): boolean {
  return CREDITS.includes(word) || DEBITS.includes(word);
}

/** A payer's separators in a text that the bank does not quote could put any amount into the row. */
function surplusProblem({ cells }: CsvRecord, most: number): string | undefined {
  if (cells.length <= most) return undefined;
  return `expected at most ${most} cells as in the header, got ${cells.length}: a separator in a text may have moved them; enter this line manually`;
}

/** The first `most` lines that have a cell with text. */
function recordsOf(text: string, most: number): CsvRecord[] {
  const lines = text
    .replace(/^\uFEFF/, "")
    .replaceAll(/\r\n?/g, "\n")
    .split("\n");
  const header = lines.find((line) => line.trim() !== "") ?? "";
  const [delimiter = ","] = [",", ";", "\t"].toSorted((a, b) => header.split(b).length - header.split(a).length);
  const records: CsvRecord[] = [];
  let opened: { at: number; until: number } | null = null;
  for (const [place, line] of lines.entries()) {
    const at = place + 1;
    const isInside = opened !== null && place <= opened.until;
    const read: Omit<CsvRecord, "at"> = isInside
      ? {
          cells: [],
          problem: `may belong to the text whose quote opens in line ${opened?.at}; enter this line manually`,
        }
      : cellsOf(line, delimiter);
    if (read.problem === NOT_CLOSED) opened = { at, until: closingPlace(lines, place) };
    const isEmpty = read.problem === undefined && read.cells.every((cell) => cell === "");
    if (!isEmpty) records.push({ ...read, at });
    if (records.length === most) break;
  }
  return records;
}

/**
 * The place of the line that closes a quote which another line opens: the next with an odd number of quotes. If there is
 * none, the quote is a stray one, and the place is that of its own line.
 */
function closingPlace(lines: readonly string[], from: number): number {
  const place = lines.findIndex((line, at) => at > from && line.split('"').length % 2 === 0);
  return place === -1 ? from : place;
}

function cellsOf(line: string, delimiter: string): Pick<CsvRecord, "cells" | "problem"> {
  if (!line.includes('"')) return { cells: line.split(delimiter).map((cell) => cell.trim()) };
  try {
    const [cells = []] = parse(line, {
      delimiter,
      record_delimiter: "\n",
      trim: true,
      relax_quotes: true, // a quote inside an unquoted cell, as in 5" pipe
    });
    const hidden = cells.flatMap((cell) => cell.split(delimiter).slice(1, -1)).find(mayBeCell);
    if (hidden === undefined) return { cells };
    const problem = `quotes enclose "${hidden.trim().slice(0, 40)}" between separators, which may be a cell of its own; enter this line manually`;
    return { cells: [], problem };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    if (error.code === "CSV_QUOTE_NOT_CLOSED") return { cells: [], problem: NOT_CLOSED };
    return { cells: [], problem: `a quote is followed by other text than a separator; enter this line manually` };
  }
}

/** Whether a text between two separators is a cell of the bank rather than of a sentence, which has a space after each. */
function mayBeCell(between: string): boolean {
  return !/^\s/.test(between) || /^[+-]?\d[\d\s.,']*$/.test(between.trim());
}

function columnOf(title: string): string | null {
  const bare = bareTitle(title);
  return Object.keys(NAMES).find((name) => NAMES[name]?.includes(bare)) ?? null;
}

function bareTitle(title: string): string {
  return title.toLowerCase().replaceAll(/[^a-z]/g, "");
}

function oneOf(words: readonly string[]): string {
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
