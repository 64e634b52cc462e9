import { setTimeout as delay } from "node:timers/promises";
import pLimit, { type LimitFunction } from "p-limit";
import { loadHouses } from "../../houses-file/load.ts";
import { type Variables, variablesOf } from "../../config/environment.ts";
import { withConnections } from "../../db/with-connections.ts";
import { UsageError } from "../../errors.ts";
import type { HouseClient, HouseRequest } from "../../houses/polling/client.ts";
import type { HouseItem, HouseRound } from "../../houses/contract.ts";
import { adapterOf } from "../../houses/adapters/index.ts";
import { type House, houseRequest, storedPath } from "../../houses/house.ts";
import { createHouseClient, ownName } from "../../houses/polling/http.ts";
import { hasFeed, type TableSettings } from "../../houses/settings/settings.ts";
import { findNewestNumber, loadHouse, readHouse } from "../../houses/store.ts";
import { expandVariables } from "../../houses/settings/expand-variables.ts";
import { colorOf } from "../../rounds/colors.ts";
import { VERSION } from "../../version.ts";
import type { Found } from "../session.ts";

/** Concurrent requests, as a poll sends to one house. */
const AT_ONCE = 8;

/** Sends a request of a check. */
type HouseFetch = (request: HouseRequest) => ReturnType<HouseClient["fetch"]>;

/** The request and response of a check, for --explain; secrets are replaced. */
export interface Exchange {
  method: string;
  url: string;
  request_headers: Record<string, string>;
  request_body: string | null;
  response_headers: Record<string, string>;
  bytes: number | null;
}

/** The result of one request to a table's feed. */
export interface TableCheck {
  table: string;
  ok: boolean;
  /** The HTTP status, 0 without a response. */
  status: number;
  elapsed_ms: number;
  /** Why there is no response or it cannot be parsed; null if it was parsed. */
  reason: string | null;
  items: number;
  readable: number;
  rounds: { round_id: string; multiplier: number; color: string; occurred_at: string | null; hash: string | null }[];
  refused: { round_id: string | null; code: string; reason: string; item: unknown }[];
  exchange: Exchange;
}

/** Checks of houses with one reading of the houses file and one limit of requests. */
export interface HouseChecks {
  /**
   * Requests the tables of a house and parses the responses as normalize does; stores nothing and takes no lease. Tables
   * with the same request share one, as in a poll.
   *
   * The house is read from the houses file, so that an entry can be tried before it is applied; else from the database.
   * @throws UsageError if neither has the house.
   */
  check(id: string): Promise<TableCheck[]>;
  close(): Promise<void>;
}

/** Opens checks of houses. @throws UsageError if the houses file is invalid. */
export function openHouseChecks(found: Found): HouseChecks {
  const { HOUSES_FILE, HOUSE_NAME_SERVERS, ALLOW_PRIVATE_HOUSES } = found.settings;
  const entries = loadHouses(HOUSES_FILE, variablesOf(), { allowPrivate: ALLOW_PRIVATE_HOUSES });
  const client = createHouseClient({ version: VERSION, nameServers: HOUSE_NAME_SERVERS });
  const inLimit = pLimit(AT_ONCE);
  return {
    async check(id) {
      const house = await inLimit(() => findHouse(found, entries, id));
      const tables = house.settings.tables.filter((table) => table.enabled && hasFeed(table));
      if (tables.length === 0)
        throw new UsageError(`the house ${id} has no table that could be requested; give one a feed`);
      const newest = await inLimit(() => findNewest(found.databaseUrl, house, tables));
      const fetchOnce = openSender(client, inLimit, house);
      return Promise.all(tables.map((table) => checkTable(fetchOnce, house, table, found, newest.get(table) ?? null)));
    },
    close: () => client.close(),
  };
}

/** Checks one house. @throws UsageError as {@link openHouseChecks}. */
export async function checkHouse(found: Found, id: string): Promise<TableCheck[]> {
  const checks = openHouseChecks(found);
  try {
    return await checks.check(id);
  } finally {
    await checks.close();
  }
}

/**
 * Sends requests to a house within the limit, and equal ones once. A house with a budget gets one at a time, spaced by it.
 * The deadline of a request begins when it is sent.
 */
function openSender(client: HouseClient, inLimit: LimitFunction, { settings }: House): HouseFetch {
  const sent = new Map<string, ReturnType<HouseFetch>>();
  const perMinute = settings.requests_per_minute;
  const inTurn = pLimit(perMinute === undefined ? AT_ONCE : 1);
  const send = async (request: HouseRequest, isFirst: boolean) => {
    if (perMinute !== undefined && !isFirst) await delay(60_000 / perMinute);
    return inLimit(() => client.fetch(request, new AbortController().signal));
  };
  return (request) => {
    const { method, url, headers, body } = request;
    const key = JSON.stringify([method, url, headers, body]);
    const isFirst = sent.size === 0;
    const response = sent.get(key) ?? inTurn(() => send(request, isFirst));
    sent.set(key, response);
    return response;
  };
}

