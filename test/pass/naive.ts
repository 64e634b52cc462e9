/*
 * Which sets a table must have and how its forecasts settle, worked out from the list of all its rounds: slow and plain, from
 * the rules of the design and of the guards. It shares no code with src/pass.
 */

/** A stored round with the time at which the set of its pass was or would have been issued. */
export interface NaiveRound {
  seq: bigint;
  ordinal: bigint | null;
  roundId: string;
  hundredths: number;
  source: number;
  requestedAt: string | null;
  absentAt: string | null;
  afterGap: boolean;
  /** Its place among the passes. */
  pass: number;
  issuedAt: string;
}

export interface NaiveForecast {
  seq: bigint;
  cutoffOrdinal: bigint;
  issuedAt: string;
  feature: number;
  horizon: number;
}

export interface NaiveScore {
  settledSeq: bigint;
  reason: number;
  outcome: number | null;
}

/** Seqs of the rounds that a set must follow: the last on-time round of its pass, polled, and known to be absent in the pause. */
export function cutoffs(rounds: readonly NaiveRound[], pauseMs: number): bigint[] {
  const found: bigint[] = [];
  for (const round of rounds) {
    if (round.ordinal === null || round.source !== 0 || round.absentAt === null) continue;
    if (rounds.some((other) => other.pass === round.pass && other.ordinal !== null && other.seq > round.seq)) continue;
    if (Date.parse(round.issuedAt) - Date.parse(round.absentAt) < pauseMs) found.push(round.seq);
  }
  return found;
}

/** How a forecast settles; null while it is open. `contradicted`: the pass that brought a second result, by round id. */
export function settleOne(
  forecast: NaiveForecast,
  rounds: readonly NaiveRound[],
  contradicted: ReadonlyMap<string, number>,
  { bounds, isConsecutive }: { bounds: readonly number[]; isConsecutive: boolean },
): NaiveScore | null {
  const onTime = rounds.filter(({ ordinal }) => ordinal !== null);
  const cutoff = Number(forecast.cutoffOrdinal);
  const span = onTime.slice(cutoff, cutoff + forecast.horizon);
  const colors: number[] = [];
  let previous = onTime[cutoff - 1];
  for (const [at, round] of span.entries()) {
    const isMissing = isConsecutive && BigInt(round.roundId) !== BigInt(previous?.roundId ?? 0) + 1n;
    const isLate = round.requestedAt === null || round.requestedAt <= forecast.issuedAt;
    const fault = round.afterGap || isMissing ? 1 : isLate ? 2 : 0;
    const disputed = span.slice(0, at + 1).find(({ roundId }) => (contradicted.get(roundId) ?? Infinity) <= round.pass);
    if (disputed !== undefined && (disputed !== round || fault === 0))
      return { settledSeq: round.seq, reason: 3, outcome: null };
    if (fault !== 0) return { settledSeq: round.seq, reason: fault, outcome: null };
    colors.push(bounds.filter((bound) => round.hundredths >= bound).length);
    if (at + 1 === forecast.horizon) {
      const color = Math.trunc((forecast.feature - 1) / 3);
      const outcome = forecast.feature === 0 ? colors.at(-1) : colors.includes(color) ? 1 : 0;
      return { settledSeq: round.seq, reason: 0, outcome: outcome ?? null };
    }
    previous = round;
  }
  return null;
}
