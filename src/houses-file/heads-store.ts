import type { Transaction } from "../db/client.ts";
import { saveModels } from "../forecasts/model/models-store.ts";
import { modelOf, type Band } from "../forecasts/model/table-model.ts";

/**
 * Creates a head for every table without one, and advances those whose bands, edge or pause differ from their table's.
 * A table with rounds keeps its model until another one is promoted.
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
