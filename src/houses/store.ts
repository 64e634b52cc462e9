import { expandVariables } from "./settings/expand-variables.ts";
import { type Variables } from "../config/environment.ts";
import { batched, type Batched } from "../db/batched.ts";
import type { Queryable } from "../db/client.ts";
import { PermanentError } from "../errors.ts";
import { mayPollWait, type House } from "./house.ts";
import { paceOf, placeIn, runsOf, type Pace } from "./polling/pace.ts";
import { spreadOf } from "./polling/polling-store.ts";
import { houseSettings } from "./settings/settings.ts";

/** The number of a table's newest stored round; null if it has none, ids are not consecutive, or it is unknown. */
export async function findNewestNumber(
  sql: Queryable,
  house: string,
  { game, market }: { game: string; market: string },
): Promise<bigint | null> {
  const [row] = await sql<{ newest: bigint | null }[]>`
    select h.newest_number as newest
    from tables t
    join table_heads h on h.table_id = t.id
    where t.house_id = ${house}
      and t.game = ${game}
      and t.market = ${market}`;
  return row?.newest ?? null;
}

/** A house with when its row was updated, as PostgreSQL writes it. */
interface StoredHouse extends House {
  updatedAt: string;
}
/** Houses by id, and those that are being loaded for the first time. */
interface HouseCache {
  known: Map<string, StoredHouse>;
  first: Map<string, Promise<StoredHouse | null>>;
}
const caches = new WeakMap<Variables, HouseCache>();

interface HouseRow {
  settings: Record<string, unknown> | null;
  base_url: string | null;
  updated_at: string;
}

/**
 * Returns a house with the variables of this process in its settings, or null if there is none with this id. Its settings
 * are parsed again only when its row changed.
 * @throws PermanentError if a variable is not set here or the stored settings are of another version.
 */
export async function loadHouse(sql: Queryable, variables: Variables, id: string): Promise<StoredHouse | null> {
  const cache = caches.get(variables) ?? { known: new Map(), first: new Map() };
  caches.set(variables, cache);
  if (cache.known.has(id)) return readIfChanged(sql, cache.known, { variables, id });
  // the shards of a large house start together, and checking its settings takes a second: done once for all of them
  const going = cache.first.get(id);
  if (going !== undefined) return going;
  const first = readIfChanged(sql, cache.known, { variables, id }).finally(() => cache.first.delete(id));
  cache.first.set(id, first);
  return first;
}

/**
 * Like {@link loadHouse}, for work without requests to the house, such as reading stored payloads: variables that are not
 * set are replaced by an address that does not exist.
 */
export async function loadHouseToRead(sql: Queryable, variables: Variables, id: string): Promise<House | null> {
  try {
    return await loadHouse(sql, variables, id);
  } catch (error) {
    if (!(error instanceof PermanentError)) throw error;
    return loadHouse(sql, withPlaceholders(variables), id);
  }
}

const withPlaceholder = new WeakMap<Variables, Variables>();

/** The same function each time, because houses are cached by it. */
function withPlaceholders(variables: Variables): Variables {
  const known = withPlaceholder.get(variables);
  if (known !== undefined) return known;
  const made: Variables = (name) => variables(name) || "https://not-set.invalid";
  withPlaceholder.set(variables, made);
  return made;
}

async function readIfChanged(
  sql: Queryable,
  cache: Map<string, StoredHouse>,
  { variables, id }: { variables: Variables; id: string },
): Promise<StoredHouse | null> {
  const cached = cache.get(id);
  const mayWait = cached !== undefined && mayPollWait(cached);
  const row = await findHouseRow(sql, { id, known: cached?.updatedAt ?? null, mayWait });
  if (row === undefined) return null;
  if (row.settings === null) {
    if (cached === undefined) throw new Error(`expected the settings of the house ${id}, found a row without them`);
    return cached;
  }
  const house = { ...readHouse(id, row.settings, row.base_url, variables), updatedAt: row.updated_at };
  cache.set(id, house);
  return house;
}

interface WantedRow {
  id: string;
  /** When the cached settings were updated. */
  known: string | null;
  mayWait: boolean;
}
const finders = new WeakMap<Queryable, Batched<WantedRow, HouseRow | undefined>>();
const HOUSES_AT_ONCE = 100;

