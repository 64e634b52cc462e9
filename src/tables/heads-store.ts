import type { Queryable, Transaction } from "../db/client.ts";
import { saveModels } from "../forecasts/model/models-store.ts";
import { modelOf, type Band } from "../forecasts/model/table-model.ts";
import type { HeadRow } from "../pass/rows.ts";

/** Locks the heads of tables until the end of the transaction, in id order, and gives the tables. Those without one are left out. */
export async function lockHeads(tx: Transaction, tableIds: readonly number[]): Promise<{ id: number; name: string }[]> {
  return tx<{ id: number; name: string }[]>`
    select h.table_id as id, t.house_id || '/' || t.game || '/' || t.market as name
    from table_heads h
    join tables t on t.id = h.table_id
    where h.table_id = any(${[...tableIds]}::integer[])
    order by h.table_id
    for no key update of h`;
}

/**
 * Moves the heads of tables by a version, in id order, after something changed that a cached state or what callers see is
 * made of: settings, notices, revisions, calibrations. Passes that began before are refused and made again. The heads stay
 * locked until the end of the transaction.
 */
export async function touchHeads(sql: Queryable, tableIds: readonly number[]): Promise<void> {
  if (tableIds.length === 0) return;
  await sql`
    with locked as (
      select table_id
      from table_heads
      where table_id = any(${[...tableIds]}::integer[])
      order by table_id
      for no key update
    )
    update table_heads h
    set version = h.version + 1, changed_at = clock_timestamp()
    from locked
    where h.table_id = locked.table_id`;
}

/**
 * Makes a head for every table without one, and moves those whose bands, edge or pause are no longer those of their table.
 * A table with rounds keeps its model: another one is promoted.
 */
export async function saveHeads(sql: Transaction): Promise<void> {
  const kinds = await sql<{ colors: Band[]; edge: number | null }[]>`
    select distinct colors, (settings ->> 'house_edge')::float8 as edge
    from tables`;
  const models = kinds.map((kind) => ({ ...kind, model: modelOf(kind.colors, kind.edge) }));
  await saveModels(
    sql,
    models.map(({ model }) => model),
  );
  await sql`
    with kind as (
      select *
      from jsonb_to_recordset(${JSON.stringify(models.map((kind) => ({ ...kind, model: kind.model.name })))}::text::jsonb)
        as k (colors jsonb, edge float8, model text)
    ),
    palette as (
      insert into palettes (bands)
      select distinct colors
      from tables
      order by colors
      on conflict do nothing
      returning id, bands
    ),
    own as (
      select id, bands from palette
      union
      select id, bands from palettes
    )
    insert into table_heads as h (table_id, palette, first_model, model, pause_ms)
    select t.id, own.id, kind.model, kind.model, t.pause_ms
    from tables t
    join own on own.bands = t.colors
    join kind on kind.colors = t.colors and kind.edge is not distinct from (t.settings ->> 'house_edge')::float8
    order by t.id
    on conflict (table_id) do update
    set
      version = h.version + 1,
      changed_at = clock_timestamp(),
      palette = excluded.palette,
      first_model = case when h.last_seq = 0 then excluded.first_model else h.first_model end,
      model = case when h.last_seq = 0 then excluded.model else h.model end,
      pause_ms = excluded.pause_ms
    where (h.palette, h.pause_ms) <> (excluded.palette, excluded.pause_ms)
      or h.last_seq = 0 and h.first_model <> excluded.first_model`;
}

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
  | "answeredAt"
  | "payloadSha256"
  | "payloadPath"
  | "lastRoundAt"
  | "lastPolledRoundAt"
>;

/** Writes what the records of a table come to into its head, and moves its version. Needs its lock. */
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
      now_ppm = ${head.nowPpm.map((ppm) => (ppm === null ? null : String(ppm)))}::text[]::integer[]
    where table_id = ${tableId}`;
}
