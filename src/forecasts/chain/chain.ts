/**
 * The chain of hashes over everything a table was ever forecast.
 *
 * A forecast's hash covers the very strings the export prints, so that anyone can recompute it from one line of CSV,
 * and the hash before it, so that none can be slipped in, changed or taken out afterwards.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

/** What stands before the first forecast of a table. */
export const FIRST_PREV_HASH = "0".repeat(64);

/** A forecast as it is issued. */
export type IssuedForecast = {
  /** Its place in its table's chain. */
  seq: bigint;
  forecastId: string;
  /** `house/game/market`. */
  table: string;
  model: string;
  feature: string;
  /** `2026-11-21T04:00:12.1234560Z`, from the database clock. */
  issuedAt: string;
  /** The round it follows, and the table's history hash at that round. */
  cutoffRoundId: string;
  historyHash: string;
  /** First round it speaks of; null where the house's ids do not count up. */
  targetRoundId: string | null;
  /** Rounds it speaks of: 1 for `next_color`, n for a window. */
  horizon: number;
  /** Colors in order for `next_color`, one value for a window. */
  pPpm: readonly number[];
  basePpm: readonly number[];
};

/** The hashed fields under the names and in the forms of the export. */
export type ForecastStrings = Record<
  | "seq"
  | "forecast_id"
  | "table"
  | "model"
  | "feature"
  | "issued_at"
  | "cutoff_round_id"
  | "history_hash"
  | "target_round_id"
  | "horizon"
  | "p_ppm"
  | "base_ppm",
  string
>;

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$/;

/**
 * A forecast as the strings of the export.
 *
 * @throws Error on a time in another form: hashing it would make the chain unverifiable for ever
 */
export function forecastStrings(forecast: IssuedForecast): ForecastStrings {
  if (!TIMESTAMP.test(forecast.issuedAt))
    throw new Error(`expected a time like 2026-11-21T04:00:12.1234560Z, got ${forecast.issuedAt}; format it in UTC`);
  return {
    seq: String(forecast.seq),
    forecast_id: forecast.forecastId,
    table: forecast.table,
    model: forecast.model,
    feature: forecast.feature,
    issued_at: forecast.issuedAt,
    cutoff_round_id: forecast.cutoffRoundId,
    history_hash: forecast.historyHash,
    target_round_id: forecast.targetRoundId ?? "",
    horizon: String(forecast.horizon),
    p_ppm: ppmText(forecast.pPpm),
    base_ppm: ppmText(forecast.basePpm),
  };
}

/**
 * Hash of a forecast, hex: sha256(prev_hash + "\n" + JCS(fields)), JCS being RFC 8785.
 *
 * A verifier passes the strings of an exported line, an issuer those of `forecastStrings`.
 */
export function forecastHash(prevHash: string, fields: ForecastStrings): string {
  return createHash("sha256")
    .update(`${prevHash}\n${canonicalize(fields)}`, "utf8")
    .digest("hex");
}

/** Probabilities as one field of the export: `517000|386000|97000`. */
function ppmText(ppm: readonly number[]): string {
  return ppm.join("|");
}
