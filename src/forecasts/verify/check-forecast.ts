import { FIRST_PREV_HASH, forecastHash, forecastStrings } from "../chain/chain.ts";
import type { Wrong } from "./check-round.ts";
import type { StoredForecast } from "./verify-forecasts-store.ts";

/** The forecast before the one that is checked. */
export interface ForecastBefore {
  seq: bigint;
  hash: string;
  issuedAt: string;
}

/** Before the first forecast of a table. */
export const FIRST_FORECAST: ForecastBefore = { seq: 0n, hash: FIRST_PREV_HASH, issuedAt: "" };

/** The longest pause a table may declare. It may have been another at the time, so no shorter one can be held against a forecast. */
const LONGEST_PAUSE_MICROS = 3_600_000_000n;

/**
 * What was expected and found where a forecast is not what it says: its hash in the chain, the round it follows, and that it was issued while nothing after that round could be known. Null where all of it is right.
 */
export function checkForecast(table: string, forecast: StoredForecast, before: ForecastBefore): Wrong | null {
  if (forecast.prevHash !== before.hash) {
    return { expected: `prev_hash ${before.hash}`, found: `prev_hash ${forecast.prevHash}` };
  }
  const hash = forecastHash(forecast.prevHash, forecastStrings({ ...forecast, table }));
  if (hash !== forecast.hash) return { expected: `hash ${hash}`, found: `hash ${forecast.hash}` };
  if (!forecast.hourMatches) return { expected: "the hour of issued_at as issue_hour", found: "another" };
  if (forecast.issuedAt < before.issuedAt) {
    return { expected: `issued at ${before.issuedAt} or later`, found: `issued at ${forecast.issuedAt}` };
  }
  return checkCutoff(forecast);
}

function checkCutoff({ cutoff, cutoffRoundId, historyHash, issuedAtMicros }: StoredForecast): Wrong | null {
  if (cutoff === null || cutoff.roundId !== cutoffRoundId || cutoff.historyHash !== historyHash) {
    return {
      expected: `cutoff ${cutoffRoundId} with history ${historyHash}`,
      found: cutoff === null ? "no such round" : `${cutoff.roundId} with history ${cutoff.historyHash}`,
    };
  }
  if (cutoff.late || cutoff.source !== "poll") {
    return { expected: "a cutoff that was polled on time", found: `${cutoff.source}, late ${cutoff.late}` };
  }
  const sinceAbsent = cutoff.absentAtMicros === null ? null : issuedAtMicros - BigInt(cutoff.absentAtMicros);
  if (sinceAbsent === null || sinceAbsent < 0n || sinceAbsent >= LONGEST_PAUSE_MICROS) {
    return {
      expected: "an issue within the pause after the cutoff was absent",
      found: sinceAbsent === null ? "a cutoff never known to be absent" : `${sinceAbsent} microseconds`,
    };
  }
  return null;
}
