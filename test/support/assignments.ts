import type { Queryable } from "../../src/db/client.ts";
import type { Fragment, Value } from "../../src/db/statement.ts";

/** `"a" = $1, "b" = $2` for the SET of an UPDATE. */
export function assignments(sql: Queryable, changes: object): Fragment {
  const entries: [string, unknown][] = Object.entries(changes);
  const parts = entries.map(([column, value]) => sql`${sql(column)} = ${asValue(sql, value)}`);
  return parts.reduce((before, part) => sql`${before}, ${part}`);
}

/** An object is bound as jsonb. */
function asValue(sql: Queryable, value: unknown): Value {
  if (value === null || value instanceof Date) return value;
  return typeof value === "object" ? sql.json(value) : (value as Value);
}
