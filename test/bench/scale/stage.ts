import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { quantile } from "simple-statistics";
import { createAccount } from "../../../src/callers/account-store.ts";
import { createKey } from "../../../src/callers/key-store.ts";
import { connect, type Sql } from "../../../src/db/client.ts";
import { migrate } from "../../../src/db/migrate.ts";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { listPollSchedules } from "../../../src/houses/store.ts";
import { feedEntry, houseEntry, tableEntry } from "../../support/houses.ts";
import { houseName, FAULTY_HOUSES, type RequestLog, type Load, type HouseBehavior } from "../load-house.ts";
import { fillHistory } from "./fill-history.ts";
import type { TableMemory, Wanted } from "./table-memory-process.ts";
import { startHelper, startRoundhouse, type Helper, type RoundhouseProcess } from "./processes.ts";
import { parentOf, usageOf, usageWithChildren, type Usage } from "./process-usage.ts";

/** One load that is measured. */
export interface Stage {
  name: string;
  houses: number;
  tablesPerHouse: number;
  pollMs: number;
  roundMs: number;
  /** Rounds that are stored before the measurement. */
  history: number;
  /** The duration of the history; by default at the pace of the load. */
  pastMs?: number;
  warmUpSeconds: number;
  seconds: number;
  workers: number;
  behavior?: HouseBehavior;
  hasFaultyHouses?: boolean;
}

/** The result of a stage; times in milliseconds, usage per second of the measured time. */
export interface StageResult {
  stage: Stage;
  seconds: number;
  rounds: number;
  forecasts: number;
  requests: number;
  unchangedShare: number;
  lag: { p50: number; p99: number; samples: number };
  lateness: { p50: number; p99: number; samples: number };
  /** Tables with the status "live" at the API at the end. */
  live: number;
  /** The share of the received rounds after which a forecast set was issued. */
  coverage: number;
  cpu: Record<(typeof MEASURED_PROCESSES)[number], number>;
  megabytes: Record<(typeof MEASURED_PROCESSES)[number], number>;
  redisCommands: number;
  transactions: number;
  walBytes: number;
  /** Written rows, bytes of permanent data, and bytes of payloads, which expire after two days. */
  rows: number;
  keptBytes: number;
  answerBytes: number;
  bare: { cpu: number; requests: number };
  tableMemory: TableMemory;
}

/** The processes whose usage is measured. */
export const MEASURED_PROCESSES = ["worker", "api", "postgres", "redis", "house", "caller"] as const;

const SEED = 41;
const MAX_WATCHED = 20;
const CHECK_EVERY_MS = 20;
const BARE_SECONDS = 10;
const TAKE_OVER_TABLES = 1_000;

/** The servers of all stages, which run one after another. */
export interface StageServers {
  databaseUrl: string;
  redisUrl: string;
}

