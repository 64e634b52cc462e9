import type { Queryable } from "../../db/client.ts";
import { parameterSetOf } from "../../forecasts/model/model-name.ts";
import { storedParameters } from "../../forecasts/model/parameter-set.ts";
import { K7_1, type Parameters } from "../../forecasts/model/parameters.ts";

/** The parameter set of this name, or of the model of this name; null if it was not used before. */
export async function findParameters(sql: Queryable, setOrModel: string): Promise<Parameters | null> {
  const name = parameterSetOf(setOrModel);
  if (name === K7_1.name) return K7_1;
  const [row] = await sql<{ parameters: unknown }[]>`
    select parameters
    from model_parameters
    where name = ${name}`;
  return row === undefined ? null : storedParameters(name, row.parameters);
}

/** Names of the parameter sets that were used before, newest first. */
export async function listParameterNames(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select name
    from model_parameters
    order by first_used_at desc
    limit 50`;
  return rows.map(({ name }) => name);
}
