/**
 * The overhead of the queue, with runs that do nothing: a bare BullMQ queue and worker against ours, which also validate
 * each payload, run one job of a key at a time, enforce timeouts, and log and count each run.
 *
 * Then schedules: how late runs start, what they cost, what their reconciliation costs, and how long they are missing after
 * Redis has lost everything (bare ones never return). Redis fsyncs its append-only file every second, as with `npm start`;
 * PostgreSQL, which ours also needs, is durable.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import path from "node:path";
import { Redis } from "ioredis";
import { connect } from "../../../src/db/client.ts";
import { migrate } from "../../../src/db/migrate.ts";
import type { Bench } from "../bench-result.ts";
import { startBenchServers } from "../pipeline/servers.ts";
import type { QueueServers } from "./start-worker.ts";
import { measureReconcile } from "./reconcile.ts";
import { measureRuns } from "./runs.ts";
import { measureBareSchedules, measureOurSchedules } from "./schedules.ts";

const FULL = {
  runs: 20_000,
  watched: { houses: 1_000, everyMs: 2_000, forMs: 20_000 },
  reconciled: [10, 100, 1_000, 10_000],
};
const SHORT = { runs: 500, watched: { houses: 20, everyMs: 200, forMs: 400 }, reconciled: [10] };
const TARGETS = { lateMs: 1_000, againMs: 10_000 };

export default {
  name: "queue",
  about: "runs per second of a job that does nothing, against a bare BullMQ worker; schedules and their recovery",
  async run({ isShort, directory, say }) {
    mkdirSync(directory, { recursive: true });
    const folder = mkdtempSync(path.join(directory, "queue-"));
    const servers = await startBenchServers(folder, say);
    try {
      const databaseUrl = await servers.makeDatabase("queue");
      await migrate(databaseUrl);
      const sql = connect(databaseUrl, { name: "bench", max: 10 });
      const redis = new Redis(servers.redisUrl, { maxRetriesPerRequest: null });
      try {
        return await measure({ sql, databaseUrl, redisUrl: servers.redisUrl }, redis, { isShort, say });
      } finally {
        redis.disconnect();
        await sql.end({ timeout: 5 });
      }
    } finally {
      await servers.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  },
} satisfies Bench;

async function measure(
  servers: QueueServers,
  redis: Redis,
  { isShort, say }: { isShort: boolean; say: (line: string) => void },
) {
  const { runs, watched, reconciled } = isShort ? SHORT : FULL;
  say(`${runs} runs`);
  const { single, bulk, processed } = await measureRuns(servers, redis, runs);
  const every = `${watched.houses} houses every ${watched.everyMs / 1_000} s`;
  say(`${every}, by BullMQ alone`);
  const bare = await measureBareSchedules(redis, watched);
  say("the same by our worker, then after FLUSHALL");
  const { punctuality: ours, allAgainMs } = await measureOurSchedules(servers, redis, watched);
  await redis.flushall();
  const ticks = await measureReconcile(servers, reconciled, say);
  return {
    baseline: processed.bare.perSecond,
    ours: processed.ours.perSecond,
    unit: "runs/s",
    results: [
      rowOf("processed, 50 in parallel", "runs/s", processed.bare.perSecond, processed.ours.perSecond),
      rowOf("processed: CPU time", "µs per run", processed.bare.cpuMicros, processed.ours.cpuMicros),
      rowOf("added one by one", "runs/s", single.bare.perSecond, single.ours.perSecond),
      rowOf("added one by one: CPU time", "µs per run", single.bare.cpuMicros, single.ours.cpuMicros),
      rowOf(
        "added in bulk by BullMQ, a hundred in parallel by ours",
        "runs/s",
        bulk.bare.perSecond,
        bulk.ours.perSecond,
      ),
      rowOf(`${every}: late, p50`, "ms", bare.p50Ms, ours.p50Ms),
      rowOf(`${every}: late, p99`, "ms", bare.p99Ms, ours.p99Ms),
      rowOf(`${every}: started runs of those due`, "%", bare.shareRun * 100, ours.shareRun * 100),
      rowOf(`${every}: CPU of the worker`, "% of a core", bare.node * 100, ours.node * 100),
      rowOf(`${every}: CPU of Redis`, "% of a core", bare.redis * 100, ours.redis * 100),
      rowOf(`${every}: memory of Redis`, "MB", bare.redisMegabytes, ours.redisMegabytes),
      rowOf(`${every}: all started again after FLUSHALL`, "ms", null, allAgainMs),
      ...ticks.flatMap(({ houses: count, setAgainMs, tickMs, tickCpuMs }) => [
        rowOf(`${count} houses: all schedules upserted, or a tick`, "ms", setAgainMs, tickMs),
        rowOf(`${count} houses: CPU time of a tick`, "ms", null, tickCpuMs),
      ]),
    ],
    notes: ["ratio: ours / bare, for rates and for times", "bare schedules never return after FLUSHALL"],
    failures: isShort
      ? []
      : [
          ...(ours.p99Ms > TARGETS.lateMs || ours.shareRun < 0.98
            ? [
                `p99 within ${TARGETS.lateMs} ms and at least 98 % of the runs started, got ${ours.p99Ms} ms and ${ours.shareRun}`,
              ]
            : []),
          ...(allAgainMs > TARGETS.againMs
            ? [`all started again within ${TARGETS.againMs} ms after FLUSHALL, got ${allAgainMs.toFixed(0)}`]
            : []),
        ],
  };
}

function rowOf(what: string, unit: string, bare: number | null, ours: number) {
  const round = (value: number) => Number(value.toPrecision(4));
  return {
    what,
    unit,
    bare_bullmq: bare === null ? null : round(bare),
    ours: round(ours),
    ratio: bare === null ? null : Math.round((ours / bare) * 100) / 100,
  };
}
