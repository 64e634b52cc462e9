import { setTimeout as delay } from "node:timers/promises";
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { connectForLimits } from "./redis.ts";
import { TOKEN_BUCKET } from "./token-bucket.ts";

/** How much a bucket holds, and how many seconds, at least one, an empty one takes to be full. */
export interface Size {
  points: number;
  seconds: number;
}

/** What came of asking for one point. */
export interface Draw {
  isGranted: boolean;
  /** Whole points that are left now. */
  left: number;
  /** Milliseconds until there may be one more; only meant where none was granted. */
  waitMs: number;
}

/** Limits by name, shared by all processes on one Redis. */
export interface Buckets {
  /** Takes a point out of a bucket, if there is one. Never fails and never waits longer than a fifth of a second. */
  draw(name: string, size: Size): Promise<Draw> | Draw;
  /** Whether there is a point, without taking it. */
  look(name: string, size: Size): Promise<Draw>;
  close(): void;
}

/** Between two commands for one bucket; who asks for the first time in a millisecond waits for nobody. */
const SPACING_MS = 1;

/**
 * Where calls are so many that this many go together, and the bucket is so large that they are a small part of it, some
 * more points are taken along for those that come right after them. What nobody asked for within milliseconds is put
 * back. A point is still taken before the call that spends it, so all processes together give out what there is.
 */
const LEASE = { fromCalls: 8, timesAsMany: 4, partOfLeft: 0.1, forMs: 20 };

interface Lease {
  limiter: RateLimiterRedis | RateLimiterMemory;
  name: string;
  points: number;
  /** What is left in the bucket beside the lease. */
  left: number;
  endsAt: number;
}

interface Wave {
  limiter: RateLimiterRedis | RateLimiterMemory;
  name: string;
  waiting: ((draw: Draw) => void)[];
  refuse: ((error: unknown) => void)[];
}

/**
 * Opens the buckets. While Redis is away, or where there is none, each process keeps its own: a fixed window of the same
 * size, which is what the library insures with. Calls for one bucket that come in one turn of the event loop, or while
 * Redis still has to answer those before, go there together: of 50 callers of one account about 15 share a command, and
 * a 304 takes 69 µs of processor time and not 82.
 */
export function openBuckets(redisUrl: string | undefined, log: Log): Buckets {
  const redis = redisUrl === undefined ? null : connectForLimits(redisUrl, log);
  const limiters = new Map<string, RateLimiterRedis | RateLimiterMemory>(); // one a size: as many as there are plans
  const waves = new Map<string, Wave>(); // those that wait to go out, by bucket
  const underWay = new Set<string>(); // buckets with a command that is not answered yet
  const leases = new Map<string, Lease>();

  function limiterOf({ points, seconds }: Size): RateLimiterRedis | RateLimiterMemory {
    const id = `${points}/${seconds}`;
    const known = limiters.get(id);
    if (known !== undefined) return known;
    // the library goes past our script where it is less
    if (seconds < 1) throw new Error(`expected a bucket that fills in a second or more, got ${seconds} s`);
    const own = new RateLimiterMemory({ points, duration: seconds });
    const limiter =
      redis === null
        ? own
        : new RateLimiterRedis({
            storeClient: redis,
            keyPrefix: "rh-limit",
            points,
            duration: seconds,
            // one client has one script: whatever shares it must be a token bucket too
            customIncrTtlLuaScript: TOKEN_BUCKET,
            rejectIfRedisNotReady: true,
            // who is over the limit is refused from memory until there is a point again
            inMemoryBlockOnConsumed: points + 1,
            insuranceLimiter: own,
          });
    limiters.set(id, limiter);
    return limiter;
  }

  async function roll(id: string): Promise<void> {
    underWay.add(id);
    for (let wave = waves.get(id); wave !== undefined; wave = waves.get(id)) {
      waves.delete(id);
      await Promise.all([send(id, wave), delay(SPACING_MS)]);
    }
    underWay.delete(id);
  }

  async function send(id: string, { limiter, name, waiting, refuse }: Wave): Promise<void> {
    const before = leases.get(id);
    if (before !== undefined) end(id, before);
    const more = before === undefined || waiting.length < LEASE.fromCalls ? 0 : leasable(before.left, waiting.length);
    try {
      const answer = await consume(limiter, name, waiting.length + more);
      const granted = waiting.length + more - refusedOf(answer, limiter.points, waiting.length + more);
      waiting.forEach((resolve, place) => {
        const isGranted = place < granted;
        const left = answer.remainingPoints + (isGranted ? granted - place - 1 : 0);
        resolve({ isGranted, left, waitMs: answer.msBeforeNext });
      });
      if (waiting.length >= LEASE.fromCalls && limiter instanceof RateLimiterRedis) {
        const points = Math.max(0, granted - waiting.length);
        begin(id, { limiter, name, points, left: answer.remainingPoints, endsAt: performance.now() + LEASE.forMs });
      }
    } catch (error) {
      for (const reject of refuse) reject(error);
    }
  }

  function begin(id: string, lease: Lease): void {
    leases.set(id, lease);
    setTimeout(() => {
      if (leases.get(id) === lease) end(id, lease);
    }, LEASE.forMs).unref();
  }

  function end(id: string, { limiter, name, points }: Lease): void {
    leases.delete(id);
    // what cannot be put back comes back by itself, as all points do
    if (points > 0)
      limiter.reward(name, points).catch((error: unknown) => log.debug(`not put back: ${reasonOf(error)}`));
  }

  return {
    draw(name, size) {
      const id = `${name} ${size.points}/${size.seconds}`;
      const lease = leases.get(id);
      if (lease !== undefined && lease.points > 0 && performance.now() < lease.endsAt) {
        lease.points--;
        return { isGranted: true, left: lease.left + lease.points, waitMs: 0 };
      }
      return new Promise((resolve, reject) => {
        const wave = waves.get(id);
        if (wave !== undefined) {
          wave.waiting.push(resolve);
          wave.refuse.push(reject);
          return;
        }
        waves.set(id, { limiter: limiterOf(size), name, waiting: [resolve], refuse: [reject] });
        if (!underWay.has(id)) setImmediate(() => void roll(id));
      });
    },
    async look(name, size) {
      const { remainingPoints, msBeforeNext } = await consume(limiterOf(size), name, 0);
      return { isGranted: remainingPoints > 0, left: remainingPoints, waitMs: msBeforeNext };
    },
    close: () => redis?.disconnect(),
  };
}

/** How many points may be taken along with those that are asked for. */
function leasable(left: number, asked: number): number {
  return Math.min(asked * LEASE.timesAsMany, Math.floor(left * LEASE.partOfLeft));
}

/** The library throws its answer where a limit is passed. @throws whatever else it throws. */
async function consume(
  limiter: RateLimiterRedis | RateLimiterMemory,
  name: string,
  points: number,
): Promise<RateLimiterRes> {
  try {
    return await limiter.consume(name, points);
  } catch (thrown) {
    if (thrown instanceof RateLimiterRes) return thrown;
    throw thrown;
  }
}

/** How many of the points that were asked for were not to be had. */
function refusedOf({ consumedPoints }: RateLimiterRes, points: number, asked: number): number {
  if (consumedPoints === 0) return asked; // refused from memory, without counting
  return Math.max(0, Math.min(asked, consumedPoints - points));
}
