import { setTimeout as delay } from "node:timers/promises";
import { connect, type Sql } from "./client.ts";

/** Longer than a busy database needs for one row, shorter than a tick. */
const ANSWER_MS = 4_000;

/** A place that one process at a time may hold. */
export interface Leadership {
  /**
   * Takes the place if it is free and tells whether it is ours now. Ask before each piece of work: the place is lost
   * with the connection, and this is where it shows.
   * @throws Error where the database does not answer; the place then counts as lost.
   */
  hold(): Promise<boolean>;
  /** Gives the place back, so that another may take it at once. */
  release(): Promise<void>;
  close(): Promise<void>;
}

/**
 * A place held by a session advisory lock on a connection of its own, so that it ends with its process, however that
 * dies. `directUrl` must not lead through a transaction pooler: the lock would stay on a connection of the pool.
 *
 * Between two calls of `hold` a lost place is not known: what is done meanwhile must bear being done twice.
 */
export function openLeadership(directUrl: string, lock: number): Leadership {
  let sql: Sql | null = null;
  let heldBy: number | null = null; // the backend that holds the lock for us

  async function ask<Row>(question: (connection: Sql) => Promise<Row[]>): Promise<Row> {
    sql ??= open(directUrl);
    const connection = sql;
    const patience = new AbortController();
    try {
      const [row] = await Promise.race([question(connection), noAnswer(patience.signal)]);
      if (row === undefined) throw new Error("the leader's connection answered with no row");
      return row;
    } catch (error) {
      heldBy = null;
      sql = null;
      void connection.end({ timeout: 0 }); // broken: there is nothing to wait for
      throw error;
    } finally {
      patience.abort();
    }
  }

  return {
    async hold() {
      if (heldBy !== null) {
        const { pid } = await ask((connection) => connection<{ pid: number }[]>`select pg_backend_pid() as pid`);
        if (pid === heldBy) return true;
        heldBy = null; // the driver connected anew: the lock went with the old connection
      }
      const { pid, held } = await ask(
        (connection) =>
          connection<{ pid: number; held: boolean }[]>`
            select pg_backend_pid() as pid,
                   pg_try_advisory_lock(${lock}::bigint) as held`,
      );
      heldBy = held ? pid : null;
      return held;
    },
    async release() {
      if (heldBy === null) return;
      heldBy = null;
      await ask((connection) => connection`select pg_advisory_unlock(${lock}::bigint)`);
    },
    async close() {
      heldBy = null;
      const connection = sql;
      sql = null;
      await connection?.end({ timeout: 1 });
    },
  };
}

function open(url: string): Sql {
  return connect(url, { name: "leader", max: 1, use: "work" });
}

async function noAnswer(signal: AbortSignal): Promise<never> {
  await delay(ANSWER_MS + 500, undefined, { signal });
  throw new Error(`the database did not answer the leader within ${ANSWER_MS + 500} ms`);
}
