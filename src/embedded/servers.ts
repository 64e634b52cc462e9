import { realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { createFolder } from "../create-folder.ts";
import { reasonOf } from "../errors.ts";
import { startPostgres } from "./postgres.ts";
import type { PrivateServer } from "./private-server.ts";
import { startRedis } from "./redis.ts";

/** The servers of one instance. `embedded` marks those that were started here; the others are not stopped. */
export interface Servers {
  databaseUrl: string;
  redisUrl: string;
  embedded: { postgres: boolean; redis: boolean };
  /**
   * Calls the listener for a private server that ended without `stop`, with the end of its log; also for one that ended
   * before this call.
   */
  onDeath(listener: (what: "postgres" | "redis", detail: string) => void): void;
  stop(): Promise<void>;
}

/**
 * Provides PostgreSQL and Redis: those that are given, and a private one in `dataDir` for each that is missing. Both start
 * together; if one cannot, the other is stopped and the error has the remedy. The caller holds the claim on `dataDir` and
 * calls `stop` at the end; if it dies before, the servers die with it. `cacheDir` keeps a downloaded Redis for all data
 * folders of this user.
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
  if (!given) await createFolder(options.dataDir, 0o711);
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