/** Runs one stage on an emptied Redis and its own database, which is dropped at the end. */
export async function runStage(
  stage: Stage,
  servers: StageServers,
  folder: string,
  say: (line: string) => void,
): Promise<StageResult> {
  const { houses, tablesPerHouse, roundMs, behavior, hasFaultyHouses = false } = stage;
  const load: Load = { houses, tablesPerHouse, roundMs, seed: SEED, hasFaultyHouses, ...(behavior && { behavior }) };
  const database = `scale_${stage.name.replaceAll(/\W/g, "_")}`;
  const databaseUrl = Object.assign(new URL(servers.databaseUrl), { pathname: database }).href;
  const admin = connect(servers.databaseUrl, { name: "scale", max: 1, use: "bulk" });
  const redis = new Redis(servers.redisUrl);
  const started: { stop(): Promise<void> }[] = [];
  const running = <One extends { stop(): Promise<void> }>(one: One): One => {
    started.push(one);
    return one;
  };
  try {
    await admin`drop database if exists ${admin(database)} with (force)`;
    await admin`create database ${admin(database)}`;
    await redis.flushall();
    await migrate(databaseUrl);
    const sql = connect(databaseUrl, { name: "scale", max: 2, use: "bulk" });
    running({ stop: () => sql.end({ timeout: 5 }) });
    const house = running(await startHelper<RequestLog>("house-process.ts", load));
    const url = `http://127.0.0.1:${String(house.first)}`;
    const file = join(folder, "houses.yaml");
    const entries = housesOf(stage, url);
    writeFileSync(file, JSON.stringify({ houses: entries.map(({ entry }) => entry) }));
    await applyHouses(sql, entries);
    const key = await makeCaller(sql);
    if (stage.history > 0) {
      say(`${stage.name}: storing ${stage.history.toLocaleString("en")} rounds of the past`);
      await fillHistory(sql, load, {
        history: stage.history,
        ...(stage.pastMs !== undefined && { lastsMs: stage.pastMs }),
      });
    }
    say(`${stage.name}: starting`);
    const env = {
      DATABASE_URL: databaseUrl,
      REDIS_URL: servers.redisUrl,
      HOUSES_FILE: file,
      ALLOW_PRIVATE_HOUSES: "1",
    };
    const api = running(await startRoundhouse("api", ["api"], { folder, env }));
    const workers: RoundhouseProcess[] = [];
    for (let n = 1; n <= stage.workers; n++) {
      workers.push(running(await startRoundhouse(`worker${n}`, ["worker"], { folder, env })));
    }
    await waitUntilPolled(sql, houses);
    if (stage.history > 0) {
      say(`${stage.name}: replaying the past once, as after an import`);
      await waitUntilReplayed(sql);
    }
    const watched = Math.min(houses, Math.max(1, Math.min(MAX_WATCHED, Math.ceil(200 / tablesPerHouse))));
    const names = Array.from({ length: watched }, (_, n) => houseName(Math.floor((n * houses) / watched)));
    const asking = `${api.url}/api/v1/rounds?limit=3&house=${names.join(",")}`;
    const caller = running(
      await startHelper<number[]>("lag-process.ts", { url: asking, key, load, lookMs: CHECK_EVERY_MS }),
    );
    const postgres = await postmasterOf(sql);
    const redisPid = Number(/process_id:(\d+)/.exec(await redis.info("server"))?.[1]);
    const look = async () => ({
      at: performance.now(),
      time: Date.now(),
      used: {
        worker: sum(workers.map(({ pid }) => usageOf(pid))),
        api: usageOf(api.pid),
        postgres: usageWithChildren(postgres),
        redis: usageOf(redisPid),
        house: usageOf(house.pid),
        caller: usageOf(caller.pid),
      },
      redis: Number(/total_commands_processed:(\d+)/.exec(await redis.info("stats"))?.[1]),
      ...(await readCounters(sql)),
    });
    say(`${stage.name}: warming up`);
    await delay(stage.warmUpSeconds * 1_000);
    say(`${stage.name}: measuring for ${stage.seconds} s`);
    await house.ask();
    await caller.ask();
    const before = await look();
    await delay(stage.seconds * 1_000);
    const after = await look();
    const [asked, lags] = [await house.ask(), await caller.ask()];
    const live = await countLive(api.url, key);
    const coverage = await findCoverage(sql, before.time, after.time);
    const lateness = latenessOf(asked, await listPollSchedules(sql), before.time, after.time);
    for (const part of [caller, api, ...workers]) await part.stop();
    const bare = await measureBare(stage, url, house);
    const tableMemory = await measureTableMemory(sql, databaseUrl);
    const seconds = (after.at - before.at) / 1_000;
    const each = (of: (who: (typeof MEASURED_PROCESSES)[number]) => number) =>
      Object.fromEntries(MEASURED_PROCESSES.map((who) => [who, of(who)])) as Record<
        (typeof MEASURED_PROCESSES)[number],
        number
      >;
    return {
      stage,
      seconds,
      rounds: after.rounds - before.rounds,
      forecasts: after.forecasts - before.forecasts,
      requests: asked.requests,
      unchangedShare: asked.unchanged / Math.max(1, asked.requests),
      lag: shares(lags),
      lateness: shares(lateness),
      live,
      coverage,
      cpu: each((who) => (after.used[who].cpuSeconds - before.used[who].cpuSeconds) / seconds),
      megabytes: each((who) => after.used[who].megabytes),
      redisCommands: (after.redis - before.redis) / seconds,
      transactions: (after.transactions - before.transactions) / seconds,
      walBytes: after.wal - before.wal,
      rows: after.rows - before.rows,
      keptBytes: after.kept - before.kept,
      answerBytes: after.answers - before.answers,
      bare,
      tableMemory,
    };
  } finally {
    for (const one of started.toReversed()) await one.stop();
    redis.disconnect();
    await admin`drop database if exists ${admin(database)} with (force)`;
    await admin.end({ timeout: 5 });
  }
}

