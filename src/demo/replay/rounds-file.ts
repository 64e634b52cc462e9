import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { parse } from "csv-parse/sync";
import { z } from "zod";
import { parseMultiplier } from "../../houses/reading/multiplier.ts";
import { parseOccurredAt } from "../../houses/reading/occurred-at.ts";

/** A round as a file has it, in the order of the file. */
export interface RecordedRound {
  /** The house's own, or the number of the row among the rounds of a file without ids, from 1. */
  id: string;
  /** The multiplier as it is written in the file; null if it was not recorded. */
  multiplier: string | null;
  /** Whole hundredths, floored; 100 for an instant crash; null if there is no multiplier. */
  hundredths: number | null;
  /** Epoch milliseconds of its recorded time, a local clock without zone taken for UTC; null if the file has no clock. */
  occurredMs: number | null;
  /** 64 lower case hexadecimal digits, or null. */
  hash: string | null;
}

/** What a file holds. */
export interface RecordedRounds {
  rounds: RecordedRound[];
  /** True where ids are row numbers, since the file has none. */
  hasRowNumbers: boolean;
  hasClock: boolean;
  /** Rounds without a multiplier. */
  missed: number;
}

/** The recorded files are at most a few megabytes; more than this is some other file. */
const LONGEST_FILE = 256 * 1024 * 1024;
const INSTANT = ["0"];
const COLUMNS = ["round_id", "multiplier", "occurred_at", "hash"] as const;
const EXPECTED =
  "expected a header with multiplier and maybe round_id, occurred_at, hash (house, game and others are left aside)";

/** What the parser gives with `info`. */
const withInfo = z.array(z.object({ record: z.array(z.string()), info: z.object({ lines: z.int() }) }));

/** A cell under one of our columns; empty where the column is missing. */
type Cells = Record<(typeof COLUMNS)[number], string>;

/**
 * Reads recorded rounds, oldest first, from CSV or gzipped CSV (detected by its first bytes). An empty multiplier is a round
 * that was played and missed; `0` is an instant crash. Ids and times are on all rows or on none.
 * @throws Error that names the file, the line and what was expected there.
 */
export async function readRecordedRounds(file: string): Promise<RecordedRounds> {
  try {
    return recordedRounds(await textOf(file));
  } catch (error) {
    throw new Error(`${file} cannot be replayed`, { cause: error });
  }
}

/**
 * The rounds of a CSV text.
 * @throws Error with the line and what was expected there.
 *
 * @example
 * recordedRounds("round_id,multiplier\n7,1.05\n8,0").rounds.map(({ hundredths }) => hundredths) // => [105, 100]
 */
export function recordedRounds(text: string): RecordedRounds {
  const [header, ...records] = recordsOf(text);
  if (header === undefined) throw new Error(`${EXPECTED}, found an empty file`);
  const names = header.fields.map((name) => name.toLowerCase());
  const [twice] = COLUMNS.filter((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (!names.includes("multiplier") || twice !== undefined) {
    const found = JSON.stringify(header.fields.join(",").slice(0, 100));
    const why = twice === undefined ? "" : `, with ${twice} twice`;
    throw new Error(`line ${header.line}: ${EXPECTED}, found ${found}${why}`);
  }
  if (records.length === 0) throw new Error(`expected rounds below the header, found none`);
  const places = COLUMNS.map((name) => names.indexOf(name));
  const rows = records.map(({ line, fields }) => {
    if (fields.length !== names.length) {
      throw new Error(`line ${line}: expected ${names.length} fields as in the header, found ${fields.length}`);
    }
    const [round_id = "", multiplier = "", occurred_at = "", hash = ""] = places.map((place) => fields[place] ?? "");
    return { line, cells: { round_id, multiplier, occurred_at, hash } };
  });
  const hasRowNumbers = rows[0]?.cells.round_id === "";
  const hasClock = rows[0]?.cells.occurred_at !== "";
  const lines = new Map<string, number>();
  const rounds = rows.map(({ line, cells }, place) => {
    const at = (problem: string): Error => new Error(`line ${line}: ${problem}`);
    if ((cells.round_id === "") !== hasRowNumbers) throw at("expected an id on every row or on none");
    if ((cells.occurred_at !== "") !== hasClock) throw at("expected a time on every row or on none");
    const id = hasRowNumbers ? String(place + 1) : cells.round_id;
    const before = lines.get(id);
    if (before !== undefined) throw at(`expected each id once, found ${JSON.stringify(id)}, which line ${before} has`);
    lines.set(id, line);
    return { id, ...valueOf(cells, at), occurredMs: timeOf(cells, at), hash: hashOf(cells, at) };
  });
  const missed = rounds.filter(({ multiplier }) => multiplier === null).length;
  return { rounds, hasRowNumbers, hasClock, missed };
}

async function textOf(file: string): Promise<string> {
  const bytes = await readFile(file);
  const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const plain = isGzip ? gunzipSync(bytes, { maxOutputLength: LONGEST_FILE }) : bytes;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(plain);
  } catch {
    throw new Error("expected UTF-8 text or a gzip of it"); // the decoder does not say where
  }
}

/** Records with the line each ends on; most files have no quotes, and are split many times faster than they are parsed. */
function recordsOf(text: string): { line: number; fields: string[] }[] {
  if (!text.includes('"')) {
    return text
      .split(/\r\n|\n|\r/)
      .map((record, place) => ({ line: place + 1, fields: record.split(",").map((field) => field.trim()) }))
      .filter(({ fields }) => fields.length > 1 || fields[0] !== "");
  }
  const parsed = withInfo.parse(
    parse(text, { info: true, relax_column_count: true, skip_empty_lines: true, trim: true }),
  );
  return parsed.map(({ record, info }) => ({ line: info.lines, fields: record }));
}

function valueOf({ multiplier }: Cells, at: (problem: string) => Error) {
  if (multiplier === "") return { multiplier: null, hundredths: null };
  const isPlain = /^\d+(\.\d+)?$/.test(multiplier);
  const value = parseMultiplier(multiplier, { scale: 1, instant: INSTANT });
  if (isPlain && value.ok) return { multiplier, hundredths: value.hundredths };
  const found = JSON.stringify(multiplier.slice(0, 40));
  throw at(
    `expected a multiplier such as 1.87, 0 for an instant crash, or nothing where it was missed; found ${found}`,
  );
}

function timeOf({ occurred_at }: Cells, at: (problem: string) => Error): number | null {
  if (occurred_at === "") return null;
  const moment = parseOccurredAt(occurred_at);
  if (moment !== null) return Math.floor(moment.ms);
  throw at(`expected a time such as 2026-03-17T15:09:55Z, found ${JSON.stringify(occurred_at.slice(0, 40))}`);
}

function hashOf({ hash }: Cells, at: (problem: string) => Error): string | null {
  if (hash === "") return null;
  if (/^[0-9a-f]{64}$/i.test(hash)) return hash.toLowerCase();
  throw at(`expected a hash of 64 hexadecimal digits, found ${JSON.stringify(hash.slice(0, 40))}`);
}
