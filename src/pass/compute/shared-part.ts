import { hash } from "node:crypto";
import { adapterOf } from "../../houses/adapters/index.ts";
import { settingsOf, type House } from "../../houses/house.ts";
import type { TableSettings } from "../../houses/settings/settings.ts";
import type { ReceivedBody } from "../polled-response.ts";
import type { TableFacts } from "./state.ts";

/**
 * The part of a shared response for one table. Only an optimization: a table whose part is unknown reads the response
 * again, and finds only known rounds.
 */
export interface SharedPart {
  /** Of the listed content, and of the settings with which it is read. */
  sha256: string;
  /** The newest request that is in `responded_at` of the head; UTC with seven digits. */
  notedAt: string;
}

/** A table stores at most this often that its part of a response is unchanged. */
const NOTE_EVERY_MS = 10_000;

/** The part of a table; null if the response is not shared, or the adapter cannot separate tables. */
export function sharedPart(
  house: House,
  { name }: TableFacts,
  body: ReceivedBody,
  requestedAt: string,
): SharedPart | null {
  if (!body.isShared) return null;
  const [, game = "", market = ""] = name.split("/");
  const settings = settingsOf(house, { game, market });
  const text = settings === null ? null : adapterOf(settings).part(settings.feed, body.bytes);
  if (settings === null || text === null) return null;
  return { sha256: hash("sha256", textOf(settings) + text), notedAt: requestedAt };
}

const texts = new WeakMap<TableSettings, string>();

function textOf(settings: TableSettings): string {
  const text = texts.get(settings) ?? JSON.stringify([settings.adapter, settings.feed]);
  texts.set(settings, text);
  return text;
}

/** Whether to store that a part was unchanged at a request. */
export function isNoteDue({ notedAt }: SharedPart, requestedAt: string): boolean {
  return Date.parse(requestedAt) - Date.parse(notedAt) >= NOTE_EVERY_MS;
}