function housesOf({ houses, tablesPerHouse, pollMs, hasFaultyHouses }: Stage, url: string) {
  const ordinary = Array.from({ length: houses }, () => ({ tables: tablesPerHouse, pollMs }));
  return [...ordinary, ...(hasFaultyHouses === true ? FAULTY_HOUSES : [])].map(
    ({ tables, pollMs: everyMs, ...one }, house) =>
      houseEntry({
        id: houseName(house),
        name: `House ${house}`,
        base_url: url,
        poll_every_ms: everyMs,
        tables: Array.from({ length: tables }, (__, n) =>
          tableEntry({ game: `g${n}`, market: "m", feed: feedOf(house, n, "kind" in one) }),
        ),
      }),
  );
}

/** An ordinary house lists all of its tables in one response. */
function feedOf(house: number, place: number, isOdd: boolean): Record<string, unknown> {
  if (isOdd) return feedEntry({ path: `/${houseName(house)}/${place}/rounds` });
  return feedEntry({ path: `/${houseName(house)}/rounds`, items: `g${place}` });
}

/** Creates a caller without an effective quota or rate limit. */
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
  await createAccount(sql, "scale@example.com");
  const made = await createKey(sql, { email: "scale@example.com", plan: "Max" });
  if (!made.ok) throw new Error(made.problem);
  return made.key;
}

/** Waits until every table was polled and has its first rounds. */
async function waitUntilPolled(sql: Sql, houses: number): Promise<void> {
  await waitUntilEmpty("were not polled", async () => {
    return sql`
      select
      from tables t
      join table_heads h on h.table_id = t.id
      join feeds f on f.table_id = t.id
      where substr(t.house_id, 2)::integer < ${houses}
        and (h.last_seq = 0 or f.last_asked_at is null)`;
  });
}

/** Waits until the first calibration has replayed each table's rounds; without a history that happens as they arrive. */
async function waitUntilReplayed(sql: Sql): Promise<void> {
  await waitUntilEmpty("were not replayed", async () => {
    return sql`
      select
      from table_heads h
      where h.last_seq >= 1000
        and not exists (select from calibrations c where c.table_id = h.table_id and c.live_state_hash is not null)`;
  });
}

async function waitUntilEmpty(what: string, list: () => Promise<{ length: number }>): Promise<void> {
  const timeoutMs = 1_800_000;
  const from = performance.now();
  for (;;) {
    const { length } = await list();
    if (length === 0) return;
    if (performance.now() - from > timeoutMs) throw new Error(`${length} tables ${what} within half an hour`);
    await delay(500);
  }
}

async function readCounters(sql: Sql) {
  const [row] = await sql<
    Record<"rounds" | "forecasts" | "transactions" | "wal" | "rows" | "kept" | "answers", number>[]
  >`
    select
      (select sum(last_seq)::float8 from table_heads) as rounds,
      (select sum(forecast_seq)::float8 from table_heads) as forecasts,
      (select (xact_commit + xact_rollback)::float8 from pg_stat_database where datname = current_database()) as transactions,
      (pg_current_wal_lsn() - '0/0')::float8 as wal,
      (select sum(n_tup_ins + n_tup_upd)::float8 from pg_stat_user_tables) as rows,
      sizes.kept,
      sizes.answers
    from (
      select
        coalesce(sum(pg_total_relation_size(oid)) filter (where relname !~ '^(payloads|polls|poll_failures)'), 0)::float8
          as kept,
        coalesce(sum(pg_total_relation_size(oid)) filter (where relname ~ '^(payloads|polls|poll_failures)'), 0)::float8
          as answers
      from pg_class
      where relkind = 'r'
        and relnamespace = 'public'::regnamespace
    ) sizes`;
  if (row === undefined) throw new Error("expected a row of counters, got none");
  return row;
}

