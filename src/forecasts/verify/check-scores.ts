import type { Wrong } from "./check-round.ts";
import { endOfWindow, type Ending } from "./check-window.ts";
import { judgeNextColor, outcomeOf, type Judgement } from "../score/judge.ts";
import type { Band } from "../model/table-model.ts";
import type { StoredForecast } from "./verify-forecasts-store.ts";
import type { StoredScore } from "./verify-scores-store.ts";

/**
 * What was expected and found where the scores of a forecast are not what its rounds give; null where they are.
 *
 * @param summedSeq how far score-accuracy says it has come: what ended up to there has its score
 */
export function checkScores(
  forecast: StoredForecast,
  scores: readonly StoredScore[],
  bands: readonly Band[],
  summedSeq: bigint | null,
): Wrong | null {
  const newest = scores.at(-1);
  if (newest === undefined) {
    if (!forecast.open) return { expected: "a score, since the forecast is not open", found: "none" };
    const end = forecast.span === null ? forecast.target?.seq : forecast.span.settledSeq;
    if (end == null || summedSeq === null || BigInt(end) > summedSeq) return null;
    return { expected: `a score, since the forecast ended with seq ${end}`, found: "none" };
  }
  if (forecast.open) return { expected: "no score, since the forecast is open", found: newest.status };
  for (const [index, score] of scores.entries()) {
    const place = { index, isNewest: index === scores.length - 1 };
    const ending =
      forecast.span === null ? endOfNextColor(forecast, bands, place) : endOfWindow(forecast, score, place);
    if ("found" in ending) return ending;
    const wrong = checkRow(forecast, score, index + 1, ending) ?? compare(score, ending.judgement);
    if (wrong !== null) return wrong;
  }
  return null;
}

function endOfNextColor(
  { target, ...forecast }: StoredForecast,
  bands: readonly Band[],
  { isNewest }: { isNewest: boolean },
): Ending | Wrong {
  if (target === null) return { expected: "no score, since no round follows the cutoff", found: "a score" };
  const judgement = judgeNextColor(
    {
      pPpm: forecast.pPpm,
      basePpm: forecast.basePpm,
      issuedAtMicros: forecast.issuedAtMicros,
      targetRequestedAtMicros: target.requestedAtMicros === null ? null : BigInt(target.requestedAtMicros),
      expectedRoundId: forecast.targetRoundId,
      targetRoundId: target.roundId,
      targetColor: target.color,
      targetAfterGap: target.afterGap,
      // whoever scores applies the conflicts that are known; any score but the newest was made before one was
      targetConflicts: isNewest && target.conflictsApplied,
    },
    bands,
  );
  return { judgement, settledSeq: target.seq, requestedAt: target.requestedAt };
}

function checkRow(
  forecast: StoredForecast,
  score: StoredScore,
  rev: number,
  { settledSeq, requestedAt }: Ending,
): Wrong | null {
  return firstDifference(
    {
      rev,
      model: forecast.model,
      feature: forecast.feature,
      issued_at: forecast.issuedAt,
      issue_hour: "the hour of issued_at",
      settled_seq: settledSeq,
      target_requested_at: requestedAt,
    },
    {
      rev: score.rev,
      model: score.model,
      feature: score.feature,
      issued_at: score.issuedAt,
      issue_hour: score.hourMatches ? "the hour of issued_at" : "another",
      settled_seq: score.settledSeq,
      target_requested_at: score.targetRequestedAt,
    },
  );
}

function compare(score: StoredScore, { status, score: figures }: Judgement): Wrong | null {
  return firstDifference(
    {
      status,
      outcome: figures === null ? null : outcomeOf(figures),
      hit: figures?.hit,
      p: figures?.pPpm,
      base_p: figures?.basePpm,
      brier: figures?.brier,
      brier_base: figures?.brierBase,
      rps: figures?.rps,
      rps_base: figures?.rpsBase,
      ll: figures?.ll,
      ll_base: figures?.llBase,
    },
    {
      status: score.status,
      outcome: score.outcome,
      hit: score.hit,
      p: score.p,
      base_p: score.baseP,
      brier: score.brier,
      brier_base: score.brierBase,
      rps: score.rps,
      rps_base: score.rpsBase,
      ll: score.ll,
      ll_base: score.llBase,
    },
  );
}

type Value = string | number | bigint | boolean | null | undefined;

function firstDifference<Name extends string>(expected: Record<Name, Value>, found: Record<Name, Value>): Wrong | null {
  for (const name of Object.keys(expected) as Name[]) {
    const [want, have] = [`${expected[name] ?? "none"}`, `${found[name] ?? "none"}`];
    if (want !== have) return { expected: `${name} ${want}`, found: `${name} ${have}` };
  }
  return null;
}
