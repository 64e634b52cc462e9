import { isConnectionError } from "../db/errors.ts";
import { codeOf, reasonOf } from "../errors.ts";
import { adapterOf } from "../houses/adapters/index.ts";
import type { HouseItem } from "../houses/contract.ts";
import { excerpt } from "../houses/reading/excerpt.ts";
import { settingsOf, type House } from "../houses/house.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { cut, LONGEST_REASON } from "../text.ts";

/** An answer as its adapter understands it, or why it cannot be read. */
export type ReadResponse = { ok: true; items: HouseItem[]; settings: TableSettings } | { ok: false; reason: string };

/** Nothing of this kind was played earlier: pages of history are believed from here on. */
const OLDEST = "2010-01-01T00:00:00Z";

/** A body as it was received; `now` (ISO 8601) is when. */
interface ReceivedBody {
  body: Buffer;
  now: string;
  path: string;
  kind: "poll" | "history";
}

/**
 * Reads the body of a response with the adapter of its table. Never throws: what our own code fails on is a reason too, so
 * that the response can be read again when the code is better. The same body is read in the same way at any time.
 */
export function readBody(
  house: House,
  table: { name: string; game: string; market: string },
  { body, now, path, kind }: ReceivedBody,
): ReadResponse {
  const settings = settingsOf(house, table);
  if (settings === null) {
    const reason = `${table.name} is not in the houses file any more; put it back and read this payload again`;
    return { ok: false, reason };
  }
  try {
    const options = { path, ...(kind === "history" ? { oldest: OLDEST } : {}) };
    const read = adapterOf(settings).read(settings.feed, body, now, options);
    return read.ok ? { ...read, settings } : { ok: false, reason: cut(house.hide(read.reason), LONGEST_REASON) };
  } catch (error) {
    return { ok: false, reason: ownFault(error) };
  }
}

/** The reason why an answer is refused that our own code failed on. */
export function ownFault(error: unknown): string {
  const reason = excerpt(reasonOf(error), 300);
  return cut(
    `our own code failed on this payload, which can be read again when that is mended: ${reason}`,
    LONGEST_REASON,
  );
}

/** True where storing an answer again would fail again: it was no connection, deadlock, limit, stop or full disk. */
export function isOwnFault(error: unknown): boolean {
  return !isConnectionError(error) && !/^(?:40|53|55|57|58)|^ABORT_ERR$/.test(codeOf(error));
}
