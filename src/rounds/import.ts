import type { Sql, Transaction } from "../db/client.ts";
import type { HouseRound } from "../houses/contract.ts";
import type { ProvenPoint, Prover } from "../houses/fairness/prove.ts";
import { describe } from "../houses/excerpt.ts";
import { parseMultiplier } from "../houses/multiplier.ts";
import { parseOccurredAt } from "../houses/occurred-at.ts";
import type { TableSettings } from "../houses/settings.ts";
import { findProvenAbove } from "./gaps-store.ts";
import { listStaged, listStagedLines, type StagedRow } from "./import-store.ts";
import { publishTables, refreshNotices } from "./notices-store.ts";
import { anchorFor, listKnownOf, storedAnchor } from "./prepare.ts";
import { numberOf, type CheckedItem } from "./round.ts";
import { saveAdditions } from "./save.ts";
import { listTableStates, lockTables, type LockedTable } from "./store.ts";
import { takeIn } from "./take-in.ts";

/** What an import did; `refused` lists every refused line. */
export interface Imported {
  read: number;
  inserted: number;
  /** Identical repeats, of stored rounds or of earlier lines. */
  skipped: number;
  conflicts: number;
  refused: { line: number; reason: string }[];
}

/** How an import is done. */
export interface ImportOptions {
  settings: TableSettings;
  prover: Prover;
  /** Works everything out and stores nothing. */
  dryRun: boolean;
  signal: AbortSignal;
  /** Milliseconds since 1970; a round that is said to end later than a day after it is not believed. */
  now: number;
  /** Reads a time; null for what is none. Without it, times without a zone are UTC. */
  readTime?: (text: string) => { ms: number; iso: string } | null;
  /** Told now and then how many rows of how many were stored. */
  progress?: (done: number, of: number) => void;
}

/** A zone that is wrong shifts a clock by up to 14 hours; a round further ahead would be shown as the newest for ever. */
const AHEAD_BELIEVED_MS = 86_400_000;
/** Rows worked on at once: a tenth of a second each, and little memory whatever the file's size. */
const ROWS_AT_ONCE = 5_000;

/**
 * Imports staged rounds into a table; a second import of the same rows changes nothing.
 *
 * Into an empty table they are taken as they were played (by number where ids count up, else by time if every row has
 * one, else as listed) and none is late: all or nothing. Into any other table they are late, stored by the thousands,
 * and fill the gaps they are missing in. Where the table has a fairness scheme, rows with a hash are proven first; all
 * that takes long comes before the lock is taken.
 * @throws the signal's reason once it is aborted; what is stored in a table that was not empty stays.
 */
export async function importRounds(
  sql: Sql,
  tableId: number,
  staging: string,
  options: ImportOptions,
): Promise<Imported> {
  const result: Imported = { read: 0, inserted: 0, skipped: 0, conflicts: 0, refused: [] };
  const lines = await orderLines(sql, staging, options, result);
  const proofs = await proveLines(sql, tableId, staging, lines, options);
  const work = { tableId, staging, lines: lines.filter((line) => !proofs.failed.has(line)), proofs, options, result };
  for (const [line, reason] of proofs.failed) result.refused.push({ line, reason });
  const store = async (transaction: Transaction): Promise<boolean> => {
    const table = await lockOne(transaction, tableId);
    if (!table.isEmpty && !options.dryRun) return false;
    await storeLines(transaction, table, work, work.lines, table.isEmpty ? "first" : "late");
    if (options.dryRun) throw new DryRun();
    await tellAnew(transaction, tableId);
    return true;
  };
  const isDone = await sql.begin(store).catch((error: unknown) => {
    if (error instanceof DryRun) return true;
    throw error;
  });
  const left = isDone ? 0 : work.lines.length;
  for (let from = 0; from < left; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    await sql.begin(async (transaction) => {
      const table = await lockOne(transaction, tableId);
      await storeLines(transaction, table, work, work.lines.slice(from, from + ROWS_AT_ONCE), "late");
      if (from + ROWS_AT_ONCE >= work.lines.length) await tellAnew(transaction, tableId);
    });
    options.progress?.(Math.min(from + ROWS_AT_ONCE, work.lines.length), work.lines.length);
  }
  result.refused.sort((a, b) => a.line - b.line);
  return result;
}

