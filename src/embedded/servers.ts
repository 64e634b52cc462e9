import { mkdir, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { reasonOf } from "../errors.ts";
import { startPostgres } from "./postgres.ts";
import type { PrivateServer } from "./private-server.ts";
import { startRedis } from "./redis.ts";

/** The servers of one instance. `embedded` tells which are ours; those that were given are no one's to stop. */
export interface Servers {
  databaseUrl: string;
  redisUrl: string;
  embedded: { postgres: boolean; redis: boolean };
  /**
   * Tells of one of ours that ended without being asked, with the end of its log; also of one that did so before the
   * call.
   */
  onDeath(listener: (what: "postgres" | "redis", detail: string) => void): void;
  stop(): Promise<void>;
}

/**
 * PostgreSQL and Redis: the given ones as they are, a private one of `dataDir` for each that is missing. Both start
 * at once; if one cannot, the other is stopped and the error says what to do. The caller holds the claim on `dataDir`
 * and calls `stop` in the end; should it die before, the servers die with it. `cacheDir` keeps a fetched Redis for
 * all data folders of this user.
 */
export async function startServers(options: {
  dataDir: string;
  databaseUrl?: string | undefined;
  redisUrl?: string | undefined;
  cacheDir?: string | undefined;
  /** False is for tests: faster, and a power cut may ruin the database. */
  durable?: boolean | undefined;
  /** For tests: the login of a private PostgreSQL may do everything. */
  superuser?: boolean | undefined;
  say: (line: string) => void;
}): Promise<Servers> {
  const { databaseUrl, redisUrl, say, durable = true, superuser = false } = options;
  const { cacheDir = join(homedir(), ".cache", "roundhouse") } = options;
  const given = databaseUrl !== undefined && redisUrl !== undefined;
  if (!given) await mkdir(options.dataDir, { recursive: true, mode: 0o711 });
  const dataDir = given ? options.dataDir : await realpath(options.dataDir);
  const starts = await Promise.allSettled([
    databaseUrl === undefined ? startPostgres({ dataDir, say, durable, superuser }) : null,
    redisUrl === undefined ? startRedis({ dataDir, cacheDir, say }) : null,
  ]);
  const failures = starts.flatMap((start) => (start.status === "rejected" ? [start.reason as unknown] : []));
  if (failures.length > 0) {
    for (const start of starts) if (start.status === "fulfilled") await start.value?.stop();
    throw failures.length === 1
      ? failures[0]
      : new AggregateError(failures, failures.map((failure) => reasonOf(failure)).join("\n"));
  }
  const [postgres, redis] = starts.map((start) => (start.status === "fulfilled" ? start.value : null));
  return {
    databaseUrl: databaseUrl ?? urlOf(postgres),
    redisUrl: redisUrl ?? urlOf(redis),
    embedded: { postgres: databaseUrl === undefined, redis: redisUrl === undefined },
    onDeath: (listener) => {
      void postgres?.ended.then((detail) => listener("postgres", detail));
      void redis?.ended.then((detail) => listener("redis", detail));
    },
    stop: async () => {
      await Promise.all([postgres?.stop(), redis?.stop()]);
    },
  };
}

function urlOf(server: PrivateServer | null | undefined): string {
  if (!server) throw new Error("a server that was not given must have been started");
  return server.url;
}
