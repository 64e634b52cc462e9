import { hash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Sql, Transaction } from "../db/client.ts";
import { isConnectionError, isStatementEnded } from "../db/errors.ts";
import type { HouseResponse } from "../houses/polling/client.ts";
import type { HouseItem } from "../houses/contract.ts";
import { chainAt, chainsOf } from "../houses/fairness/chains.ts";
import type { Point } from "../houses/fairness/claims.ts";
import { hundredthsOf } from "../houses/fairness/outcome.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import type { Fairness } from "../houses/fairness/settings.ts";
import { walkBackSliced } from "../houses/fairness/walk.ts";
import type { House } from "../houses/house.ts";
import { countHistoryBytes } from "../houses/polling/history-bytes-store.ts";
import { addRounds, loadState, lockState, withStored } from "../pass/add.ts";
import { touchHeads } from "../tables/heads-store.ts";
import { findTime } from "../pass/stores/payload-store.ts";
import { readResponse } from "../pass/read.ts";
import type { AddedRounds } from "../pass/compute/response.ts";
import type { PassState } from "../pass/compute/state.ts";
import { fromDatabase, laterBy } from "../pass/compute/times.ts";
import {
  addFound,
  closeGap,
  correctMissing,
  countMissing,
  findHighestMissing,
  findProvenAbove,
  type Gap,
} from "./gap-attempt-store.ts";
import { LARGEST_GAP } from "./gap-plan.ts";
import { refreshNotices, refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import { isOwnFault, ownFault } from "../rounds/read-response.ts";
import { multiplierText, numberOf, type CheckedItem, type KnownRound } from "../rounds/round.ts";

/** Computed rounds per transaction: a tenth of a second under the table's lock. */
const ROUNDS_AT_ONCE = 5_000n;

/**
 * Computes a gap's missing rounds backwards from the next proven round above them in their era, and stores them as
 * proven and late. Returns their number, and whether all were computed: an era without a proven later round cannot be.
 *
 * @throws the signal's reason once it is aborted; rounds stored before stay
 */
export async function computeGap(
  sql: Sql,
  gap: Gap & { fromNumber: bigint; toNumber: bigint },
  fairness: Fairness,
  signal: AbortSignal,
): Promise<{ rounds: number; complete: boolean }> {
  const chains = chainsOf(fairness);
  let rounds = 0;
  let complete = true;
  let to = gap.toNumber;
  for (;;) {
    signal.throwIfAborted();
    const highest = await findHighestMissing(sql, gap.tableId, { from: gap.fromNumber, to });
    if (highest === null) return { rounds, complete };
    const chain = chainAt(chains, highest);
    const above = chain === null ? null : await findProvenAbove(sql, gap.tableId, highest, chain.to);
    if (chain === null || above === null || highest <= chain.end.number) {
      complete = false;
      const below = chains.findLast((one) => one.to !== null && one.to < highest);
      if (below?.to === undefined || below.to === null || below.to < gap.fromNumber) return { rounds, complete };
      to = below.to; // the next older era
      continue;
    }
    const first = gap.fromNumber > chain.from ? gap.fromNumber : chain.from;
    const inOne = highest - ROUNDS_AT_ONCE >= first ? highest - ROUNDS_AT_ONCE + 1n : first;
    const lowest = inOne > chain.end.number ? inOne : chain.end.number + 1n;
    const items: CheckedItem[] = [];
    await walkBackSliced(above.hash, Number(above.number - lowest), {
      step: chain.step,
      signal,
      visit: (proof, step) => {
        const number = above.number - BigInt(step);
        if (number > highest) return;
        const hundredths = hundredthsOf(chain, proof);
        // one hash in 2 billion has no finite multiplier under rule B9; only the house knows what it paid
        if (Number.isFinite(hundredths)) items.push(computedItem(number, proof, hundredths));
        else complete = false;
      },
    });
    rounds += await sql.begin((tx) => storeComputed(tx, gap.tableId, items.toReversed()));
    to = lowest - 1n;
  }
}

function computedItem(number: bigint, proof: string, hundredths: number): CheckedItem {
  const round = {
    roundId: String(number),
    hundredths,
    rawValue: multiplierText(hundredths),
    occurredAt: null,
    hash: proof,
  };
  return { ok: true, round, raw: round, verified: true };
}

async function storeComputed(tx: Transaction, tableId: number, items: readonly CheckedItem[]): Promise<number> {
  const state = await lockState(tx, tableId);
  const computed: AddedRounds = {
    from: "computed",
    requestedAt: null,
    receivedAt: fromDatabase((await findTime(tx)).now),
    manner: "late",
    payload: null,
    read: { ok: true, items, feedOrder: "auto", refusedByAdapter: 0, isPage: false, anchor: null },
  };
  const { rows } = await addRounds(tx, state, await withStored(tx, state, computed));
  await refreshNoticesWithin(tx, [tableId]);
  return rows.rounds.length;
}

/** A page of history as received; times in milliseconds since `clock`, the database's time, was read. */
export interface ArrivedPage {
  clock: string;
  requestedMs: number;
  receivedMs: number;
  /** As it is stored. */
  path: string;
  response: HouseResponse & { kind: "response" };
}

/** The result of a page of history. */
export interface PageOutcome {
  rounds: number;
  /** The oldest round of the page, from which to continue; null if it lists none. */
  oldestRoundId: string | null;
  /** The page overlaps rounds that were stored before the gap. */
  reachesOurs: boolean;
  /** An item between the stored rounds and the gap's end cannot be read. */
  isHidden: boolean;
  /** Why the page could not be read at all. */
  refusedReason: string | null;
}

/**
 * Stores a page of a house's history and adds its rounds, as late ones. A page that cannot be read, or on which our own
 * code fails, is stored as refused.
 */
export async function storeHistoryPage(
  sql: Sql,
  house: House,
  gap: Gap,
  prover: Prover,
  { clock, requestedMs, receivedMs, path, response }: ArrivedPage,
  signal: AbortSignal,
): Promise<PageOutcome> {
  const requestedAt = laterBy(clock, requestedMs);
  const receivedAt = laterBy(clock, receivedMs);
  const page: Omit<AddedRounds, "read"> = {
    from: "history",
    requestedAt,
    receivedAt,
    manner: "history",
    payload: {
      path,
      status: response.status,
      contentType: response.contentType?.slice(0, 200) ?? null,
      bytes: response.body.length,
      sha256: hash("sha256", response.body),
      body: await promisify(gzip)(response.body),
    },
  };
  await countHistoryBytes(sql, gap.tableId, response.body.length);
  const state = await loadState(sql, gap.tableId);
  const body = { body: response.body, now: receivedAt, path, kind: "history" as const };
  const read = await readResponse({ sql, prover }, house, state, body, {
    signal,
    pointsNear: (fairness, items) => pointsAbove(sql, state, fairness, items),
  });
  try {
    return await sql.begin((tx) => storePage(tx, gap, { ...page, read }));
  } catch (error) {
    signal.throwIfAborted();
    if (!isOwnFault(error) || !read.ok) throw error;
    return sql.begin((tx) => storePage(tx, gap, { ...page, read: { ok: false, reason: ownFault(error) } }));
  }
}

/** The proven round right above the page's rounds of each era: the proof then walks a page, not the whole chain. */
async function pointsAbove(
  sql: Sql,
  { table: { tableId, roundIds } }: PassState,
  fairness: Fairness,
  items: readonly HouseItem[],
): Promise<Point[]> {
  if (roundIds === "opaque") return [];
  const points: Point[] = [];
  const numbers = items.flatMap((item) => numberOf((item.ok ? item.round.roundId : item.roundId) ?? "") ?? []);
  const chains = chainsOf(fairness);
  for (const chain of chains) {
    const mine = numbers.filter((number) => chainAt(chains, number) === chain);
    if (mine.length === 0) continue;
    const highest = mine.reduce((top, number) => (number > top ? number : top));
    const above = await findProvenAbove(sql, tableId, highest, chain.to);
    if (above !== null) points.push({ ...above, of: null });
  }
  return points;
}

async function storePage(tx: Transaction, gap: Gap, page: AddedRounds): Promise<PageOutcome> {
  const state = await lockState(tx, gap.tableId);
  const response = await withStored(tx, state, page, [gap.afterRoundId, gap.beforeRoundId]);
  const { rows, sequence } = await addRounds(tx, state, response);
  const { read } = response;
  if (!read.ok)
    return { rounds: 0, oldestRoundId: null, reachesOurs: false, isHidden: false, refusedReason: read.reason };
  if (gap.fromNumber === null) await addFound(tx, gap.id, rows.rounds.length);
  await refreshNoticesWithin(tx, [gap.tableId]);
  const known = read.known ?? new Map<string, KnownRound>();
  return outcomeOf(rows.rounds.length, sequence, known, newestBefore(gap, known));
}

/**
 * The seq of the newest on-time round before a gap; null if that is unknown. A gap over several places has on-time rounds
 * between its ends.
 */
function newestBefore({ afterRoundId, beforeRoundId }: Gap, known: ReadonlyMap<string, KnownRound>): bigint | null {
  const [before, end] = [known.get(afterRoundId), known.get(beforeRoundId)];
  if (before?.late === false) return before.seq;
  return end === undefined ? null : end.seq - 1n;
}

function outcomeOf(
  rounds: number,
  sequence: readonly (string | null)[],
  known: ReadonlyMap<string, KnownRound>,
  newest: bigint | null,
): PageOutcome {
  const isOurs = (id: string | null): boolean => {
    const round = id === null ? undefined : known.get(id);
    return round !== undefined && !round.late && newest !== null && round.seq <= newest;
  };
  const oursAt = sequence.findLastIndex(isOurs);
  return {
    rounds,
    oldestRoundId: sequence.find((id) => id !== null) ?? null,
    reachesOurs: oursAt !== -1,
    isHidden: sequence.slice(oursAt + 1).includes(null),
    refusedReason: null,
  };
}

/**
 * Counts the rounds that a gap misses, and corrects its number: when it opened, only the newest imported rounds were known.
 * In a table of many millions of rounds that can take too long: then the stored number is kept.
 */
export async function recountMissing(sql: Sql, gap: Gap & { fromNumber: bigint; toNumber: bigint }): Promise<bigint> {
  const { fromNumber: from, toNumber: to } = gap;
  const stored = gap.missing ?? to - from + 1n;
  const missing = await countMissing(sql, gap.tableId, { from, to, isMany: to - from + 1n > LARGEST_GAP }).catch(
    (error: unknown) => {
      if (isStatementEnded(error)) return stored;
      throw error;
    },
  );
  if (missing === gap.missing) return missing;
  await correctMissing(sql, gap, missing);
  await refreshNotices(sql, [gap.tableId]);
  return missing;
}

/** Whether a run failed because PostgreSQL was out of reach, so that its gap cannot be released either. */
export function lacksDatabase(error: unknown): boolean {
  return isConnectionError(error);
}

/** Closes a gap that is still leased as given up with its reason, or as filled, and updates its notice. */
export async function endGap(
  sql: Sql,
  gap: Gap,
  end: { state: "given_up"; reason: string } | { state: "filled" },
): Promise<void> {
  await sql.begin(async (tx) => {
    await touchHeads(tx, [gap.tableId]);
    await closeGap(tx, gap, end);
    await refreshNoticesWithin(tx, [gap.tableId]);
  });
}