/** Rolls a dry run back. */
class DryRun extends Error {}

/** A row as a round, or why it is none. */
type ReadRow = { ok: true; round: HouseRound; ms: number | null } | { ok: false; reason: string };

function readRow(row: StagedRow, { settings, now, readTime = parseOccurredAt }: ImportOptions): ReadRow {
  const { round_id: roundId, multiplier, occurred_at: occurredAt, hash } = row;
  if (roundId === null) return { ok: false, reason: "expected a round_id, came nothing" };
  if (roundId.length > 128 || /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(roundId)) {
    return { ok: false, reason: `expected a round_id of 1 to 128 characters, came ${describe(roundId)}` };
  }
  if (settings.round_ids === "consecutive" && numberOf(roundId) === null) {
    const reason = `expected a whole number without leading zeros as round_id, came ${describe(roundId)}`;
    return { ok: false, reason };
  }
  const value = parseMultiplier(multiplier, { scale: 1, instant: settings.feed.instant });
  if (!value.ok) return value;
  const time = occurredAt === null ? null : readTime(occurredAt);
  if (occurredAt !== null && time === null) {
    const reason = `expected a time as occurred_at (ISO 8601, seconds or milliseconds since 1970), came ${describe(occurredAt)}`;
    return { ok: false, reason };
  }
  const latest = now + AHEAD_BELIEVED_MS;
  if (time !== null && time.ms > latest) {
    const reason = `expected a time as occurred_at, at most ${new Date(latest).toISOString()}, came ${time.iso}`;
    return { ok: false, reason };
  }
  const proof = hash?.toLowerCase() ?? null;
  if (proof !== null && !/^[0-9a-f]{64}$/.test(proof)) {
    return { ok: false, reason: `expected a hash of 64 hexadecimal digits, came ${describe(hash)}` };
  }
  const { hundredths, rawValue } = value;
  const round = { roundId, hundredths, rawValue, occurredAt: time?.iso ?? null, hash: proof };
  return { ok: true, round, ms: time?.ms ?? null };
}

/** Reads all rows once: refuses the bad ones, and puts the lines of the others in the order they are taken in. */
async function orderLines(sql: Sql, staging: string, options: ImportOptions, result: Imported): Promise<number[]> {
  const keyed: { line: number; number: bigint; ms: number | null }[] = [];
  for (let afterLine = 0; ;) {
    options.signal.throwIfAborted();
    const rows = await listStaged(sql, staging, { afterLine, limit: ROWS_AT_ONCE });
    for (const row of rows) {
      const read = readRow(row, options);
      if (read.ok) keyed.push({ line: row.line, number: numberOf(read.round.roundId) ?? 0n, ms: read.ms });
      else result.refused.push({ line: row.line, reason: read.reason });
    }
    result.read += rows.length;
    const last = rows.at(-1);
    if (last === undefined) break;
    afterLine = last.line;
  }
  if (options.settings.round_ids === "consecutive") {
    keyed.sort((a, b) => (a.number < b.number ? -1 : a.number > b.number ? 1 : a.line - b.line));
  } else if (keyed.every(({ ms }) => ms !== null)) {
    keyed.sort((a, b) => (a.ms ?? 0) - (b.ms ?? 0) || a.line - b.line);
  }
  return keyed.map(({ line }) => line);
}

/** Which lines fail their proof and why, and the newest proven round. */
interface LineProofs {
  failed: Map<number, string>;
  newest: ProvenPoint | null;
}

