/** Reads responses in a thread, so that a large or slow one delays no poll of another house. */
import { adapterOf } from "../houses/adapters/index.ts";
import type { HouseItem, ReadOptions } from "../houses/contract.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { runTasks } from "../thread.ts";
import { quarantinedItem } from "./lists/quarantined-item.ts";

/** A body, and how its table reads it. */
export interface ReadTask {
  settings: Pick<TableSettings, "adapter" | "feed">;
  body: Uint8Array;
  now: string;
  options: ReadOptions;
}

/** The items that an adapter read, with each raw item as quarantine stores it. */
export type ReadByThread =
  { ok: true; items: (HouseItem & { raw: { item: string; itemSha256: string } })[] } | { ok: false; reason: string };

runTasks(({ settings, body, now, options }: ReadTask): ReadByThread => {
  const { buffer, byteOffset, byteLength } = body;
  const read = adapterOf(settings).read(settings.feed, Buffer.from(buffer, byteOffset, byteLength), now, options);
  // structured clone loses the digits of numbers, so raw items are sent as quarantine stores them
  return read.ok ? { ok: true, items: read.items.map((item) => ({ ...item, raw: quarantinedItem(item.raw) })) } : read;
});
