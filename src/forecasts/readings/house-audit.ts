/**
 * What a table's rounds prove of its house, kept hour by hour: the evidence against the declared edge, how many rounds
 * are proven, and how many are missing. All of it follows from the rounds in the order in which they came in, so that
 * anyone who replays them gets the same rows.
 */
import type { EdgeTest } from "./edge-test.ts";
import { lnOf } from "./product.ts";

/** What is counted of a table's rounds, late ones too. */
export type Tally = {
  /** The UTC hour of the newest round; never goes back, though a late answer may. Null before the first. */
  hour: string | null;
  seq: bigint;
  rounds: number;
  proven: number;
  /** Ids of the first and the newest on-time round, and rounds with ids from the one to the other; null unless ids count up. */
  first: bigint | null;
  newest: bigint | null;
  within: number;
  /** How often rounds were missing when the next one came. */
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

/** What is known at the end of an hour in which rounds came in, or by now in the newest. */
export interface AuditRow {
  hour: string;
  /** The newest round that is counted. */
  seq: bigint;
  rounds: number;
  /** On-time rounds that the declared edge was tested on; 0 where none is declared. */
  tested: number;
  /** The edge tested, ppm; null if none is declared. */
  edgePpm: number | null;
  /** ln E against the declared edge and the most it ever was, micro-nats. */
  lnE: bigint;
  lnEMax: bigint;
  /** Seq of the round at which E first was 20. */
  rejectedSeq: bigint | null;
  proven: number;
  /** Rounds known to exist that we do not have; null if ids do not count up. */
  missing: number | null;
  gaps: number;
}

/** Before the first round. */
export function emptyTally(): Tally {
  return { hour: null, seq: 0n, rounds: 0, proven: 0, first: null, newest: null, within: 0, gaps: 0 };
}

/** Count a round. A late one fills what was missing; one from before the table began is nothing that was missed. */
export function tallyRound(tally: Tally, round: AuditedRound): void {
  const number = /^\d{1,18}$/.test(round.roundId) ? BigInt(round.roundId) : null;
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
  // a late round can be the newest too: a history that was imported above what was polled
  if (tally.newest === null || number > tally.newest) tally.newest = number;
}

/** The row of the hour that the tally stands in; null before the first round. */
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
    rejectedSeq: test.rejectedSeq,
    proven,
    missing: isCounted ? Number(newest - first) + 1 - within : null,
    gaps,
  };
}

/** To the nearest; a value so near to a boundary that two machines differ comes once in a hundred million rows. */
function toMicroNats(nats: number): bigint {
  return BigInt(Math.floor(nats * 1e6 + 0.5));
}
