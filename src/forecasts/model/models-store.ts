import type { Queryable } from "../../db/client.ts";
import { createModel, type Model } from "./model.ts";
import { parameterSetOf } from "./model-name.ts";
import { storedParameters, valuesOf } from "./parameter-set.ts";

/** Stores the definitions of models under their names. */
export async function saveModels(sql: Queryable, models: readonly Model[]): Promise<void> {
  const rows = models.map(({ name, thresholds, edge, parameters }) => ({
    name,
    thresholds,
    edge,
    parameters: valuesOf(parameters),
  }));
  await sql`
    insert into models (name, thresholds, edge, parameters)
    select name, thresholds, edge, parameters
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
      as m (name text, thresholds integer[], edge float8, parameters jsonb)
    order by name
    on conflict do nothing`;
}

interface StoredModel {
  name: string;
  thresholds: number[];
  edge: number | null;
  parameters: unknown;
}

/** The first stored model whose name does not match its definition; null if there is none. */
export async function findForgedModel(sql: Queryable): Promise<{ name: string; found: string } | null> {
  for (const { name, thresholds, edge, parameters } of await sql<StoredModel[]>`select * from models order by name`) {
    try {
      const found = createModel({ thresholds, edge, parameters: storedParameters(parameterSetOf(name), parameters) });
      if (found.name !== name) return { name, found: found.name };
    } catch (error) {
      return { name, found: String(error) };
    }
  }
  return null;
}

/** A model that issued forecasts of a table. */
export interface TableModel {
  model: string;
  /** The start of the UTC hour of its first forecast. */
  since: string;
  thresholds: number[];
  edge: number | null;
}

/** The models that issued forecasts of a table, the live one first, at most 20. */
export async function listTableModels(sql: Queryable, tableId: number): Promise<TableModel[]> {
  return sql<TableModel[]>`
    select a.model, utc_text(a.first_hour) as since, m.thresholds, m.edge
    from accuracy_models a
    join models m on m.name = a.model
    join table_heads h on h.table_id = a.table_id
    where a.table_id = ${tableId}
    order by a.model = h.model desc, a.first_hour desc, a.model
    limit 20`;
}
