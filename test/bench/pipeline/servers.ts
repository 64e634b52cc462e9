import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { connect, type Sql } from "../../../src/db/client.ts";
import { startPostgres } from "../../../src/embedded/postgres.ts";
import { startRedis } from "../../../src/embedded/redis.ts";

/** Resource usage of servers and processes so far; only the difference of two readings is meaningful. */
export interface Spent {
  /** Seconds of user and system time. */
  node: number;
  postgres: number;
  redis: number;
  statements: number;
  walBytes: number;
}

/** PostgreSQL and Redis of a bench, with the settings of `npm start`: a commit is durable before it is confirmed. */
export interface BenchServers {
  redisUrl: string;
  /** A new database on this PostgreSQL. */
  makeDatabase(name: string): Promise<string>;
  /** The usage since the servers started; `pids` are the Node processes. */
  spent(pids: readonly number[]): Promise<Spent>;
  stop(): Promise<void>;
}

/**
 * Marks statements of the bench itself, which are not counted. Their CPU time is, equally for every design.
 */
const NOT_COUNTED = "/* the bench looks */";

const TICKS_PER_SECOND = 100; // USER_HZ, which Linux has fixed for all programs

/** Starts both in a new folder below `directory`, PostgreSQL with its count of statements. */
export async function startBenchServers(directory: string, say: (line: string) => void): Promise<BenchServers> {
  const dataDir = await mkdtemp(path.join(directory, "servers-"));
  for (const folder of [directory, dataDir]) await chmod(folder, 0o711); // PostgreSQL may run as another user
  const first = await startPostgres({ dataDir, say, superuser: true });
  await once(first.url, (sql) => sql`alter system set shared_preload_libraries = 'pg_stat_statements'`);
  await first.stop();
  const postgres = await startPostgres({ dataDir, say, superuser: true });
  const redis = await startRedis({ dataDir, cacheDir: path.join(homedir(), ".cache", "roundhouse"), say });
  await once(postgres.url, (sql) => sql`create extension pg_stat_statements`);
  const sql = connect(postgres.url, { name: "bench", max: 1 });
  const client = new Redis(redis.url);
  const [backend] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
  const postmaster = await parentOf(backend?.pid ?? 0);

  return {
    redisUrl: redis.url,
    async makeDatabase(name) {
      await sql`create database ${sql(name)}`;
      return Object.assign(new URL(postgres.url), { pathname: `/${name}` }).href;
    },
    async spent(pids) {
      const [row] = await sql<{ statements: number; walBytes: number }[]>`
        select
          (
            select coalesce(sum(calls), 0)::float8
            from pg_stat_statements
            where query not like ${`%${NOT_COUNTED}%`}
          ) as statements,
          (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as "walBytes"`;
      const info = await client.info("cpu");
      const seconds = (name: string) => Number(new RegExp(`^${name}:([0-9.]+)`, "m").exec(info)?.[1] ?? 0);
      return {
        node: await cpuSeconds(pids),
        postgres: await cpuSecondsWithChildren(postmaster),
        redis: seconds("used_cpu_sys") + seconds("used_cpu_user"),
        statements: row?.statements ?? 0,
        walBytes: row?.walBytes ?? 0,
      };
    },
    async stop() {
      await sql.end({ timeout: 5 });
      client.disconnect();
      await Promise.all([postgres.stop(), redis.stop()]);
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** The usage between two readings. */
export function between(before: Spent, after: Spent): Spent {
  return {
    node: after.node - before.node,
    postgres: after.postgres - before.postgres,
    redis: after.redis - before.redis,
    statements: after.statements - before.statements,
    walBytes: after.walBytes - before.walBytes,
  };
}

async function once(url: string, work: (sql: Sql) => Promise<unknown>): Promise<void> {
  const sql = connect(url, { name: "bench", max: 1 });
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** User and system time of processes, with that of their exited children. */
async function cpuSeconds(pids: readonly number[]): Promise<number> {
  const times = await Promise.all(
    pids.map(async (pid) => {
      const fields = await statOf(pid);
      return fields === null ? 0 : fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    }),
  );
  return times.reduce((sum, ticks) => sum + ticks, 0) / TICKS_PER_SECOND;
}

async function cpuSecondsWithChildren(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return cpuSeconds([pid, ...children.trim().split(/\s+/).filter(Boolean).map(Number)]);
}

async function parentOf(pid: number): Promise<number> {
  return Number((await statOf(pid))?.[1]);
}

/** The fields of /proc/PID/stat after the name; null if the process has exited. */
async function statOf(pid: number): Promise<string[] | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  return stat === null ? null : stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}
