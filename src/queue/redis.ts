import { Cluster, type Redis, type RedisOptions } from "ioredis";
import { isConnectionError } from "../db/errors.ts";
import { reasonOf, UsageError } from "../errors.ts";
import { createRepeatLevel, withoutPassword, type Log } from "../log.ts";
import { makeServerClient } from "../redis-client.ts";
import { placeOfRedis } from "../redis-url.ts";
import { type ClusterPlace, connectCluster, makeCluster, type ServerOptions, type Tries } from "./cluster.ts";

const OLDEST_VERSION = [6, 2] as const;

/*
 * A connection on which a command waits this long for any data is replaced, since a silent peer does not close it. Pending
 * commands are sent again on the new one.
 *
 * - Adding work: shorter than the timeout of a command, so that it can still succeed.
 * - Taking work: polling must resume within 20 s. Longer than the 6 s that a busy Redis was seen to pause, since a fetch
 *   that is sent twice delays its run by 10 s; shorter than the lock of a run (10 s), so that a short run can still report.
 * - Blocking reads: BullMQ blocks for at most 10 s and has a watchdog of 11 s; this is for when the watchdog fails.
 */
const SILENCE_MS = { producer: 4_000, consumer: 7_000, blocking: 12_000 } as const;
const COMMAND_MS = 5_000;

const always = {
  lazyConnect: true,
  connectTimeout: 5_000,
  keepAlive: 10_000,
  retryStrategy: (times: number) => Math.min(times * 100, 2_000),
} satisfies ServerOptions;

/** One Redis, or all nodes of a Redis Cluster. */
export type RedisConnection = Redis | Cluster;

/**
 * Connects a process that adds work. Commands fail fast: immediately while Redis is unavailable, and after 5 s without a
 * response, because a caller must not wait for a run that a sweep would add anyway.
 * @throws UsageError if Redis cannot be reached.
 */
export async function connectProducer(url: string, log: Log): Promise<RedisConnection> {
  const failFast = { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: COMMAND_MS };
  const client = makeClient(url, { ...always, ...failFast, socketTimeout: SILENCE_MS.producer }, "few");
  return open(url, client, logErrors(log, "Redis, for adding work"));
}

/**
 * Connects a process that takes work. Commands wait for Redis without limit, so that a run that ends while Redis restarts
 * is still reported; each silent connection is replaced. BullMQ duplicates the client for its blocking reads, and these
 * connections have a longer limit.
 * @throws UsageError if Redis cannot be reached.
 */
export async function connectConsumer(url: string, log: Log): Promise<RedisConnection> {
  const patient = { ...always, maxRetriesPerRequest: null, socketTimeout: SILENCE_MS.consumer };
  const client = makeClient(url, patient, "endless");
  duplicateForReads(client);
  return open(url, client, logErrors(log, "Redis, for taking work"));
}

function makeClient(url: string, options: ServerOptions, tries: Tries): RedisConnection {
  const place = placeOfRedis(url);
  return place?.kind === "cluster" ? makeCluster(place, options, tries) : makeServerClient(url, options);
}

/** Gives duplicates of a client the limit for blocking reads. */
function duplicateForReads(client: RedisConnection): void {
  const longer = { socketTimeout: SILENCE_MS.blocking };
  if (client instanceof Cluster) {
    const duplicate: Cluster["duplicate"] = client.duplicate.bind(client);
    client.duplicate = (nodes, options) =>
      duplicate(nodes, { ...options, redisOptions: { ...options?.redisOptions, ...longer } });
    return;
  }
  const duplicate: Redis["duplicate"] = client.duplicate.bind(client);
  client.duplicate = (override?: Partial<RedisOptions>) => duplicate({ ...override, ...longer });
}

async function open(url: string, client: RedisConnection, report: (error: unknown) => void): Promise<RedisConnection> {
  if (client instanceof Cluster) {
    await connectCluster(client).catch((error: unknown) => {
      throw unreachable(url, error);
    });
    client.on("error", report);
    client.on("node error", (error: unknown, node: string) => report(new Error(`${node}: ${reasonOf(error)}`)));
    return client;
  }
  let first: unknown;
  const remember = (error: unknown) => (first ??= error);
  client.on("error", remember);
  try {
    await client.connect();
  } catch (error) {
    client.disconnect();
    throw unreachable(url, first ?? error);
  }
  client.on("error", report);
  client.off("error", remember);
  return client;
}

/**
 * Refuses a Redis that would lose work: one that cannot be reached, that is older than 6.2, or that evicts keys when
 * its memory is full. Returns its version.
 * @throws UsageError that names the setting to change.
 */
