import { setTimeout as delay } from "node:timers/promises";
import { Broken } from "../simulate/invariant-violation.ts";
import type { CrowdManner } from "../simulate/extra-house.ts";
import { crowdEntry, DOMAIN } from "../simulate/houses-file.ts";
import { startMachineResolver } from "../simulate/resolver.ts";
import { ASKED, type Fault, type FaultCase } from "./case.ts";
import { NotReached } from "./locks.ts";
import type { World } from "./testbed.ts";

const LASTS_SECONDS = 60;
/** What a worker may hold, as for any other house that is in trouble. */
const MOST_MEGABYTES = 600;
const LOOK_EVERY_MS = 200;
/** What reading the file took is free again by then. */
const READ_FOR_MS = 15_000;
/** A name that is resolved so late is resolved after its request has given up. */
const LATE_MS = 4_000;
/** How often the other houses have to be connected to again meanwhile. */
const RECONNECTED_EVERY_MS = 3_000;

/** Houses of so many tables that whatever is wrong with them is wrong often: the other houses are polled as before. */
export const CROWD_CASES: readonly FaultCase[] = [
  crowdCase("a house of 7,000 tables that hangs", { id: "hanging", tables: 7_000, manner: "hangs" }),
  crowdCase("a house of 100 tables that sends 3.9 MB for each", { id: "large", tables: 100, manner: "large" }),
  {
    name: "a house whose name the machine resolves late",
    askedSeconds: ASKED.stillPresent,
    from: "beginning",
    watchSeconds: LASTS_SECONDS,
    run: resolveLate,
  },
];

interface CrowdOf {
  id: string;
  tables: number;
  manner: CrowdManner;
}

function crowdCase(name: string, of: CrowdOf): FaultCase {
  return {
    name,
    askedSeconds: ASKED.stillPresent,
    from: "beginning",
    watchSeconds: LASTS_SECONDS,
    run: (world) => watchCrowd(world, of, world.surroundings.crowd.url),
  };
}

/** A worker that asks the machine's resolver, which knows the name of one house only after seconds. */
async function resolveLate(world: World): Promise<Fault> {
  const { folder, workers, houses, surroundings, served, polls } = world;
  const names = await startMachineResolver(folder);
  if (names === null) throw new NotReached("the machine's resolver cannot be replaced here");
  for (const house of houses) names.on(`${house}.${DOMAIN}`, [{ a: "127.0.0.1" }]);
  const late = `late.${DOMAIN}`;
  names.on(late, [{ a: "127.0.0.1" }]);
  names.setDelay(LATE_MS, late);
  const starts = await Promise.all(workers.map((worker) => worker.down()));
  const worker = await world.begin(`worker-${Date.now()}`, ["worker"], { HOUSE_NAME_SERVERS: "" });
  if ((await polls.recovered(Date.now(), 60_000)) === null)
    throw new Broken("a worker without name servers polls nothing");
  const url = surroundings.crowd.url.replace("127.0.0.1", late);
  const fault = await watchCrowd({ ...world, workers: [worker] }, { id: "late", tables: 40, manner: "large" }, url);
  const reconnecting = setInterval(() => served.endConnections(), RECONNECTED_EVERY_MS);
  return {
    ...fault,
    seen: `${fault.seen}; ${names.asked.filter((asked) => asked.endsWith(late)).length} questions so far`,
    async end() {
      clearInterval(reconnecting);
      await fault.end();
      await worker.stop();
      await names.close();
      for (const start of starts) start();
    },
  };
}

/** Adds a house and watches the memory of workers until it is removed. */
async function watchCrowd(world: World, { id, tables, manner }: CrowdOf, url: string) {
  const fromMs = Date.now();
  const { surroundings, workers, housesFile } = world;
  surroundings.crowd.setManner(manner);
  const remove = await housesFile.add(workers, crowdEntry(id, tables, url));
  const added = ((Date.now() - fromMs) / 1_000).toFixed(1);
  const countedFromMs = Date.now() + READ_FOR_MS;
  let most = 0;
  let isOver = false;
  const watching = (async () => {
    for (; !isOver; await delay(LOOK_EVERY_MS)) {
      if (Date.now() < countedFromMs) continue;
      most = Math.max(most, ...workers.map((worker) => (worker.residentBytes() ?? 0) / 1e6));
    }
  })();
  return {
    fromMs,
    seen: `added within ${added} s`,
    async end() {
      isOver = true;
      await watching;
      await remove();
      if (most > MOST_MEGABYTES)
        throw new Broken(`a worker grew to ${most.toFixed(0)} MB beside a house of ${tables} tables`);
    },
  };
}
