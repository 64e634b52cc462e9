import type { Sql, Transaction } from "../db/client.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import { type ImportPlan, planImport, type PlanOptions } from "./import-plan.ts";
import { type LineProofs, proveLines } from "./import-proofs.ts";
import { readRow } from "./import-row.ts";
import { listRepeats, listStagedLines } from "./import-store.ts";
import { countRepeats, type Survey } from "./import-survey.ts";
import { publishTables, refreshNotices } from "./notices-store.ts";
import { listKnownOf } from "./prepare.ts";
import { isCovered, isNewerAnchor } from "./proofs.ts";
import type { CheckedItem, KnownRound } from "./round.ts";
import { saveAdditions } from "./save.ts";
import { listTableStates, lockTables, type LockedTable } from "./store.ts";
import { takeIn, type TakenIn } from "./take-in.ts";

/** What an import did; `refused` lists every refused line. */
export interface Imported {
  read: number;
  inserted: number;
  /** Identical repeats, of stored rounds or of earlier lines. */
  skipped: number;
  conflicts: number;
  refused: { line: number; reason: string }[];
  survey: Survey;
}

/** How an import is done. */
export interface ImportOptions extends PlanOptions {
  prover: Prover;
  /** Works everything out, and writes and locks nothing. */
  dryRun: boolean;
  /** Told now and then how many rows of how many were stored. */
  progress?: (done: number, of: number) => void;
}

/** Rows worked on at once: a tenth of a second each, and little memory whatever the file's size. */
const ROWS_AT_ONCE = 5_000;

/**
 * Imports staged rounds into a table; a second import of the same rows changes nothing.
 *
 * Into an empty table they are taken as they were played (by number where ids count up, else by time if every row has
 * one, else as listed, from the end of a file that lists the newest first) and none is late: all or nothing. Into any
 * other table they are late, stored by the thousands, and fill the gaps they are missing in. Where the table has a
 * fairness scheme, rows with a hash are proven first; all that takes long comes before the lock is taken.
 * @throws the signal's reason once it is aborted; what is stored in a table that was not empty stays.
 */
export async function importRounds(
  sql: Sql,
  tableId: number,
  staging: string,
  options: ImportOptions,
): Promise<Imported> {
  const plan = await planImport(sql, staging, options, ROWS_AT_ONCE);
  const read = (row: Parameters<typeof readRow>[0]) => readRow(row, options, plan.isReversed);
  const proofs = await proveLines(sql, tableId, staging, plan.lines, { ...options, read, atOnce: ROWS_AT_ONCE });
  const lines = plan.lines.filter((line) => !proofs.failed.has(line));
  const result: Imported = {
    read: plan.read,
    inserted: 0,
    skipped: 0,
    conflicts: 0,
    refused: [...plan.refused, ...Array.from(proofs.failed, ([line, reason]) => ({ line, reason }))],
    survey: plan.survey,
  };
  const work = { tableId, staging, lines, plan, proofs, options, result };
  await (options.dryRun ? tryOut(sql, work) : store(sql, work));
  result.refused.sort((a, b) => a.line - b.line);
  return result;
}

interface ImportWork {
  tableId: number;
  staging: string;
  /** Good lines in the order they are taken in. */
  lines: Int32Array;
  plan: ImportPlan;
  proofs: LineProofs;
  options: ImportOptions;
  result: Imported;
}

