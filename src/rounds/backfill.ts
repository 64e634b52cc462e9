import { hash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Sql, Transaction } from "../db/client.ts";
import type { HouseAnswer } from "../houses/client.ts";
import { chainAt, chainsOf } from "../houses/fairness/chains.ts";
import type { Point } from "../houses/fairness/claims.ts";
import { hundredthsOf } from "../houses/fairness/outcome.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import type { Fairness } from "../houses/fairness/settings.ts";
import { walkBackSliced } from "../houses/fairness/walk.ts";
import type { House } from "../houses/house.ts";
import { addFound, closeGap, findHighestMissing, findProvenAbove, type Gap } from "./gap-turn-store.ts";
import { listHeldBack } from "./known-store.ts";
import { publishTables } from "./publish-store.ts";
import { refreshNotices } from "./notices-store.ts";
import { markPayloads, saveHistoryPage, type HistoryPage } from "./payload-store.ts";
import { anchorFor, idsOf, listKnownOf } from "./prepare.ts";
import { listHashOwners } from "./proof-range-store.ts";
import { checkProofs } from "./proofs.ts";
import { isOwnFault, ownFault, readAnswer } from "./read-answer.ts";
import { multiplierText, numberOf, type CheckedItem, type KnownRound } from "./round.ts";
import { saveAdditions } from "./save.ts";
import { listTableStates, lockTables, type LockedTable } from "./store.ts";
import { takeIn, type TakenIn } from "./take-in.ts";

/** Rounds computed and stored in one transaction: a tenth of a second under the table's lock. */
const ROUNDS_AT_ONCE = 5_000n;

/**
 * Computes the rounds a gap misses back from the next proven one above them in their era, and stores them as proven and
 * late. Gives how many, and whether all could be reached: none of an era can be while no later round of it is proven.
 * @throws the signal's reason once it is aborted; what is stored by then stays.
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
      to = below.to; // of an older era
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
        // one hash in 2 billion has no finite multiplier under rule B9: nobody but the house knows what it paid
        if (Number.isFinite(hundredths)) items.push(computedItem(number, proof, hundredths));
        else complete = false;
      },
    });
    rounds += await sql.begin((transaction) => storeComputed(transaction, gap.tableId, items.toReversed()));
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

async function storeComputed(sql: Transaction, tableId: number, items: readonly CheckedItem[]): Promise<number> {
  const table = await lockOne(sql, tableId);
  const known = await listKnownOf(sql, tableId, items);
  const answer = { items, absentAt: null, manner: "late" as const };
  const taken = takeIn({ ...table.state, feedOrder: "auto" }, answer, { known, heldBack: new Map() });
  table.state = taken.state;
  await saveAdditions(sql, [table], [{ table, source: "computed", from: null, taken, shown: [] }]);
  await tellAnew(sql, tableId);
  return taken.rounds.length;
}

/** A page of history as it arrived; times in milliseconds since `clock`, the database's time, was read. */
export interface ArrivedPage {
  clock: string;
  requestedMs: number;
  receivedMs: number;
  path: string;
  answer: HouseAnswer & { kind: "answer" };
}

/** What a page of history came to. */
export interface PageOutcome {
  rounds: number;
  /** The oldest round of the page, to ask on from; null where it lists none. */
  oldestRoundId: string | null;
  /** The page joins on to rounds that we had before the gap. */
  reachesOurs: boolean;
  /** Something between our rounds and the gap's end cannot be read. */
  isHidden: boolean;
  /** Why the page could not be read at all. */
  refusedReason: string | null;
}

/**
 * Keeps a page of a house's history as it came and takes in its rounds, as late ones. A page that cannot be read, or
 * that our own code fails on, is kept as refused.
 */
export async function storeHistoryPage(
  sql: Sql,
  house: House,
  gap: Gap,
  prover: Prover,
  page: ArrivedPage,
  signal: AbortSignal,
): Promise<PageOutcome> {
  const { clock, requestedMs, receivedMs, path, answer } = page;
  const raw: Omit<HistoryPage, "refusedReason"> = {
    tableId: gap.tableId,
    clock,
    requestedMs,
    receivedMs,
    path: house.hide(path),
    status: answer.status,
    contentType: answer.contentType?.slice(0, 200) ?? null,
    bytes: answer.body.length,
    sha256: hash("sha256", answer.body),
    body: await promisify(gzip)(answer.body),
  };
  const [table] = await listTableStates(sql, [gap.tableId]);
  if (table === undefined) throw new Error(`the gap ${gap.id} is of a table that does not exist`);
  const read = readAnswer(house, table, { ...raw, now: isoOf(clock), kind: "history" });
  if (!read.ok) return refusePage(sql, raw, read.reason);
  try {
    const { fairness = null, feed } = read.settings;
    const known = await listKnownOf(sql, gap.tableId, read.items);
    const points = fairness === null ? [] : await pointsNear(sql, table, fairness, read.items);
    const findOwners = (hashes: readonly string[]) => listHashOwners(sql, gap.tableId, hashes);
    const world = { table: table.name, roundIds: table.state.roundIds, fairness, points, known, findOwners };
    const { items } = await checkProofs(prover, world, read.items, signal);
    return await sql.begin((transaction) => storePage(transaction, gap, raw, items, feed.order));
  } catch (error) {
    signal.throwIfAborted();
    if (!isOwnFault(error)) throw error;
    return refusePage(sql, raw, ownFault(error));
  }
}

