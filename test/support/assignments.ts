import type { Queryable } from "../../src/db/client.ts";
import type { Fragment, Value } from "../../src/db/statement.ts";

/** `"a" = $1, "b" = $2` for the SET of an UPDATE. */
export function assignments(sql: Queryable, changes: object): Fragment {
  const parts = Object.entries(changes).map(([column, value]) => sql`${sql(column)} = ${value as Value}`);
  return parts.reduce((before, part) => sql`${before}, ${part}`);
}
