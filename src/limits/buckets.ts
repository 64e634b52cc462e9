import { RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
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
  /** Takes a point out of a bucket, if there is one. Never fails and never waits longer than a tenth of a second. */
  draw(name: string, size: Size): Promise<Draw>;
  /** Whether there is a point, without taking it. */
  look(name: string, size: Size): Promise<Draw>;
  close(): void;
}

interface Wave {
  limiter: RateLimiterRedis | RateLimiterMemory;
  name: string;
  waiting: ((draw: Draw) => void)[];
  refuse: ((error: unknown) => void)[];
}

/**
 * Opens the buckets. While Redis is away, or where there is none, each process keeps its own: a fixed window of the same
 * size, which is what the library insures with. Calls that come in one turn of the event loop for one bucket go to
 * Redis together, so a busy account costs one command a turn and not one a call.
 */
export function openBuckets(redisUrl: string | undefined, log: Log): Buckets {
  const redis = redisUrl === undefined ? null : connectForLimits(redisUrl, log);
  const limiters = new Map<string, RateLimiterRedis | RateLimiterMemory>(); // one a size: as many as there are plans
  const waves = new Map<string, Wave>();

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

  async function roll(id: string, { limiter, name, waiting, refuse }: Wave): Promise<void> {
    waves.delete(id);
    try {
      const answer = await consume(limiter, name, waiting.length);
      const granted = waiting.length - refusedOf(answer, limiter.points, waiting.length);
      waiting.forEach((resolve, place) => {
        const isGranted = place < granted;
        const left = answer.remainingPoints + (isGranted ? granted - place - 1 : 0);
        resolve({ isGranted, left, waitMs: answer.msBeforeNext });
      });
    } catch (error) {
      for (const reject of refuse) reject(error);
    }
  }

  return {
    draw(name, size) {
      const id = `${name} ${size.points}/${size.seconds}`;
      return new Promise((resolve, reject) => {
        const wave = waves.get(id);
        if (wave !== undefined) {
          wave.waiting.push(resolve);
          wave.refuse.push(reject);
          return;
        }
        const first = { limiter: limiterOf(size), name, waiting: [resolve], refuse: [reject] };
        waves.set(id, first);
        setImmediate(() => void roll(id, first));
      });
    },
    async look(name, size) {
      const { remainingPoints, msBeforeNext } = await consume(limiterOf(size), name, 0);
      return { isGranted: remainingPoints > 0, left: remainingPoints, waitMs: msBeforeNext };
    },
    close: () => redis?.disconnect(),
  };
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
