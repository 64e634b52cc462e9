import { readFileSync } from "node:fs";
import path from "node:path";
import { adapterOf, type AdapterName } from "../../../src/houses/adapters/index.ts";
import type { HouseItem, ReadResponse, ReadOptions } from "../../../src/houses/contract.ts";

/** The time of arrival of the fixtures. */
export const NOW = "2026-11-21T04:00:00Z";

/** A document of our own making in the form of a house, as its text. */
export function fixture(name: string): string {
  return readFileSync(path.join(import.meta.dirname, "../../fixtures", name), "utf8");
}

/** An adapter with the options that its own schema makes of these. */
export function withOptions(name: AdapterName, options: Record<string, unknown> = {}) {
  const adapter = adapterOf({ adapter: name });
  const feed = adapter.options.parse(options);
  return {
    adapter,
    feed,
    poll: (newest: bigint | null = null) => adapter.poll(feed, { newest }),
    read: (body: string, readOptions?: ReadOptions): ReadResponse =>
      adapter.read(feed, Buffer.from(body), NOW, readOptions),
  };
}

/** An item in few words: a round as id, hundredths and time, a refusal as its code and the round it names. */
export function inShort(item: HouseItem): string {
  if (!item.ok) return `${item.code} ${item.roundId ?? "-"}`;
  const { roundId, hundredths, occurredAt } = item.round;
  return `${roundId} ${hundredths}${occurredAt === null ? "" : ` ${occurredAt}`}`;
}

/** The items of a response in few words; the reason if it cannot be read. */
export function itemsOf(response: ReadResponse): string[] {
  return response.ok ? response.items.map(inShort) : [response.reason];
}
