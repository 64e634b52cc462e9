import type { Sql } from "../db/client.ts";
import type { Log } from "../log.ts";
import { requireRightClock } from "./clock.ts";
import type { Job } from "./job.ts";
import { openQueues, type Queues } from "./queues.ts";
import { checkRedis, connectConsumer, type RedisConnection } from "./redis.ts";

/** The connections of a worker process to Redis. */
export interface Connections {
  queues: Queues;
  redis: RedisConnection;
  close(): Promise<void>;
}

/**
 * Connects a worker process to Redis.
 * @throws UsageError if Redis would lose work, or the clock of this machine is wrong
 */
export async function connectAll({
  jobs,
  redisUrl,
  sql,
  log,
  now = Date.now,
}: {
  jobs: readonly Job<unknown>[];
  redisUrl: string;
  sql: Sql;
  log: Log;
  now?: () => number;
}): Promise<Connections> {
  await checkRedis(redisUrl);
  const queues = await openQueues(jobs, redisUrl, log);
  const redis = await connectConsumer(redisUrl, log);
  const close = async () => {
    await queues.close();
    redis.disconnect();
  };
  try {
    await requireRightClock(sql, queues.redis, now);
  } catch (error) {
    await close();
    throw error;
  }
  return { queues, redis, close };
}
