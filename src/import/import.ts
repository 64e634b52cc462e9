import type { Sql, Transaction } from "../db/client.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import { clockOfAdditions, loadState, lockState, timeOfAddition, writePass } from "../pass/add.ts";
import { pass } from "../pass/compute/pass.ts";
import { findTime } from "../pass/stores/payload-store.ts";
import type { AddedRounds } from "../pass/compute/response.ts";
import type { PassResult, PassState } from "../pass/compute/state.ts";
import { fromDatabase } from "../pass/compute/times.ts";
import { type EarlierRounds, rememberEarlier } from "./earlier.ts";
import { createFillWriter } from "./fill-writer.ts";
import type { ImportPlan } from "./plan.ts";
import { type LineProofs, proveLines } from "./proofs.ts";
import type { RefusedLines } from "./refusals.ts";
import { ROWS_AT_ONCE } from "./repeats.ts";
import type { StagedRound } from "./staged-rounds.ts";
import { findContradictions, type Survey } from "./survey.ts";
import { giveUpGaps } from "../rounds/gaps/gaps-store.ts";
import { listStored } from "../pass/stores/known-store.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { isCovered } from "../rounds/proofs/proofs.ts";
import type { CheckedItem, KnownRound } from "../rounds/round.ts";

/** The result of an import. */
export interface Imported extends RefusedLines {
  /** The table had rounds before, so that those of the file are late. */
  late: boolean;
  read: number;
  inserted: number;
  /** Identical repeats, of stored rounds or of earlier lines. */
  skipped: number;
  survey: Survey;
}

/** The options of an import. */
export interface ImportOptions {
  settings: TableSettings;
  prover: Prover;
  signal: AbortSignal;
  /** Computes everything and stores nothing. */
  dryRun: boolean;
  /** Called now and then with the number of rows sent to PostgreSQL, and their total. */
  progress?: (done: number, of: number) => void;
}

/**
 * Imports the planned rounds of a file into a table; a second import of the same rows changes nothing.
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
  plan: ImportPlan,
  options: ImportOptions,
): Promise<Imported> {
  const proofs = await proveLines(sql, tableId, { ...plan, ...options });
  const lines = plan.lines.filter((line) => !proofs.failed.has(line));
  const failed = [...proofs.failed].toSorted(([a], [b]) => a - b);
  for (const [line, reason] of failed) plan.refusals.add(line, reason);
  const result = { late: false, read: plan.read, inserted: 0, skipped: 0, survey: plan.survey };
  const work = { tableId, lines, plan, proofs, options, result };
  await (options.dryRun ? tryOut(sql, work) : store(sql, work));
  return { ...result, ...plan.refusals.list() };
}

interface ImportWork {
  tableId: number;
  /** Good lines in the order they are stored. */
  lines: Int32Array;
  plan: ImportPlan;
  proofs: LineProofs;
  options: ImportOptions;
  result: Omit<Imported, keyof RefusedLines>;
}

