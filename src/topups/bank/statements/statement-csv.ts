import { CsvError, parse } from "csv-parse/sync";
import type { Parsed } from "./amount.ts";

/** A row of a statement before it is checked. */
export interface RawRow {
  /** Its row in the text, counted from 1. */
  at: number;
  fields: Readonly<Record<string, string>>;
  /** Whether the bank gave the reference, to this row alone. Otherwise rows with equal fields may be different payments. */
  isBankRef: boolean;
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
/** An amount of a bank that separates thousands by commas. */
const GROUPED = /^[+-]?\d{1,3}(?:,\d{3})*\.\d\d$/;
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
  /** Why it cannot be read unless the bank writes separators of thousands. */
  unclear?: string;
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
  const [titles, ...found] = recordsOf(text, mostRows + 1);
  if (titles?.problem !== undefined) return { ok: false, problem: `expected CSV with a header: ${titles.problem}` };
  const columns = titles?.cells.map(columnOf) ?? [];
  const missing = REQUIRED.filter((name) => !columns.includes(name));
  if (missing.length > 0) {
    return { ok: false, problem: `the header has no column for ${missing.map(snake).join(", ")}` };
  }
  const twice = columns.find((name, place) => name !== null && columns.indexOf(name) !== place);
  if (twice != null) return { ok: false, problem: `the header has two columns for ${snake(twice)}` };
  const records = withoutUnclear(found, columns.indexOf("amount"));
  const direction = directionColumn(titles?.cells ?? [], records);
  if (!direction.ok) return direction;
  const column = direction.value;
  const layout = layoutOf(titles?.cells ?? [], columns, column?.place ?? null);
  const shortest = Math.min(...records.filter((one) => isWhole(one, layout)).map(({ cells }) => cells.length));
  const listed = column === null ? records : records.filter((one) => !DEBITS.includes(wordAt(one, column.place)));
  const rows = listed.map((record) => {
    const fields = columns.flatMap((name, place) =>
      name === null ? [] : [[name, record.cells[place] ?? ""] as const],
    );
    const problem =
      record.problem ??
      countProblem(record, layout, shortest) ??
      (column === null ? undefined : directionProblem(record, column));
    return {
      at: record.at,
      fields: Object.fromEntries(fields),
      isBankRef: true,
      ...(problem !== undefined && { problem }),
    };
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

/**
 * Refuses quoted numbers such as "1,234,567.89" unless each amount of the file has decimals and separators of thousands:
 * otherwise the quotes may be a payer's, and 234 the amount.
 */
function withoutUnclear(records: readonly CsvRecord[], amount: number): CsvRecord[] {
  const amounts = records.map(({ cells }) => (cells[amount] ?? "").trim()).filter((cell) => cell !== "");
  if (amounts.every((cell) => GROUPED.test(cell))) return [...records];
  return records.map((one) => (one.unclear === undefined ? one : { at: one.at, cells: [], problem: one.unclear }));
}

/** How many cells a row may have. */
interface Layout {
  /** The number of cells of the header. */
  all: number;
  /** That number without empty titles at the end. */
  titled: number;
  /** The places of the cells without which a row is refused. */
  required: number[];
  /** Whether separators in a text may move an amount or another fact: one of these follows a text. */
  isMovable: boolean;
}

function layoutOf(titles: readonly string[], columns: readonly (string | null)[], direction: number | null): Layout {
  const places = REQUIRED.map((name) => columns.indexOf(name));
  const facts = places.filter((place) => columns[place] !== "sender").concat(direction ?? []);
  const firstText = columns.findIndex((_, place) => !facts.includes(place));
  return {
    all: titles.length,
    titled: titles.findLastIndex((title) => title !== "") + 1,
    required: places.concat(direction ?? []),
    isMovable: firstText !== -1 && facts.some((place) => place > firstText),
  };
}

/** Whether a row has all required cells, as no footer has. */
function isWhole({ cells }: CsvRecord, { required }: Layout): boolean {
  return required.every((place) => (cells[place] ?? "") !== "");
}

/**
 * A payer's separators in a text that the bank does not quote could put any amount into the row. If the bank leaves out
 * empty last cells, the row is not longer than the header then, but longer than others.
 */
function countProblem(record: CsvRecord, layout: Layout, shortest: number): string | undefined {
  const { all, titled, isMovable } = layout;
  const { length } = record.cells;
  const isBeyond = record.cells.slice(titled).some((cell) => cell !== "");
  const moved = "a separator in a text may have moved them; enter this line manually";
  if (length > all || isBeyond) {
    return `expected at most ${isBeyond ? titled : all} cells as in the header, got ${length}: ${moved}`;
  }
  if (!isMovable || !isWhole(record, layout)) return undefined;
  if (length > shortest) return `expected ${shortest} cells as in the shortest row, got ${length}: ${moved}`;
  if (length < titled) return `expected ${titled} cells as in the header, got ${length}: ${moved}`;
  return undefined;
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

function cellsOf(line: string, delimiter: string): Omit<CsvRecord, "at"> {
  if (!line.includes('"')) return { cells: line.split(delimiter).map((cell) => cell.trim()) };
  try {
    const [cells = []] = parse(line, {
      delimiter,
      record_delimiter: "\n",
      trim: true,
      relax_quotes: true, // a quote inside an unquoted cell, as in 5" pipe
    });
    const hidden = (texts: readonly string[]) =>
      texts
        .flatMap((cell) => cell.split(delimiter).slice(1, -1))
        .find((between) => isPadded(line, delimiter) || mayBeCell(between));
    const first = hidden(cells);
    if (first === undefined) return { cells };
    const problem = `quotes enclose "${first.trim().slice(0, 40)}" between separators, which may be a cell of its own; enter this line manually`;
    const isUnclear = delimiter === "," && hidden(cells.filter((cell) => !GROUPED.test(cell))) === undefined;
    return isUnclear ? { cells, unclear: problem } : { cells: [], problem };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    if (error.code === "CSV_QUOTE_NOT_CLOSED") return { cells: [], problem: NOT_CLOSED };
    return { cells: [], problem: `a quote is followed by other text than a separator; enter this line manually` };
  }
}

/**
 * Whether a text between two separators is a cell of the bank rather than of a sentence, which has a space after each.
 * A direction, a currency, a number, a date and an empty text may be cells in spite of a space.
 */
function mayBeCell(between: string): boolean {
  const bare = between.trim();
  if (!/^\s/.test(between) || bare === "" || isDirection(bare.toLowerCase())) return true;
  return /^[A-Z]{3}$/.test(bare) || /^[+\-\u2212(]?\s*\d[\d\s.,'\u2019:/-]*\)?$/u.test(bare);
}

/** Whether a line has a space before a separator, as banks that align cells write and sentences do not. */
function isPadded(line: string, delimiter: string): boolean {
  return line.includes(` ${delimiter}`);
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
