import type { HouseEntry } from "./load.ts";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import { isLockError } from "../db/errors.ts";
import { listFreeHeads, lockHeads } from "../tables/heads-store.ts";
import { endLeasesOf } from "../houses/polling/lease-store.ts";
import { saveHeads } from "./heads-store.ts";
import { changesOf, type KnownTable } from "./changes.ts";

const APPLY_LOCK = 0x7268_0003; // "rh", 3 (2 is the reconciler's): one process at a time applies a houses file

/** Called when other sessions keep tables locked, before the next attempt; the names are empty if they no longer do. */
export type WhileLocked = (tables: readonly string[]) => Promise<void>;

/**
 * Makes the database equal to the houses file: completely or, if a fixed setting was changed, not at all.
 *
 * A house or table that is no longer in the file is disabled, never deleted. Unchanged rows are not written, so a
 * second process that starts with the same file changes nothing. While another session, such as an import, keeps a changed
 * table locked, it is repeated: its own locks, with which the house cannot be polled, are held for about a second.
 *
 * @throws UsageError with each table whose palette or kind of round ids was changed although it has rounds
 */
export async function applyHouses(
  sql: Sql,
  entries: readonly HouseEntry[],
  whileLocked: WhileLocked = () => Promise.resolve(),
): Promise<AppliedHouses> {
  for (;;) {
    try {
      return await tryToApply(sql, entries);
    } catch (error) {
      if (!isLockError(error)) throw error;
      await whileLocked(await listLockedTables(sql, entries));
    }
  }
}

/** The number of applied houses and tables, and the ids of houses that were disabled. */
interface AppliedHouses {
  houses: number;
  tables: number;
  disabled: string[];
}

async function tryToApply(sql: Sql, entries: readonly HouseEntry[]): Promise<AppliedHouses> {
  return sql.begin(async (transaction) => {
    await transaction`select set_config('lock_timeout', '1s', true)`;
    await transaction`select pg_advisory_xact_lock(${APPLY_LOCK})`;
    let changes = changesOf(entries, await listKnownTables(transaction));
    if (changes.changed.length > 0) {
      // their first round must not be stored between this check and the change; locked in id order before any other of
      // their rows, as passes do, so that neither waits for the other
      await endLeasesOf(transaction, changes.newFeeds);
      await lockHeads(transaction, changes.changed);
      changes = changesOf(entries, await listKnownTables(transaction));
    }
    if (changes.problems.length > 0) throw new UsageError("the houses file cannot be applied:", changes.problems);
    await saveHouses(transaction, changes.houses);
    await saveTables(transaction, changes.tables);
    await forgetResponses(transaction, changes.newFeeds);
    await advanceHeads(transaction, changes.moved);
    const disabled = await disableOthers(
      transaction,
      changes.houses.map(({ id }) => id),
    );
    return { houses: changes.houses.length, tables: changes.tables.length, disabled };
  });
}

/** The names of tables that are to be changed and that other sessions keep locked. */
async function listLockedTables(sql: Sql, entries: readonly HouseEntry[]): Promise<string[]> {
  const known = await listKnownTables(sql);
  const changed = new Set(changesOf(entries, known).changed);
  const free = new Set(await listFreeHeads(sql, [...changed]));
  return known.flatMap(({ id, house, game, market }) =>
    changed.has(id) && !free.has(id) ? [`${house}/${game}/${market}`] : [],
  );
}

/** All tables. Heads are not locked: a pass of a table that stays as it is does not wait for a houses file. */
async function listKnownTables(sql: Queryable): Promise<KnownTable[]> {
  return sql<KnownTable[]>`
    select
      t.id,
      t.house_id as house,
      t.game,
      t.market,
      t.round_ids,
      t.colors,
      t.pause_ms,
      h.last_seq > 0 as "hasRounds",
      t.settings,
      t.enabled,
      t.position,
      t.shard,
      o.base_url as "baseUrl"
    from tables t
    join table_heads h on h.table_id = t.id
    join houses o on o.id = t.house_id
    order by t.id`;
}

