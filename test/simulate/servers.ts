import { readFile } from "node:fs/promises";
import { Redis } from "ioredis";
import { connect, type Sql } from "../../src/db/client.ts";
import { startPostgres } from "../../src/embedded/postgres.ts";
import type { PrivateServer } from "../../src/embedded/private-server.ts";
import { startRedis } from "../../src/embedded/redis.ts";
import { RECONCILER } from "../../src/queue/store.ts";
import { clientPortsOf } from "./client-ports.ts";
import { makeDisk } from "./disks.ts";
import { openProxy } from "../support/proxy.ts";

/** PostgreSQL and Redis of a simulation, and their faults. Processes connect to both through proxies. */
export interface SimulatedServers {
  databaseUrl: string;
  redisUrl: string;
  /** Does not use the faulty proxy port; reconnects by itself after a restart of PostgreSQL. */
  sql: Sql;
  killRedis(): Promise<void>;
  flushRedis(): Promise<void>;
  /** Like `pg_ctl restart -m immediate`: without a checkpoint, so that it recovers from its WAL. */
  restartPostgres(): Promise<void>;
  /** Stops its processes (SIGSTOP) without closing a connection. */
  freezePostgres(forMs: number): Promise<void>;
  freezeRedis(forMs: number): Promise<void>;
  /** Closes every connection to one of them, and refuses new ones for `forMs`. */
  cut(which: "postgres" | "redis", forMs: number): Promise<void>;
  /**
   * Stops forwarding on all open connections to one of them without closing them; new ones work. Returns their number.
   */
  silence(which: "postgres" | "redis"): number;
  /** The same for one connection of a process, the one that sent most. Returns their number: 0 or 1. */
  silenceOneOf(which: "postgres" | "redis", pid: number): number;
  /** Closes both ends of all silenced connections. */
  closeSilenced(): void;
  /** Ends the leader's lease without notice: its next renewal is refused, and it has to acquire it again. */
  deposeLeader(): Promise<void>;
  /**
   * Leaves `roomBytes` free on the disk of both for `forMs`; `isLogToo` makes PostgreSQL switch to a new WAL file. A server
   * that exits is restarted afterwards, as by a supervisor.
   * @throws Error if nothing can be mounted
   */
  fillDisk(roomBytes: number, forMs: number, options: { isLogToo: boolean }): Promise<void>;
  /** Drops the database of `databaseUrl` and renames another one of the same server to its name. */
  replaceDatabase(other: string): Promise<void>;
  /** Whether `fillDisk` works on this machine. */
  hasDisk: boolean;
  stop(): Promise<void>;
}

/** Enough for the tables and WAL of an hour; tmpfs uses memory only for written data. */
const DISK_BYTES = 8 * 1024 ** 3;
const UP_WITHIN_MS = 60_000;

