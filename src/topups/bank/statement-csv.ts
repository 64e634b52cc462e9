import type { Parsed } from "./amount.ts";

/** A row of a statement, before anything in it is checked: its place in the text, counted from 1, and its fields by name. */
export interface RawRow {
  at: number;
  fields: Readonly<Record<string, string>>;
}

/** What a column may be called, small and without signs. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  bankRef: ["bankref", "bankreference", "transactionid", "entryreference", "ref"],
  valueDate: ["valuedate", "date", "valuta"],
  amount: ["amount", "credit"],
  currency: ["currency", "ccy"],
  sender: ["sender", "sendername", "name", "debtor", "from"],
  remittance: ["remittance", "remittancetext", "text", "details", "description", "purpose", "reference"],
};
const NEEDED = ["bankRef", "valueDate", "amount", "currency", "sender"];

/**
 * Rows of a statement as CSV (RFC 4180), with commas, semicolons or tabs, whichever its header has most of. Columns may be
 * in any order and under several names; unknown ones are left out.
 *
 * @example
 * readCsv("bank_ref;value_date;amount;currency;sender;text\nA1;2026-11-20;10,00;EUR;\"Doe; Ann\";hi").value[0].fields.sender; // => "Doe; Ann"
 * readCsv("a,b\n1,2"); // => { ok: false, problem: "the header has no column for bank_ref, value_date, amount, currency, sender" }
 */
export function readCsv(text: string): Parsed<RawRow[]> {
  const header = text.split(/\r?\n/, 1)[0] ?? "";
  const separator = [",", ";", "\t"].toSorted((a, b) => header.split(b).length - header.split(a).length)[0] ?? ",";
  const rows = splitRows(text, separator);
  if (rows === null) return { ok: false, problem: "a quoted field has no end" };
  const [names = { cells: [], at: 1 }, ...lines] = rows;
  const columns = names.cells.map(columnOf);
  const missing = NEEDED.filter((name) => !columns.includes(name));
  if (missing.length > 0) {
    return { ok: false, problem: `the header has no column for ${missing.map(snake).join(", ")}` };
  }
  const twice = columns.find((name, place) => name !== null && columns.indexOf(name) !== place);
  if (twice != null) return { ok: false, problem: `the header has two columns for ${snake(twice)}` };
  const value = lines.map(({ cells, at }) => {
    const fields = Object.fromEntries(
      columns.flatMap((name, place) => (name === null ? [] : [[name, cells[place] ?? ""]])),
    );
    return { at, fields };
  });
  return { ok: true, value };
}

function columnOf(title: string): string | null {
  const bare = title.toLowerCase().replaceAll(/[^a-z]/g, "");
  return Object.keys(NAMES).find((name) => NAMES[name]?.includes(bare)) ?? null;
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Rows with their cells, empty rows left out; null where a quote is never closed. */
function splitRows(text: string, separator: string): { cells: string[]; at: number }[] | null {
  const rows: { cells: string[]; at: number }[] = [];
  let [cells, cell, isQuoted, line, at] = [[] as string[], "", false, 1, 1];
  const endRow = () => {
    cells.push(cell);
    if (cells.some((one) => one.trim() !== "")) rows.push({ cells, at });
    [cells, cell] = [[], ""];
  };
  const all = text.replace(/^\u{FEFF}/u, "").replaceAll("\r\n", "\n");
  for (let place = 0; place < all.length; place += 1) {
    const character = all.charAt(place);
    if (character === "\n") line += 1;
    if (isQuoted) {
      if (character !== '"') cell += character;
      else if (all.charAt(place + 1) === '"') {
        cell += '"';
        place += 1;
      } else isQuoted = false;
    } else if (character === '"' && cell.trim() === "") [cell, isQuoted] = ["", true];
    else if (character === separator) {
      cells.push(cell);
      cell = "";
    } else if (character === "\n") {
      endRow();
      at = line;
    } else cell += character;
  }
  if (isQuoted) return null;
  endRow();
  return rows;
}