async function saveHouses(sql: Transaction, houses: ReturnType<typeof changesOf>["houses"]): Promise<void> {
  // the address of a demo house belongs to the process that runs it, see setDemoAddress
  await sql`
    insert into houses as h (id, name, base_url, settings, demo, simulated, enabled, poll_every_ms)
    select id, name, base_url, settings, demo, simulated, enabled, poll_every_ms
    from jsonb_to_recordset(${JSON.stringify(houses)}::text::jsonb) as entry (
      id text, name text, base_url text, settings jsonb, demo boolean, simulated boolean, enabled boolean,
      poll_every_ms integer
    )
    on conflict (id) do update
    set
      name = excluded.name,
      base_url = case when excluded.demo and h.demo then h.base_url else excluded.base_url end,
      settings = excluded.settings,
      demo = excluded.demo,
      simulated = excluded.simulated,
      enabled = excluded.enabled,
      poll_every_ms = excluded.poll_every_ms,
      updated_at = clock_timestamp()
    where (h.name, h.settings, h.demo, h.simulated, h.enabled, h.poll_every_ms)
      is distinct from (
        excluded.name, excluded.settings, excluded.demo, excluded.simulated, excluded.enabled, excluded.poll_every_ms
      )`;
}

async function saveTables(sql: Transaction, tables: ReturnType<typeof changesOf>["tables"]): Promise<void> {
  // not on conflict: it would take an id of the sequence for each stored table
  await sql`
    with entry as (
      select *
      from jsonb_to_recordset(${JSON.stringify(tables)}::text::jsonb) as e (
        house_id text, game text, market text, position integer, shard integer, enabled boolean, settings jsonb,
        round_ids text, pause_ms integer, colors jsonb
      )
    ),
    updated as (
      update tables t
      set
        position = e.position,
        shard = e.shard,
        enabled = e.enabled,
        settings = e.settings,
        round_ids = e.round_ids,
        pause_ms = e.pause_ms,
        colors = e.colors
      from entry e
      where (t.house_id, t.game, t.market) = (e.house_id, e.game, e.market)
        and (t.position, t.shard, t.enabled, t.settings, t.round_ids, t.pause_ms, t.colors)
          is distinct from (e.position, e.shard, e.enabled, e.settings, e.round_ids, e.pause_ms, e.colors)
    )
    insert into tables (house_id, game, market, position, shard, enabled, settings, round_ids, pause_ms, colors)
    select house_id, game, market, position, shard, enabled, settings, round_ids, pause_ms, colors
    from entry e
    where not exists (
      select from tables t where (t.house_id, t.game, t.market) = (e.house_id, e.game, e.market)
    )
    order by house_id, position`;
  const houses = [...new Set(tables.map(({ house_id }) => house_id))];
  const names = tables.map(({ house_id, game, market }) => `${house_id}/${game}/${market}`);
  await sql`
    update tables
    set enabled = false
    where enabled
      and house_id = any(${houses})
      and house_id || '/' || game || '/' || market <> all(${names})`;
  await sql`
    insert into poll_leases (house_id, shard)
    select distinct house_id, shard
    from tables
    on conflict do nothing`;
  await sql`
    insert into feeds (table_id)
    select id
    from tables
    on conflict do nothing`;
  await saveHeads(sql);
}

async function forgetResponses(sql: Transaction, tableIds: readonly number[]): Promise<void> {
  await sql`
    update feeds
    set
      etag = null,
      last_modified = null,
      last_full_at = null,
      refused_since = null,
      bad_responses = 0,
      format_since = null
    where table_id = any(${[...tableIds]}::integer[])`;
  await sql`
    update table_heads
    set
      version = version + 1,
      changed_at = clock_timestamp(),
      responded_at = null,
      payload_sha256 = null,
      part_sha256 = null,
      payload_path = null
    where table_id = any(${[...tableIds]}::integer[])`;
}

async function advanceHeads(sql: Transaction, tableIds: readonly number[]): Promise<void> {
  await sql`
    update table_heads
    set
      version = version + 1,
      changed_at = clock_timestamp()
    where table_id = any(${[...tableIds]}::integer[])`;
}

async function disableOthers(sql: Transaction, ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    update houses
    set
      enabled = false,
      updated_at = clock_timestamp()
    where enabled
      and id <> all(${[...ids]})
    returning id`;
  return rows.map(({ id }) => id).toSorted();
}

/**
 * Stores the address of the demo houses, so that every worker finds them. If it changed, the next request is a full
 * one, because the stored ETag is another server's.
 */
export async function setDemoAddress(sql: Sql, url: string): Promise<void> {
  await sql.begin(async (transaction) => {
    const moved = await transaction<{ id: string }[]>`
      update houses
      set
        base_url = ${url},
        updated_at = clock_timestamp()
      where demo
        and base_url is distinct from ${url}
      returning id`;
    await transaction`
      update feeds f
      set
        etag = null,
        last_modified = null
      from tables t
      where t.id = f.table_id
        and t.house_id = any(${moved.map(({ id }) => id)})`;
  });
}
