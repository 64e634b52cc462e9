import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { Job } from "../../../src/queue/job.ts";
import { openQueues } from "../../../src/queue/queues.ts";
import { inBatches } from "../../../src/queue/schedules/schedulers.ts";
import { silent, startWorker, type QueueServers } from "./start-worker.ts";

/** Parallel runs in one process, bare or ours. */
const CONCURRENCY = 50;
const IN_BULK = 500;
const BARE = "bare";

/** Throughput, and CPU time of this process per run. */
export interface Pace {
  perSecond: number;
  cpuMicros: number;
}

type Pair = { bare: Pace; ours: Pace };

/** Measures runs that do nothing, added one by one, added in bulk, and processed: by BullMQ alone, and by our queue. */
export async function measureRuns(
  servers: QueueServers,
  connection: Redis,
  runs: number,
): Promise<{ single: Pair; bulk: Pair; processed: Pair }> {
  const bare = new Queue<{ house: string }>(BARE, { connection });
  const queues = await openQueues([noop], servers.redisUrl, silent);
  const payloads = Array.from({ length: runs }, (_, n) => ({ house: `h${n}` }));
  const options = { removeOnComplete: true };
  const addBare = async (data: { house: string }) => void (await bare.add(BARE, data, options));
  const empty = async () => {
    await bare.obliterate({ force: true });
    await queues.get(noop.name).obliterate({ force: true });
  };
  try {
    // warm-up: code is compiled while it runs
    await inBatches(payloads.slice(0, 1_000), addBare);
    await inBatches(payloads.slice(0, 1_000), (payload) => queues.enqueue(noop, payload));
    await empty();
    const single = {
      bare: await paceOf(runs, () => inBatches(payloads, addBare)),
      ours: await paceOf(runs, () => inBatches(payloads, (payload) => queues.enqueue(noop, payload))),
    };
    const processed = { bare: await processBare(connection, runs), ours: await processOurs(servers, runs) };
    const bulk = {
      bare: await paceOf(runs, async () => {
        for (let from = 0; from < runs; from += IN_BULK) {
          const some = payloads.slice(from, from + IN_BULK);
          await bare.addBulk(some.map((data) => ({ name: BARE, data, opts: options })));
        }
      }),
      ours: single.ours, // a sweep adds a hundred in parallel, each separately, so that each is deduplicated
    };
    await empty();
    return { single, bulk, processed };
  } finally {
    await Promise.all([bare.close(), queues.close()]);
  }
}

async function processBare(connection: Redis, runs: number): Promise<Pace> {
  return paceOf(runs, async () => {
    const count = counter(runs);
    const worker = new Worker(BARE, async () => Promise.resolve(count.one()), { connection, concurrency: CONCURRENCY });
    await count.reached;
    await worker.close();
  });
}

async function processOurs(servers: QueueServers, runs: number): Promise<Pace> {
  const count = counter(runs);
  const workers = { stop: async () => undefined as void };
  const pace = await paceOf(runs, async () => {
    const run = async () => {
      count.one();
      return Promise.resolve({});
    };
    workers.stop = await startWorker(servers, { ...noop, run });
    await count.reached;
  });
  await workers.stop();
  return pace;
}

const noop: Job<{ house: string }> = {
  name: "bench-noop",
  payload: z.object({ house: z.string() }),
  key: ({ house }) => house,
  schedule: null,
  sweep: null,
  concurrency: CONCURRENCY,
  timeoutMs: 10_000,
  retry: { attempts: 1, firstMs: 0, maxMs: 0 },
  run: () => Promise.resolve({}),
};

function counter(wanted: number) {
  const { promise: reached, resolve } = Promise.withResolvers<void>();
  let left = wanted;
  return {
    reached,
    one() {
      left -= 1;
      if (left === 0) resolve();
    },
  };
}

async function paceOf(runs: number, work: () => Promise<unknown>): Promise<Pace> {
  const [startedAt, before] = [performance.now(), process.cpuUsage()];
  await work();
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(before);
  return { perSecond: runs / seconds, cpuMicros: (user + system) / runs };
}
