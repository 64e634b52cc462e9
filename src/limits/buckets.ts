import { setImmediate as nextTick } from "node:timers/promises";
import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { Log } from "../log.ts";
import { connectForLimits } from "./redis.ts";
import { TOKEN_BUCKET } from "./token-bucket.ts";

/** The capacity of a bucket, and the seconds, at least one, in which an empty one refills. */
export interface Size {
  points: number;
  seconds: number;
}

/** The result of a request for one point. */
export interface Draw {
  isGranted: boolean;
  /** Whole points that remain now. */
  left: number;
  /** Milliseconds until the next point; only meaningful if none was granted. */
  waitMs: number;
}

/** Limits by name, shared by all processes on one Redis. */
export interface Buckets {
  /** Takes a point from a bucket, if there is one. Never fails and never waits longer than a fifth of a second. */
  draw(name: string, size: Size): Promise<Draw>;
  /** Whether there is a point, without taking it. */
  look(name: string, size: Size): Promise<Draw>;
  close(): void;
}

type Limiter = RateLimiterRedis | RateLimiterMemory;

/** Draws from one bucket that share a command. */
interface Batch {
  size: number;
  result: Promise<{ granted: number; left: number; waitMs: number }>;
}

/**
 * Opens the buckets. Without Redis, or while it is unavailable, each process has its own: a fixed window of the same
 * size, the library's insurance limiter.
 *
 * Draws from one bucket that arrive before Redis has responded to the previous ones share the next command: at 50
 * connections of one account a draw takes 2 µs of processor time instead of 18.
 */
export function openBuckets(redisUrl: string | undefined, log: Log): Buckets {
  const redis = redisUrl === undefined ? null : connectForLimits(redisUrl, log);
  const limiters = new Map<string, Limiter>(); // one per size: as many as there are plans
  const collecting = new Map<string, Batch>(); // not sent yet
  const sent = new Map<string, Promise<unknown>>(); // without a response yet

  function limiterOf({ points, seconds }: Size): Limiter {
    const id = `${points}/${seconds}`;
    const known = limiters.get(id);
    if (known !== undefined) return known;
    // the library does not run the script for less
    if (seconds < 1) throw new Error(`expected a bucket that refills in a second or more, found ${seconds} s`);
    const own = new RateLimiterMemory({ points, duration: seconds });
    const limiter =
      redis === null
        ? own
        : new RateLimiterRedis({
            storeClient: redis,
            keyPrefix: "rh-limit",
            points,
            duration: seconds,
            // a client has one script, so everything that shares it must be a token bucket too
            customIncrTtlLuaScript: TOKEN_BUCKET,
            rejectIfRedisNotReady: true,
            // a caller over the limit is refused from memory until there is a point again
            inMemoryBlockOnConsumed: points + 1,
            insuranceLimiter: own,
          });
    limiters.set(id, limiter);
    return limiter;
  }

  async function send(id: string, name: string, limiter: Limiter): Promise<Awaited<Batch["result"]>> {
    await (sent.get(id) ?? nextTick());
    const asked = collecting.get(id)?.size ?? 0;
    collecting.delete(id);
    const response = consume(limiter, name, asked);
    const settled = Promise.allSettled([response]); // an error affects this batch alone
    sent.set(id, settled);
    try {
      const { consumedPoints, remainingPoints, msBeforeNext } = await response;
      // 0 consumed is a refusal from memory
      const refused = consumedPoints === 0 ? asked : Math.max(0, consumedPoints - limiter.points);
      return { granted: Math.max(0, asked - refused), left: remainingPoints, waitMs: msBeforeNext };
    } finally {
      if (sent.get(id) === settled) sent.delete(id);
    }
  }

  return {
    async draw(name, size) {
      const id = `${name} ${size.points}/${size.seconds}`;
      let batch = collecting.get(id);
      if (batch === undefined) {
        batch = { size: 0, result: send(id, name, limiterOf(size)) };
        collecting.set(id, batch);
      }
      const place = ++batch.size;
      const { granted, left, waitMs } = await batch.result;
      return { isGranted: place <= granted, left: left + Math.max(0, granted - place), waitMs };
    },
    async look(name, size) {
      const { remainingPoints, msBeforeNext } = await consume(limiterOf(size), name, 0);
      return { isGranted: remainingPoints > 0, left: remainingPoints, waitMs: msBeforeNext };
    },
    close: () => redis?.disconnect(),
  };
}

/**
 * The library throws its result if a limit is exceeded.
 *
 * @throws any other error
 */
async function consume(limiter: Limiter, name: string, points: number): Promise<RateLimiterRes> {
  try {
    return await limiter.consume(name, points);
  } catch (thrown) {
    if (thrown instanceof RateLimiterRes) return thrown;
    throw thrown;
  }
}
