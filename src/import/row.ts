import type { HouseRound } from "../houses/contract.ts";
import { describe } from "../houses/reading/excerpt.ts";
import { parseMultiplier, type ParsedMultiplier } from "../houses/reading/multiplier.ts";
import { parseOccurredAt } from "../houses/reading/occurred-at.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import type { Moment } from "../iso-time.ts";
import { numberOf } from "../rounds/round.ts";

/** A row of a file, each field trimmed; null if it is empty or its column is missing. */
export interface FileRow {
  line: number;
  roundId: string | null;
  multiplier: string | null;
  occurredAt: string | null;
  hash: string | null;
}

/** A time of a file; `clock` if the local clock showed it twice or never, and a rule decided. */
export interface ImportedMoment extends Moment {
  clock?: "twice" | "never";
}

/** How the texts of a file are read, if they differ from what houses send. */
export interface RowReaders {
  /** Reads a time; null or a reason for an invalid one. Without this reader, times without a zone are UTC. */
  readTime?: (text: string) => ImportedMoment | { reason: string } | null;
  /** Reads a multiplier; without this reader, in the notation of houses. */
  readMultiplier?: (text: string | null) => ParsedMultiplier;
}

/** Ids for a file without any: `prefix` and the number of the row, `first` for the oldest. */
export interface RowNumbers {
  prefix: string;
  first: bigint;
}

/** The options for reading a row. */
export interface RowOptions extends RowReaders {
  settings: TableSettings;
  /** Milliseconds since 1970; a round that ends more than a day later is refused. */
  now: number;
  /** The ids of rows are their numbers, counted from 1 in the order of the file. */
  rowNumbers?: RowNumbers;
}

/** A row as a round, or why it is not one. */
export type ReadRow =
  { ok: true; round: HouseRound; ms: number | null; clock: ImportedMoment["clock"] } | { ok: false; reason: string };

/**
 * A wrong zone shifts a clock by up to 14 hours; a round further in the future would be listed as the newest
 * permanently.
 */
const LONGEST_AHEAD_MS = 86_400_000;
/** No crash game is older: an earlier time is a number that is no time, such as a date of a spreadsheet or a duration. */
const EARLIEST_MS = Date.UTC(2010);

/** Reads a row as a round. If rows are numbered, the first row of the file has the first number. */
export function readRow(row: FileRow, options: RowOptions): ReadRow {
  const roundId = idOf(row, options);
  if (roundId === null) return { ok: false, reason: "expected a round_id, found nothing" };
  if (roundId.length > 128 || /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(roundId)) {
    return { ok: false, reason: `expected a round_id of 1 to 128 characters, found ${describe(roundId)}` };
  }
  if (options.settings.round_ids === "consecutive" && numberOf(roundId) === null) {
    const reason = `expected a whole number without leading zeros as round_id, found ${describe(roundId)}`;
    return { ok: false, reason };
  }
  const { readMultiplier = multiplierOf(options.settings) } = options;
  const value = readMultiplier(row.multiplier);
  if (!value.ok) return value;
  const time = timeOf(row.occurredAt, options);
  if (!time.ok) return time;
  const proof = row.hash?.toLowerCase() ?? null;
  if (proof !== null && !/^[0-9a-f]{64}$/.test(proof)) {
    return { ok: false, reason: `expected a hash of 64 hexadecimal digits, found ${describe(row.hash)}` };
  }
  const { hundredths, rawValue } = value;
  const { moment } = time;
  const round = { roundId, hundredths, rawValue, occurredAt: moment?.iso ?? null, hash: proof };
  return { ok: true, round, ms: moment?.ms ?? null, clock: moment?.clock };
}

function idOf({ roundId }: FileRow, { rowNumbers }: RowOptions): string | null {
  return rowNumbers === undefined || roundId === null ? roundId : numberedId(rowNumbers, BigInt(roundId) - 1n);
}

/** The id of a row, by its place after the oldest. */
export function numberedId({ prefix, first }: RowNumbers, place: bigint): string {
  return `${prefix}${first + place}`;
}

function multiplierOf({ feed }: TableSettings): NonNullable<RowReaders["readMultiplier"]> {
  return (text) => parseMultiplier(text, { scale: 1, instant: feed.instant });
}

function timeOf(
  text: string | null,
  { now, readTime = parseOccurredAt }: RowOptions,
): { ok: true; moment: ImportedMoment | null } | { ok: false; reason: string } {
  if (text === null) return { ok: true, moment: null };
  const read = readTime(text);
  if (read === null) {
    const reason = `expected a time as occurred_at (ISO 8601, seconds or milliseconds since 1970), found ${describe(text)}`;
    return { ok: false, reason };
  }
  if ("reason" in read) return { ok: false, reason: read.reason };
  if (read.ms < EARLIEST_MS) {
    const reason = `expected a time of 2010 or later as occurred_at, found ${read.iso}, read from ${describe(text)}; write times in ISO 8601, or as seconds since 1970`;
    return { ok: false, reason };
  }
  const latest = now + LONGEST_AHEAD_MS;
  if (read.ms <= latest) return { ok: true, moment: read };
  const reason = `expected a time as occurred_at, at most ${new Date(latest).toISOString()}, found ${read.iso}`;
  return { ok: false, reason };
}
