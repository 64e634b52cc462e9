import type { Sql } from "../db/client.ts";
import { isResponding } from "../db/facts.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { type Depth, readDepths } from "../queue/runs/depths.ts";
import type { Queues } from "../queue/runs/inspect.ts";
import type { Family } from "./families.ts";
import { factFamilies } from "./fact-families.ts";
import { readDatabaseFacts } from "./facts-store.ts";
import { readCached } from "./cached-read.ts";

/** The sources of facts. */
export interface FactSources {
  sql: Sql;
  /** Null where this process was given no Redis. */
  queues: () => Queues | null;
}

/**
 * The facts of the servers as metrics. They are read at most every five seconds, however often a scrape arrives, and
 * waited for 0.8 s. If a server is unavailable, `roundhouse_up` is 0 and its facts are left out, since they would be stale.
 */
export function readFacts({ sql, queues }: FactSources, log: Log): () => Promise<Family[]> {
  const failed = (part: string) => (error: unknown) =>
    log.debug(`metrics have no facts of ${part}: ${reasonOf(error)}`);
  const postgres = readCached("PostgreSQL", () => isResponding(sql), failed("PostgreSQL"));
  const database = readCached("PostgreSQL", () => readDatabaseFacts(sql), failed("PostgreSQL"));
  const redis = readCached("Redis", readQueues, failed("Redis"));

  function readQueues(): Promise<Depth[]> {
    const opened = queues();
    return opened === null ? Promise.resolve([]) : readDepths(opened);
  }

  return async () => {
    const [responses, facts, depths] = await Promise.all([postgres(), database(), redis()]);
    const parts = {
      postgres: responses === true,
      facts: facts !== null,
      ...(queues() === null ? {} : { redis: depths !== null }),
    };
    return [
      {
        name: "roundhouse_up",
        help: "1 if the part responded to this process within 0.8 s, else 0 and its metrics are absent; facts are read from PostgreSQL.",
        type: "gauge",
        samples: Object.entries(parts).map(([part, found]) => ({ labels: { part }, value: Number(found) })),
      },
      ...factFamilies(facts),
      ...queueFamilies(depths ?? []),
    ];
  };
}

function queueFamilies(depths: readonly Depth[]): Family[] {
  const now = Date.now();
  return [
    {
      name: "roundhouse_queue_runs",
      help: "Runs in a queue by state: waiting, active, delayed, failed (kept for a week).",
      type: "gauge",
      samples: depths.map(({ queue, state, runs }) => ({ labels: { queue, state }, value: runs })),
    },
    {
      name: "roundhouse_queue_oldest_age_seconds",
      help: "Age of the oldest waiting or active run of a queue; 0 if there is none.",
      type: "gauge",
      samples: depths
        .filter(({ state }) => state === "waiting" || state === "active")
        .map(({ queue, state, oldestAtMs }) => ({
          labels: { queue, state },
          value: oldestAtMs === null ? 0 : Math.max(0, now - oldestAtMs) / 1_000,
        })),
    },
  ];
}