async function store(sql: Sql, work: ImportWork): Promise<void> {
  const { tableId, lines, plan, options } = work;
  const earlier = rememberEarlier(plan.mayRepeat);
  const { lastSeq: storedSeq, importedAt } = await sql.begin(async (tx) => {
    const state = await lockState(tx, tableId);
    const time = fromDatabase((await findTime(tx)).now);
    if (state.head.lastSeq === 0n) await fillTable(tx, state, work, { earlier, importedAt: time });
    return { lastSeq: state.head.lastSeq, importedAt: time };
  });
  work.result.late = storedSeq !== 0n;
  const left = work.result.late ? lines.length : 0;
  for (let from = 0; from < left; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    await sql.begin(async (tx) => {
      const state = await lockState(tx, tableId);
      const items = listItems(work, lines.subarray(from, from + ROWS_AT_ONCE));
      const { known } = await listStored(tx, tableId, idsOf(items));
      await storeItems(tx, state, items, work, { manner: "late", known, storedSeq, importedAt });
      await refreshNoticesWithin(tx, [tableId]); // in each batch, because an import may be stopped
    });
    options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

/**
 * Stores all lines in a table that is empty and stays locked: the known rounds are those of this file. While PostgreSQL
 * stores a batch, the next one is computed.
 */
async function fillTable(
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
    for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
      options.signal.throwIfAborted();
      const listed = listItems(work, lines.subarray(from, from + ROWS_AT_ONCE));
      const about = { manner: "first", known: earlier.known(listed, new Map()), storedSeq: 0n, importedAt } as const;
      const items = withoutContradictions(listed, work, about);
      const result = pass(state, additionOf(items, work, about), timeNow());
      count(items, result, work.result);
      earlier.add(result.rows.rounds, importedAt);
      ({ state } = result);
      await written;
      if (done > 0) options.progress?.(done, lines.length);
      written = writer.add(result);
      written.catch(() => undefined); // the next `await` gets the error
      done += listed.length;
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

/** Stores lines in a table whose head is locked. */
async function storeItems(
  tx: Transaction,
  state: PassState,
  listed: readonly LineItem[],
  work: ImportWork,
  about: Taking,
): Promise<void> {
  const items = withoutContradictions(listed, work, about);
  const result = pass(state, additionOf(items, work, about), await timeOfAddition(tx));
  count(items, result, work.result);
  await writeItems(tx, work, result);
}

async function writeItems(tx: Transaction, { tableId, options }: ImportWork, result: PassResult): Promise<void> {
  await writePass(tx, result.rows);
  if (options.settings.fairness === undefined) {
    const beforeRoundIds = result.rows.gaps.map(({ beforeRoundId }) => beforeRoundId);
    await giveUpGaps(tx, tableId, beforeRoundIds, "the imported file does not have them");
  }
}

/** Does in memory what storing would do; of earlier lines it keeps only those that may be repeated. */
async function tryOut(sql: Sql, work: ImportWork): Promise<void> {
  const { tableId, lines, plan, options } = work;
  let state = await loadState(sql, tableId);
  const importedAt = fromDatabase((await findTime(sql)).now);
  const storedSeq = state.head.lastSeq;
  const manner = storedSeq === 0n ? "first" : "late";
  work.result.late = manner === "late";
  const earlier = rememberEarlier(plan.mayRepeat);
  for (let from = 0; from < lines.length; from += ROWS_AT_ONCE) {
    options.signal.throwIfAborted();
    const listed = listItems(work, lines.subarray(from, from + ROWS_AT_ONCE));
    const known = earlier.known(listed, (await listStored(sql, tableId, idsOf(listed))).known);
    const about = { manner, known, storedSeq, importedAt } as const;
    const items = withoutContradictions(listed, work, about);
    const at = { issuedAt: importedAt, tables: 1, maySettle: true, mayIssue: false } as const;
    const result = pass(state, additionOf(items, work, about), at);
    count(items, result, work.result);
    earlier.add(result.rows.rounds, importedAt);
    ({ state } = result);
    options.progress?.(Math.min(from + ROWS_AT_ONCE, lines.length), lines.length);
  }
}

type LineItem = Extract<CheckedItem, { ok: true }> & { round: StagedRound };

function listItems({ options, plan }: ImportWork, lines: Int32Array): LineItem[] {
  return plan.list(lines).map((round) => {
    const isProven = round.hash !== null && isCovered(options.settings, round.roundId);
    return { ok: true, round, raw: round, verified: isProven ? true : null };
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

/**
 * Refuses lines with another result than a known round or an earlier line. A file is no evidence that the house gave two
 * results, which would void the forecasts that depend on the round.
 */
function withoutContradictions(
  items: readonly LineItem[],
  { plan, result }: ImportWork,
  about: Taking,
): readonly LineItem[] {
  const rows = items.map(({ round }) => round);
  const refused = findContradictions(result.survey, rows, about);
  for (const [line, reason] of refused) plan.refusals.add(line, reason);
  return refused.size === 0 ? items : items.filter(({ round }) => !refused.has(round.line));
}

/** Counts the results of lines. Each line was validated before, so none is refused now. */
function count(items: readonly LineItem[], { rows }: PassResult, result: ImportWork["result"]): void {
  result.inserted += rows.rounds.length;
  result.skipped += items.length - rows.rounds.length;
}

function idsOf(items: readonly LineItem[]): string[] {
  return [...new Set(items.map(({ round }) => round.roundId))];
}
