import type { Sql } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import { nodesOf } from "./cluster.ts";
import type { RedisConnection } from "./redis.ts";

/** A worker whose clock is ahead moves every schedule into the future; when it stops, none starts until then. */
const MAX_SKEW_MS = 500;
const SAMPLES = 3;

/** The difference of this machine's clock to that of a server: positive if ours is ahead. */
export interface ClockReading {
  server: "PostgreSQL" | "Redis";
  skewMs: number;
  /** Half of the round trip: the true skew is within this of `skewMs`. */
  uncertaintyMs: number;
}

/**
 * Compares this machine's clock (`now`, milliseconds since 1970) with those of PostgreSQL and Redis. A response counts
 * for the middle of its round trip; of three samples the one with the shortest round trip is used.
 */
export async function readClocks(sql: Sql, redis: RedisConnection, now: () => number): Promise<ClockReading[]> {
  return [
    await readClock("PostgreSQL", now, async () => {
      const [row] = await sql<{ ms: number }[]>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`;
      return row?.ms ?? Number.NaN;
    }),
    await readRedisClock(redis, now),
  ];
}

/** The problem of this machine's clock and its remedy; null if it is right, or cannot be shown to be wrong. */
export function clockProblem(readings: readonly ClockReading[]): string | null {
  const wrong = readings.filter(({ skewMs, uncertaintyMs }) => Math.abs(skewMs) - uncertaintyMs > MAX_SKEW_MS);
  if (wrong.length === 0) return null;
  const differences = wrong.map(({ server, skewMs }) => {
    return `${Math.round(Math.abs(skewMs))} ms ${skewMs > 0 ? "ahead of" : "behind"} ${server}'s`;
  });
  return `the clock of this machine is ${differences.join(" and ")}; schedules need at most ${MAX_SKEW_MS} ms: set the clocks by NTP (chrony or systemd-timesyncd)`;
}

/**
 * Refuses to work on a machine whose clock is wrong.
 * @throws UsageError with the difference and the remedy.
 */
export async function requireRightClock(sql: Sql, redis: RedisConnection, now: () => number): Promise<ClockReading[]> {
  const readings = await readClocks(sql, redis, now);
  const problem = clockProblem(readings);
  if (problem !== null) throw new UsageError(problem);
  return readings;
}

/** In a cluster, reads the node whose clock differs most; unavailable nodes are skipped. @throws Error if all are. */
async function readRedisClock(redis: RedisConnection, now: () => number): Promise<ClockReading> {
  const readings: ClockReading[] = [];
  let failure: unknown = new Error("the Redis Cluster has no nodes");
  for (const node of nodesOf(redis)) {
    try {
      const reading = await readClock("Redis", now, async () => {
        const [seconds, micros] = await node.time();
        return Number(seconds) * 1_000 + Number(micros) / 1_000;
      });
      readings.push(reading);
    } catch (error) {
      failure = error;
    }
  }
  const [worst] = readings.toSorted((a, b) => Math.abs(b.skewMs) - Math.abs(a.skewMs));
  if (worst === undefined) throw failure;
  return worst;
}

async function readClock(
  server: ClockReading["server"],
  now: () => number,
  serverTime: () => Promise<number>,
): Promise<ClockReading> {
  const samples: ClockReading[] = [];
  for (let taken = 0; taken < SAMPLES; taken++) {
    const before = now();
    const theirs = await serverTime();
    const after = now();
    samples.push({ server, skewMs: (before + after) / 2 - theirs, uncertaintyMs: (after - before) / 2 });
  }
  return samples.reduce((best, sample) => (sample.uncertaintyMs < best.uncertaintyMs ? sample : best));
}
