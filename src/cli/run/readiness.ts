import { type Checks, NotReady } from "../../http/health.ts";
import type { Sql } from "../../db/client.ts";
import { isResponding } from "../../db/facts.ts";
import { schemaState } from "../../db/migrate.ts";
import { findLatePolls, type Lateness } from "../../houses/polling/polling-store.ts";
import { checkRedis } from "../../queue/redis.ts";
import type { WorkerHealth, Workers } from "../../queue/worker.ts";

/** A good schema is checked again only after this time: each check takes a connection. */
const SCHEMA_BELIEVED_MS = 60_000;
const POLLS = "poll-house";
/** Longer than the longest timeout of a house: a process without a finished poll for so long does not poll. */
const UNFINISHED_MS = 20_000;
const NAMED = 5;

/**
 * The checks of a process's /readyz. A worker (`workers`) requires Redis and polling; a process that only serves callers
 * reports them, and is ready without.
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
    // a newer schema is fine: during a rolling upgrade, old processes still run after its migrations
    const isGood = (await schemaState(directUrl)).pending.length === 0;
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
    requirePolling(await findLatePolls(sql), workers?.health() ?? null);
    return true;
  }

  const works = workers !== null;
  return {
    postgres: { isGood: () => isResponding(sql), required: true },
    redis: { isGood: isRedisGood, required: works },
    migrations: { isGood: isMigrated, required: true },
    polling: { isGood: isPollingGood, required: works },
  };
}

/**
 * Checks that polling is healthy, as far as this process is responsible: `health` is null if it is not a worker.
 *
 * A worker is not ready while any house that may be polled is late, whichever worker should have polled it, or while none
 * of its own polls has finished, although others poll its houses.
 * @throws NotReady that names the problem
 */
export function requirePolling({ late, due, longestPollMs }: Lateness, health: WorkerHealth | null): void {
  if (health !== null) {
    const idle = health.queues.filter(({ taking }) => !taking).map(({ queue }) => queue);
    if (idle.length > 0) {
      throw new NotReady("this process takes no work from some queues", health.clockProblem ?? idle.join(", "));
    }
    const polls = health.queues.find(({ queue }) => queue === POLLS);
    if (polls === undefined) return;
    const patienceMs = longestPollMs + UNFINISHED_MS;
    if (due > 0 && polls.unfinishedMs > patienceMs) {
      throw new NotReady(`no poll of this process was done for more than ${Math.floor(patienceMs / 1_000)} s`);
    }
  }
  if (late.length === 0) return;
  const more = late.length > NAMED ? ", …" : "";
  throw new NotReady(
    `${late.length} of ${due} houses that are due are not polled`,
    late.slice(0, NAMED).join(", ") + more,
  );
}