export async function checkRedis(url: string): Promise<{ version: string; nodes: number }> {
  const options = {
    lazyConnect: true,
    connectTimeout: 5_000,
    commandTimeout: 5_000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  };
  const place = placeOfRedis(url);
  const infos = place?.kind === "cluster" ? await askCluster(url, place, options) : [await askServer(url, options)];
  for (const info of infos) {
    const problem = redisProblem(info, place?.kind === "cluster" ? "cluster" : "server");
    if (problem !== null) throw new UsageError(`Redis at ${withoutPassword(url)} is not usable: ${problem}`);
  }
  return {
    version: infos.map((info) => field(info, "redis_version") ?? "unknown")[0] ?? "unknown",
    nodes: infos.length,
  };
}

async function askServer(url: string, options: ServerOptions): Promise<string> {
  const redis = makeServerClient(url, options);
  let first: unknown;
  redis.on("error", (error: unknown) => (first ??= error));
  try {
    await redis.connect();
    return await redis.info();
  } catch (error) {
    throw unreachable(url, first ?? error);
  } finally {
    redis.disconnect();
  }
}

/** Reads INFO of every node with slots, and of those replicas that respond. */
async function askCluster(url: string, place: ClusterPlace, options: ServerOptions): Promise<string[]> {
  const cluster = makeCluster(place, options, "few");
  try {
    await connectCluster(cluster);
    const replicas = Promise.allSettled(cluster.nodes("slave").map((node) => node.info()));
    const masters = await Promise.all(
      cluster.nodes("master").map((node) =>
        node.info().catch((error: unknown) => {
          throw new Error(`its node ${node.options.host}:${node.options.port} does not answer`, { cause: error });
        }),
      ),
    );
    return [...masters, ...(await replicas).flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))];
  } catch (error) {
    throw unreachable(url, error);
  } finally {
    cluster.disconnect();
  }
}

/** The problem of a Redis, from its INFO, with its remedy; null if it is usable as a server or cluster, as it was given. */
export function redisProblem(info: string, givenAs: "server" | "cluster" = "server"): string | null {
  const version = field(info, "redis_version") ?? "";
  const [major = NaN, minor = NaN] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_VERSION;
  if (!(major > oldestMajor || (major === oldestMajor && minor >= oldestMinor))) {
    return `it is version ${version || "unknown"}, and ${OLDEST_VERSION.join(".")} or newer is needed`;
  }
  if (givenAs === "server" && field(info, "cluster_enabled") === "1") {
    return "it is a node of a Redis Cluster; let REDIS_URL begin with redis+cluster:// (rediss+cluster:// for TLS) and name some nodes, with commas between";
  }
  const policy = field(info, "maxmemory_policy");
  if (policy !== null && policy !== "noeviction") {
    return `its maxmemory-policy is ${policy}, so it would drop queued work when memory is full; set it with \`redis-cli config set maxmemory-policy noeviction\` and in redis.conf`;
  }
  return null;
}

function field(info: string, name: string): string | null {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? null;
}

function unreachable(url: string, error: unknown): UsageError {
  const where = withoutPassword(url);
  return new UsageError(
    `Redis at ${where} cannot be reached: ${reasonOf(error)}; start it, or set REDIS_URL to one that runs`,
  );
}

/** Messages of ioredis for a command that was refused, interrupted or timed out; these errors have no code. */
const UNAVAILABLE =
  /^(?:Command timed out|Connection is closed\.|Stream isn't writeable|Reached the max retries|CLUSTERDOWN|Too many Cluster redirections|Cluster is |Cluster isn't ready|Failed to refresh slots cache|None of startup nodes)/;

/** Whether Redis was unavailable, was lost or was silent for too long: the command may have been carried out or not. */
export function isRedisUnavailable(error: unknown): boolean {
  return isConnectionError(error) || (error instanceof Error && UNAVAILABLE.test(error.message));
}

/**
 * A listener for 'error' events of a queue or its worker. Errors of the connection are left out: all queues of a process
 * get them, and their shared connection logs them once.
 */
export function logQueueErrors(log: Log, what: string): (error: unknown) => void {
  const report = logErrors(log, what);
  return (error) => {
    if (!isRedisUnavailable(error)) report(error);
  };
}

/**
 * A listener for 'error' events. The same error within a minute is logged at debug level: while a server is unavailable,
 * every connection repeats it each second.
 */
function logErrors(log: Log, what: string): (error: unknown) => void {
  const levelOf = createRepeatLevel();
  return (error) => {
    const reason = reasonOf(error);
    log[levelOf(reason)](`${what}: ${reason}`);
  };
}
