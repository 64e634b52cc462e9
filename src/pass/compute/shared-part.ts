import { hash } from "node:crypto";
import { adapterOf } from "../../houses/adapters/index.ts";
import { settingsOf, type House } from "../../houses/house.ts";
import type { TableSettings } from "../../houses/settings/settings.ts";
import type { ReceivedBody } from "../polled-response.ts";

/**
 * SHA-256 of the part of a shared response for one table: of the listed content, and of the settings with which it is
 * read. Null if the response is not shared, or the adapter cannot separate tables. Only an optimization: a table whose
 * part is unknown reads the response again, and finds only known rounds.
 */
export function sharedPart(house: House, table: { game: string; market: string }, body: ReceivedBody): string | null {
  if (!body.isShared) return null;
  const settings = settingsOf(house, table);
  const text = settings === null ? null : adapterOf(settings).part(settings.feed, body.bytes);
  if (settings === null || text === null) return null;
  return hash("sha256", textOf(settings) + text);
}

const texts = new WeakMap<TableSettings, string>();

function textOf(settings: TableSettings): string {
  const text = texts.get(settings) ?? JSON.stringify([settings.adapter, settings.feed]);
  texts.set(settings, text);
  return text;
}
