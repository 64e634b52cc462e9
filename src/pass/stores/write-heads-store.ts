import type { Queryable } from "../../db/client.ts";
import type { CompletePassRows as PassRows } from "../compute/state.ts";
import { plainArray, textArray } from "./arrays.ts";
import { rowsOf, type Statement } from "./table-rows.ts";

/** A lease under which passes were made. */
export interface HeldLease {
  house: string;
  shard: number;
  epoch: bigint;
}

/** A response of a table that had nothing new, when its head had this version. */
export interface NotedResponse {
  tableId: number;
  version: bigint;
  respondedAt: string | null;
}

/** Locks leases and heads, and checks their epochs and versions. */
export function lockPasses(
  sql: Queryable,
  passes: readonly Pick<PassRows, "tableId" | "version">[],
  leases: readonly HeldLease[],
): Statement {
  return sql`
    select lock_passes(
      ${textArray(leases.map(({ house }) => house))}::text[],
      ${plainArray(leases.map(({ shard }) => shard))}::integer[],
      ${plainArray(leases.map(({ epoch }) => epoch))}::bigint[],
      ${plainArray(passes.map(({ tableId }) => tableId))}::integer[],
      ${plainArray(passes.map(({ version }) => version))}::bigint[]
    )`;
}

/** Palette, model and pause are written by changes of a table's settings, never by a pass. */
export function moveHeads(sql: Queryable, passes: readonly PassRows[]): Statement | null {
  if (passes.length === 0) return null;
  const h = rowsOf(passes, ({ head }) => [head]);
  return sql`
    update table_heads h
    set
      version = n.version,
      changed_at = clock_timestamp(),
      last_seq = n.last_seq,
      last_ordinal = n.last_ordinal,
      newest_seq = n.newest_seq,
      newest_round_id = n.newest_round_id,
      newest_number = n.newest_number,
      newest_occurred_at = n.newest_occurred_at,
      same_hundredths = n.same_hundredths,
      same_count = n.same_count,
      history_hash = substr(${h.hashes(({ historyHash }) => historyHash)}, (32 * n.place - 31)::integer, 32),
      forecast_seq = n.forecast_seq,
      forecast_hash = substr(${h.hashes(({ forecastHash }) => forecastHash)}, (32 * n.place - 31)::integer, 32),
      score_hash = substr(${h.hashes(({ scoreHash }) => scoreHash)}, (32 * n.place - 31)::integer, 32),
      first_forecast_at = n.first_forecast_at,
      first_forecast_ordinal = n.first_forecast_ordinal,
      proof_number = n.proof_number,
      proof_hash = n.proof_hash,
      proof_of = n.proof_of,
      responded_at = n.responded_at,
      payload_sha256 = n.payload_sha256,
      part_sha256 = n.part_sha256,
      payload_path = n.payload_path,
      open_sets = n.open_sets::bigint[],
      set_seq = n.set_seq,
      now_ppm = n.now_ppm::integer[],
      has_ended = n.has_ended,
      last_round_at = n.last_round_at,
      last_polled_round_at = n.last_polled_round_at
    from unnest(
      ${h.tableIds}::integer[],
      ${plainArray(passes.map(({ version }) => version + 1n))}::bigint[],
      ${h.plain(({ lastSeq }) => lastSeq)}::bigint[],
      ${h.plain(({ lastOrdinal }) => lastOrdinal)}::bigint[],
      ${h.plain(({ newestSeq }) => newestSeq)}::bigint[],
      ${h.text(({ newestRoundId }) => newestRoundId)}::text[],
      ${h.plain(({ newestNumber }) => newestNumber)}::bigint[],
      ${h.plain((row) => row.newestOccurredAt)}::timestamptz[],
      ${h.plain(({ sameHundredths }) => sameHundredths)}::bigint[],
      ${h.plain(({ sameCount }) => sameCount)}::integer[],
      ${h.plain(({ forecastSeq }) => forecastSeq)}::bigint[],
      ${h.plain(({ firstForecastAt }) => firstForecastAt)}::timestamptz[],
      ${h.plain((row) => row.firstForecastOrdinal)}::bigint[],
      ${h.plain(({ proofNumber }) => proofNumber)}::bigint[],
      ${h.hex(({ proofHash }) => proofHash)}::bytea[],
      ${h.text(({ proofOf }) => proofOf)}::text[],
      ${h.plain(({ respondedAt }) => respondedAt)}::timestamptz[],
      ${h.hex(({ payloadSha256 }) => payloadSha256)}::bytea[],
      ${h.hex(({ partSha256 }) => partSha256)}::bytea[],
      ${h.text(({ payloadPath }) => payloadPath)}::text[],
      ${h.arrays(({ openSets }) => openSets)}::text[],
      ${h.plain(({ setSeq }) => setSeq)}::bigint[],
      ${h.arrays(({ nowPpm }) => nowPpm)}::text[],
      ${h.plain(({ hasEnded }) => hasEnded)}::boolean[],
      ${h.plain(({ lastRoundAt }) => lastRoundAt)}::timestamptz[],
      ${h.plain((row) => row.lastPolledRoundAt)}::timestamptz[]
    ) with ordinality as n (
      table_id, version, last_seq, last_ordinal, newest_seq, newest_round_id, newest_number, newest_occurred_at,
      same_hundredths, same_count, forecast_seq, first_forecast_at, first_forecast_ordinal, proof_number, proof_hash,
      proof_of, responded_at, payload_sha256, part_sha256, payload_path, open_sets, set_seq, now_ppm,
      has_ended, last_round_at, last_polled_round_at, place
    )
    where h.table_id = n.table_id`;
}

/** Times of responses with nothing new; the version stays, so that no reader reloads. */
export function noteResponses(sql: Queryable, noted: readonly NotedResponse[]): Statement | null {
  if (noted.length === 0) return null;
  return sql`
    update table_heads h
    set responded_at = n.responded_at
    from unnest(
      ${plainArray(noted.map(({ tableId }) => tableId))}::integer[],
      ${plainArray(noted.map(({ respondedAt }) => respondedAt))}::timestamptz[]
    ) as n (table_id, responded_at)
    where h.table_id = n.table_id`;
}
