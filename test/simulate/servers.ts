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

/** PostgreSQL and Redis of a simulation, and everything that may happen to them. Processes reach both through proxies. */
export interface SimulatedServers {
  databaseUrl: string;
  redisUrl: string;
  /** Past the proxy; ends with each restart of PostgreSQL and comes back by itself. */
  sql: Sql;
  killRedis(): Promise<void>;
  flushRedis(): Promise<void>;
  /** As `pg_ctl restart -m immediate` does it: no checkpoint, so that it recovers from its log. */
  restartPostgres(): Promise<void>;
  /** Stops its processes for so long, without ending a connection. */
  freezePostgres(forMs: number): Promise<void>;
  freezeRedis(forMs: number): Promise<void>;
  /** Ends every connection to one of them, and lets none in for so long. */
  cut(which: "postgres" | "redis", forMs: number): Promise<void>;
  /**
   * Stops forwarding on the connections to one of them that are open now, while new ones work; no end learns of it.
   * Returns how many connections.
   */
  silence(which: "postgres" | "redis"): number;
  /** Does so with one connection of a process: the one that sent most. Returns how many: 0 or 1. */
  silenceOneOf(which: "postgres" | "redis", pid: number): number;
  /** Closes both ends of all silenced connections. */
  closeSilenced(): void;
  /** Ends the leader's lease without its knowledge: its next renewal is refused, and it has to acquire it again. */
  deposeLeader(): Promise<void>;
  /**
   * Leaves so many bytes on the disk of both for so long; `isLogToo` makes PostgreSQL begin a new file of its log there.
   * One that ended of it is started again once there is room, as a supervisor would.
   * @throws Error where they have no disk of their own
   */
  fillDisk(roomBytes: number, forMs: number, options: { isLogToo: boolean }): Promise<void>;
  /** Puts another database of the same server in the place of the one that `databaseUrl` names, which is dropped. */
  replaceDatabase(other: string): Promise<void>;
  /** Whether they have a disk of their own. */
  hasDisk: boolean;
  stop(): Promise<void>;
}

/** For logs and tables of an hour; memory is used for what is written alone. */
const DISK_BYTES = 8 * 1024 ** 3;
const UP_WITHIN_MS = 60_000;

/** Makes the folder `dataDir`, with a disk of its own where that can be done, and starts both there. */
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
        set holder = 'nobody',
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
      await answers(sql);
    },
    hasDisk: disk !== null,
    async fillDisk(roomBytes, forMs, { isLogToo }) {
      if (disk === null) throw new Error("PostgreSQL and Redis have no disk of their own");
      await disk.fill(roomBytes);
      // it may have ended of it already
      if (isLogToo) await sql`select pg_switch_wal()`.catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, forMs));
      await disk.free();
      if (await isOver(postgres)) {
        say("PostgreSQL ended of it, and is started again");
        postgres = await startPostgres({ dataDir, say, superuser: true });
      }
      if (await isOver(redis)) {
        say("Redis ended of it, and is started again");
        redis = await startRedis({ dataDir, cacheDir, say });
        pids.redis = await redisPid(redis.url);
      }
      await answers(sql);
      pids.postgres = await postmasterOf(sql);
    },
    async stop() {
      await sql.end({ timeout: 2 });
      await Promise.all([proxies.postgres.close(), proxies.redis.close()]);
      await Promise.all([postgres.stop(), redis.stop()]);
    },
  };
}

/** PostgreSQL that remembers when each transaction was committed; the setting is read at its start. */
async function startWithCommitTimes(dataDir: string, say: (line: string) => void): Promise<PrivateServer> {
  const first = await startPostgres({ dataDir, say, superuser: true });
  const sql = connect(first.url, { name: "simulate", max: 1 });
  await sql`alter system set track_commit_timestamp = on`;
  await sql.end();
  await first.stop();
  return startPostgres({ dataDir, say, superuser: true });
}

/** Waits until PostgreSQL answers, which may first have to recover. */
async function answers(sql: Sql): Promise<void> {
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

/** Whether a server has ended by itself; one that is about to is given the moment. */
async function isOver({ ended }: PrivateServer): Promise<boolean> {
  const lives = Symbol("lives");
  const wait = new Promise<symbol>((resolve) => setTimeout(() => resolve(lives), 1_000));
  return (await Promise.race([ended, wait])) !== lives;
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

/** The process that all of PostgreSQL's were started by. */
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
  const tell = (signal: NodeJS.Signals) => {
    for (const pid of pids) {
      try {
        process.kill(pid, signal);
      } catch {
        // one of its children has ended by itself meanwhile
      }
    }
  };
  tell("SIGSTOP");
  try {
    await new Promise((resolve) => setTimeout(resolve, forMs));
  } finally {
    tell("SIGCONT");
  }
}
