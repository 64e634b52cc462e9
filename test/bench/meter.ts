import { quantile } from "simple-statistics";
/**
 * Exact admission of calls: our meter, which batches the calls that arrive while a statement is running into the next
 * statement, against one statement and commit per call. Both are durable before the response.
 */
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { Meter } from "../../src/usage/meter.ts";
import { consumeCalls } from "../../src/usage/store.ts";
import { startTestServers } from "../support/servers.ts";
import type { Bench } from "./bench-result.ts";

/** Each waits for its response before its next call. */
const CALLERS = 50;
const CALLS = 100_000;
const SHORT_CALLS = 2_000;
/** The baseline is much slower, so a tenth of the calls is enough. */
const BASELINE_DIVISOR = 10;

export default {
  name: "meter",
  about: "calls per second that are counted exactly and durably, against one statement and commit per call",
  async run({ isShort, say }) {
    const { TEST_SERVERS, DATABASE_URL, REDIS_URL } = process.env;
    const servers = await startTestServers(TEST_SERVERS, { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL });
    try {
      await migrate(servers.databaseUrl);
      const sql = connect(servers.databaseUrl, { name: "bench", max: 10 });
      try {
        const calls = isShort ? SHORT_CALLS : CALLS;
        const results: Record<string, string | number>[] = [];
        let first: { ours: number; baseline: number } | null = null;
        for (const accounts of [CALLERS, 1]) {
          const keys = await makeKeys(sql, accounts);
          say(`${accounts} account${accounts === 1 ? "" : "s"}`);
          const meter = new Meter((batch) => consumeCalls(sql, batch));
          await measureLoad(keys, CALLERS * 4, (keyId) => meter.consume({ keyId, endpoint: "rounds" }));
          const baseline = await measureLoad(keys, calls / BASELINE_DIVISOR, async (keyId) => {
            await consumeCalls(sql, [{ keyId, endpoint: "rounds" }]);
          });
          const ours = await measureLoad(keys, calls, (keyId) => meter.consume({ keyId, endpoint: "rounds" }));
          first ??= { ours: ours.perSecond, baseline: baseline.perSecond };
          for (const [what, load] of [
            ["a statement and a commit per call", baseline],
            ["ours, group commit", ours],
          ] as const) {
            results.push({
              what: `${accounts} account${accounts === 1 ? "" : "s"}: ${what}`,
              calls_per_second: Math.round(load.perSecond),
              p50_ms: load.p50Ms,
              p99_ms: load.p99Ms,
              ratio: Math.round((load.perSecond / baseline.perSecond) * 100) / 100,
            });
          }
        }
        await checkSum(sql);
        return {
          baseline: first?.baseline ?? null,
          ours: first?.ours ?? null,
          unit: "calls/s",
          results,
          notes: [`${CALLERS} callers, each waiting for its response; quotas and facts are equal at the end`],
          failures: [],
        };
      } finally {
        await sql.end({ timeout: 5 });
      }
    } finally {
      await servers.stop();
    }
  },
} satisfies Bench;

async function makeKeys(sql: Sql, count: number): Promise<bigint[]> {
  const keys: bigint[] = [];
  for (let n = 0; n < count; n++) {
    const email = `bench-${count}-${n}@example.com`;
    await createAccount(sql, email);
    const made = await createKey(sql, { email, plan: "Max" });
    if (!made.ok) throw new Error(made.problem);
    keys.push(made.id);
  }
  return keys;
}

async function measureLoad(keys: readonly bigint[], calls: number, count: (keyId: bigint) => Promise<unknown>) {
  let left = calls;
  const tookMs: number[] = [];
  const startedAt = performance.now();
  await Promise.all(
    Array.from({ length: CALLERS }, async (_, n) => {
      const keyId = keys[n % keys.length] ?? 0n;
      while (left-- > 0) {
        const at = performance.now();
        await count(keyId);
        tookMs.push(performance.now() - at);
      }
    }),
  );
  const perSecond = (calls * 1_000) / (performance.now() - startedAt);
  const at = (share: number) => Math.round(quantile(tookMs, share) * 100) / 100;
  return { perSecond, p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** @throws Error if the counted calls are not the admitted ones, since the throughput is then meaningless */
async function checkSum(sql: Sql): Promise<void> {
  const [row] = await sql<{ quota: number; facts: number }[]>`
    select
      (select sum(used)::float8 from quotas where length(period) = 10) as quota,
      (select sum(n)::float8 from usage_facts) as facts`;
  if (row === undefined || row.quota !== row.facts) {
    throw new Error(`expected quotas to be the sum of the facts, got ${row?.quota} and ${row?.facts}`);
  }
}
