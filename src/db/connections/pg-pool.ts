import pg from "pg";
import { Connection } from "./connection.ts";
import { ConnectionLostError } from "../errors.ts";
import { roleOption } from "../roles/take-role.ts";

const STATEMENT_MS = 10_000;
const DEADLINE_MS = STATEMENT_MS + 1_500;

/** A connection whose statements have a deadline, also those of a library, which does not use {@link Connection.exchange}. */
class DeadlineConnection extends Connection {
  // the driver declares eight forms of this method; nothing narrower than `any` fits all of them
  // oxlint-disable-next-line typescript/no-explicit-any
  override query(...given: [any, any?, any?]): any {
    const result: unknown = super.query(...given);
    if (result instanceof Promise) this.#limit(result);
    return result;
  }

  #limit(result: Promise<unknown>): void {
    const reason = new ConnectionLostError(`PostgreSQL did not respond within ${DEADLINE_MS} ms`, { isSilent: true });
    const deadline = setTimeout(() => this.destroy(reason), DEADLINE_MS);
    const clear = () => clearTimeout(deadline);
    void result.then(clear, clear);
  }
}

/**
 * A pool of the `pg` driver, for the libraries that speak it. Its unqualified names are looked for in one schema alone.
 * Needs a URL past a transaction pooler, since the schema is set once per connection.
 */
export function openPgPool(url: string, { name, schema, max }: { name: string; schema: string; max: number }): pg.Pool {
  const pool = new pg.Pool({
    Client: DeadlineConnection,
    connectionString: url,
    application_name: `roundhouse ${name}`,
    options: `-c search_path=${schema} -c TimeZone=UTC ${roleOption(url)}`,
    max,
    connectionTimeoutMillis: 5_000,
    statement_timeout: STATEMENT_MS,
    // for queries with a callback; later than the deadline that destroys, or a silent connection would go back to the pool
    query_timeout: DEADLINE_MS + 1_000,
    idleTimeoutMillis: 60_000,
    allowExitOnIdle: true,
  });
  // an idle connection that the server ends is no fault: the next query makes another
  pool.on("error", () => undefined);
  return pool;
}