async function refusePage(sql: Sql, raw: Omit<HistoryPage, "refusedReason">, reason: string): Promise<PageOutcome> {
  await sql.begin((transaction) => saveHistoryPage(transaction, { ...raw, refusedReason: reason }));
  return { rounds: 0, oldestRoundId: null, reachesOurs: false, isHidden: false, refusedReason: reason };
}

/**
 * The anchor, and the proven round right above the page's rounds of each era: from there it is a walk of a page, not of
 * the whole chain.
 */
async function pointsNear(
  sql: Sql,
  table: LockedTable,
  fairness: Fairness,
  items: readonly ({ ok: true; round: { roundId: string } } | { ok: false; roundId: string | null })[],
): Promise<Point[]> {
  const points: Point[] = [];
  const anchor = anchorFor(table, fairness);
  if (anchor !== null) points.push(anchor);
  if (table.state.roundIds === "opaque") return points;
  const numbers = idsOf(table.id, items).flatMap(({ roundId }) => numberOf(roundId) ?? []);
  const chains = chainsOf(fairness);
  for (const chain of chains) {
    const mine = numbers.filter((number) => chainAt(chains, number) === chain);
    if (mine.length === 0) continue;
    const highest = mine.reduce((top, number) => (number > top ? number : top));
    const above = await findProvenAbove(sql, table.id, highest, chain.to);
    if (above !== null) points.push({ ...above, of: null });
  }
  return points;
}

async function storePage(
  sql: Transaction,
  gap: Gap,
  raw: Omit<HistoryPage, "refusedReason">,
  items: readonly CheckedItem[],
  feedOrder: "auto" | "newest_first" | "newest_last",
): Promise<PageOutcome> {
  const table = await lockOne(sql, gap.tableId);
  const from = await saveHistoryPage(sql, { ...raw, refusedReason: null });
  const ids = idsOf(gap.tableId, items);
  const known = await listKnownOf(sql, gap.tableId, items);
  const heldBack = (await listHeldBack(sql, ids)).get(gap.tableId) ?? new Map();
  const before = { ...table.state, feedOrder };
  const taken = takeIn(before, { items, absentAt: null, manner: "history" }, { known, heldBack });
  table.state = taken.state;
  await saveAdditions(sql, [table], [{ table, source: "history", from, taken, shown: [] }]);
  const counts = { items: items.length, newRounds: taken.rounds.length, quarantined: taken.refused.length };
  await markPayloads(sql, [{ id: from.id, receivedAt: from.receivedAt, refusedReason: null, ...counts }]);
  if (gap.fromNumber === null) await addFound(sql, gap.id, taken.rounds.length);
  await tellAnew(sql, gap.tableId);
  return outcomeOf(taken, known, await seqOf(sql, gap));
}

function outcomeOf(taken: TakenIn, known: ReadonlyMap<string, KnownRound>, gapEnd: KnownRound | null): PageOutcome {
  const isOurs = (id: string | null): boolean => {
    const round = id === null ? undefined : known.get(id);
    return round !== undefined && !round.late && gapEnd !== null && round.seq < gapEnd.seq;
  };
  const oursAt = taken.sequence.findLastIndex(isOurs);
  return {
    rounds: taken.rounds.length,
    oldestRoundId: taken.sequence.find((id) => id !== null) ?? null,
    reachesOurs: oursAt !== -1,
    isHidden: taken.sequence.slice(oursAt + 1).includes(null),
    refusedReason: null,
  };
}

async function seqOf(sql: Transaction, gap: Gap): Promise<KnownRound | null> {
  const item = { ok: false as const, roundId: gap.beforeRoundId };
  return (await listKnownOf(sql, gap.tableId, [item])).get(gap.beforeRoundId) ?? null;
}

/** Closes a gap, given up with its reason or filled, and tells callers. */
export async function endGap(
  sql: Sql,
  gap: Gap,
  end: { state: "given_up"; reason: string } | { state: "filled" },
): Promise<void> {
  await sql.begin(async (transaction) => {
    await lockOne(transaction, gap.tableId);
    await closeGap(transaction, gap.id, end);
    await tellAnew(transaction, gap.tableId);
  });
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

/** PostgreSQL's text of a time in UTC as ISO 8601. */
export function isoOf(at: string): string {
  return at.replace(" ", "T").replace(/\+00$/, "Z");
}
