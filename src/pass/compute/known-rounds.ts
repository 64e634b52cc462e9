import type { HouseItem } from "../../houses/contract.ts";
import type { CheckedItem, KnownRound } from "../../rounds/round.ts";
import { HELD_ROUNDS, KNOWN_ROUNDS, type KnownRounds, type PassState } from "./state.ts";

/** The known rounds of a state, from its newest rounds in any order. */
export function knownFrom(rounds: Iterable<readonly [string, KnownRound]>): KnownRounds {
  return withRounds(
    NO_ROUNDS,
    [...rounds].toSorted(([, a], [, b]) => (a.seq < b.seq ? -1 : 1)),
  );
}

const NO_ROUNDS = "\n";

/** The line of a round by its id; undefined for a new round and for one older than the newest {@link KNOWN_ROUNDS}. */
type FindLine = (roundId: string) => string | undefined;

/** The finder that was made last: a response is looked up in the same text three times. */
let made: { known: KnownRounds; find: FindLine } = { known: NO_ROUNDS, find: () => undefined };

function lineFinder(known: KnownRounds): FindLine {
  if (made.known !== known) made = { known, find: createFinder(known) };
  return made.find;
}

/** After so many searches in vain, which take up to 5 µs each, the whole text is parted: 8 to 11 µs. */
const MOST_IN_VAIN = 2;

/** Searches for ids, and parts the text into lines as far as they reach, from the newest on: a response mostly lists those. */
function createFinder(known: KnownRounds): FindLine {
  const byId = new Map<string, string>();
  const inVain = new Set<string>();
  const last = known.length - 1;
  let partedTo = 0;
  const partTo = (end: number) => {
    while (partedTo < end) {
      const next = known.indexOf("\n", partedTo + 1);
      const line = known.slice(partedTo + 1, next);
      byId.set(line.slice(0, line.indexOf("\t")), line);
      partedTo = next;
    }
  };
  return (roundId) => {
    if (partedTo < last && !byId.has(roundId) && !inVain.has(roundId)) {
      const at = inVain.size < MOST_IN_VAIN ? known.indexOf(`\n${roundId}\t`, partedTo) : last - 1;
      if (at === -1) inVain.add(roundId);
      else partTo(at + 1);
    }
    return byId.get(roundId);
  };
}

/** All known rounds, newest first. */
export function listKnown(known: KnownRounds): [string, KnownRound][] {
  return linesOf(known).map(roundOf);
}

function linesOf(known: KnownRounds): string[] {
  return known === NO_ROUNDS ? [] : known.slice(1, -1).split("\n");
}

/** The known rounds with more rounds, whose seqs follow them one by one. */
export function withRounds(known: KnownRounds, added: readonly (readonly [string, KnownRound])[]): KnownRounds {
  const newest = added.at(-1)?.[1].seq;
  if (newest === undefined) return known;
  const lines = added
    .slice(-KNOWN_ROUNDS)
    .toReversed()
    .map(([roundId, round]) => `\n${roundId}\t${pack(round)}`);
  const all = lines.join("") + (added.length < KNOWN_ROUNDS ? known : NO_ROUNDS);
  let end = all.length - 1;
  const seqAt = all.indexOf("\t", all.lastIndexOf("\n", end - 1)) + 1;
  const oldest = BigInt(all.slice(seqAt, all.indexOf("\t", seqAt)));
  for (let more = newest - oldest + 1n - BigInt(KNOWN_ROUNDS); more > 0n; more -= 1n)
    end = all.lastIndexOf("\n", end - 1);
  return all.slice(0, end + 1);
}

function pack({ seq, hundredths, late, verified, proofHash, receivedAt }: KnownRound): string {
  return `${seq}\t${hundredths}\t${late}\t${verified ?? ""}\t${receivedAt}\t${proofHash ?? ""}`;
}

function roundOf(line: string): [string, KnownRound] {
  const [roundId = "", seq = "", hundredths, late, verified, receivedAt = "", proofHash = ""] = line.split("\t");
  return [
    roundId,
    {
      seq: BigInt(seq),
      hundredths: Number(hundredths),
      late: late === "true",
      verified: verified === "" ? null : verified === "true",
      proofHash: proofHash === "" ? null : proofHash,
      receivedAt,
    },
  ];
}

/** What shows which numbers are new to a table. */
interface Numbered {
  table: Pick<PassState["table"], "roundIds" | "resets">;
  head: Pick<PassState["head"], "newestNumber">;
  reading: { tally: Pick<PassState["reading"]["tally"], "newest"> };
}

/** The known rounds among those of these items, in the form of `planIntake`. */
export function knownAmong(
  state: Numbered & Pick<PassState, "known">,
  items: readonly (CheckedItem | HouseItem)[],
  lookedUp: ReadonlyMap<string, KnownRound> | undefined,
): Map<string, KnownRound> {
  const found = new Map<string, KnownRound>();
  const highest = highestStored(state);
  const lineOf = lineFinder(state.known);
  for (const item of items) {
    const roundId = item.ok ? item.round.roundId : item.roundId;
    if (roundId === null) continue;
    const line = highest !== null && isAbove(roundId, highest) ? undefined : lineOf(roundId);
    const round = line === undefined ? lookedUp?.get(roundId) : roundOf(line)[1];
    if (round !== undefined) found.set(roundId, round);
  }
  return found;
}

/** Whether an id of digits is a higher number; in vain such an id would be searched for. A BigInt would take 0.1 µs. */
function isAbove(roundId: string, highest: string): boolean {
  return roundId.length > highest.length || (roundId.length === highest.length && roundId > highest);
}

/**
 * Ids of a response that must be looked up among the stored rounds and quarantined items before the pass, because the
 * state no longer has older ones. Usually none: numbers above all stored ones are new, and so are ids at one end of a
 * list whose others are known (the database refuses a round that is stored twice; then look all of them up).
 */
export function idsToLookUp(state: PassState, items: readonly HouseItem[]): string[] {
  const { head, known, heldBack, isHeldCut } = state;
  const ids = items.flatMap((item) => (item.ok ? item.round.roundId : (item.roundId ?? [])));
  const lineOf = lineFinder(known);
  const isUnknown = (roundId: string) => lineOf(roundId) === undefined;
  if (isHeldCut || heldBack.size >= HELD_ROUNDS) return ids.filter(isUnknown);
  if (head.lastSeq <= BigInt(KNOWN_ROUNDS)) return [];
  const highest = highestStored(state);
  if (highest !== null) {
    return ids.filter((roundId) => !isAbove(roundId, highest) && isUnknown(roundId));
  }
  const unknown = ids.filter(isUnknown);
  if (state.table.resets.length > 0) return unknown; // numbers above the newest may be stored
  const areKnown = ids.map((roundId) => !isUnknown(roundId));
  const [first, last] = [areKnown.indexOf(true), areKnown.lastIndexOf(true)];
  const isBlock = first !== -1 && !areKnown.slice(first, last + 1).includes(false);
  const isAtOneEnd = first === 0 || last === areKnown.length - 1;
  return isBlock && isAtOneEnd ? [] : unknown;
}

/**
 * The highest number of a stored round, including late ones: an import may contain higher numbers than polls. Null if ids
 * are opaque, or after a reset, since higher numbers may be stored then.
 */
function highestStored({ table, head, reading }: Numbered): string | null {
  if (table.roundIds !== "consecutive" || table.resets.length > 0) return null;
  const [polled, stored] = [head.newestNumber ?? 0n, reading.tally.newest ?? 0n];
  return String(polled > stored ? polled : stored);
}
