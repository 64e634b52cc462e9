import type { Transaction } from "../db/client.ts";
import { saveModels } from "../forecasts/model/models-store.ts";
import { modelOf, type Band } from "../forecasts/model/table-model.ts";

/**
 * Creates a head for every table without one, and advances those whose bands, edge or pause differ from their table's.
 * A table with rounds keeps its model until another one is promoted.
 */
export async function saveHeads(sql: Transaction): Promise<void> {
  const kinds = await saveKinds(sql);
  await sql`
    with kind as (
      select *
      from jsonb_to_recordset(${JSON.stringify(kinds)}::text::jsonb)
        as k (colors jsonb, edge float8, model text)
    ),
    palette as (
      insert into palettes (bands)
      select distinct colors
      from tables t
      -- on conflict would take an id of the smallint sequence for each stored palette
      where not exists (select from palettes p where p.bands = t.colors)
      order by colors
      returning id, bands
    ),
    own as (
      select id, bands from palette
      union
      select id, bands from palettes
    ),
    wanted as (
      select t.id, own.id as palette, kind.model, t.pause_ms
      from tables t
      join own on own.bands = t.colors
      join kind on kind.colors = t.colors and kind.edge is not distinct from (t.settings ->> 'house_edge')::float8
    ),
    changed as (
      select w.*
      from wanted w
      join table_heads h on h.table_id = w.id
      where (h.palette, h.pause_ms) <> (w.palette, w.pause_ms)
        or h.last_seq = 0 and h.first_model <> w.model
      order by w.id
      for no key update of h
    ),
    advanced as (
      update table_heads h
      set
        version = h.version + 1,
        changed_at = clock_timestamp(),
        palette = w.palette,
        first_model = case when h.last_seq = 0 then w.model else h.first_model end,
        model = case when h.last_seq = 0 then w.model else h.model end,
        pause_ms = w.pause_ms
      from changed w
      where h.table_id = w.id
    )
    insert into table_heads (table_id, palette, first_model, model, pause_ms)
    select w.id, w.palette, w.model, w.model, w.pause_ms
    from wanted w
    where not exists (select from table_heads h where h.table_id = w.id)
    order by w.id`;
}

/** Stores the model of each combination of bands and edge that tables have, and returns them with the model's name. */
async function saveKinds(sql: Transaction): Promise<{ colors: Band[]; edge: number | null; model: string }[]> {
  const kinds = await sql<{ colors: Band[]; edge: number | null }[]>`
    select distinct colors, (settings ->> 'house_edge')::float8 as edge
    from tables`;
  const models = kinds.map(({ colors, edge }) => modelOf(colors, edge));
  await saveModels(sql, models);
  return kinds.map((kind, at) => ({ ...kind, model: models[at]!.name }));
}
