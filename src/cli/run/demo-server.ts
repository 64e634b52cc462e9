import pLimit from "p-limit";
import type { HouseEntry } from "../../houses-file/load.ts";
import type { Sql } from "../../db/client.ts";
import { createLease } from "../../db/lease.ts";
import { reasonOf } from "../../errors.ts";
import type { DemoHouse } from "../../demo/serve.ts";
import { startDemoHouse } from "../../demo/server.ts";
import { setDemoAddress } from "../../houses-file/apply-store.ts";
import type { Log } from "../../log.ts";
import { every } from "../../queue/every.ts";
import { nameProcess } from "../../this-machine.ts";

/** How often the lease is renewed; another process also checks when it expires. */
const CHECK_EVERY_MS = 5_000;

/** The demo houses as this process serves them, if it does. */
export interface DemoServer {
  /** The URL if this process plays them or DEMO_HOUSE_URL is set; null if another process plays them, or none. */
  url(): string | null;
  /** Plays them if the houses file has any and no other process does; call again after the file was applied again. */
  refresh(houses: readonly HouseEntry[]): Promise<void>;
  close(): Promise<void>;
}

interface DemoOptions {
  sql: Sql;
  dataDir: string;
  givenUrl: string | undefined;
  log: Log;
}

/**
 * Plays the demo houses of the houses file on a free loopback port, in one of all processes that share the database, and
 * stores their URL there. `givenUrl` (DEMO_HOUSE_URL) names external ones, needed with several machines; then nothing starts.
 */
export function createDemoServer({ sql, dataDir, givenUrl, log }: DemoOptions): DemoServer {
  const lease = createLease(sql, { name: "demo-houses", holder: nameProcess() });
  let wanted = false;
  let house: DemoHouse | null = null;
  const enqueue = pLimit(1);

  /** Returns the milliseconds until the lease of another process expires; Infinity if there is none. */
  async function check(): Promise<number> {
    const state = wanted ? await lease.hold() : null;
    if (state?.isHeld !== true) {
      await stop();
      return state?.freeInMs ?? Infinity;
    }
    house ??= await startHouse(dataDir, log);
    await setDemoAddress(sql, house.url);
    return Infinity;
  }

  const stop = async () => {
    const stopped = house;
    house = null;
    await stopped?.close();
  };

  let failure: string | null = null;
  const checks = every(CHECK_EVERY_MS, async () => {
    if (givenUrl !== undefined || !wanted) return Infinity;
    try {
      const freeInMs = await enqueue(check);
      failure = null;
      return freeInMs;
    } catch (error) {
      const reason = reasonOf(error);
      if (failure !== reason) log.warn(`the demo houses cannot be served: ${reason}`);
      failure = reason;
      return Infinity;
    }
  });

  return {
    url: () => house?.url ?? (wanted ? (givenUrl ?? null) : null),
    refresh: (houses) =>
      enqueue(async () => {
        wanted = houses.some(({ settings }) => settings.demo && settings.enabled);
        if (givenUrl === undefined) await check();
        else if (wanted) await setDemoAddress(sql, givenUrl);
      }),
    async close() {
      await checks.stop();
      await enqueue(async () => {
        await stop();
        await lease.release().catch(() => undefined); // if the database is unreachable, the lease expires
      });
    },
  };
}

function startHouse(dataDir: string, log: Log): Promise<DemoHouse> {
  const say = (line: string) => log.info(line);
  return startDemoHouse({ dataDir, host: "127.0.0.1", port: 0, speed: 1, seed: 1, say });
}
