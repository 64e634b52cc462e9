import type { HouseEntry } from "../config.ts";
import type { Sql } from "../db/client.ts";
import { createLease } from "../db/lease.ts";
import { reasonOf } from "../errors.ts";
import type { DemoHouse } from "../houses/demo/serve.ts";
import { startDemoHouse } from "../houses/demo/server.ts";
import { setDemoAddress } from "../houses/apply-store.ts";
import type { Log } from "../log.ts";
import { nameProcess } from "../this-machine.ts";

/** Another process takes over within this and the ten seconds of a lease. */
const LOOK_EVERY_MS = 2_000;

/** The demo houses as one process serves them, or not. */
export interface DemoServer {
  /** Where they are played by this process or were told to be; null where another process plays them, or nobody. */
  url(): string | null;
  /** Plays them if the houses file has any and nobody else does; call again when the file was applied again. */
  refresh(houses: readonly HouseEntry[]): Promise<void>;
  close(): Promise<void>;
}

/**
 * Plays the demo houses of the houses file on a free loopback port, in one process of all that share the database, and writes their
 * address there. `givenUrl` (DEMO_HOUSE_URL) names ones that run elsewhere, which several machines need; nothing is started then.
 */
export function createDemoServer(options: {
  sql: Sql;
  dataDir: string;
  givenUrl: string | undefined;
  log: Log;
}): DemoServer {
  const { sql, dataDir, givenUrl, log } = options;
  const lease = createLease(sql, { name: "demo-houses", holder: nameProcess() });
  let wanted = false;
  let house: DemoHouse | null = null;
  let looking: Promise<void> = Promise.resolve();

  async function look(): Promise<void> {
    const isOurs = wanted && (await lease.hold()).isHeld;
    if (!isOurs) return stop();
    house ??= await startDemoHouse({
      dataDir,
      host: "127.0.0.1",
      port: 0,
      speed: 1,
      seed: 1,
      say: (line) => log.info(line),
    });
    await setDemoAddress(sql, house.url);
  }

  async function stop(): Promise<void> {
    const stopped = house;
    house = null;
    await stopped?.close();
  }

  /** One look at a time: the next begins when the last has ended. */
  function enqueue(work: () => Promise<void>): Promise<void> {
    const result = looking.then(work);
    looking = result.catch(() => undefined); // whoever asked for it hears of it
    return result;
  }

  let trouble: string | null = null;
  const timer = setInterval(() => {
    if (givenUrl !== undefined || !wanted) return;
    enqueue(look).then(
      () => (trouble = null),
      (error: unknown) => {
        if (trouble !== reasonOf(error)) log.warn(`the demo houses are not looked after: ${reasonOf(error)}`);
        trouble = reasonOf(error);
      },
    );
  }, LOOK_EVERY_MS);

  return {
    url: () => house?.url ?? (wanted ? (givenUrl ?? null) : null),
    refresh: (houses) =>
      enqueue(async () => {
        wanted = houses.some(({ settings }) => settings.demo && settings.enabled);
        if (givenUrl === undefined) return look();
        if (wanted) await setDemoAddress(sql, givenUrl);
      }),
    close: () => {
      clearInterval(timer);
      return enqueue(async () => {
        await stop();
        await lease.release().catch(() => undefined); // without a database it expires
      });
    },
  };
}
