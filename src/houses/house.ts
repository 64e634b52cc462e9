import type { HouseRequest } from "./polling/client.ts";
import type { FeedRequest } from "./contract.ts";
import type { HouseSettings, TableSettings } from "./settings/settings.ts";

/** A house as jobs use it: variables replaced and defaults filled in. */
export interface House {
  id: string;
  settings: HouseSettings;
  /** Its base_url, or where the demo runs; null until the demo has been started once. */
  baseUrl: string | null;
  /** Replaces the values of variables in a text with `${NAME}`, for whatever is stored, logged or shown. */
  hide(text: string): string;
}

/** The settings of one of its tables; null if the file no longer has it. */
export function settingsOf(house: House, table: { game: string; market: string }): TableSettings | null {
  const found = byName.get(house) ?? new Map(house.settings.tables.map((one) => [`${one.game}/${one.market}`, one]));
  byName.set(house, found);
  return found.get(`${table.game}/${table.market}`) ?? null;
}

/** The settings of tables by game and market: some houses have thousands. */
const byName = new WeakMap<House, Map<string, TableSettings>>();

/** Builds the HTTP request for what an adapter asks; `allowPrivateHouses` is ALLOW_PRIVATE_HOUSES. */
export function houseRequest(
  house: House,
  ask: FeedRequest,
  options: { allowPrivateHouses: boolean; timeoutMs?: number; headers?: Record<string, string> },
): HouseRequest {
  if (house.baseUrl === null)
    throw new Error(`the house ${house.id} has no address yet; start the demo, or give it a base_url`);
  const { settings } = house;
  return {
    house: house.id,
    url: house.baseUrl.replace(/\/+$/, "") + ask.path,
    method: ask.method,
    headers: {
      ...ask.headers,
      ...(settings.user_agent === undefined ? {} : { "user-agent": settings.user_agent }),
      ...settings.headers,
      ...options.headers,
    },
    ...(ask.body === undefined ? {} : { body: ask.body }),
    ...(ask.roundId === undefined ? {} : { mayBeAbsent: true }),
    timeoutMs: options.timeoutMs ?? settings.timeout_ms,
    allowPrivate: settings.demo || (settings.private && options.allowPrivateHouses),
  };
}

/** The path of a request as it is stored. That of a round's page names the round, which may contain the value of a variable. */
export function storedPath(
  house: Pick<House, "hide">,
  { path, roundId }: Pick<FeedRequest, "path" | "roundId">,
): string {
  return roundId === undefined ? house.hide(path) : path;
}

/** Polls more often than this are not held back. */
const MAY_WAIT_MS = 1_000;

/** Whether a poll of the house may be held back a moment, so that it shares its transactions with others. */
export function mayPollWait({ settings }: House): boolean {
  return settings.poll_every_ms >= MAY_WAIT_MS;
}
