import type { Sql, Transaction } from "../db/client.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import { clockOfAdditions, loadState, lockState, timeOfAddition, writeAddition } from "../pass/add.ts";
import { pass } from "../pass/compute/pass.ts";
import { findTime } from "../pass/stores/payload-store.ts";
import type { AddedRounds } from "../pass/compute/response.ts";
import type { PassResult, PassState } from "../pass/compute/state.ts";
import { fromDatabase } from "../pass/compute/times.ts";
import { type EarlierRounds, rememberEarlier } from "./earlier.ts";
import { createFillWriter } from "./fill-writer.ts";
import { type ImportPlan, type Planner, type PlanOptions, ROWS_AT_ONCE } from "./plan.ts";
import { type LineProofs, proveLines } from "./proofs.ts";
import type { RefusedLines } from "./refusals.ts";
import { readRow } from "./row.ts";
import { listRepeats, listStagedLines } from "./store.ts";
import { countRepeats, type Survey } from "./survey.ts";
import { giveUpGaps } from "../rounds/gaps/gaps-store.ts";
import { listStored } from "../pass/stores/known-store.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import { isCovered } from "../rounds/proofs/proofs.ts";
import type { CheckedItem, KnownRound } from "../rounds/round.ts";

/** The result of an import. */
export interface Imported extends RefusedLines {
  read: number;
  inserted: number;
  /** Identical repeats, of stored rounds or of earlier lines. */
  skipped: number;
  conflicts: number;
  survey: Survey;
}

/** The options of an import. */
export interface ImportOptions extends PlanOptions {
  /** It has learned the staged rows. */
  planner: Planner;
  prover: Prover;
  signal: AbortSignal;
  /** Computes everything and stores nothing. */
  dryRun: boolean;
  /** Called now and then with the number of rows sent to PostgreSQL, and their total. */
  progress?: (done: number, of: number) => void;
}

/**
 * Imports staged rounds into a table; a second import of the same rows changes nothing.
 *
 * Into an empty table, rounds are stored in playing order and none is late, all or nothing. Playing order is by number
 * if ids are consecutive, else by time if every row has one, else the order of the file, reversed if it lists the
 * newest first. Into any other table they are late, stored some thousand at a time, and fill the gaps they are missing
 * in. If the table has a fairness scheme, rows with a hash are proven first; all slow work is done before the lock is
 * taken.
 *
 * @throws the signal's reason once it is aborted; what is stored in a table that was not empty stays
 */
export async function importRounds(
  sql: Sql,
  tableId: number,
  staging: string,
  options: ImportOptions,
): Promise<Imported> {
  const plan = await options.planner.plan(sql, staging, options);
  const read = (row: Parameters<typeof readRow>[0]) => readRow(row, options, plan.isReversed);
  const proofs = await proveLines(sql, tableId, staging, plan.lines, { ...options, read, atOnce: ROWS_AT_ONCE });
  const lines = plan.lines.filter((line) => !proofs.failed.has(line));
  const failed = [...proofs.failed].toSorted(([a], [b]) => a - b);
  for (const [line, reason] of failed) plan.refusals.add(line, reason);
  const result: Imported = {
    read: plan.read,
    inserted: 0,
    skipped: 0,
    conflicts: 0,
    ...plan.refusals.list(),
    survey: plan.survey,
  };
  const work = { tableId, staging, lines, plan, proofs, options, result };
  await (options.dryRun ? tryOut(sql, work) : store(sql, work));
  return result;
}

interface ImportWork {
  tableId: number;
  staging: string;
  /** Good lines in the order they are stored. */
  lines: Int32Array;
  plan: ImportPlan;
  proofs: LineProofs;
  options: ImportOptions;
  result: Imported;
}

