import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import pino from "pino";
import { jobs } from "../../../jobs/index.ts";
import pollHouse from "../../../jobs/poll-house.ts";
import { connect, type Sql } from "../../../src/db/client.ts";
import { migrate } from "../../../src/db/migrate.ts";
import { openQueues } from "../../../src/queue/queues.ts";
import { pathOf, serveLoopHouse, type LoopHouse } from "./house.ts";
import { ourResults, plainResults } from "./results.ts";
import type { BenchServers } from "./servers.ts";
import { BANDS, makePlainTables } from "./straightforward-pipeline.ts";

/** A design that polls its own house; all houses have the same tables and rounds. */
export interface Design {
  name: string;
  house: LoopHouse;
  /** By table, the first round after which no forecast was issued in time. */
  missed: Map<number, number>;
  /** Starts its process. */
  start(): Promise<{ pid: number; stop(): Promise<void> }>;
  /** Requests the poll of tables, by the queue message that its own schedule would send. */
  poll(tables: readonly number[]): Promise<void>;
  /** The id of the round of each table after which the newest forecast of the next color was issued. */
  forecast(): Promise<ReadonlyMap<number, number>>;
  /** Whether every played round is stored and every settled forecast scored. */
  isComplete(): Promise<boolean>;
  /** Rounds, forecasts and scores up to a round of each table, as lines in a fixed order. */
  results(upTo: readonly number[]): Promise<string[]>;
  /** Size of its database with indexes. */
  storedBytes(): Promise<number>;
  close(): Promise<void>;
}

/** Tables per house of Roundhouse, by default. */
export const TABLES_PER_HOUSE = 25;
const AN_HOUR_MS = 3_600_000;

/** The prefix of the names of the straightforward programs. */
export const PLAIN = "straightforward";

/** The name of the design that is the upper bound. */
export const BARE = "only the same rows";

const ROOT = path.resolve(import.meta.dirname, "../../..");

/** Roundhouse as in production: one `roundhouse worker`. */
export async function openOurs(
  servers: BenchServers,
  databaseUrl: string,
  tables: number,
  directory: string,
  tablesPerHouse = TABLES_PER_HOUSE,
): Promise<Design> {
  await migrate(databaseUrl);
  const house = await serveLoopHouse(tables);
  const folder = path.join(directory, "ours");
  mkdirSync(folder, { recursive: true });
  writeFileSync(path.join(folder, "houses.yaml"), JSON.stringify({ houses: entriesOf(house, tablesPerHouse) })); // YAML is JSON and more
  const sql = connect(databaseUrl, { name: "bench", max: 1 });
  const queues = await openQueues(jobs, servers.redisUrl, pino({ level: "silent" }));
  const log = path.join(folder, "worker.log");
  const { PATH = "", HOME = "" } = process.env;
  const env = {
    PATH,
    HOME,
    DATA_DIR: folder,
    PORT: "0",
    WORKER_PORT: "0",
    DATABASE_URL: databaseUrl,
    REDIS_URL: servers.redisUrl,
    HOUSES_FILE: path.join(folder, "houses.yaml"),
    ALLOW_PRIVATE_HOUSES: "1",
    NODE_COMPILE_CACHE: path.join(directory, "compiled"),
  };
  return {
    name: "ours",
    house,
    missed: new Map(),
    async poll(polled) {
      for (const id of new Set(polled.map((table) => houseOf(table, tablesPerHouse))))
        await queues.enqueue(pollHouse, { house: id, shard: 0 });
    },
    async start() {
      const logged = openSync(log, "a");
      const child = spawn(process.execPath, [path.join(ROOT, "src/start.js"), "worker", "--json"], {
        cwd: folder,
        env,
        stdio: ["ignore", "pipe", logged],
      });
      closeSync(logged);
      process.once("exit", () => child.kill("SIGKILL")); // also if the bench is interrupted
      const ended = once(child, "exit").then(([code]) => String(code));
      const ready = once(child.stdout ?? child, "data").then(() => null);
      const code = await Promise.race([ready, ended]);
      if (code !== null)
        throw new Error(`the worker ended with ${code} before it was ready:\n${readFileSync(log, "utf8")}`);
      return {
        pid: child.pid ?? 0,
        async stop() {
          child.kill("SIGTERM");
          await ended;
        },
      };
    },
    async forecast() {
      const rows = await sql<NewestForecast[]>`
        select /* the bench looks */ substr(t.game, 2)::integer as "table", h.set_seq::integer as after
        from table_heads h
        join tables t on t.id = h.table_id
        where h.set_seq is not null`;
      return new Map(rows.map(({ table, after }) => [table, after]));
    },
    async isComplete() {
      const rows = await sql<NewestRound[]>`
        select /* the bench looks */
          substr(t.game, 2)::integer as "table",
          h.last_seq::integer as newest,
          exists (
            select
            from open_forecasts o
            where o.table_id = t.id
              and o.cutoff_ordinal + o.horizon <= h.last_ordinal
          ) as waits
        from table_heads h
        join tables t on t.id = h.table_id`;
      return isAllOf(house, rows);
    },
    results: (upTo) => ourResults(sql, upTo),
    storedBytes: () => databaseBytes(sql),
    async close() {
      await Promise.all([house.close(), sql.end({ timeout: 5 }), queues.close()]);
    },
  };
}

