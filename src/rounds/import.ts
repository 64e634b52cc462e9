import type { Sql, Transaction } from "../db/client.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import { type EarlierRounds, rememberEarlier } from "./import-earlier.ts";
import { type ImportPlan, planImport, type PlanOptions } from "./import-plan.ts";
import { type LineProofs, proveLines } from "./import-proofs.ts";
import { readRow } from "./import-row.ts";
import { listRepeats, listStagedLines } from "./import-store.ts";
import { countRepeats, type Survey } from "./import-survey.ts";
import { publishTables } from "./publish-store.ts";
import { refreshNotices } from "./notices-store.ts";
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
  const earlier = await remembering(sql, work);
  let storedSeq = 0n;
  const isDone = await sql.begin(async (transaction) => {
    const table = await lockOne(transaction, tableId);
    storedSeq = table.state.lastSeq;
    if (!table.isEmpty) return false;
    await fillTable(sql, transaction, table, work, earlier);
    await tellAnew(transaction, tableId);
    return true;
  });
  const left = isDone ? 0 : lines.length;
  for (let from = 0; from < left; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    await sql.begin(async (transaction) => {
      const table = await lockOne(transaction, tableId);
      const items = await listItems(transaction, work, lines.subarray(from, from + ROWS_AT_ONCE));
      const known = await listKnownOf(transaction, tableId, items);
      const taken = takeItems(table, items, { manner: "late", known, storedSeq }, work.result);
      await saveTaken(transaction, table, taken, work);
      await tellAnew(transaction, tableId); // each time: an import may end in the middle
    });
    options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

/**
 * Stores all lines in a table that is empty and stays locked. While PostgreSQL stores some, the next are read, on another
 * connection, and taken in: nobody else adds to the table, so what is known is what this file brought.
 */
async function fillTable(
  sql: Sql,
  transaction: Transaction,
  table: LockedTable,
  work: ImportWork,
  earlier: EarlierRounds,
): Promise<void> {
  const { lines, options, result } = work;
  const take = async (from: number) => {
    if (from >= lines.length) return null;
    options.signal.throwIfAborted();
    const items = await listItems(sql, work, lines.subarray(from, from + ROWS_AT_ONCE));
    const known = earlier.known(items, new Map());
    const taken = takeItems(table, items, { manner: "first", known, storedSeq: 0n }, result);
    earlier.add(taken.rounds);
    return { taken, table: { ...table } }; // as it is after these: the next ones move it on before they are stored
  };
  let next = await take(0);
  for (let from = 0; next !== null; from += ROWS_AT_ONCE) {
    const { taken, table: after } = next;
    // both end before anything is thrown: nothing can be rolled back while rows are on their way
    const [taking, saving] = await Promise.allSettled([
      take(from + ROWS_AT_ONCE),
      saveTaken(transaction, after, taken, work),
    ]);
    if (saving.status === "rejected") throw saving.reason;
    if (taking.status === "rejected") throw taking.reason;
    next = taking.value;
    if (lines.length > ROWS_AT_ONCE) options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

/** Stores lines that were taken in under the table's lock; the table's state moves on with them. */
async function saveTaken(
  sql: Transaction,
  table: LockedTable,
  taken: TakenIn,
  { proofs, options }: ImportWork,
): Promise<void> {
  const gapsGivenUp = options.settings.fairness === undefined ? "the imported file does not have them" : null;
  if (proofs.newest !== null && isNewerAnchor(proofs.newest, table.anchor)) table.anchor = proofs.newest;
  const addition = { table, source: "import", from: null, taken, shown: [] } as const;
  await saveAdditions(sql, [table], [addition], { gapsGivenUp, quarantine: false });
}

/** Does what storing would do, in memory, where of earlier lines only those are kept that may come again. */
async function tryOut(sql: Sql, work: ImportWork): Promise<void> {
  const { tableId, lines, options, result } = work;
  const [table] = await listTableStates(sql, [tableId]);
  if (table === undefined) throw new Error(`the table ${tableId} does not exist`);
  const storedSeq = table.state.lastSeq;
  const manner = table.isEmpty ? "first" : "late";
  const earlier = await remembering(sql, work);
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    const items = await listItems(sql, work, lines.subarray(from, from + ROWS_AT_ONCE));
    const known = earlier.known(items, await listKnownOf(sql, tableId, items));
    const taken = takeItems(table, items, { manner, known, storedSeq }, result);
    earlier.add(taken.rounds);
    options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

async function remembering(sql: Sql, work: ImportWork): Promise<EarlierRounds> {
  return rememberEarlier(work.result.survey.order.takenBy === "number" ? null : await repeatedIds(sql, work));
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
