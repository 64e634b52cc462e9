import type { FeedOrder } from "../houses/contract.ts";
import type { KnownRound } from "./round.ts";

/** The properties of an item that determine its order. */
export interface Placeable {
  roundId: string | null;
  /** Of a consecutive id; else null. */
  number: bigint | null;
  occurredAt: string | null;
}

/**
 * Returns the items of one response in the order in which the rounds were played, oldest first; `items` are in the
 * house's order. Consecutive ids determine the order, and items without a number are left out. Other ids keep the order
 * of the list, read from its newest end. On a page of history, unknown rounds are not newer than known ones
 * (`newIsNewer` false), so their side of the list proves nothing.
 */
export function inPlayingOrder<Item extends Placeable>(
  items: readonly Item[],
  table: { roundIds: "consecutive" | "opaque"; feedOrder: FeedOrder },
  known: ReadonlyMap<string, KnownRound>,
  options: { newIsNewer: boolean } = { newIsNewer: true },
): Item[] {
  if (table.roundIds === "opaque") {
    const direction = table.feedOrder === "auto" ? directionOf(items, known, options) : table.feedOrder;
    return direction === "newest_first" ? items.toReversed() : [...items];
  }
  return items
    .filter(({ number }) => number !== null)
    .toSorted((a, b) => compareNumbers(a.number ?? 0n, b.number ?? 0n));
}

function compareNumbers(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/**
 * Returns which end of a list is the newest, by the best evidence: rounds that earlier responses brought one after the
 * other, else the house's times, else the side of the new rounds. Without evidence it is newest first, as with nearly
 * all houses.
 *
 * Two rounds of the same earlier response prove nothing: if that one was read in the wrong direction, they would repeat
 * the mistake.
 */
function directionOf(
  items: readonly Placeable[],
  known: ReadonlyMap<string, KnownRound>,
  { newIsNewer }: { newIsNewer: boolean },
): "newest_first" | "newest_last" {
  const rises = risesBySeq(items, known) || risesByTime(items) || (newIsNewer ? risesTowardsNew(items, known) : 0);
  return rises > 0 ? "newest_last" : "newest_first";
}

/** Neighbors that rise minus those that fall; late rounds are left out, because their seq is not in playing order. */
function risesBySeq(items: readonly Placeable[], known: ReadonlyMap<string, KnownRound>): number {
  const rounds = items.flatMap(({ roundId }) => {
    const round = roundId === null ? undefined : known.get(roundId);
    return round === undefined || round.late ? [] : [round];
  });
  return balance(rounds, (a, b) => (a.receivedAt === b.receivedAt ? 0 : a.seq < b.seq ? 1 : -1));
}

function risesByTime(items: readonly Placeable[]): number {
  const times = items.flatMap(({ occurredAt }) => (occurredAt === null ? [] : [Date.parse(occurredAt)]));
  return balance(times, (a, b) => Math.sign(b - a));
}

/** New rounds with a known one before them in the list minus those with a known one after them. */
function risesTowardsNew(items: readonly Placeable[], known: ReadonlyMap<string, KnownRound>): number {
  const isKnown = items.map(({ roundId }) => roundId !== null && known.has(roundId));
  const first = isKnown.indexOf(true);
  const last = isKnown.lastIndexOf(true);
  if (first === -1) return 0;
  return items.length - 1 - last - first;
}

function balance<Value>(values: readonly Value[], compare: (a: Value, b: Value) => number): number {
  let sum = 0;
  for (const [index, value] of values.entries()) {
    const before = values[index - 1];
    if (index > 0 && before !== undefined) sum += compare(before, value);
  }
  return sum;
}