async function countLive(url: string, key: string): Promise<number> {
  const response = await fetch(`${url}/api/v1/games`, { headers: { "x-api-key": key } });
  if (!response.ok) return 0; // the API is too stale to respond
  const { games } = (await response.json()) as { games: { status: string }[] };
  return games.filter(({ status }) => status === "live").length;
}

async function findCoverage(sql: Sql, fromMs: number, untilMs: number): Promise<number> {
  const [row] = await sql<{ coverage: number | null }[]>`
    select count(s.cutoff_seq)::float8 / nullif(count(*), 0) as coverage
    from rounds r
    left join forecast_sets s on s.table_id = r.table_id and s.cutoff_seq = r.seq
    where r.received_at >= ${new Date(fromMs)}
      and r.received_at < ${new Date(untilMs)}`;
  return row?.coverage ?? 0;
}

/** The lateness of each poll of each house: from its scheduled time to its request. */
function latenessOf(
  { arrivals }: RequestLog,
  schedules: Awaited<ReturnType<typeof listPollSchedules>>,
  fromMs: number,
  untilMs: number,
): number[] {
  const late: number[] = [];
  for (const { payload } of schedules) {
    const { everyMs, offsetMs } = payload.pace;
    const requests = arrivals[Number(payload.house.slice(1))];
    if (requests === undefined) continue; // a faulty house
    let at = 0;
    for (let due = Math.ceil((fromMs - offsetMs) / everyMs) * everyMs + offsetMs; due < untilMs; due += everyMs) {
      while (at < requests.length && (requests[at] ?? 0) < due) at += 1;
      const requested = requests[at];
      if (requested !== undefined) late.push(requested - due);
      else if (untilMs - due > everyMs) late.push(untilMs - due); // no request until the end
    }
  }
  return late;
}

/** Measures the memory and time that a worker needs to take over every table. */
async function measureTableMemory(sql: Sql, databaseUrl: string): Promise<TableMemory> {
  const tables = await sql<{ id: number }[]>`select table_id as id from table_heads where last_seq > 0 order by 1`;
  const tableIds = tables.map(({ id }) => id);
  const wanted: Wanted = { databaseUrl, tableIds, first: TAKE_OVER_TABLES };
  const holder = await startHelper("table-memory-process.ts", wanted, ["--expose-gc"]);
  await holder.stop();
  return holder.first as TableMemory;
}

/** Measures a bare loop that polls the same feeds at the same pace. */
async function measureBare(
  { houses, pollMs, seconds }: Stage,
  url: string,
  house: Helper<RequestLog>,
): Promise<StageResult["bare"]> {
  const bare = await startHelper<number>("bare-process.ts", { url, houses, pollMs });
  try {
    await delay(pollMs + 2_000);
    await bare.ask();
    const [before, from] = [usageOf(bare.pid), performance.now()];
    await delay(Math.min(seconds, BARE_SECONDS) * 1_000);
    const [after, until] = [usageOf(bare.pid), performance.now()];
    const requests = await bare.ask();
    await house.ask();
    return {
      cpu: (after.cpuSeconds - before.cpuSeconds) / ((until - from) / 1_000),
      requests: requests / ((until - from) / 1_000),
    };
  } finally {
    await bare.stop();
  }
}

async function postmasterOf(sql: Sql): Promise<number> {
  const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  return parentOf(row?.pid ?? 0);
}

function sum(usages: readonly Usage[]): Usage {
  return usages.reduce((all, one) => ({
    cpuSeconds: all.cpuSeconds + one.cpuSeconds,
    megabytes: all.megabytes + one.megabytes,
  }));
}

function shares(values: readonly number[]): { p50: number; p99: number; samples: number } {
  const at = (share: number) => (values.length === 0 ? Number.NaN : quantile([...values], share));
  return { p50: at(0.5), p99: at(0.99), samples: values.length };
}