/** Without the settings if the cached ones are current. A poll begins with it, so polls that it gathers share leases too. */
async function findHouseRow(sql: Queryable, wanted: WantedRow): Promise<HouseRow | undefined> {
  const run = (all: readonly WantedRow[]) => findHouseRows(sql, all);
  const find = finders.get(sql) ?? batched(run, HOUSES_AT_ONCE, ({ mayWait }) => mayWait);
  finders.set(sql, find);
  return find(wanted);
}

async function findHouseRows(sql: Queryable, wanted: readonly WantedRow[]): Promise<(HouseRow | undefined)[]> {
  const rows = await sql<(HouseRow & { place: number })[]>`
    select
      w.place::integer as place,
      case when h.updated_at::text is distinct from w.known then h.settings end as settings,
      h.base_url,
      h.updated_at::text as updated_at
    from unnest(
      ${wanted.map(({ id }) => id)}::text[],
      ${wanted.map(({ known }) => known)}::text[]
    ) with ordinality as w (id, known, place)
    join houses h on h.id = w.id`;
  const found = new Map(rows.map((row) => [row.place, row]));
  return wanted.map((_, place) => found.get(place + 1));
}

/**
 * Returns a house of an entry of the houses file, or of its stored form, with variables replaced; `hide` replaces their
 * values back. `baseUrl` is that of a demo house.
 * @throws PermanentError if a variable of an enabled house is not set or the settings are not valid.
 */
export function readHouse(
  id: string,
  entry: Record<string, unknown>,
  baseUrl: string | null,
  variables: Variables,
): House {
  const used = new Map<string, string>();
  const remember: Variables = (name) => {
    const value = variables(name);
    if (value !== undefined && value.length >= 4) used.set(name, value); // replacing shorter ones would hide nothing and damage texts
    return value;
  };
  const unset: string[] = [];
  const expanded = expandVariables(entry, remember, (_, message) => unset.push(message));
  if (unset.length > 0 && entry["enabled"] !== false)
    throw new PermanentError(`the house ${id} cannot be loaded: ${unset.join("; ")}`);
  const parsed = houseSettings.safeParse(expanded);
  if (!parsed.success) {
    const first = parsed.error.issues[0];
    throw new PermanentError(
      `the stored settings of ${id} are not valid (${first?.path.map(String).join(".")}: ${first?.message}); apply the houses file again`,
    );
  }
  return {
    id,
    settings: parsed.data,
    baseUrl: parsed.data.demo ? baseUrl : (parsed.data.base_url ?? null),
    hide: (text) => [...used].reduce((rest, [name, value]) => rest.replaceAll(value, `\${${name}}`), text),
  };
}

/** The schedule of the runs of polls of a house shard. */
interface PollSchedule {
  payload: { house: string; shard: number; pace: Pace };
  everyMs: number;
  offsetMs: number;
}

/** The schedule of the runs that poll each house every `poll_every_ms`. */
export async function listPollSchedules(sql: Queryable): Promise<PollSchedule[]> {
  const rows = await sql<{ house: string; shard: number; every: number; spread: number }[]>`
    select h.id as house, t.shard, h.poll_every_ms as every, ${spreadOf(sql)} as spread
    from houses h
    join tables t on t.house_id = h.id
    where h.enabled
      and h.paused_at is null
      and h.base_url is not null
      and t.enabled
    group by h.id, t.shard
    order by h.id, t.shard`;
  return rows.map(({ house, shard, every, spread }) => {
    const pace = paceOf(every, `${house}/${shard}`, spread);
    return { payload: { house, shard, pace }, ...runsOf(pace) };
  });
}

/** The schedule that compares a payload of each house with the stored rounds: every minute, at a second derived from its name. */
export async function listComparisonSchedules(
  sql: Queryable,
): Promise<{ payload: { house: string; compare: boolean }; everyMs: number; offsetMs: number }[]> {
  const rows = await sql<{ house: string }[]>`
    select h.id as house
    from houses h
    where h.enabled
      and h.paused_at is null
      and h.base_url is not null
    order by h.id`;
  return rows.map(({ house }) => ({
    payload: { house, compare: true },
    everyMs: COMPARE_EVERY_MS,
    offsetMs: placeIn(COMPARE_EVERY_MS, house),
  }));
}

const COMPARE_EVERY_MS = 60_000;
