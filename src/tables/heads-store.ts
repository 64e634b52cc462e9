import type { Queryable, Transaction } from "../db/client.ts";

/** How long a statement waits for a row that another session keeps locked. */
export type LockTimeout = "250ms" | "1s" | "4s";

/**
 * Locks the heads of tables until the end of the transaction, in id order, and returns the tables. Tables without a
 * head are left out. For one of several it waits a second at most, because those that are locked already are not polled.
 */
export async function lockHeads(tx: Transaction, tableIds: readonly number[]): Promise<{ id: number; name: string }[]> {
  if (tableIds.length > 1) await tx`select set_config('lock_timeout', '1s', true)`;
  return tx<{ id: number; name: string }[]>`
    select h.table_id as id, t.house_id || '/' || t.game || '/' || t.market as name
    from table_heads h
    join tables t on t.id = h.table_id
    where h.table_id = any(${[...tableIds]}::integer[])
    order by h.table_id
    for no key update of h`;
}

/**
 * Waits for transactions that change the heads of tables, and keeps later ones waiting until this one ends. Read the heads
 * in the next statement: this one still reads other rows as they were before it waited.
 */
export function shareHeads(sql: Queryable, tableIds: readonly number[]) {
  return sql`
    select
    from table_heads
    where table_id = any(${[...tableIds]}::integer[])
    order by table_id
    for share`;
}

/** Those of the tables whose heads no other session is changing. */
export async function listFreeHeads(sql: Queryable, tableIds: readonly number[]): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`
    select table_id as id
    from table_heads
    where table_id = any(${[...tableIds]}::integer[])
    order by table_id
    for share skip locked`;
  return rows.map(({ id }) => id);
}

/** Locks those heads that are free until the end of the transaction, and returns the ids of their tables. */
export async function lockFreeHeads(tx: Transaction, tableIds: readonly number[]): Promise<number[]> {
  const rows = await tx<{ id: number }[]>`
    select table_id as id
    from table_heads
    where table_id = any(${[...tableIds]}::integer[])
    order by table_id
    for no key update skip locked`;
  return rows.map(({ id }) => id);
}

/**
 * Advances the version of tables' heads, in id order, after a change of something that cached states or callers depend
 * on: settings, notices, revisions, calibrations. Passes that began before are rejected and repeated, and the next
 * response is read, also if it lists what the last one did. The heads stay
 * locked until the end of the transaction.
 */
export async function touchHeads(sql: Queryable, tableIds: readonly number[]): Promise<void> {
  if (tableIds.length === 0) return;
  await sql`
    with locked as (
      select table_id
      from table_heads
      where table_id = any(${[...tableIds]}::integer[])
      order by table_id
      for no key update
    )
    update table_heads h
    set version = h.version + 1, changed_at = clock_timestamp(), part_sha256 = null
    from locked
    where h.table_id = locked.table_id`;
}
