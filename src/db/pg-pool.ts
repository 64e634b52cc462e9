import pg from "pg";
import { roleOption } from "./take-role.ts";

/**
 * A pool of the `pg` driver, for the libraries that speak it. Its unqualified names are looked for in one schema alone.
 * Needs a URL past a transaction pooler, since the schema is set once per connection.
 */
export function openPgPool(url: string, { name, schema, max }: { name: string; schema: string; max: number }): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: `roundhouse ${name}`,
    options: `-c search_path=${schema} -c TimeZone=UTC ${roleOption(url)}`,
    max,
    connectionTimeoutMillis: 5_000,
    statement_timeout: 10_000,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
  });
  // an idle connection that the server ends is no fault: the next query makes another
  pool.on("error", () => undefined);
  return pool;
}