/** Proves rows with a hash, the newest first: each chunk then links to the one above it, a walk of the file in all. */
async function proveLines(
  sql: Sql,
  tableId: number,
  staging: string,
  lines: readonly number[],
  options: ImportOptions,
): Promise<LineProofs> {
  const { settings, prover, signal } = options;
  const proofs: LineProofs = { failed: new Map(), newest: null };
  const { fairness } = settings;
  if (fairness === undefined) return proofs;
  const [table] = await listTableStates(sql, [tableId]);
  if (table === undefined) throw new Error(`the table ${tableId} does not exist`);
  const anchor = anchorFor(table, fairness);
  proofs.newest = anchor;
  let lowest: ProvenPoint | null = null;
  for (let to = lines.length; to > 0; to -= ROWS_AT_ONCE) {
    const rows = await listStagedLines(sql, staging, lines.slice(Math.max(0, to - ROWS_AT_ONCE), to));
    const claims = rows.flatMap((row) => {
      const read = readRow(row, options);
      const number = read.ok ? numberOf(read.round.roundId) : null;
      if (!read.ok || number === null || read.round.hash === null) return [];
      return [{ line: row.line, number, hash: read.round.hash, hundredths: read.round.hundredths }];
    });
    const highest = claims.at(-1)?.number;
    if (highest === undefined) continue;
    const above: ProvenPoint | null = anchor === null ? null : await findProvenAbove(sql, tableId, highest);
    const points = [anchor, lowest, above].filter((point) => point !== null);
    const { verdicts, anchor: newest } = await prover.prove(table.name, fairness, { points, claims }, signal);
    for (const [place, { line, number, hash }] of claims.entries()) {
      const verdict = verdicts[place];
      if (verdict?.ok === false) proofs.failed.set(line, `the proof fails: ${verdict.reason}`);
      else if (lowest === null || number < lowest.number) lowest = { number, hash };
    }
    if (newest !== null && (proofs.newest === null || newest.number > proofs.newest.number)) proofs.newest = newest;
  }
  return proofs;
}

interface ImportWork {
  tableId: number;
  staging: string;
  /** Good lines in the order they are taken in. */
  lines: number[];
  proofs: LineProofs;
  options: ImportOptions;
  result: Imported;
}

/** Stores lines under the table's lock, by the thousands; the table's state moves on with them. */
async function storeLines(
  sql: Transaction,
  table: LockedTable,
  { staging, proofs, options, result }: ImportWork,
  lines: readonly number[],
  manner: "first" | "late",
): Promise<void> {
  const { settings, signal, progress } = options;
  const fairness = settings.fairness ?? null;
  const gapsGivenUp = fairness === null ? "the imported file does not have them" : null;
  if (fairness !== null && proofs.newest !== null) {
    const anchor = anchorFor(table, fairness);
    if (anchor === null || proofs.newest.number > anchor.number) table.anchor = storedAnchor(proofs.newest, fairness);
  }
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    signal.throwIfAborted();
    const rows = await listStagedLines(sql, staging, lines.slice(from, from + ROWS_AT_ONCE));
    const items = rows.map((row): CheckedItem => {
      const read = readRow(row, options);
      if (!read.ok) throw new Error(`line ${row.line} was good when it was read first, and now ${read.reason}`);
      const isProven = fairness !== null && read.round.hash !== null;
      return { ok: true, round: read.round, raw: row, verified: isProven ? true : null };
    });
    const known = await listKnownOf(sql, table.id, items);
    const answer = { items, absentAt: null, manner };
    const taken = takeIn({ ...table.state, feedOrder: "newest_last" }, answer, { known, heldBack: new Map() });
    table.state = taken.state;
    await saveAdditions(sql, [table], [{ table, source: "import", from: null, taken, shown: [] }], {
      gapsGivenUp,
      quarantine: false,
    });
    result.inserted += taken.rounds.length;
    result.skipped += taken.duplicates;
    result.conflicts += taken.conflicts.length;
    for (const { index, reason } of taken.refused) {
      const line = rows[index]?.line;
      if (line !== undefined) result.refused.push({ line, reason });
    }
    if (lines.length > ROWS_AT_ONCE) progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

async function lockOne(sql: Transaction, tableId: number): Promise<LockedTable> {
  const [table] = await lockTables(sql, [tableId]);
  if (table === undefined) throw new Error(`the table ${tableId} does not exist`);
  return table;
}

async function tellAnew(sql: Transaction, tableId: number): Promise<void> {
  await refreshNotices(sql, [tableId]);
  await publishTables(sql, [tableId]);
}
