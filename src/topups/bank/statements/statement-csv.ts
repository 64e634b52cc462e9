import { CsvError, parse } from "csv-parse/sync";
import { z } from "zod";
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
const REQUIRED = ["bankRef", "valueDate", "amount", "currency", "sender"];

/** What the parser returns with `info`: `lines` is the line on which a record ends. */
const withInfo = z.array(z.object({ record: z.array(z.string()), info: z.object({ lines: z.int() }) }));

/**
 * Reads the rows of a CSV statement, at most `mostRows` of them: the parser takes 50 µs for each row with another number
 * of columns than the header. The separator is a comma, semicolon or tab, whichever is most frequent in the
 * header. Columns may be in any order and have several names; unknown ones are ignored.
 *
 * @example
 * readCsv("bank_ref;value_date;amount;currency;sender;text\nA1;2026-11-20;10,00;EUR;\"Doe; Ann\";hi", 500).value.rows[0].fields.sender; // => "Doe; Ann"
 * readCsv("ref;date;amount;currency;Payer\nA1;22.11.2026;10,00;EUR;Ann", 500).value.rows[0].fields.sender; // => "Ann"
 * readCsv("a,b\n1,2", 500).problem; // => "the header has no column for bank_ref, value_date, amount, currency, sender"
 */
export function readCsv(text: string, mostRows: number): Parsed<{ rows: RawRow[]; skipped: number }> {
  const parsed = recordsOf(text, mostRows + 1);
  if (!parsed.ok) return parsed;
  const [titles, ...records] = parsed.value;
  const columns = titles?.cells.map(columnOf) ?? [];
  const missing = REQUIRED.filter((name) => !columns.includes(name));
  if (missing.length > 0) {
    return { ok: false, problem: `the header has no column for ${missing.map(snake).join(", ")}` };
  }
  const twice = columns.find((name, place) => name !== null && columns.indexOf(name) !== place);
  if (twice != null) return { ok: false, problem: `the header has two columns for ${snake(twice)}` };
  const rows = records.map(({ cells, at }) => {
    const fields = columns.flatMap((name, place) => (name === null ? [] : [[name, cells[place] ?? ""] as const]));
    return { at, fields: Object.fromEntries(fields) };
  });
  return { ok: true, value: { rows, skipped: 0 } };
}

/** Records that are not empty, each with the line on which it begins. */
function recordsOf(text: string, most: number): Parsed<{ cells: string[]; at: number }[]> {
  const lines = text.replaceAll(/\r\n?/g, "\n"); // the parser counts \r\n inside quotes as two lines
  const header = lines.split("\n", 1)[0] ?? "";
  const [delimiter = ","] = [",", ";", "\t"].toSorted((a, b) => header.split(b).length - header.split(a).length);
  try {
    const records = parse(lines, {
      bom: true,
      delimiter,
      record_delimiter: "\n",
      info: true,
      trim: true,
      relax_column_count: true,
      to: most,
      relax_quotes: true, // a quote inside an unquoted field, as in 5" pipe
      skip_empty_lines: true,
      skip_records_with_empty_values: true, // such as ;;
    });
    const value = withInfo.parse(records).map(({ record, info }) => {
      const breaks = record.reduce((sum, cell) => sum + cell.split("\n").length - 1, 0);
      return { cells: record, at: info.lines - breaks };
    });
    return { ok: true, value };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return { ok: false, problem: `expected CSV, got: ${error.message}` };
  }
}

function columnOf(title: string): string | null {
  const bare = title.toLowerCase().replaceAll(/[^a-z]/g, "");
  return Object.keys(NAMES).find((name) => NAMES[name]?.includes(bare)) ?? null;
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
