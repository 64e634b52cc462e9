import type { PublishedReadingJson } from "../../forecasts/readings/reading-state.ts";
import type { NumberReset } from "../../forecasts/readings/house-audit.ts";
import type { Queryable } from "../../db/client.ts";
import type { Color } from "../../rounds/colors.ts";
import type { HeadRow, SnapshotRow } from "../compute/rows.ts";
import { optionalTime } from "../compute/times.ts";

interface StoredHead {
  table_id: number;
  house: string;
  game: string;
  market: string;
  round_ids: "consecutive" | "opaque";
  settings: object;
  resets: NumberReset[];
  bands: Color[];
  bad_responses: number;
  format_since: string | null;
  reading: PublishedReadingJson | null;
  has_unread: boolean;
  version: bigint;
  palette: number;
  model: string;
  pause_ms: number;
  last_seq: bigint;
  last_ordinal: bigint;
  newest_seq: bigint | null;
  newest_round_id: string | null;
  newest_number: bigint | null;
  newest_occurred_at: string | null;
  same_hundredths: bigint | null;
  same_count: number;
  history_hash: Buffer;
  forecast_seq: bigint;
  forecast_hash: Buffer;
  score_hash: Buffer;
  first_forecast_at: string | null;
  first_forecast_ordinal: bigint | null;
  proof_number: bigint | null;
  proof_hash: Buffer | null;
  proof_of: string | null;
  responded_at: string | null;
  payload_sha256: Buffer | null;
  part_sha256: Buffer | null;
  payload_path: string | null;
  open_sets: bigint[];
  set_seq: bigint | null;
  now_ppm: (number | null)[];
  has_ended: boolean;
  last_round_at: string | null;
  last_polled_round_at: string | null;
}

/** The heads of tables, by id. */
export function listHeads(sql: Queryable, ids: readonly number[]) {
  return sql<StoredHead[]>`
    select
      h.table_id, t.house_id as house, t.game, t.market, t.round_ids, t.settings, p.bands, number_resets_of(h.table_id) as resets,
      f.bad_responses, f.format_since::text, r.reading,
      exists (select from payloads where table_id = h.table_id and state = 'unread') as has_unread,
      h.version, h.palette, h.model, h.pause_ms, h.last_seq, h.last_ordinal, h.newest_seq, h.newest_round_id,
      h.newest_number, h.newest_occurred_at::text, h.same_hundredths, h.same_count, h.history_hash, h.forecast_seq,
      h.forecast_hash, h.score_hash, h.first_forecast_at::text, h.first_forecast_ordinal, h.proof_number, h.proof_hash,
      h.proof_of, h.responded_at::text, h.payload_sha256, h.part_sha256, h.payload_path, h.open_sets, h.set_seq, h.now_ppm,
      h.has_ended, h.last_round_at::text, h.last_polled_round_at::text
    from table_heads h
    join tables t on t.id = h.table_id
    join palettes p on p.id = h.palette
    join feeds f on f.table_id = h.table_id
    left join published_readings r on r.table_id = h.table_id
    where h.table_id = any(${ids}::integer[])
    order by h.table_id`;
}

/** A head from its stored row. */
export function asHead(row: StoredHead): HeadRow {
  return {
    palette: row.palette,
    model: row.model,
    pauseMs: row.pause_ms,
    lastSeq: row.last_seq,
    lastOrdinal: row.last_ordinal,
    newestSeq: row.newest_seq,
    newestRoundId: row.newest_round_id,
    newestNumber: row.newest_number,
    newestOccurredAt: optionalTime(row.newest_occurred_at),
    sameHundredths: row.same_hundredths === null ? null : Number(row.same_hundredths),
    sameCount: row.same_count,
    historyHash: row.history_hash.toString("hex"),
    forecastSeq: row.forecast_seq,
    forecastHash: row.forecast_hash.toString("hex"),
    scoreHash: row.score_hash.toString("hex"),
    firstForecastAt: optionalTime(row.first_forecast_at),
    firstForecastOrdinal: row.first_forecast_ordinal,
    proofNumber: row.proof_number,
    proofHash: row.proof_hash?.toString("hex") ?? null,
    proofOf: row.proof_of,
    respondedAt: optionalTime(row.responded_at),
    payloadSha256: row.payload_sha256?.toString("hex") ?? null,
    partSha256: row.part_sha256?.toString("hex") ?? null,
    payloadPath: row.payload_path,
    openSets: row.open_sets,
    setSeq: row.set_seq,
    nowPpm: row.now_ppm,
    hasEnded: row.has_ended,
    lastRoundAt: optionalTime(row.last_round_at),
    lastPolledRoundAt: optionalTime(row.last_polled_round_at),
  };
}

interface StoredSnapshot {
  table_id: number;
  model: string;
  ordinal: bigint;
  seq: bigint;
  state: Buffer;
  state_hash: Buffer;
  reading: string;
  reading_hash: Buffer;
  refs: object;
}

/** The snapshots of the models of heads. */
export function listSnapshots(sql: Queryable, ids: readonly number[]) {
  return sql<StoredSnapshot[]>`
    select
      s.table_id, s.model, s.ordinal, s.seq, s.state, s.state_hash, s.reading, s.reading_hash, s.refs
    from table_heads h
    join model_snapshots s on s.table_id = h.table_id and s.model = h.model
    where h.table_id = any(${ids}::integer[])`;
}

/** A snapshot from its stored row. */
export function asSnapshot(row: StoredSnapshot | undefined): SnapshotRow | null {
  if (row === undefined) return null;
  const { table_id: _, state_hash, reading_hash, ...snapshot } = row;
  return { ...snapshot, stateHash: state_hash.toString("hex"), readingHash: reading_hash.toString("hex") };
}
