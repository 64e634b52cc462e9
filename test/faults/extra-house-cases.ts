import { setTimeout as delay } from "node:timers/promises";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import type { ExtraHouseMode } from "../simulate/extra-house.ts";
import { extraHouseEntry, DOMAIN } from "../simulate/houses-file.ts";
import type { ManagedProcess } from "../simulate/processes.ts";
import { startMachineResolver } from "../simulate/resolver.ts";
import { TARGET_SECONDS, type Fault, type FaultCase } from "./case.ts";
import { NotReached } from "./locks.ts";
import type { Testbed } from "./testbed.ts";

const LASTS_SECONDS = 60;
/**
 * What a worker may grow by from the beginning of a case: the 600 MB of other houses in trouble, less the 300 of a new
 * worker. How large it is depends on the cases before. After 7,000 tables were added and removed, its heap held 91 MB
 * after a collection (54 before them), and the process kept 460 to 510 MB, which V8 and malloc do not return.
 */
const MOST_MEGABYTES_MORE = 300;
const CHECK_EVERY_MS = 200;
/** What reading the file took is free again by then. */
const READ_FOR_MS = 15_000;
/** A name that is resolved so late is resolved after its request has given up. */
const LATE_MS = 4_000;
/** How often the other houses have to be connected to again meanwhile. */
const RECONNECTED_EVERY_MS = 3_000;

/** Houses of so many tables that whatever is wrong with them is wrong often: the other houses are polled as before. */
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

/** A worker that asks the machine's resolver, which knows the name of one house only after seconds. */
async function resolveLate(testbed: Testbed): Promise<Fault> {
  const { folder, workers, houses, services, served, polls } = testbed;
  const names = await startMachineResolver(folder);
  if (names === null) throw new NotReached("the machine's resolver cannot be replaced here");
  for (const house of houses) names.on(`${house}.${DOMAIN}`, [{ a: "127.0.0.1" }]);
  const late = `late.${DOMAIN}`;
  names.on(late, [{ a: "127.0.0.1" }]);
  names.setDelay(LATE_MS, late);
  const starts = await Promise.all(workers.map((worker) => worker.down()));
  const worker = await testbed.begin(`worker-${Date.now()}`, ["worker"], { HOUSE_NAME_SERVERS: "" });
  if ((await polls.waitForRecovery(Date.now(), 60_000)) === null)
    throw new InvariantViolation("a worker without name servers polls nothing");
  const url = services.extraHouse.url.replace("127.0.0.1", late);
  const fault = await watchExtraHouse(
    { ...testbed, workers: [worker] },
    { id: "late", tables: 40, mode: "large" },
    url,
  );
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
async function watchExtraHouse(testbed: Testbed, { id, tables, mode }: ExtraHouseOptions, url: string) {
  const fromMs = Date.now();
  const { services, workers, housesFile } = testbed;
  const before = workers.map(megabytesOf);
  services.extraHouse.setMode(mode);
  const remove = await housesFile.add(workers, extraHouseEntry(id, tables, url));
  const added = ((Date.now() - fromMs) / 1_000).toFixed(1);
  const countedFromMs = Date.now() + READ_FOR_MS;
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
    seen: `added within ${added} s to workers of ${before.map((size) => size.toFixed(0)).join(" and ")} MB`,
    async end() {
      isOver = true;
      await watching;
      await remove();
      if (most > MOST_MEGABYTES_MORE)
        throw new InvariantViolation(`a worker grew by ${most.toFixed(0)} MB beside a house of ${tables} tables`);
    },
  };
}

function megabytesOf(worker: ManagedProcess): number {
  return (worker.residentBytes() ?? 0) / 1e6;
}