/** The baseline; `commit` is whether each statement is a transaction, or all statements of a round. */
export async function openPlain(
  servers: BenchServers,
  databaseUrl: string,
  tables: number,
  commit: "statement" | "round",
): Promise<Design> {
  return openSimple(servers, databaseUrl, tables, {
    name: `${PLAIN}, a commit per ${commit}`,
    file: "straightforward-pipeline-process.ts",
    given: [commit],
    queue: "plain-poll",
    messages: (polled) => polled.map((table) => ({ table })),
  });
}

/** Only the rows of the baseline, with as little work as we found: no payloads, no checks. */
export async function openBare(servers: BenchServers, databaseUrl: string, tables: number): Promise<Design> {
  return openSimple(servers, databaseUrl, tables, {
    name: BARE,
    file: "bare-pipeline-process.ts",
    given: [],
    queue: "bare-poll",
    // two, so that one is polled while the other is stored
    messages: (polled) =>
      [0, 1]
        .map((half) => ({ tables: polled.filter((_, at) => at % 2 === half) }))
        .filter(({ tables: own }) => own.length > 0),
  });
}

async function openSimple(
  servers: BenchServers,
  databaseUrl: string,
  tables: number,
  design: {
    name: string;
    file: string;
    given: readonly string[];
    queue: string;
    messages: (polled: readonly number[]) => object[];
  },
): Promise<Design> {
  const sql = connect(databaseUrl, { name: "bench", max: 1 });
  await makePlainTables(sql);
  const connection = new Redis(servers.redisUrl);
  const polls = new Queue(design.queue, { connection });
  const house = await serveLoopHouse(tables);
  return {
    name: design.name,
    house,
    missed: new Map(),
    async poll(polled) {
      const opts = { removeOnComplete: true };
      await polls.addBulk(design.messages(polled).map((data) => ({ name: "poll", data, opts })));
    },
    async start() {
      const file = new URL(design.file, import.meta.url);
      const child = fork(file, [databaseUrl, servers.redisUrl, house.url, ...design.given], { stdio: "inherit" });
      await once(child, "message");
      return {
        pid: child.pid ?? 0,
        async stop() {
          const ended = once(child, "exit");
          child.disconnect();
          await ended;
        },
      };
    },
    async forecast() {
      const rows = await sql<NewestForecast[]>`
        select /* the bench looks */ table_id as "table", cutoff_seq::integer as after
        from published`;
      return new Map(rows.map(({ table, after }) => [table, after]));
    },
    async isComplete() {
      const rows = await sql<NewestRound[]>`
        select /* the bench looks */
          s.table_id as "table",
          s.learned_seq::integer as newest,
          exists (
            select
            from forecasts f
            where f.table_id = s.table_id
              and f.scored_at is null
              and f.cutoff_seq + f.horizon <= s.learned_seq
          ) as waits
        from model_states s`;
      return isAllOf(house, rows);
    },
    results: (upTo) => plainResults(sql, upTo),
    storedBytes: () => databaseBytes(sql),
    async close() {
      await Promise.all([house.close(), sql.end({ timeout: 5 }), polls.close()]);
      connection.disconnect();
    },
  };
}

function houseOf(table: number, tablesPerHouse: number): string {
  return `loop${Math.floor(table / tablesPerHouse)}`;
}

function entriesOf({ url, tables }: LoopHouse, tablesPerHouse: number) {
  const byHouse = Map.groupBy(Array.from({ length: tables }).keys(), (table) => houseOf(table, tablesPerHouse));
  return [...byHouse].map(([id, own]) => ({
    id,
    name: id,
    base_url: url,
    private: true,
    poll_every_ms: AN_HOUR_MS, // the bench requests polls
    timeout_ms: 5000,
    tables: own.map((table) => ({
      game: `g${table}`,
      market: "global",
      // the house waits for the forecast of each round before it plays it
      pause_ms: 60_000,
      feed: { path: pathOf(table), items: "rounds", round_id: "id", multiplier: "multiplier" },
      round_ids: "consecutive",
      colors: BANDS.map(({ name, below }) => (below === null ? { name } : { name, below: below / 100 })),
    })),
  }));
}

/** The seq of a round equals its id, since all are on time. */
type NewestForecast = { table: number; after: number };
type NewestRound = { table: number; newest: number; waits: boolean };

function isAllOf({ tables, newest }: LoopHouse, rows: readonly NewestRound[]): boolean {
  return rows.length === tables && rows.every((row) => row.newest === newest(row.table) && !row.waits);
}

async function databaseBytes(sql: Sql): Promise<number> {
  const [row] = await sql<{ bytes: number }[]>`
    select /* the bench looks */ pg_database_size(current_database())::float8 as bytes`;
  return row?.bytes ?? 0;
}
