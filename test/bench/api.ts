/**
 * The read API with keys, rate limits and exact metering against a bare Express app that returns the same bytes by
 * res.json: 50 connections from a third process, with both servers in alternating slices of the same run.
 *
 * Also: throughput with a one-table filter over 10 to 10,000 tables, and memory.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import autocannon from "autocannon";
import { mean } from "simple-statistics";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { migrate } from "../../src/db/migrate.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { startTestServers } from "../support/servers.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import type { Bench } from "./bench-result.ts";

const CONNECTIONS = 50;
const SLICES = 4;
const TARGETS = { ratio: 0.7, p99: 2.5, unchanged: 1.2, megabytes: 180, kilobytesPerTable: 60 };
/** The maximum number of tables in one poll. */
const TABLES_PER_HOUSE = 100;
/** As in the Dockerfile: the default young generation is three times as large, and calls need little of it. */
const SEMI_SPACE = ["--max-semi-space-size=8"];
/** As many as a process caches of each table. */
const ROUNDS = 200;

export default {
  name: "api",
  about: "requests per second of a keyed, limited and metered call at 50 connections, against a bare Express app",
  async run({ isShort, directory, say }) {
    const { TEST_SERVERS, DATABASE_URL, REDIS_URL } = process.env;
    const servers = await startTestServers(TEST_SERVERS, { databaseUrl: DATABASE_URL, redisUrl: REDIS_URL });
    const children: ChildProcess[] = [];
    const start = async (file: string, given: string[]) => {
      // as in src/start.js: without a compile cache the compiler takes 30 MB of memory
      const env = { ...process.env, NODE_COMPILE_CACHE: path.join(directory, "compiled") };
      const child = fork(new URL(file, import.meta.url), given, { stdio: "inherit", env, execArgv: SEMI_SPACE });
      children.push(child);
      const [url] = (await once(child, "message")) as [string];
      return { url, pid: child.pid ?? 0 };
    };
    try {
      await migrate(servers.databaseUrl);
      const sql = connect(servers.databaseUrl, { name: "bench", max: 2 });
      try {
        const key = await makeCaller(sql);
        await start("../api/api-process.ts", [servers.databaseUrl, servers.redisUrl]);
        for (const child of children.splice(0)) await exitNormally(child);
        const results: Row[] = [];
        const failures: string[] = [];
        const growth = isShort ? [10] : [10, 1000, 10_000];
        let first: { ours: Load; bare: Load } | null = null;
        for (const tables of growth) {
          say(`${tables} tables`);
          await makeTables(sql, tables);
          const ours = await start("../api/api-process.ts", [servers.databaseUrl, servers.redisUrl]);
          const target = { url: `${ours.url}${PATH}`, pid: ours.pid, headers: { "x-api-key": key } };
          const response = await fetch(target.url, { headers: target.headers });
          if (response.status !== 200)
            throw new Error(`expected 200, got ${response.status}: ${await response.text()}`);
          const file = path.join(directory, "api-body.json");
          writeFileSync(file, await response.text());
          const bare = await start("bare-express.ts", [file]);
          const unchanged = {
            ...target,
            headers: { ...target.headers, "if-none-match": response.headers.get("etag") ?? "" },
          };
          const loads = await alternate(isShort ? 1 : 5, [
            target,
            { url: `${bare.url}/api/v1/forecasts`, pid: bare.pid },
            unchanged,
          ]);
          const [own, plain, same] = loads as [Load, Load, Load];
          first ??= { ours: own, bare: plain };
          const megabytes = residentMegabytes(ours.pid);
          results.push(
            rowOf(`${tables} tables: bare Express`, plain, plain, residentMegabytes(bare.pid)),
            rowOf(`${tables} tables: ours, 200`, own, plain, megabytes),
            rowOf(`${tables} tables: ours, 304`, same, plain, megabytes),
          );
          const most = TARGETS.megabytes + (TARGETS.kilobytesPerTable * tables) / 1000;
          if (megabytes > most) failures.push(`at most ${most.toFixed(0)} MB with ${tables} tables, got ${megabytes}`);
          if (own.perSecond < TARGETS.ratio * plain.perSecond)
            failures.push(`${TARGETS.ratio} × the baseline with ${tables} tables, got ${ratioOf(own, plain)}`);
          if (own.p99Ms > TARGETS.p99 * plain.p99Ms)
            failures.push(`p99 within ${TARGETS.p99} ×, got ${own.p99Ms} against ${plain.p99Ms} ms`);
          if (same.perSecond < TARGETS.unchanged * plain.perSecond)
            failures.push(`304 at ${TARGETS.unchanged} × the baseline, got ${ratioOf(same, plain)}`);
          for (const child of children.splice(0)) child.kill("SIGKILL");
        }
        return {
          baseline: first?.bare.perSecond ?? null,
          ours: first?.ours.perSecond ?? null,
          unit: "requests/s",
          results,
          notes: [
            `${CONNECTIONS} connections; the response is ${readFileSync(path.join(directory, "api-body.json")).length} bytes`,
          ],
          failures: isShort ? [] : failures,
        };
      } finally {
        await sql.end({ timeout: 5 });
      }
    } finally {
      for (const child of children) child.kill("SIGKILL");
      await servers.stop();
    }
  },
} satisfies Bench;

