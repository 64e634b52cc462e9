import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Sql, Transaction } from "../../src/db/client.ts";

/** The steps of processing a round, named by the table that each writes. */
export type Step = "payloads" | "rounds" | "forecast_sets" | "score_sets" | "calibrations";

/** A lock that blocks other transactions until `release`. */
export interface HeldLock {
  release(): Promise<void>;
}

const TIMEOUT_MS = 60_000;

/** The state that a case needs was not reached. The case is tried again, and fails if no attempt reaches it. */
export class NotReached extends Error {
  override name = "NotReached";
}

/** This machine cannot cause the fault: the case is not tested, and does not fail. */
export class NotPossible extends Error {
  override name = "NotPossible";
}

/**
 * Blocks writers of a table in the middle of their transactions. Returns when `writers` statements of workers (default 1)
 * wait for the lock, or when `isOver` returns true. Readers are not blocked. A restart of PostgreSQL releases the lock.
 * @throws NotReached if too few workers wait within `timeoutMs` (default: a minute), such as on a machine that is too busy
 * to issue forecasts in time
 */
export function blockWriters(
  sql: Sql,
  step: Step,
  { timeoutMs = TIMEOUT_MS, writers = 1, isOver = () => Promise.resolve(false) } = {},
): Promise<HeldLock> {
  return lock(sql, `a worker that writes ${step}`, timeoutMs, {
    take: (tx) => tx`lock table ${tx(step)} in share mode`,
    isBlocked: async () => {
      if (await isOver()) return true;
      const rows = await sql`
        select
        from pg_locks l
        join pg_stat_activity a on a.pid = l.pid
        where l.relation = ${step}::regclass
          and not l.granted
          and a.application_name like 'roundhouse worker%'`;
      return rows.length >= writers;
    },
  });
}

/** Blocks the counting of an account's calls. Returns when a batch of the meter waits for the lock. */
export function blockMeter(sql: Sql, email: string): Promise<HeldLock> {
  return lock(sql, "a batch of calls", TIMEOUT_MS, {
    take: (tx) => tx`
      select
      from quotas q
      join accounts a on a.id = q.account_id
      where a.email = ${email}
      for update of q`,
    isBlocked: async () => {
      const rows = await sql`
        select
        from pg_stat_activity
        where wait_event_type = 'Lock'
          and query like '%from consume_calls%'
          and pid <> pg_backend_pid()`;
      return rows.length > 0;
    },
  });
}

/** Locks a house's rows of a table in a session that looks like psql, and leaves the transaction idle. */
export async function lockRows(
  databaseUrl: string,
  table: "houses" | "tables" | "feeds" | "table_heads",
  house: string,
): Promise<HeldLock> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "psql" });
  await client.connect();
  await client.query("begin");
  await client.query(
    {
      houses: "select from houses where id = $1 for update",
      tables: "select from tables where house_id = $1 for update",
      feeds: "select from feeds f join tables t on t.id = f.table_id where t.house_id = $1 for update of f",
      table_heads: "select from table_heads h join tables t on t.id = h.table_id where t.house_id = $1 for update of h",
    }[table],
    [house],
  );
  return {
    async release() {
      await client.query("rollback");
      await client.end();
    },
  };
}

async function lock(
  sql: Sql,
  what: string,
  timeoutMs: number,
  { take, isBlocked }: { take: (tx: Transaction) => PromiseLike<unknown>; isBlocked: () => Promise<boolean> },
): Promise<HeldLock> {
  const taken = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const ended = sql
    .begin(async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`;
      await take(tx);
      taken.resolve();
      await released.promise;
    })
    .catch((error: unknown) => taken.reject(error)); // no effect once taken: then PostgreSQL was restarted
  const release = async () => {
    released.resolve();
    await ended;
  };
  await taken.promise;
  try {
    for (const until = Date.now() + timeoutMs; !(await isBlocked()); await delay(10)) {
      if (Date.now() > until) throw new NotReached(`expected ${what} within ${timeoutMs / 1_000} s, found none`);
    }
  } catch (error) {
    await release();
    throw error;
  }
  return { release };
}
