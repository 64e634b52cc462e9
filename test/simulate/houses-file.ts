import { writeFile } from "node:fs/promises";
import type { Sql } from "../../src/db/client.ts";
import type { ManagedProcess } from "./processes.ts";
import { isShared, PAUSE_MS, type Truth } from "./truth.ts";
import { waitUntil } from "./wait-until.ts";

/** The domain of all houses, which the name server of a simulation knows. */
export const DOMAIN = "houses.test";

/** An entry of a houses file. */
export interface HouseFileEntry {
  id: string;
  base_url: string;
}

/** The entries of all houses of a simulation; each has its own host name, with the port of `url`. */
export function houseEntries(truth: Truth, url: string): HouseFileEntry[] {
  const { port } = new URL(url);
  return [...truth.houseFaults.keys()].map((house) => ({
    id: house,
    name: `House ${house}`,
    base_url: `http://${house}.${DOMAIN}:${port}`,
    private: true,
    poll_every_ms: 200,
    timeout_ms: 1_000,
    tables: truth.tables
      .filter((table) => table.house === house)
      .map(({ game }) => ({
        game,
        market: "all",
        pause_ms: PAUSE_MS,
        feed: {
          ...(isShared(truth, house)
            ? { path: `/${house}/rounds`, items: game }
            : { path: `/${house}/${game}/rounds`, items: "rounds" }),
          round_id: "id",
          multiplier: "multiplier",
          occurred_at: "ended_at",
          history: `/${house}/${game}/rounds?before={id}&limit={limit}`,
        },
        round_ids: "consecutive",
        colors: [{ name: "blue", below: 2 }, { name: "purple", below: 10 }, { name: "pink" }],
        house_edge: 0.01,
      })),
  }));
}

/** The entry of an extra house at `url`, see `serveExtraHouse`; each of its tables has its own path. */
export function extraHouseEntry(id: string, tables: number, url: string): HouseFileEntry {
  const entry = {
    id,
    name: `House ${id}`,
    base_url: url,
    private: true,
    poll_every_ms: 1_000,
    timeout_ms: 2_000,
    tables: Array.from({ length: tables }, (_, n) => ({
      game: "g",
      market: `m${n}`,
      pause_ms: PAUSE_MS,
      feed: { path: `/${id}/${n}`, items: "rounds", round_id: "id", multiplier: "multiplier" },
      round_ids: "consecutive",
      colors: [{ name: "blue", below: 2 }, { name: "pink" }],
      house_edge: 0.01,
    })),
  };
  return entry;
}

/** A houses file that workers reload when it changes. */
export interface HousesFile {
  path: string;
  /** Adds a house; the returned function removes it. Both wait until the workers have applied the file. */
  add(workers: readonly ManagedProcess[], entry: HouseFileEntry): Promise<() => Promise<void>>;
}

const APPLIED_WITHIN_MS = 90_000;

/** Writes a houses file. */
export async function writeHousesFile(sql: Sql, path: string, entries: readonly HouseFileEntry[]): Promise<HousesFile> {
  const write = (houses: readonly HouseFileEntry[]) => writeFile(path, JSON.stringify({ houses }));
  const apply = async (workers: readonly ManagedProcess[], houses: readonly HouseFileEntry[], id: string) => {
    await write(houses);
    const isListed = houses.some((house) => house.id === id);
    for (const worker of workers) worker.reload();
    await waitUntil(`the house ${id} was not ${isListed ? "added" : "removed"}`, APPLIED_WITHIN_MS, async () => {
      const [row] = await sql<{ enabled: boolean }[]>`select enabled from houses where id = ${id}`;
      return row?.enabled === isListed;
    });
  };
  await write(entries);
  return {
    path,
    async add(workers, entry) {
      await apply(workers, [...entries, entry], entry.id);
      return () => apply(workers, entries, entry.id);
    },
  };
}