/** Lets a process exit normally, so that it writes its compile cache. */
async function exitNormally(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.disconnect();
  await ended;
}

const PATH = "/api/v1/forecasts?house=h0&game=g0";

type Row = Record<string, string | number>;
/** `cpuMicros`: CPU time of the server per request, which depends less on other work of the machine than throughput. */
type Load = { perSecond: number; p50Ms: number; p99Ms: number; cpuMicros: number };
type Target = { url: string; pid: number; headers?: Record<string, string> };

/** Measures all targets in alternating slices, so that other work of the machine affects all of them. */
async function alternate(seconds: number, targets: readonly Target[]): Promise<Load[]> {
  const runs = targets.map((): Load[] => []);
  for (const one of targets) await measureLoad(one, 1); // warm-up: code is compiled while it runs
  for (let slice = 0; slice < SLICES; slice++) {
    for (const [index, one] of targets.entries()) runs[index]!.push(await measureLoad(one, seconds));
  }
  return runs.map((slices) => ({
    perSecond: mean(slices.map(({ perSecond }) => perSecond)),
    p50Ms: mean(slices.map(({ p50Ms }) => p50Ms)),
    p99Ms: mean(slices.map(({ p99Ms }) => p99Ms)),
    cpuMicros: mean(slices.map((slice) => slice.cpuMicros)),
  }));
}

/** @throws Error if a response is neither 200 nor 304, since its throughput is then meaningless */
async function measureLoad({ url, pid, headers = {} }: Target, duration: number): Promise<Load> {
  const cpuBefore = cpuMicros(pid);
  const result = await autocannon({ url, headers, connections: CONNECTIONS, duration });
  const cpu = cpuMicros(pid) - cpuBefore;
  const unexpected = result.non2xx - (result.statusCodeStats?.["304"]?.count ?? 0);
  if (unexpected > 0 || result.errors > 0)
    throw new Error(`expected only 200 and 304, got ${unexpected} others and ${result.errors} errors from ${url}`);
  return {
    perSecond: result.requests.average,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    cpuMicros: cpu / result.requests.total,
  };
}

function rowOf(what: string, load: Load, baseline: Load, megabytes: number): Row {
  return {
    what,
    requests_per_second: Math.round(load.perSecond),
    ratio: ratioOf(load, baseline),
    cpu_us: Math.round(load.cpuMicros),
    p50_ms: load.p50Ms,
    p99_ms: load.p99Ms,
    rss_mb: megabytes,
  };
}

