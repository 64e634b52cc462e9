import { forecastIdOf } from "../../forecasts/chain/forecast-id.ts";
import { REASONS, scoreHash, scoreStrings } from "../../record/hashes.ts";
import type { Color } from "../../rounds/colors.ts";
import { numberOf } from "../../rounds/round.ts";
import type { ScoreSetRow } from "./rows.ts";
import type { OpenForecast, SpanRound } from "./state.ts";

/** An on-time round as the input of settling. */
export interface SeenRound extends SpanRound {
  roundId: string;
  hundredths: number;
  afterGap: boolean;
  /** 3: received with another result; 5: revised manually; 0: neither. */
  dispute: number;
}

/** The result of settling: the forecasts that stay open, and a set for each round that settled some. */
export interface Settled {
  open: readonly OpenForecast[];
  scoreSets: readonly ScoreSetRow[];
  scoreHash: string;
}

/** Marks the forecasts whose span has a round with a second result. A late round is in no span. */
export function dispute(open: readonly OpenForecast[], seq: bigint, reason: number): readonly OpenForecast[] {
  return open.map((forecast) => {
    const isSeen = seq > forecast.cutoffSeq && (forecast.end === null || seq <= forecast.end.seq);
    const known = forecast.dispute;
    const isFirst = known === null || seq < known.seq || (seq === known.seq && reason < known.reason);
    return isSeen && isFirst ? { ...forecast, dispute: { reason, seq } } : forecast;
  });
}

/**
 * Adds the next on-time round of the table to an open forecast. The forecast ends with the last round of its span, by
 * count of on-time rounds, or with the first one after a gap or requested no later than the forecast was issued.
 */
export function see(forecast: OpenForecast, round: SeenRound): OpenForecast {
  if (forecast.end !== null) return forecast;
  const reason = faultOf(forecast, round);
  const isLast = round.ordinal >= forecast.endOrdinal;
  const outcome = reason === 0 ? outcomeAfter(forecast, round) : forecast.outcome;
  const isDisputed = round.dispute !== 0 && forecast.dispute === null;
  if (reason === 0 && !isLast && !isDisputed && outcome === forecast.outcome) return forecast;
  return {
    ...forecast,
    outcome,
    fault: reason === 0 ? null : { reason, seq: round.seq },
    dispute: isDisputed ? { reason: round.dispute, seq: round.seq } : forecast.dispute,
    end: isLast || reason !== 0 ? { seq: round.seq, ordinal: round.ordinal, requestedAt: round.requestedAt } : null,
  };
}

/** 1: rounds are missing before it; 2: it was requested no later than the forecast was issued; 0: neither. */
function faultOf({ firstNumber, cutoffOrdinal, issuedAt }: OpenForecast, round: SeenRound): number {
  if (round.afterGap) return 1;
  if (firstNumber !== null && numberOf(round.roundId) !== firstNumber + (round.ordinal - cutoffOrdinal - 1n)) return 1;
  return round.requestedAt === null || round.requestedAt <= issuedAt ? 2 : 0;
}

function outcomeAfter({ feature, outcome, bands }: OpenForecast, { hundredths }: SeenRound): number | null {
  if (outcome === 1 && feature > 0) return outcome;
  const color = bandOf(hundredths, bands);
  return feature === 0 ? color : color === colorOfWindow(feature) ? 1 : outcome;
}

/** The index of the band that a multiplier falls in, lowest first. */
export function bandOf(hundredths: number, bands: readonly Color[]): number {
  return bands.findIndex(({ below }) => below === null || hundredths < below);
}

/** The color of a window by its feature code. */
function colorOfWindow(feature: number): number {
  return Math.floor((feature - 1) / 3);
}

/**
 * Why a forecast is void: the first fault of its span; on the same round a gap or a late request precedes a dispute.
 */
function reasonOf({ fault, dispute: disputed }: OpenForecast): number {
  if (disputed !== null && (fault === null || disputed.seq < fault.seq)) return disputed.reason;
  return fault?.reason ?? 0;
}

/**
 * Settles the forecasts that ended while settling was paused, each by the round with which it ended, then adds each new
 * round to the open forecasts and settles those that end with it or were disputed before. Score sets of a table are
 * made in rising order of their rounds: the chain of scores follows them. While settling is paused, nothing is settled.
 */
export function settle(
  open: readonly OpenForecast[],
  rounds: readonly SeenRound[],
  {
    tableId,
    previous,
    scoredAt,
    maySettle,
  }: { tableId: number; previous: string; scoredAt: string; maySettle: boolean },
): Settled {
  const scoreSets: ScoreSetRow[] = [];
  let left = open;
  let last = previous;
  const settleBy = (round: SpanRound, ended: readonly OpenForecast[]): void => {
    const set = scoreSetOf(round, ended, { tableId, previous: last, scoredAt });
    scoreSets.push(set);
    last = set.hashes.slice(-64);
  };
  if (maySettle && left.some(({ end }) => end !== null)) {
    const pending = Map.groupBy(left, ({ end }) => end?.seq ?? null);
    for (const seq of [...pending.keys()].filter((key) => key !== null).toSorted((a, b) => (a < b ? -1 : 1))) {
      const ended = pending.get(seq) ?? [];
      const end = ended[0]?.end;
      if (end != null) settleBy(end, ended);
    }
    left = pending.get(null) ?? [];
  }
  for (const round of rounds) {
    const seen = left.map((forecast) => see(forecast, round));
    if (!maySettle) {
      left = seen;
      continue;
    }
    const ended = seen.filter((forecast) => forecast.end !== null || forecast.dispute !== null);
    left = ended.length === 0 ? seen : seen.filter((forecast) => !ended.includes(forecast));
    if (ended.length > 0) settleBy(round, ended);
  }
  return { open: left, scoreSets, scoreHash: last };
}

function scoreSetOf(
  { seq, ordinal, requestedAt }: SpanRound,
  ended: readonly OpenForecast[],
  { tableId, previous, scoredAt }: { tableId: number; previous: string; scoredAt: string },
): ScoreSetRow {
  const reasons = ended.map(reasonOf);
  const outcomes = ended.map(({ outcome }, at) => (reasons[at] === 0 ? outcome : null));
  let hash = previous;
  let hashes = "";
  for (const [at, forecast] of ended.entries()) {
    const strings = scoreStrings({
      forecastId: forecastIdOf(tableId, forecast.seq),
      rev: 1,
      reason: REASONS[reasons[at] ?? 0] ?? "",
      outcome: outcomeText(forecast, outcomes[at] ?? null),
      settledSeq: seq,
      targetRequestedAt: requestedAt,
      scoredAt,
    });
    hash = scoreHash(hash, strings);
    hashes += hash;
  }
  return {
    settledSeq: seq,
    settledOrdinal: ordinal,
    targetRequestedAt: requestedAt,
    scoredAt,
    forecastSeqs: ended.map((forecast) => forecast.seq),
    cutoffSeqs: ended.map(({ cutoffSeq }) => cutoffSeq),
    features: ended.map(({ feature }) => feature),
    statuses: reasons.map((reason) => (reason === 0 ? 0 : 1)),
    reasons,
    outcomes,
    prevHash: previous,
    hashes,
  };
}

/** The color that occurred, for a window 1 or 0; null if void. */
export function outcomeText({ feature, bands }: OpenForecast, outcome: number | null): string | null {
  if (outcome === null) return null;
  return feature === 0 ? (bands[outcome]?.name ?? null) : String(outcome);
}