async function store(sql: Sql, work: ImportWork): Promise<void> {
  const { tableId, lines, options } = work;
  const earlier = await remembering(sql, work);
  const { lastSeq: storedSeq, importedAt } = await sql.begin(async (tx) => {
    const state = await lockState(tx, tableId);
    const time = fromDatabase((await findTime(tx)).now);
    if (state.head.lastSeq === 0n) await fillTable(sql, tx, state, work, { earlier, importedAt: time });
    return { lastSeq: state.head.lastSeq, importedAt: time };
  });
  const left = storedSeq === 0n ? 0 : lines.length;
  for (let from = 0; from < left; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    await sql.begin(async (tx) => {
      const state = await lockState(tx, tableId);
      const items = await listItems(tx, work, lines.subarray(from, from + ROWS_AT_ONCE));
      const { known } = await listStored(tx, tableId, idsOf(items));
      await storeItems(tx, state, items, work, { manner: "late", known, storedSeq, importedAt });
      await refreshNoticesWithin(tx, [tableId]); // in each batch, because an import may be stopped
    });
    options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

/**
 * Stores all lines in a table that is empty and stays locked: the known rounds are those of this file. While PostgreSQL
 * stores a batch, the next one is computed, and the one after it is read.
 */
async function fillTable(
  sql: Sql,
  tx: Transaction,
  empty: PassState,
  work: ImportWork,
  { earlier, importedAt }: { earlier: EarlierRounds; importedAt: string },
): Promise<void> {
  const { tableId, lines, options } = work;
  const timeNow = await clockOfAdditions(tx);
  const writer = createFillWriter(tx, tableId, (result) => writeItems(tx, work, result));
  let state = empty;
  let done = 0;
  let written = Promise.resolve();
  try {
    for await (const items of listAhead(sql, work)) {
      options.signal.throwIfAborted();
      const about = { manner: "first", known: earlier.known(items, new Map()), storedSeq: 0n, importedAt } as const;
      const result = pass(state, additionOf(items, work, about), timeNow());
      count(items, result, work.result, about);
      earlier.add(result.rows.rounds, importedAt);
      ({ state } = result);
      await written;
      if (done > 0) options.progress?.(done, lines.length);
      written = writer.add(result);
      written.catch(() => undefined); // the next `await` gets the error
      done += items.length;
    }
    await written;
    await writer.end();
  } catch (error) {
    await written.catch(() => undefined);
    await writer.abort(error);
    throw error;
  }
  if (lines.length > ROWS_AT_ONCE) options.progress?.(lines.length, lines.length);
  await refreshNoticesWithin(tx, [tableId]);
}

/** The items of all lines in batches; while one is used, the next one is read. */
async function* listAhead(sql: Sql, work: ImportWork): AsyncGenerator<LineItem[]> {
  const { lines } = work;
  const read = (from: number) => listItems(sql, work, lines.subarray(from, from + ROWS_AT_ONCE));
  let next = read(0);
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    const items = await next;
    next = read(from + ROWS_AT_ONCE);
    next.catch(() => undefined); // the next `await` gets the error
    yield items;
  }
}

/** Stores lines in a table whose head is locked. */
async function storeItems(
  tx: Transaction,
  state: PassState,
  items: readonly LineItem[],
  work: ImportWork,
  about: Taking,
): Promise<void> {
  const result = pass(state, additionOf(items, work, about), await timeOfAddition(tx));
  count(items, result, work.result, about);
  await writeItems(tx, work, result);
}

async function writeItems(tx: Transaction, { tableId, options }: ImportWork, result: PassResult): Promise<void> {
  await writeAddition(tx, result);
  if (options.settings.fairness === undefined) {
    const beforeRoundIds = result.rows.gaps.map(({ beforeRoundId }) => beforeRoundId);
    await giveUpGaps(tx, tableId, beforeRoundIds, "the imported file does not have them");
  }
}

/** Does in memory what storing would do; of earlier lines it keeps only those that may be repeated. */
async function tryOut(sql: Sql, work: ImportWork): Promise<void> {
  const { tableId, lines, options } = work;
  let state = await loadState(sql, tableId);
  const importedAt = fromDatabase((await findTime(sql)).now);
  const storedSeq = state.head.lastSeq;
  const manner = storedSeq === 0n ? "first" : "late";
  const earlier = await remembering(sql, work);
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    const items = await listItems(sql, work, lines.subarray(from, from + ROWS_AT_ONCE));
    const known = earlier.known(items, (await listStored(sql, tableId, idsOf(items))).known);
    const about = { manner, known, storedSeq, importedAt } as const;
    const at = { issuedAt: importedAt, tables: 1, maySettle: true, mayIssue: false } as const;
    const result = pass(state, additionOf(items, work, about), at);
    count(items, result, work.result, about);
    earlier.add(result.rows.rounds, importedAt);
    ({ state } = result);
    options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

async function remembering(sql: Sql, work: ImportWork): Promise<EarlierRounds> {
  return rememberEarlier(work.result.survey.order.takenBy === "number" ? null : await repeatedIds(sql, work));
}

/** Ids that several rows have; none if rows are numbered. */
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
    if (!read.ok) throw new Error(`line ${row.line} was valid when it was first read, and now ${read.reason}`);
    const isProven = read.round.hash !== null && isCovered(options.settings, read.round.roundId);
    return { ok: true, line: row.line, round: read.round, raw: row, verified: isProven ? true : null };
  });
}

/** How lines are stored; `importedAt` is when all rounds of the import were received. */
interface Taking {
  manner: "first" | "late";
  known: ReadonlyMap<string, KnownRound>;
  storedSeq: bigint;
  importedAt: string;
}

function additionOf(
  items: readonly LineItem[],
  { proofs }: ImportWork,
  { manner, known, importedAt }: Taking,
): AddedRounds {
  return {
    from: "import",
    requestedAt: null,
    receivedAt: importedAt,
    manner,
    payload: null,
    read: {
      ok: true,
      items,
      feedOrder: "newest_last",
      refusedByAdapter: 0,
      isPage: false,
      anchor: proofs.newest,
      known,
      heldBack: new Map(),
    },
  };
}

/** Counts the results of lines. Each line was validated before, so none is refused now. */
function count(items: readonly LineItem[], { rows }: PassResult, result: Imported, about: Taking): void {
  if (rows.rounds.length < items.length) {
    const named = items.map(({ line, round: { roundId, hundredths } }) => ({ line, roundId, hundredths }));
    countRepeats(result.survey, named, about);
  }
  result.inserted += rows.rounds.length;
  result.conflicts += rows.conflicts.length;
  result.skipped += items.length - rows.rounds.length - rows.conflicts.length;
}

function idsOf(items: readonly LineItem[]): string[] {
  return [...new Set(items.map(({ round }) => round.roundId))];
}