function ratioOf(ours: Load, baseline: Load): number {
  return Math.round((ours.perSecond / baseline.perSecond) * 100) / 100;
}

/** CPU time of a process so far, user and system, in steps of 10 ms. */
function cpuMicros(pid: number): number {
  const [, fields = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user = 0, system = 0] = fields.split(" ").slice(11, 13).map(Number);
  return (user + system) * 10_000;
}

function residentMegabytes(pid: number): number {
  const [, kilobytes = "0"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Math.round(Number(kilobytes) / 1000);
}

/** Creates a caller without an effective quota or rate limit, so that every call is counted and none refused. */
async function makeCaller(sql: Sql): Promise<string> {
  await sql`
    update plans
    set
      day_limit = null,
      month_limit = null,
      day_ceiling = 1000000000,
      burst_per_second = 100000,
      burst = 100000
    where name = 'Max'`;
  await createAccount(sql, "bench@example.com");
  const made = await createKey(sql, { email: "bench@example.com", plan: "Max" });
  if (!made.ok) throw new Error(made.problem);
  return made.key;
}

/** Creates tables, each with its newest rounds, a forecast and nine open windows. */
async function makeTables(sql: Sql, count: number): Promise<void> {
  const houses = Array.from({ length: Math.ceil(count / TABLES_PER_HOUSE) }, (_, house) =>
    houseEntry({
      id: `h${house}`,
      name: `House ${house}`,
      tables: Array.from({ length: Math.min(TABLES_PER_HOUSE, count - house * TABLES_PER_HOUSE) }, (__, n) =>
        tableEntry({ game: `g${n}` }),
      ),
    }),
  );
  await applyHouses(sql, houses);
  for (const { settings } of houses) {
    await sql`
      insert into rounds (
        table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
        after_gap, late, history_hash
      )
      select
        h.table_id, n, n, (1000 + n)::text, 187, '1.87', h.palette, 0, 0, now(), now(), false, false, sha256('')
      from tables t
      join table_heads h on h.table_id = t.id
      cross join generate_series(1, ${ROUNDS}::integer) as n
      where t.house_id = ${settings.id}
      on conflict do nothing`;
  }
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`; // synthetic rows, which the guards would refuse
    await tx`
      insert into forecast_sets (
        table_id, cutoff_seq, cutoff_ordinal, first_seq, issued_at, absent_at, pause_ms, model, cutoff_round_id,
        target_round_id, history_hash, features, horizons, p_ppm, base_ppm, reference_ppm, ends, prev_hash, hashes
      )
      select
        id, ${ROUNDS}, ${ROUNDS}, 1, now(), now(), 5000, 'k7@1', ${String(1000 + ROUNDS)}, ${String(1001 + ROUNDS)},
        sha256(''), '{0,1,2,3,4,5,6,7,8,9}', '{1,16,16,16,16,16,16,16,16,16}',
        array[505000, 396000, 99000] || array_fill(811376, array[9]),
        array[505000, 396000, 99000] || array_fill(810000, array[9]), array_fill(500000, array[36]),
        array_fill(${ROUNDS + 16}::bigint, array[9]), sha256(''), decode(repeat('ab', 320), 'hex')
      from tables
      on conflict do nothing`;
    await tx`
      update table_heads
      set
        version = version + 1,
        changed_at = clock_timestamp(),
        last_seq = ${ROUNDS},
        last_ordinal = ${ROUNDS},
        newest_seq = ${ROUNDS},
        newest_round_id = ${String(1000 + ROUNDS)},
        last_round_at = now(),
        last_polled_round_at = now(),
        forecast_seq = 10,
        first_forecast_at = now(),
        set_seq = ${ROUNDS},
        open_sets = array[${ROUNDS}]::bigint[],
        now_ppm = array_fill(600000, array[9])`;
  });
  // so that autovacuum and checkpoints do not run during the measurement
  await sql`vacuum analyze`;
  await sql`checkpoint`;
}
