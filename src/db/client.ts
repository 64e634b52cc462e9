import type Postgres from "postgres";
import { postgres } from "./driver.ts";
import { survivingLoss } from "./lost-connection.ts";

/** A pool of connections to PostgreSQL; bigint columns arrive as JavaScript bigint. */
export type Sql = Postgres.Sql<{ bigint: bigint }>;
/** One open transaction. */
export type Transaction = Postgres.TransactionSql<{ bigint: bigint }>;
/** Either: what a store needs to run a statement. */
export type Queryable = Sql | Transaction;

/**
 * Each statement is planned once a connection, by the indexes, and as a loop over look-ups: PostgreSQL else plans look-ups in
 * a table of sixteen parts anew for each value, which takes longer than the look-up; and what it plans once, while a table is
 * new, would go on reading the whole of it. Of 20 rounds/s in 300 tables that was a fifth of its work. Nor by a bitmap, which
 * comes again and again to what was deleted since: a look-up marks it as gone (a bitmap met 8,000 forecasts where some 250
 * waited). Who joins whole tables on such a connection says so in its transaction, as the ledger's check does.
 */
const STEADY = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_bitmapscan: "off",
  random_page_cost: 1.1,
} as const;

/**
 * Opens a pool. Connections are made when first needed, so a wrong URL shows at the first statement.
 *
 * A statement may take a minute; where `patient`, as long as it needs: filling a table from a large file is one statement.
 * Where a transaction pooler may stand between (`pooled`), prepared statements are off, since it would hand the next
 * statement to another server connection; and those limits are the database's own or the pooler's, since it refuses a
 * client that begins with them. `isSteady` is for who asks the same few things all day; see `STEADY`.
 */
export function connect(
  url: string,
  options: { max?: number; name: string; pooled?: boolean; patient?: boolean; isSteady?: boolean },
): Sql {
  const sql = postgres(url, {
    max: options.max ?? 10,
    types: { bigint: postgres.BigInt },
    prepare: options.pooled !== true,
    // one statement at a time on a connection: the driver asks for a statement's types before it sends its values, and a
    // pooler that has just answered another takes the connection to the server away between the two (pgbouncer#759)
    ...(options.pooled === true && { max_pipeline: 0 }),
    idle_timeout: 60,
    connect_timeout: 10,
    // seconds: a server that comes back is found within one, against up to twenty with the driver's own
    backoff: (attempt) => Math.min(2 ** attempt / 100, 1),
    onnotice: () => undefined, // "already exists, skipping" and the like
    connection: {
      application_name: `roundhouse ${options.name}`,
      TimeZone: "UTC",
      ...(options.pooled !== true && {
        statement_timeout: options.patient === true ? 0 : 60_000,
        idle_in_transaction_session_timeout: 60_000,
        ...(options.isSteady === true && STEADY),
      }),
    },
  });
  return survivingLoss(sql);
}
