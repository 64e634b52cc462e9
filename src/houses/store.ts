import { hash } from "node:crypto";
import { expandVariables, type HouseEntry, type Variables } from "../config.ts";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { PermanentError, UsageError } from "../errors.ts";
import { changesOf, type KnownTable } from "./changes.ts";
import type { House } from "./house.ts";
import { houseSettings } from "./settings.ts";
import { statusOf, type Status } from "./status.ts";
import { togetherBy } from "../db/together.ts";

const APPLY_LOCK = 0x7268_0003; // "rh", 3 (2 is the reconciler's place): one process at a time applies a houses file

/**
 * Makes the database say what the houses file says: all of it or, where a fixed setting was changed, nothing.
 *
 * A house or table that left the file is disabled, never deleted. What did not change is not touched, so that starting
 * a second process with the same file changes nothing.
 * @throws UsageError naming each table whose palette or kind of round ids was changed though it has rounds.
 */
export async function applyHouses(
  sql: Sql,
  entries: readonly HouseEntry[],
): Promise<{ houses: number; tables: number; disabled: string[] }> {
  return sql.begin(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${APPLY_LOCK})`;
    const changes = changesOf(entries, await lockTables(transaction));
    if (changes.problems.length > 0) throw new UsageError("the houses file cannot be applied:", changes.problems);
    await saveHouses(transaction, changes.houses);
    await saveTables(transaction, changes.tables);
    await forgetAnswers(transaction, changes.newFeeds);
    const disabled = await disableOthers(
      transaction,
      changes.houses.map(({ id }) => id),
    );
    return { houses: changes.houses.length, tables: changes.tables.length, disabled };
  });
}

/** All tables in id order, locked, so that none gets its first round while its palette is compared. */
async function lockTables(sql: Transaction): Promise<KnownTable[]> {
  return sql<KnownTable[]>`
    select
      t.id,
      t.house_id as house,
      t.game,
      t.market,
      t.round_ids,
      t.colors,
      t.last_seq > 0 as "hasRounds",
      t.settings,
      h.base_url as "baseUrl"
    from tables t
    join houses h on h.id = t.house_id
    order by t.id
    for no key update of t`;
}

async function saveHouses(sql: Transaction, houses: ReturnType<typeof changesOf>["houses"]): Promise<void> {
  // the address of a demo house is that of the process that plays it, see setDemoAddress
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
  await sql`
    insert into tables as t (
      house_id, game, market, position, shard, enabled, settings, round_ids, pause_ms, colors
    )
    select house_id, game, market, position, shard, enabled, settings, round_ids, pause_ms, colors
    from jsonb_to_recordset(${JSON.stringify(tables)}::text::jsonb) as entry (
      house_id text, game text, market text, position integer, shard integer, enabled boolean, settings jsonb,
      round_ids text, pause_ms integer, colors jsonb
    )
    order by house_id, position
    on conflict (house_id, game, market) do update
    set
      position = excluded.position,
      shard = excluded.shard,
      enabled = excluded.enabled,
      settings = excluded.settings,
      round_ids = excluded.round_ids,
      pause_ms = excluded.pause_ms,
      colors = excluded.colors
    where (t.position, t.shard, t.enabled, t.settings, t.round_ids, t.pause_ms, t.colors)
      is distinct from (
        excluded.position, excluded.shard, excluded.enabled, excluded.settings, excluded.round_ids, excluded.pause_ms,
        excluded.colors
      )`;
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
  await sql`
    insert into published_now (table_id)
    select id
    from tables
    on conflict do nothing`;
}

async function forgetAnswers(sql: Transaction, tableIds: readonly number[]): Promise<void> {
  await sql`
    update feeds
    set
      etag = null,
      last_modified = null,
      last_sha256 = null,
      last_answer_at = null,
      last_full_at = null,
      refused_since = null,
      last_path = null,
      bad_answers = 0,
      format_since = null
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
 * Writes where the demo houses are played, so that every worker finds them. Where that changed, the next request is a
 * full one: an ETag is another server's word.
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

/** The number of a table's newest stored round; null where it has none, ids do not count up, or it is not known. */
export async function findNewestNumber(
  sql: Queryable,
  house: string,
  { game, market }: { game: string; market: string },
): Promise<bigint | null> {
  const [row] = await sql<{ newest: bigint | null }[]>`
    select newest_number as newest
    from tables
    where house_id = ${house}
      and game = ${game}
      and market = ${market}`;
  return row?.newest ?? null;
}

interface CachedHouse {
  updatedAt: string;
  house: House;
}
const cachedHouses = new WeakMap<Variables, Map<string, CachedHouse>>();

/** Houses that are looked up by one statement. */
const HOUSES_AT_ONCE = 200;

interface HouseRow {
  settings: Record<string, unknown> | null;
  base_url: string | null;
  updated_at: string;
}

const findTogether = togetherBy<Queryable, { id: string; known: string | null }, HouseRow | null>(findHouseRows, {
  items: HOUSES_AT_ONCE,
});

/**
 * A house with the variables of this process in its settings, or null where there is none of this id. Its settings are
 * read and checked again only when its row changed; houses that are asked for at once are looked up together.
 * @throws PermanentError where a variable is not set here or the stored settings are of another version.
 */
export async function loadHouse(sql: Queryable, variables: Variables, id: string): Promise<House | null> {
  const cache = cachedHouses.get(variables) ?? new Map<string, CachedHouse>();
  cachedHouses.set(variables, cache);
  const cached = cache.get(id);
  const row = await findTogether(sql, { id, known: cached?.updatedAt ?? null });
  if (row === null) return null;
  if (row.settings === null) {
    if (cached === undefined) throw new Error(`the house ${id} came without the settings that were asked for`);
    return cached.house;
  }
  const house = readHouse(id, row.settings, row.base_url, variables);
  cache.set(id, { updatedAt: row.updated_at, house });
  return house;
}

/** Without the settings where they are known as they are. */
async function findHouseRows(
  sql: Queryable,
  asked: readonly { id: string; known: string | null }[],
): Promise<(HouseRow | null)[]> {
  const rows = await sql<(HouseRow & { place: number })[]>`
    select
      a.place::integer,
      case when h.updated_at::text is distinct from a.known then h.settings end as settings,
      h.base_url,
      h.updated_at::text as updated_at
    from unnest(${asked.map(({ id }) => id)}::text[], ${asked.map(({ known }) => known)}::text[])
      with ordinality as a (id, known, place)
    join houses h on h.id = a.id`;
  const byPlace = new Map(rows.map((row) => [row.place, row]));
  return asked.map((_, at) => byPlace.get(at + 1) ?? null);
}

function readHouse(id: string, entry: Record<string, unknown>, baseUrl: string | null, variables: Variables): House {
  const used = new Map<string, string>();
  const remember: Variables = (name) => {
    const value = variables(name);
    if (value !== undefined && value.length >= 4) used.set(name, value); // shorter ones hide nothing and maim texts
    return value;
  };
  const unset: string[] = [];
  const expanded = expandVariables(entry, remember, (_, message) => unset.push(message));
  if (unset.length > 0 && entry["enabled"] !== false)
    throw new PermanentError(`the house ${id} cannot be used: ${unset.join("; ")}`);
  const parsed = houseSettings.safeParse(expanded);
  if (!parsed.success) {
    const first = parsed.error.issues[0];
    throw new PermanentError(
      `the stored settings of ${id} are not usable (${first?.path.map(String).join(".")}: ${first?.message}); apply the houses file again`,
    );
  }
  return {
    id,
    settings: parsed.data,
    baseUrl: parsed.data.demo ? baseUrl : (parsed.data.base_url ?? null),
    hide: (text) => [...used].reduce((rest, [name, value]) => rest.replaceAll(value, `\${${name}}`), text),
  };
}

/** When each house is polled: every `poll_every_ms`, at a place in the interval that its name decides. */
export async function listPollSchedules(
  sql: Queryable,
): Promise<{ payload: { house: string; shard: number }; everyMs: number; offsetMs: number }[]> {
  const rows = await sql<{ house: string; shard: number; every: number }[]>`
    select h.id as house, t.shard, h.poll_every_ms as every
    from houses h
    join tables t on t.house_id = h.id
    where h.enabled
      and h.paused_at is null
      and h.base_url is not null
      and t.enabled
    group by h.id, t.shard
    order by h.id, t.shard`;
  return rows.map(({ house, shard, every }) => ({
    payload: { house, shard },
    everyMs: every,
    // spread over the interval, so that a thousand houses are not asked in the same millisecond
    offsetMs: Number.parseInt(hash("sha256", `${house}/${shard}`).slice(0, 12), 16) % every,
  }));
}

/** How a house is doing, as `house list` shows it; times as every surface prints them. */
export interface HouseStatus {
  house: string;
  name: string;
  simulated: boolean;
  status: Status;
  last_ok_at: string | null;
  /** The HTTP status of the newest poll, 0 where no answer came, null before the first poll. */
  last_status: number | null;
  /** Of the newest poll that failed or, where an answer came since, of one that is good HTTP and cannot be read. */
  last_error: string | null;
  last_error_at: string | null;
  circuit: "closed" | "half_open" | "open";
  /** Null where it is not polled: disabled or paused. */
  next_poll_at: string | null;
  pause_reason: string | null;
}

/** All houses in id order, each with its status and the newest of what its shards know. */
export async function listHouses(sql: Queryable, liveWindowSeconds: number): Promise<HouseStatus[]> {
  interface Row extends Omit<HouseStatus, "status"> {
    newest_polled_age_ms: number | null;
    paused: boolean;
    enabled: boolean;
  }
  const rows = await sql<Row[]>`
    select
      h.id as house,
      h.name,
      h.simulated,
      extract(epoch from clock_timestamp() - newest.round_at)::float8 * 1000 as newest_polled_age_ms,
      h.paused_at is not null as paused,
      h.enabled,
      utc_text(polled.last_ok_at) as last_ok_at,
      latest.last_status,
      trouble.last_error,
      utc_text(trouble.last_error_at) as last_error_at,
      coalesce(polled.circuit, 'closed') as circuit,
      case when h.enabled and h.paused_at is null then utc_text(polled.next_poll_at) end as next_poll_at,
      h.pause_reason
    from houses h
    left join lateral (
      select max(last_polled_round_at) as round_at
      from tables
      where house_id = h.id
    ) newest on true
    left join lateral (
      select
        max(last_ok_at) as last_ok_at,
        min(greatest(next_allowed_at, coalesce(last_poll_at + h.poll_every_ms * interval '1 millisecond', now())))
          as next_poll_at,
        (array['open', 'half_open', 'closed'])[min(array_position(array['open', 'half_open', 'closed'], circuit))]
          as circuit
      from poll_leases
      where house_id = h.id
    ) polled on true
    left join lateral (
      select last_status
      from poll_leases
      where house_id = h.id
        and last_poll_at is not null
      order by last_poll_at desc
      limit 1
    ) latest on true
    left join lateral (
      select last_error, last_error_at
      from poll_leases
      where house_id = h.id
        and last_error_at is not null
      order by last_error_at desc
      limit 1
    ) failed on true
    left join lateral (
      select t.game || '/' || t.market || ': ' || coalesce(newest.refused_reason, n.text) as reason
      from tables t
      join notices n on n.table_id = t.id
      left join lateral (
        select refused_reason
        from payloads
        where table_id = t.id
          and state = 'refused'
          and received_at >= n.opened_at
        order by received_at desc
        limit 1
      ) newest on true
      where t.house_id = h.id
        and t.enabled
        and n.kind = 'format'
        and n.closed_at is null
      order by n.opened_at desc
      limit 1
    ) refused on true
    left join lateral (
      -- it is open until an answer can be read, so the newest answer cannot either
      select refused.reason as last_error, polled.last_ok_at as last_error_at
      where refused.reason is not null
        and (failed.last_error_at is null or failed.last_error_at < polled.last_ok_at)
      union all
      select failed.last_error, failed.last_error_at
      limit 1
    ) trouble on true
    order by h.id`;
  return rows.map(({ house, name, simulated, newest_polled_age_ms: newestPolledAgeMs, paused, enabled, ...shown }) => ({
    house,
    name,
    simulated,
    status: statusOf({ newestPolledAgeMs, paused, enabled }, liveWindowSeconds * 1000),
    ...shown,
  }));
}

/** Stops polling a house until it is resumed; who did it and why is kept. False where there is no such house. */
export async function pauseHouse(
  sql: Queryable,
  pause: { house: string; by: string; reason: string },
): Promise<boolean> {
  const rows = await sql`
    update houses
    set
      paused_at = coalesce(paused_at, clock_timestamp()),
      paused_by = ${pause.by},
      pause_reason = ${pause.reason}
    where id = ${pause.house}
    returning id`;
  await touchPublished(sql, pause.house);
  return rows.length > 0;
}

/** Polls a paused house again, at its next turn. False where there is no such house. */
export async function resumeHouse(sql: Queryable, house: string): Promise<boolean> {
  const rows = await sql`
    update houses
    set
      paused_at = null,
      paused_by = null,
      pause_reason = null,
      updated_at = clock_timestamp()
    where id = ${house}
    returning id`;
  await touchPublished(sql, house);
  return rows.length > 0;
}

/** The status of a table is shown with what is published of it: whoever reads that must look again. */
async function touchPublished(sql: Queryable, house: string): Promise<void> {
  await sql`
    update published_now p
    set updated_at = clock_timestamp()
    from tables t
    where t.id = p.table_id
      and t.house_id = ${house}`;
}
