import { setTimeout as delay } from "node:timers/promises";
import { Queue, Worker } from "bullmq";
import type { Redis } from "ioredis";
import { quantile } from "simple-statistics";
import { z } from "zod";
import type { Job } from "../../../src/queue/job.ts";
import { inBatches } from "../../../src/queue/schedules/schedulers.ts";
import { startWorker, type QueueServers } from "./start-worker.ts";

const CONCURRENCY = 50;
const BARE = "bare-schedules";
/** Intervals before the measurement, until all houses have started and code is compiled. */
const WARM_UP = 3;
/** Much longer than the reconciler's tick of five seconds. */
const GIVE_UP_MS = 60_000;

/** How punctual schedules were, and what they cost. */
export interface Punctuality {
  p50Ms: number;
  p99Ms: number;
  /** The share of the due runs that took place. */
  shareRun: number;
  /** Shares of one processor. */
  node: number;
  redis: number;
  redisMegabytes: number;
}

/** How many houses are scheduled how often, and for how long that is measured. */
export interface ScheduleLoad {
  houses: number;
  everyMs: number;
  forMs: number;
}

/** Starts are spread evenly over the interval. */
function offsetOf(house: number, { houses, everyMs }: ScheduleLoad): number {
  return Math.floor((house * everyMs) / houses);
}

/** Measures BullMQ's schedulers and worker alone. */
export async function measureBareSchedules(redis: Redis, watched: ScheduleLoad): Promise<Punctuality> {
  await redis.flushall();
  const queue = new Queue(BARE, { connection: redis });
  const late = lateness(watched);
  const worker = new Worker<{ house: string }>(BARE, async ({ data }) => Promise.resolve(late.note(data.house)), {
    connection: redis,
    concurrency: CONCURRENCY,
  });
  const opts = { removeOnComplete: true, removeOnFail: true };
  await inBatches([...Array(watched.houses).keys()], (n) =>
    queue.upsertJobScheduler(
      `h${n}`,
      { every: watched.everyMs, offset: offsetOf(n, watched) },
      { name: BARE, data: { house: `h${n}` }, opts },
    ),
  );
  try {
    return await watch(redis, late, watched);
  } finally {
    await worker.close();
    await queue.close();
  }
}

/**
 * Measures our worker, which reconciles the schedules of its jobs every five seconds; then the milliseconds until all houses
 * are started again after Redis has lost everything.
 */
export async function measureOurSchedules(
  servers: QueueServers,
  redis: Redis,
  watched: ScheduleLoad,
): Promise<{ punctuality: Punctuality; allAgainMs: number }> {
  await redis.flushall();
  const late = lateness(watched);
  const job: Job<{ house: string }> = {
    name: "bench-schedules",
    payload: z.object({ house: z.string() }),
    key: ({ house }) => house,
    schedule: () =>
      Promise.resolve(
        [...Array(watched.houses).keys()].map((n) => ({
          payload: { house: `h${n}` },
          everyMs: watched.everyMs,
          offsetMs: offsetOf(n, watched),
        })),
      ),
    sweep: null,
    concurrency: CONCURRENCY,
    timeoutMs: 10_000,
    retry: { attempts: 1, firstMs: 0, maxMs: 0 },
    run: ({ house }) => {
      late.note(house);
      return Promise.resolve({});
    },
  };
  const stop = await startWorker(servers, job);
  try {
    await waitUntilAllRun(late, watched);
    const punctuality = await watch(redis, late, watched);
    late.forget();
    const emptiedAt = performance.now();
    await redis.flushall();
    late.forget(); // runs that had started before FLUSHALL
    await waitUntilAllRun(late, watched);
    return { punctuality, allAgainMs: performance.now() - emptiedAt };
  } finally {
    await stop();
  }
}

async function waitUntilAllRun(late: Lateness, { houses }: ScheduleLoad): Promise<void> {
  const startedAt = performance.now();
  while (late.houses() < houses) {
    if (performance.now() - startedAt > GIVE_UP_MS)
      throw new Error(`expected ${houses} houses to be started, got ${late.houses()} within ${GIVE_UP_MS / 1_000} s`);
    await delay(10);
  }
}

async function watch(redis: Redis, late: Lateness, { houses, everyMs, forMs }: ScheduleLoad): Promise<Punctuality> {
  await delay(WARM_UP * everyMs);
  late.forget();
  const [redisBefore, cpuBefore, startedAt] = [await redisSeconds(redis), process.cpuUsage(), performance.now()];
  await delay(forMs);
  const tookMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  const redisAfter = await redisSeconds(redis);
  const lateMs = late.all();
  const memory = /^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1];
  return {
    p50Ms: quantile(lateMs, 0.5),
    p99Ms: quantile(lateMs, 0.99),
    shareRun: lateMs.length / ((houses * tookMs) / everyMs),
    node: (user + system) / 1_000 / tookMs,
    redis: ((redisAfter - redisBefore) * 1_000) / tookMs,
    redisMegabytes: Number(memory) / 1e6,
  };
}

type Lateness = ReturnType<typeof lateness>;

/**
 * Records how late each run is. A run that is late by more than an interval looks punctual, but replaces the punctual one,
 * so that it reduces the share of runs.
 */
function lateness(watched: ScheduleLoad) {
  let seen = new Set<string>();
  let lateMs: number[] = [];
  return {
    note(house: string) {
      seen.add(house);
      lateMs.push((Date.now() - offsetOf(Number(house.slice(1)), watched)) % watched.everyMs);
    },
    all: () => lateMs,
    houses: () => seen.size,
    forget() {
      seen = new Set();
      lateMs = [];
    },
  };
}

async function redisSeconds(redis: Redis): Promise<number> {
  const info = await redis.info("cpu");
  const seconds = (name: string) => Number(new RegExp(`^${name}:([0-9.]+)`, "m").exec(info)?.[1]);
  return seconds("used_cpu_sys") + seconds("used_cpu_user");
}