async function checkTable(
  fetchOnce: HouseFetch,
  house: House,
  table: TableSettings,
  { settings }: Found,
  newest: bigint | null,
): Promise<TableCheck> {
  const adapter = adapterOf(table);
  const ask = adapter.poll(table.feed, { newest });
  const request = houseRequest(house, ask, { allowPrivateHouses: settings.ALLOW_PRIVATE_HOUSES });
  const response = await fetchOnce(request);
  const check: TableCheck = {
    table: `${house.id}/${table.game}/${table.market}`,
    ok: false,
    status: response.status ?? 0,
    elapsed_ms: response.elapsedMs,
    reason: null,
    items: 0,
    readable: 0,
    rounds: [],
    refused: [],
    exchange: exchangeOf(request, house),
  };
  if (response.kind === "failed") {
    check.exchange.response_headers = response.headers ?? {};
    return { ...check, reason: house.hide(`${response.reason}: ${response.detail}`) };
  }
  if (response.kind === "absent") {
    const reason = `responded 404: the house has no round ${ask.roundId}; set feed.first_round_id to one that was played`;
    return { ...check, reason };
  }
  if (response.kind === "unchanged") return { ...check, reason: "responded 304 to a request without conditions" };
  const { contentType, etag, lastModified, body } = response;
  const given = { "content-type": contentType, etag, "last-modified": lastModified };
  check.exchange.bytes = body.length;
  check.exchange.response_headers = Object.fromEntries(
    Object.entries({ ...given, ...response.headers }).flatMap(([name, value]) =>
      value === null ? [] : [[name, house.hide(value)]],
    ),
  );
  const read = adapter.read(table.feed, body, new Date().toISOString(), { path: storedPath(house, ask) });
  if (!read.ok) return { ...check, reason: house.hide(read.reason) };
  const rounds = read.items.flatMap((item) => (item.ok ? [shownRound(item.round, table)] : []));
  return {
    ...check,
    ok: rounds.length > 0,
    reason: rounds.length > 0 ? null : `expected rounds, found ${read.items.length} items and not one of them readable`,
    items: read.items.length,
    readable: rounds.length,
    rounds,
    refused: read.items.flatMap((item) => (item.ok ? [] : [shownRefusal(item, house)])),
  };
}

async function findHouse(
  { settings, databaseUrl, running }: Found,
  entries: ReturnType<typeof loadHouses>,
  id: string,
): Promise<House> {
  const variables = variablesOf();
  const inFile = entries.find((entry) => entry.settings.id === id);
  const stored = inFile !== undefined && !inFile.settings.demo ? null : await loadStored(databaseUrl, variables, id);
  if (inFile === undefined) {
    if (stored !== null) return stored;
    const known = entries.map((entry) => entry.settings.id).join(", ");
    throw new UsageError(`there is no house ${JSON.stringify(id)}; ${settings.HOUSES_FILE} has ${known}`);
  }
  const demoUrl = settings.DEMO_HOUSE_URL ?? running?.demo_house_url ?? stored?.baseUrl ?? null;
  refuseUnset(inFile.entry, variables);
  const house = readHouse(id, inFile.entry, demoUrl, variables);
  if (house.baseUrl !== null) return house;
  if (!inFile.settings.demo) throw new UsageError(`the house ${id} has no base_url; there is nothing to request`);
  throw new Error(`the demo house ${id} is not running here; start it with \`npm start\`, or set DEMO_HOUSE_URL`);
}

/** A disabled house may have unset variables; a request needs them. */
function refuseUnset(entry: Record<string, unknown>, variables: Variables): void {
  const unset: string[] = [];
  expandVariables(entry, variables, (_, message) => unset.push(message));
  if (unset.length > 0) throw new UsageError(`the house cannot be requested: ${unset.join("; ")}`);
}

/** If each round has its own page, requests the newest stored one again: the next may not be played yet. */
async function findNewest(
  url: string | undefined,
  house: House,
  tables: readonly TableSettings[],
): Promise<Map<TableSettings, bigint | null>> {
  const paged = tables.filter((table) => adapterOf(table).rounds === "page");
  if (url === undefined || paged.length === 0) return new Map();
  return withConnections(url, { name: "command", max: 1 }, async (sql) => {
    const found = new Map<TableSettings, bigint | null>();
    for (const table of paged) {
      const newest = await findNewestNumber(sql, house.id, table);
      found.set(table, newest === null ? null : newest - 1n);
    }
    return found;
  });
}

async function loadStored(url: string | undefined, variables: Variables, id: string): Promise<House | null> {
  if (url === undefined) return null;
  return withConnections(url, { name: "command", max: 1 }, (sql) => loadHouse(sql, variables, id));
}

/** Headers may be secrets even if the houses file has them in plain text: only their names are shown. */
function exchangeOf(request: HouseRequest, house: House): Exchange {
  const secret = new Set(Object.keys(house.settings.headers));
  return {
    method: request.method,
    url: house.hide(request.url),
    request_headers: Object.fromEntries(
      Object.entries({ "user-agent": ownName(VERSION), ...request.headers }).map(([name, value]) => [
        name,
        secret.has(name) ? "[redacted]" : value,
      ]),
    ),
    request_body: request.body === undefined ? null : house.hide(request.body),
    response_headers: {},
    bytes: null,
  };
}

function shownRound(round: HouseRound, table: TableSettings): TableCheck["rounds"][number] {
  const palette = table.colors.map(({ name, below }) => ({
    name,
    below: below === undefined ? null : Math.round(below * 100),
  }));
  return {
    round_id: round.roundId,
    multiplier: round.hundredths / 100,
    color: colorOf(round.hundredths, palette),
    occurred_at: round.occurredAt,
    hash: round.hash,
  };
}

function shownRefusal(item: HouseItem & { ok: false }, house: House): TableCheck["refused"][number] {
  return { round_id: item.roundId, code: item.code, reason: house.hide(item.reason), item: item.raw };
}
