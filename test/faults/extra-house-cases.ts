import { setTimeout as delay } from "node:timers/promises";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import type { ExtraHouseMode } from "../simulate/extra-house.ts";
import { extraHouseEntry, DOMAIN } from "../simulate/houses-file.ts";
import type { ManagedProcess } from "../simulate/processes.ts";
import { startMachineResolver } from "../simulate/resolver.ts";
import { TARGET_SECONDS, type Fault, type FaultCase } from "./case.ts";
import { NotPossible } from "./locks.ts";
import type { Testbed } from "./testbed.ts";

const LASTS_SECONDS = 60;
/**
 * How much a worker may grow during a case: 600 MB, the limit for other house faults, minus 300 MB of a new worker. The size
 * at the beginning depends on earlier cases: after 7,000 tables were added and removed, the heap held 91 MB after a
 * collection (54 MB before), and the process 460 to 510 MB, which V8 and malloc do not return.
 */
const MAX_GROWTH_MEGABYTES = 300;
const CHECK_EVERY_MS = 200;
/** Memory that was used to load the houses file is free by then. */
const LOAD_FILE_MS = 15_000;
/** Longer than the timeout of a request. */
const LATE_MS = 4_000;
/** How often the connections to the other houses are closed. */
const RECONNECT_EVERY_MS = 3_000;

/** A faulty house with many tables must not delay the polls of other houses. */
export const EXTRA_HOUSE_CASES: readonly FaultCase[] = [
  extraHouseCase("a house of 7,000 tables that hangs", { id: "hanging", tables: 7_000, mode: "hangs" }),
  extraHouseCase("a house of 100 tables that sends 3.9 MB for each", { id: "large", tables: 100, mode: "large" }),
  {
    name: "a house whose name the machine resolves late",
    targetSeconds: TARGET_SECONDS.stillPresent,
    from: "beginning",
    watchSeconds: LASTS_SECONDS,
    run: resolveLate,
  },
];

interface ExtraHouseOptions {
  id: string;
  tables: number;
  mode: ExtraHouseMode;
}

function extraHouseCase(name: string, of: ExtraHouseOptions): FaultCase {
  return {
    name,
    targetSeconds: TARGET_SECONDS.stillPresent,
    from: "beginning",
    watchSeconds: LASTS_SECONDS,
    run: (testbed) => watchExtraHouse(testbed, of, testbed.services.extraHouse.url),
  };
}

/** Runs a worker that uses the machine's resolver, which resolves the name of one house after 4 s. */
async function resolveLate(testbed: Testbed): Promise<Fault> {
  const { folder, workers, houses, services, houseServer, polls } = testbed;
  const names = await startMachineResolver(folder);
  if (names === null) throw new NotPossible("the resolver of this machine cannot be replaced");
  for (const house of houses) names.on(`${house}.${DOMAIN}`, [{ a: "127.0.0.1" }]);
  const late = `late.${DOMAIN}`;
  names.on(late, [{ a: "127.0.0.1" }]);
  names.setDelay(LATE_MS, late);
  const starts = await Promise.all(workers.map((worker) => worker.down()));
  const worker = await testbed.begin(`worker-${Date.now()}`, ["worker"], { HOUSE_NAME_SERVERS: "" });
  if ((await polls.waitForRecovery(Date.now(), 60_000)) === null)
    throw new InvariantViolation("a worker without HOUSE_NAME_SERVERS polls no house");
  const url = services.extraHouse.url.replace("127.0.0.1", late);
  const fault = await watchExtraHouse(
    { ...testbed, workers: [worker] },
    { id: "late", tables: 40, mode: "large" },
    url,
  );
  const reconnecting = setInterval(() => houseServer.endConnections(), RECONNECT_EVERY_MS);
  return {
    ...fault,
    observed: `${fault.observed}; ${names.asked.filter((name) => name.endsWith(late)).length} queries for its name`,
    async end() {
      clearInterval(reconnecting);
      await fault.end();
      await worker.stop();
      await names.close();
      for (const start of starts) start();
    },
  };
}

/** Adds a house and measures the memory of workers until it is removed. */
async function watchExtraHouse(testbed: Testbed, { id, tables, mode }: ExtraHouseOptions, url: string) {
  const fromMs = Date.now();
  const { services, workers, housesFile } = testbed;
  const before = workers.map(megabytesOf);
  services.extraHouse.setMode(mode);
  const remove = await housesFile.add(workers, extraHouseEntry(id, tables, url));
  const added = ((Date.now() - fromMs) / 1_000).toFixed(1);
  const countedFromMs = Date.now() + LOAD_FILE_MS;
  let most = 0;
  let isOver = false;
  const watching = (async () => {
    for (; !isOver; await delay(CHECK_EVERY_MS)) {
      if (Date.now() < countedFromMs) continue;
      most = Math.max(most, ...workers.map((worker, n) => megabytesOf(worker) - (before[n] ?? 0)));
    }
  })();
  return {
    fromMs,
    observed: `added within ${added} s to workers of ${before.map((size) => size.toFixed(0)).join(" and ")} MB`,
    async end() {
      isOver = true;
      await watching;
      await remove();
      if (most > MAX_GROWTH_MEGABYTES)
        throw new InvariantViolation(
          `a worker grew by ${most.toFixed(0)} MB while polling a house of ${tables} tables`,
        );
    },
  };
}

function megabytesOf(worker: ManagedProcess): number {
  return (worker.residentBytes() ?? 0) / 1e6;
}
