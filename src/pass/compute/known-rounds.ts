import type { HouseItem } from "../../houses/contract.ts";
import { numberOf, type CheckedItem, type KnownRound } from "../../rounds/round.ts";
import { HELD_ROUNDS, KNOWN_ROUNDS, type KnownRounds, type PassState } from "./state.ts";

/** Rounds in the small layer, which each pass with a new round copies. */
const NEWER_ROUNDS = 32;

/** The known rounds of a state, from its newest rounds in any order. */
export function knownFrom(rounds: Iterable<readonly [string, KnownRound]>): KnownRounds {
  return { older: new Map(rounds), newer: new Map() };
}

/** The stored part of a round; undefined for a new one and for one older than the newest {@link KNOWN_ROUNDS}. */
export function findKnown(known: KnownRounds, lastSeq: bigint, roundId: string): KnownRound | undefined {
  const round = known.newer.get(roundId) ?? known.older.get(roundId);
  return round !== undefined && round.seq > lastSeq - BigInt(KNOWN_ROUNDS) ? round : undefined;
}

/** The known rounds with more rounds, whose seqs follow them. */
export function withRounds(known: KnownRounds, added: readonly (readonly [string, KnownRound])[]): KnownRounds {
  if (added.length === 0) return known;
  const newer = new Map(known.newer);
  for (const [roundId, round] of added) newer.set(roundId, round);
  if (newer.size <= NEWER_ROUNDS) return { older: known.older, newer };
  const oldest = (added.at(-1)?.[1].seq ?? 0n) - BigInt(KNOWN_ROUNDS);
  const older = new Map<string, KnownRound>();
  for (const layer of [known.older, newer]) {
    for (const [roundId, round] of layer) if (round.seq > oldest) older.set(roundId, round);
  }
  return { older, newer: new Map() };
}

/** The known rounds among those of these items, in the form of `planIntake`. */
export function knownAmong(
  { known, head }: Pick<PassState, "known" | "head">,
  items: readonly (CheckedItem | HouseItem)[],
  lookedUp: ReadonlyMap<string, KnownRound> | undefined,
): Map<string, KnownRound> {
  const found = new Map<string, KnownRound>();
  for (const item of items) {
    const roundId = item.ok ? item.round.roundId : item.roundId;
    if (roundId === null) continue;
    const round = findKnown(known, head.lastSeq, roundId) ?? lookedUp?.get(roundId);
    if (round !== undefined) found.set(roundId, round);
  }
  return found;
}

/**
 * Ids of a response that must be looked up among the stored rounds and quarantined items before the pass, because the
 * state no longer has older ones. Usually none: numbers above all stored ones are new, and so are ids at one end of a
 * list whose others are known (the database refuses a round that is stored twice; then look all of them up).
 */
export function idsToLookUp(state: PassState, items: readonly HouseItem[]): string[] {
  const { head, known, table, heldBack } = state;
  const ids = items.flatMap((item) => (item.ok ? item.round.roundId : (item.roundId ?? [])));
  const isKnown = ids.map((roundId) => findKnown(known, head.lastSeq, roundId) !== undefined);
  const unknown = ids.filter((_, at) => !isKnown[at]);
  if (heldBack.size >= HELD_ROUNDS) return unknown;
  if (head.lastSeq <= BigInt(KNOWN_ROUNDS)) return [];
  if (table.roundIds === "consecutive") {
    const highest = newestStored(state);
    return unknown.filter((roundId) => (numberOf(roundId) ?? 0n) <= highest);
  }
  const [first, last] = [isKnown.indexOf(true), isKnown.lastIndexOf(true)];
  const isBlock = first !== -1 && !isKnown.slice(first, last + 1).includes(false);
  const isAtOneEnd = first === 0 || last === isKnown.length - 1;
  return isBlock && isAtOneEnd ? [] : unknown;
}

/** The highest number of a stored round, including late ones: an import may contain higher numbers than polls. */
function newestStored({ head, reading }: PassState): bigint {
  const [polled, stored] = [head.newestNumber ?? 0n, reading.tally.newest ?? 0n];
  return polled > stored ? polled : stored;
}
