import type { Reader } from "../../db/reader.ts";
import type { Sql } from "../../db/client.ts";
import { type ExportedForecast, readForecastsForExport } from "../../forecasts/chain/export-store.ts";
import { parseForecastId } from "../../forecasts/chain/forecast-id.ts";
import { findCoveringEntry } from "./log-store.ts";
import { readCheckpoint } from "../../signed-note.ts";
import { tileReader } from "./tiles-store.ts";
import { leafHash, proveInclusion, verifyInclusion } from "./tree.ts";

/** The proof that a forecast is in the log. */
export interface ForecastProof {
  forecast_id: string;
  hash: string;
  /** The forecasts after it up to the one in the entry: their hashes lead from `hash` to `forecast_hash`. */
  following: ExportedForecast[];
  /** The statement, its index, and the sibling hashes in base64 that lead from it to the root of the checkpoint. */
  entry: string;
  index: number;
  proof: string[];
  checkpoint: string;
}

/** Forecasts of a proof: about 600 bytes each. */
const FORECASTS_MAX = 10_000n;

/**
 * Proves that a forecast is in a log, under the newest checkpoint of that log: with several logs, by the nearest
 * statement. The proof is verified before it is returned.
 *
 * @throws Error if there is no such forecast, no checkpoint covers it yet, too many forecasts lie between it and the
 *   nearest statement, or the log is damaged
 */
export async function proveForecast(sql: Sql, read: Reader, forecastId: string): Promise<ForecastProof> {
  const place = parseForecastId(forecastId);
  if (place === null)
    throw new Error(`expected the id of a forecast such as f12-345, found ${JSON.stringify(forecastId)}`);
  const covering = await findCoveringEntry(sql, place);
  if (covering === null)
    throw new Error(
      `expected a checkpoint that covers forecast ${forecastId}, found none; check the id, or try again in a minute`,
    );
  const { logId, entry, index, size, note, forecastSeq } = covering;
  const count = forecastSeq - place.seq + 1n;
  if (count > FORECASTS_MAX)
    throw new Error(
      `expected a statement within ${FORECASTS_MAX} forecasts of ${forecastId}, found the nearest after ${count}; check ` +
        "the whole table with docs/verify_record.py instead",
    );
  const rows: ExportedForecast[] = [];
  for await (const page of readForecastsForExport(read, place.tableId, { after: String(covering.cutoffSeq - 1n) })) {
    rows.push(...page.filter(({ seq }) => BigInt(seq) >= place.seq && BigInt(seq) <= forecastSeq));
    if (BigInt(page.at(-1)?.seq ?? 0) >= forecastSeq) break;
  }
  const [forecast, ...following] = rows;
  if (forecast?.forecast_id !== forecastId)
    throw new Error(`expected forecast ${forecastId}, which is in the log, found none: run \`roundhouse verify\``);
  const proof = await proveInclusion(tileReader(sql, logId), index, size);
  if (!verifyInclusion({ leaf: leafHash(Buffer.from(entry)), index, size, proof }, readCheckpoint(note).root))
    throw new Error(`expected entry ${index} to lead to the signed root, found another one: run \`roundhouse verify\``);
  return {
    forecast_id: forecastId,
    hash: forecast.hash,
    following,
    entry,
    index,
    proof: proof.map((hash) => hash.toString("base64")),
    checkpoint: note,
  };
}
