import { jobs } from "../../../jobs/index.ts";
import pollHouse from "../../../jobs/poll-house.ts";
import { loadSettings } from "../../../src/config/environment.ts";
import { createLease } from "../../../src/db/lease.ts";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { listPollSchedules } from "../../../src/houses/store.ts";
import { openQueues } from "../../../src/queue/queues.ts";
import { createPeriodicTasks } from "../../../src/queue/schedules/periodic.ts";
import { createReconciler } from "../../../src/queue/schedules/reconcile.ts";
import { inBatches } from "../../../src/queue/schedules/schedulers.ts";
import { RECONCILER } from "../../../src/queue/store.ts";
import { houseEntry } from "../../support/houses.ts";
import { silent, type QueueServers } from "./start-worker.ts";

const TICKS = 3;

/** The cost of upserting every schedule, and of a tick of the reconciler that finds no difference, in milliseconds. */
export interface ReconcileCost {
  houses: number;
  setAgainMs: number;
  tickMs: number;
  /** CPU time of this process in a tick. */
  tickCpuMs: number;
}

/** Measures the reconciler with the real jobs and houses of one table each. */
export async function measureReconcile(
  servers: QueueServers,
  counts: readonly number[],
  say: (line: string) => void,
): Promise<ReconcileCost[]> {
  const { sql, redisUrl } = servers;
  const queues = await openQueues(jobs, redisUrl, silent);
  const lease = createLease(sql, { name: RECONCILER, holder: "bench" });
  const settings = loadSettings({});
  const periodic = createPeriodicTasks(() => [], { sql, settings, log: silent, published: () => undefined });
  const reconciler = createReconciler({ id: "bench", queues, sql, settings, lease, periodic, log: silent });
  try {
    const measured: ReconcileCost[] = [];
    for (const houses of counts) {
      say(`reconciling ${houses} houses`);
      await applyHouses(
        sql,
        Array.from({ length: houses }, (_, n) => houseEntry({ id: `h${n}`, name: `House ${n}` })),
      );
      await sql`analyze`;
      await reconciler.tick(true); // adds new schedules
      const set = await cost(async () => {
        const schedules = await listPollSchedules(sql);
        await inBatches(schedules, ({ payload, everyMs, offsetMs }) =>
          queues
            .get(pollHouse.name)
            .upsertJobScheduler(
              pollHouse.key(payload),
              { every: everyMs, offset: offsetMs },
              { name: pollHouse.name, data: payload },
            ),
        );
      });
      await reconciler.tick(true); // undoes the changes of the upserts
      const tick = await cost(() => reconciler.tick(true));
      measured.push({ houses, setAgainMs: set.ms, tickMs: tick.ms, tickCpuMs: tick.cpuMs });
    }
    return measured;
  } finally {
    await queues.close();
  }
}

async function cost(work: () => Promise<unknown>): Promise<{ ms: number; cpuMs: number }> {
  const [startedAt, before] = [performance.now(), process.cpuUsage()];
  for (let tick = 0; tick < TICKS; tick++) await work();
  const { user, system } = process.cpuUsage(before);
  return { ms: (performance.now() - startedAt) / TICKS, cpuMs: (user + system) / 1_000 / TICKS };
}
