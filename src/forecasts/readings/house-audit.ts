/**
 * The audit of a house by a table's rounds, hour by hour: the evidence against the declared edge, and the numbers of proven
 * and of missing rounds. It derives from the rounds in the order of receipt alone, so a replay gives the same rows.
 */
import type { EdgeTest } from "./edge-test.ts";
import { lnOf } from "./product.ts";

/** Counts of a table's rounds, late ones included. */
export type Tally = {
  /** The UTC hour of the newest round; never decreases, although a late response may be older. Null before the first. */
  hour: string | null;
  seq: bigint;
  rounds: number;
  proven: number;
  /** Ids of the first and the newest on-time round, and the rounds between; null unless ids are consecutive. */
  first: bigint | null;
  newest: bigint | null;
  within: number;
  /** Number of gaps: times when the next round was not the expected one. */
  gaps: number;
};

/** A round as it is audited. */
export interface AuditedRound {
  seq: bigint;
  roundId: string;
  late: boolean;
  afterGap: boolean;
  verified: boolean | null;
  receivedHour: string;
}

const NUMBER = /^\d{1,18}$/;

/** A decision of staff that the newest number of a table was wrong. */
export interface NumberReset {
  /** The newest round then. */
  afterSeq: number;
  /** The right number. */
  number: string;
  /** Stored rounds with a higher number, without those above an earlier reset. */
  above: number;
}

/** The audit at the end of an hour with rounds, or up to now in the newest hour. */
export interface AuditRow {
  hour: string;
  /** The newest round that is counted. */
  seq: bigint;
  rounds: number;
  /** On-time rounds on which the declared edge was tested; 0 if none is declared. */
  tested: number;
  /** The edge tested, ppm; null if none is declared. */
  edgePpm: number | null;
  /** ln E against the declared edge, and its maximum so far, micro-nats. */
  lnE: bigint;
  lnEMax: bigint;
  proven: number;
  /** Rounds known to exist that are not stored; null if ids are not consecutive. */
  missing: number | null;
  gaps: number;
}

/** Before the first round. */
export function emptyTally(): Tally {
  return { hour: null, seq: 0n, rounds: 0, proven: 0, first: null, newest: null, within: 0, gaps: 0 };
}

/**
 * Counts a round. A late one fills a gap; one from before the first round of the table was never missing, nor is one with a
 * number above that of a later reset.
 */
export function tallyRound(tally: Tally, round: AuditedRound, resets: readonly NumberReset[]): void {
  for (const reset of resets) if (reset.afterSeq === Number(tally.seq)) leaveOutNumbers(tally, reset);
  const number = NUMBER.test(round.roundId) ? BigInt(round.roundId) : null;
  if (tally.hour === null || round.receivedHour > tally.hour) tally.hour = round.receivedHour;
  tally.seq = round.seq;
  tally.rounds += 1;
  if (round.verified === true) tally.proven += 1;
  if (!round.late) {
    if (round.afterGap) tally.gaps += 1;
    tally.first ??= number;
  }
  if (number === null || tally.first === null || number < tally.first) return;
  tally.within += 1;
  // a late round can be the newest: an imported history may end after the polled rounds
  if (tally.newest === null || number > tally.newest) tally.newest = number;
}

/**
 * Counts a round, in seq order, in the `above` of later resets, which begins at 0: what a stored one must be, found from
 * the rounds.
 */
export function countAbove(
  resets: readonly NumberReset[],
  { seq, roundId }: Pick<AuditedRound, "seq" | "roundId">,
): void {
  const later = resets.filter(({ afterSeq }) => afterSeq >= Number(seq));
  if (later.length === 0 || !NUMBER.test(roundId)) return;
  const first = later.find(({ number }) => BigInt(roundId) > BigInt(number));
  if (first !== undefined) first.above += 1; // later resets leave out what an earlier one left out
}

/** Leaves out the numbers above that of a reset. */
function leaveOutNumbers(tally: Tally, { number, above }: NumberReset): void {
  if (tally.first === null) return;
  tally.newest = BigInt(number);
  if (tally.first > tally.newest) [tally.first, tally.within] = [tally.newest + 1n, 0];
  else tally.within -= above;
}

/** The row of the tally's hour; null before the first round. */
export function auditRow(
  tally: Tally,
  test: EdgeTest,
  { edge, consecutive }: { edge: number | null; consecutive: boolean },
): AuditRow | null {
  const { hour, seq, rounds, proven, first, newest, within, gaps } = tally;
  if (hour === null) return null;
  const isCounted = consecutive && first !== null && newest !== null;
  return {
    hour,
    seq,
    rounds,
    tested: test.rounds,
    edgePpm: edge === null ? null : Math.round(edge * 1e6),
    lnE: toMicroNats(lnOf(test.wealth)),
    lnEMax: toMicroNats(lnOf(test.most)),
    proven,
    missing: isCounted ? Number(newest - first) + 1 - within : null,
    gaps,
  };
}

/** Rounds to the nearest; machines differ at a rounding boundary once in a hundred million rows. */
function toMicroNats(nats: number): bigint {
  return BigInt(Math.floor(nats * 1e6 + 0.5));
}
