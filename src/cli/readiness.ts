import type { Checks } from "../api/health.ts";
import type { Sql } from "../db/client.ts";
import { isAnswering } from "../db/facts.ts";
import { schemaState } from "../db/migrate.ts";
import { isPolling } from "../houses/polling-store.ts";
import { checkRedis } from "../queue/redis.ts";
import type { Workers } from "../queue/worker.ts";

/** A schema that was right a minute ago is asked about again: each look takes a connection of its own. */
const SCHEMA_BELIEVED_MS = 60_000;

/**
 * What /readyz of a process looks at. One that works (`workers`) needs Redis and polling to be well; one that only answers callers
 * tells of them, and is ready without.
 */
export function readinessChecks(parts: {
  sql: Sql;
  directUrl: string;
  redisUrl: string | undefined;
  workers: Workers | null;
}): Checks {
  const { sql, directUrl, redisUrl, workers } = parts;
  let goodSchemaAt = -Infinity;

  async function isMigrated(): Promise<boolean> {
    if (performance.now() - goodSchemaAt < SCHEMA_BELIEVED_MS) return true;
    const { pending, unknown } = await schemaState(directUrl);
    const isGood = pending.length === 0 && unknown.length === 0;
    if (isGood) goodSchemaAt = performance.now();
    return isGood;
  }

  async function isRedisGood(): Promise<boolean> {
    if (workers !== null) return workers.health().redis;
    if (redisUrl === undefined) return false;
    await checkRedis(redisUrl);
    return true;
  }

  async function isPollingGood(): Promise<boolean> {
    return (workers?.health().taking ?? true) && (await isPolling(sql));
  }

  const works = workers !== null;
  return {
    postgres: { isGood: () => isAnswering(sql), required: true },
    redis: { isGood: isRedisGood, required: works },
    migrations: { isGood: isMigrated, required: true },
    polling: { isGood: isPollingGood, required: works },
  };
}