/** Creates `dataDir`, as a disk if one can be mounted, and starts both servers there. */
export async function startSimulatedServers(
  dataDir: string,
  cacheDir: string,
  say: (line: string) => void,
): Promise<SimulatedServers> {
  const disk = await makeDisk(dataDir, DISK_BYTES);
  let postgres = await startWithCommitTimes(dataDir, say);
  let redis = await startRedis({ dataDir, cacheDir, say });
  const proxies = { postgres: await openProxy(() => portOf(postgres)), redis: await openProxy(() => portOf(redis)) };
  const through = (url: string, port: number) => Object.assign(new URL(url), { port: String(port) }).href;
  const sql = connect(through(postgres.url, proxies.postgres.plainPort), { name: "simulate", max: 4 });
  const pids = { postgres: await postmasterOf(sql), redis: await redisPid(redis.url) };

  return {
    databaseUrl: through(postgres.url, proxies.postgres.port),
    redisUrl: through(redis.url, proxies.redis.port),
    sql,
    async killRedis() {
      process.kill(pids.redis, "SIGKILL");
      await redis.ended;
      redis = await startRedis({ dataDir, cacheDir, say });
      pids.redis = await redisPid(redis.url);
    },
    flushRedis: () => withRedis(redis.url, (client) => client.flushall()),
    async restartPostgres() {
      process.kill(pids.postgres, "SIGQUIT");
      await postgres.ended;
      postgres = await startPostgres({ dataDir, say, superuser: true });
      pids.postgres = await postmasterOf(sql);
    },
    freezePostgres: async (forMs) => freeze(await withChildren(pids.postgres), forMs),
    freezeRedis: (forMs) => freeze([pids.redis], forMs),
    cut: (which, forMs) => proxies[which].cut(forMs),
    silence: (which) => proxies[which].silence(),
    silenceOneOf: (which, pid) => proxies[which].silenceBusiest(clientPortsOf(pid)),
    closeSilenced() {
      for (const proxy of Object.values(proxies)) proxy.closeSilenced();
    },
    async deposeLeader() {
      await sql`
        update leases
        set holder = 'deposed',
            epoch = epoch + 1,
            expires_at = clock_timestamp()
        where name = ${RECONCILER}`;
    },
    async replaceDatabase(other) {
      const name = new URL(postgres.url).pathname.slice(1);
      const admin = connect(Object.assign(new URL(postgres.url), { pathname: "/postgres" }).href, {
        name: "simulate",
        max: 1,
      });
      try {
        await admin`
          select pg_terminate_backend(pid)
          from pg_stat_activity
          where datname in (${name}, ${other})`;
        await admin`drop database ${admin(name)} with (force)`;
        await admin`alter database ${admin(other)} rename to ${admin(name)}`;
      } finally {
        await admin.end();
      }
      await waitForPostgres(sql);
    },
    hasDisk: disk !== null,
    async fillDisk(roomBytes, forMs, { isLogToo }) {
      if (disk === null) throw new Error("expected a mounted disk of PostgreSQL and Redis, found none");
      await disk.fill(roomBytes);
      // PostgreSQL may have exited already
      if (isLogToo) await sql`select pg_switch_wal()`.catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, forMs));
      await disk.free();
      if (await hasExited(postgres)) {
        say("PostgreSQL exited and is restarted");
        postgres = await startPostgres({ dataDir, say, superuser: true });
      }
      if (await hasExited(redis)) {
        say("Redis exited and is restarted");
        redis = await startRedis({ dataDir, cacheDir, say });
        pids.redis = await redisPid(redis.url);
      }
      await waitForPostgres(sql);
      pids.postgres = await postmasterOf(sql);
    },
    async stop() {
      await sql.end({ timeout: 2 });
      await Promise.all([proxies.postgres.close(), proxies.redis.close()]);
      await Promise.all([postgres.stop(), redis.stop()]);
    },
  };
}

/** PostgreSQL with commit timestamps; the setting needs a restart. */
async function startWithCommitTimes(dataDir: string, say: (line: string) => void): Promise<PrivateServer> {
  const first = await startPostgres({ dataDir, say, superuser: true });
  const sql = connect(first.url, { name: "simulate", max: 1 });
  await sql`alter system set track_commit_timestamp = on`;
  await sql.end();
  await first.stop();
  return startPostgres({ dataDir, say, superuser: true });
}

/** Waits until PostgreSQL responds; it may have to recover first. */
async function waitForPostgres(sql: Sql): Promise<void> {
  const deadline = performance.now() + UP_WITHIN_MS;
  for (;;) {
    try {
      await sql`select 1`;
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

/** Whether a server has exited, or does so within a second. */
async function hasExited({ ended }: PrivateServer): Promise<boolean> {
  const running = Symbol("running");
  const wait = new Promise<symbol>((resolve) => setTimeout(() => resolve(running), 1_000));
  return (await Promise.race([ended, wait])) !== running;
}

function portOf({ url }: PrivateServer): number {
  return Number(new URL(url).port);
}

async function withRedis(url: string, work: (client: Redis) => Promise<unknown>): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 1, retryStrategy: () => null });
  client.on("error", () => undefined);
  await client.connect();
  try {
    await work(client);
  } finally {
    client.disconnect();
  }
}

async function redisPid(url: string): Promise<number> {
  let pid = 0;
  await withRedis(url, async (client) => (pid = Number(/process_id:(\d+)/.exec(await client.info("server"))?.[1])));
  return pid;
}

/** The process id of the postmaster: the parent of every backend. */
async function postmasterOf(sql: Sql): Promise<number> {
  for (let attempt = 0; ; attempt++) {
    try {
      const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
      const stat = await readFile(`/proc/${row?.pid ?? 0}/stat`, "utf8");
      return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    } catch (error) {
      if (attempt > 20) throw error;
    }
  }
}

async function withChildren(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  return [pid, ...children.trim().split(/\s+/).filter(Boolean).map(Number)];
}

async function freeze(pids: readonly number[], forMs: number): Promise<void> {
  const signalAll = (signal: NodeJS.Signals) => {
    for (const pid of pids) {
      try {
        process.kill(pid, signal);
      } catch {
        // a child may have exited by itself
      }
    }
  };
  signalAll("SIGSTOP");
  try {
    await new Promise((resolve) => setTimeout(resolve, forMs));
  } finally {
    signalAll("SIGCONT");
  }
}
