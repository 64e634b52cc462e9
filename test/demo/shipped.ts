import { loadHouses } from "../../src/houses-file/load.ts";
import path from "node:path";
import { z } from "zod";
import { adapterOf } from "../../src/houses/adapters/index.ts";
import json, { type JsonFeed } from "../../src/houses/adapters/json.ts";
import type { TableSettings } from "../../src/houses/settings/settings.ts";
import type { makeDemoHouse } from "./world.ts";

/** The houses as the shipped file names them; the feeds are read by it here, so that the two cannot drift apart. */
export const SHIPPED = loadHouses(path.join(import.meta.dirname, "../../houses.yaml"), () => undefined, {
  allowPrivate: false,
}).map(({ settings }) => settings);

/** The tables of the simulated house. */
export const SIMULATED_TABLES = SHIPPED.find(({ simulated }) => simulated)?.tables ?? [];

/** The table of a simulated game. */
export function simulatedTable(game: string): TableSettings {
  const table = SIMULATED_TABLES.find((one) => one.game === game);
  if (table === undefined) throw new Error(`expected the shipped file to have the game ${game}`);
  return table;
}

/** The options of a table's feed, which all demos read with the generic adapter. */
export function jsonFeed({ feed }: TableSettings): JsonFeed {
  return json.options.parse(feed);
}

/** A round as the adapter reads it: null hundredths where it is refused. */
export interface Seen {
  id: string;
  hundredths: number | null;
  rawValue: string | null;
  endedMs: number | null;
}

/** What every answer of the simulated house carries. */
const marked = z.looseObject({ simulated: z.literal(true) });

/** The rounds at a path of a simulated game as the shipped file and its adapter read them; null from a busy feed. */
export async function readSimulated(
  house: Awaited<ReturnType<typeof makeDemoHouse>>,
  table: TableSettings,
  pathname = jsonFeed(table).path,
): Promise<Seen[] | null> {
  const response = await house.get(pathname);
  const body = Buffer.from(await response.arrayBuffer());
  marked.parse(JSON.parse(body.toString()));
  if (response.status === 503) return null;
  if (response.status !== 200) throw new Error(`expected 200, found ${response.status}: ${body.toString()}`);
  const read = adapterOf(table).read(table.feed, body, new Date(house.clock.nowMs).toISOString(), {
    oldest: new Date(0).toISOString(),
  });
  if (!read.ok) throw new Error(read.reason);
  return read.items.map((item): Seen => {
    if (!item.ok) return { id: item.roundId ?? "", hundredths: null, rawValue: null, endedMs: null };
    const { roundId, hundredths, rawValue, occurredAt } = item.round;
    return { id: roundId, hundredths, rawValue, endedMs: occurredAt === null ? null : Date.parse(occurredAt) };
  });
}
