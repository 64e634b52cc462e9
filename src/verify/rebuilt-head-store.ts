import type { Transaction } from "../db/client.ts";
import type { HeadRow } from "../pass/compute/rows.ts";

/** The columns of a head that follow from its records. */
type RebuiltHead = Omit<
  HeadRow,
  | "pauseMs"
  | "newestNumber"
  | "newestOccurredAt"
  | "sameHundredths"
  | "sameCount"
  | "proofNumber"
  | "proofHash"
  | "proofOf"
  | "respondedAt"
  | "payloadSha256"
  | "partSha256"
  | "payloadPath"
  | "lastRoundAt"
  | "lastPolledRoundAt"
>;

/**
 * Writes the values that follow from a table's records into its head, and advances its version. The caller holds its
 * lock.
 */
export async function saveRebuiltHead(tx: Transaction, tableId: number, head: RebuiltHead): Promise<void> {
  await tx`
    update table_heads
    set
      version = version + 1,
      changed_at = clock_timestamp(),
      palette = ${head.palette},
      model = ${head.model},
      last_seq = ${head.lastSeq},
      last_ordinal = ${head.lastOrdinal},
      history_hash = decode(${head.historyHash}, 'hex'),
      newest_seq = ${head.newestSeq},
      newest_round_id = ${head.newestRoundId},
      forecast_seq = ${head.forecastSeq},
      forecast_hash = decode(${head.forecastHash}, 'hex'),
      score_hash = decode(${head.scoreHash}, 'hex'),
      first_forecast_at = ${head.firstForecastAt}::text::timestamptz,
      first_forecast_ordinal = ${head.firstForecastOrdinal},
      set_seq = ${head.setSeq},
      open_sets = ${head.openSets.map(String)}::text[]::bigint[],
      has_ended = ${head.hasEnded},
      part_sha256 = null,
      now_ppm = ${head.nowPpm.map((ppm) => (ppm === null ? null : String(ppm)))}::text[]::integer[]
    where table_id = ${tableId}`;
}