async function store(sql: Sql, work: ImportWork): Promise<void> {
  const { tableId, lines, options } = work;
  let storedSeq = 0n;
  const isDone = await sql.begin(async (transaction) => {
    const table = await lockOne(transaction, tableId);
    storedSeq = table.state.lastSeq;
    if (!table.isEmpty) return false;
    await storeLines(transaction, table, work, { lines, manner: "first", storedSeq });
    await tellAnew(transaction, tableId);
    return true;
  });
  const left = isDone ? 0 : lines.length;
  for (let from = 0; from < left; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    await sql.begin(async (transaction) => {
      const table = await lockOne(transaction, tableId);
      const some = lines.subarray(from, from + ROWS_AT_ONCE);
      await storeLines(transaction, table, work, { lines: some, manner: "late", storedSeq });
      await tellAnew(transaction, tableId); // each time: an import may end in the middle
    });
    options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

/** Stores lines under the table's lock, by the thousands; the table's state moves on with them. */
async function storeLines(
  sql: Transaction,
  table: LockedTable,
  work: ImportWork,
  { lines, manner, storedSeq }: { lines: Int32Array; manner: "first" | "late"; storedSeq: bigint },
): Promise<void> {
  const { proofs, options } = work;
  const { settings, signal, progress } = options;
  const fairness = settings.fairness ?? null;
  const gapsGivenUp = fairness === null ? "the imported file does not have them" : null;
  if (proofs.newest !== null && isNewerAnchor(proofs.newest, table.anchor)) table.anchor = proofs.newest;
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    signal.throwIfAborted();
    const items = await listItems(sql, work, lines.subarray(from, from + ROWS_AT_ONCE));
    const known = await listKnownOf(sql, table.id, items);
    const taken = takeItems(table, items, { manner, known, storedSeq }, work.result);
    await saveAdditions(sql, [table], [{ table, source: "import", from: null, taken, shown: [] }], {
      gapsGivenUp,
      quarantine: false,
    });
    if (lines.length > ROWS_AT_ONCE) progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

/** Does what storing would do, in memory, where of earlier lines only those are kept that may come again. */
async function tryOut(sql: Sql, work: ImportWork): Promise<void> {
  const { tableId, lines, options, result } = work;
  const [table] = await listTableStates(sql, [tableId]);
  if (table === undefined) throw new Error(`the table ${tableId} does not exist`);
  const storedSeq = table.state.lastSeq;
  const manner = table.isEmpty ? "first" : "late";
  const isSideBySide = result.survey.order.takenBy === "number";
  const mayRepeat = isSideBySide ? null : await repeatedIds(sql, work);
  let earlier = new Map<string, KnownRound>();
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    const items = await listItems(sql, work, lines.subarray(from, from + ROWS_AT_ONCE));
    const known = new Map(await listKnownOf(sql, tableId, items));
    for (const { round } of items) {
      const same = earlier.get(round.roundId);
      if (same !== undefined) known.set(round.roundId, same);
    }
    const taken = takeItems(table, items, { manner, known, storedSeq }, result);
    if (isSideBySide) earlier = new Map();
    for (const { seq, roundId, hundredths, late, verified, proofHash } of taken.rounds) {
      if (mayRepeat?.has(roundId) === false) continue;
      earlier.set(roundId, { seq, hundredths, late, verified, proofHash, payloadId: null });
    }
    options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

/** Ids that several rows have; none where rows are numbered. */
async function repeatedIds(sql: Sql, { staging, options }: ImportWork): Promise<Set<string>> {
  const ids = new Set<string>();
  if (options.rowNumbers !== undefined) return ids;
  for await (const rows of listRepeats(sql, staging)) for (const { round_id: id } of rows) ids.add(id);
  return ids;
}

type LineItem = Extract<CheckedItem, { ok: true }> & { line: number };

async function listItems(
  sql: Sql | Transaction,
  { staging, options, plan }: ImportWork,
  lines: Int32Array,
): Promise<LineItem[]> {
  const rows = await listStagedLines(sql, staging, lines);
  return rows.map((row) => {
    const read = readRow(row, options, plan.isReversed);
    if (!read.ok) throw new Error(`line ${row.line} was good when it was read first, and now ${read.reason}`);
    const isProven = read.round.hash !== null && isCovered(options.settings, read.round.roundId);
    return { ok: true, line: row.line, round: read.round, raw: row, verified: isProven ? true : null };
  });
}

/** Takes lines into a table's state, and counts what came of them. */
function takeItems(
  table: LockedTable,
  items: readonly LineItem[],
  about: { manner: "first" | "late"; known: ReadonlyMap<string, KnownRound>; storedSeq: bigint },
  result: Imported,
): TakenIn {
  const { manner, known, storedSeq } = about;
  const named = items.map(({ line, round: { roundId, hundredths } }) => ({ line, roundId, hundredths }));
  countRepeats(result.survey, named, known, storedSeq);
  const answer = { items, absentAt: null, manner };
  const taken = takeIn({ ...table.state, feedOrder: "newest_last" }, answer, { known, heldBack: new Map() });
  table.state = taken.state;
  result.inserted += taken.rounds.length;
  result.skipped += taken.duplicates;
  result.conflicts += taken.conflicts.length;
  for (const { index, reason } of taken.refused) {
    const line = items[index]?.line;
    if (line !== undefined) result.refused.push({ line, reason });
  }
  return taken;
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
