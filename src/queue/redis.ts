import { Redis, type Cluster } from "ioredis";
import { isConnectionError } from "../db/errors.ts";
import { reasonOf, UsageError } from "../errors.ts";
import { withoutPassword, type Log } from "../log.ts";
import { placeOfRedis } from "../redis-url.ts";
import { type ClusterPlace, connectCluster, makeCluster, type ServerOptions, type Tries } from "./cluster.ts";

const OLDEST_VERSION = [6, 2] as const;

/** A peer that is gone without a word is found out after this; blocking reads last 10 s at most. */
const SILENCE_MS = 30_000;
const REPEATS_QUIET_MS = 60_000;

const always = {
  lazyConnect: true,
  connectTimeout: 5_000,
  keepAlive: 10_000,
  socketTimeout: SILENCE_MS,
  retryStrategy: (times: number) => Math.min(times * 100, 2_000),
} satisfies ServerOptions;

/** One Redis, or all nodes of a Redis Cluster. */
export type RedisConnection = Redis | Cluster;

/**
 * The connection of those who hand out work. It fails fast: while Redis is away a nudge is refused at once, since a
 * caller must not hang on a message that may be lost anyway.
 * @throws UsageError where Redis cannot be reached.
 */
export async function connectProducer(url: string, log: Log): Promise<RedisConnection> {
  const failFast = { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 5_000 };
  return open(url, { ...always, ...failFast }, "few", logTrouble(log, "Redis, for handing out work"));
}

/**
 * The connection of those who do the work. It waits for Redis as long as it takes, so that a run that is done while
 * Redis restarts is still written down as done.
 * @throws UsageError where Redis cannot be reached.
 */
export async function connectConsumer(url: string, log: Log): Promise<RedisConnection> {
  const patient = { ...always, maxRetriesPerRequest: null };
  return open(url, patient, "endless", logTrouble(log, "Redis, for taking work"));
}

async function open(
  url: string,
  options: ServerOptions,
  tries: Tries,
  trouble: (error: unknown) => void,
): Promise<RedisConnection> {
  const place = placeOfRedis(url);
  if (place?.kind === "cluster") {
    const cluster = makeCluster(place, options, tries);
    await connectCluster(cluster).catch((error: unknown) => {
      throw unreachable(url, error);
    });
    cluster.on("error", trouble);
    cluster.on("node error", (error: unknown, node: string) => trouble(new Error(`${node}: ${reasonOf(error)}`)));
    return cluster;
  }
  const redis = new Redis(url, options);
  let first: unknown;
  const remember = (error: unknown) => (first ??= error);
  redis.on("error", remember);
  try {
    await redis.connect();
  } catch (error) {
    redis.disconnect();
    throw unreachable(url, first ?? error);
  }
  redis.on("error", trouble);
  redis.off("error", remember);
  return redis;
}

/**
 * Refuses a Redis that would lose work: one that cannot be reached, that is older than 6.2, or that evicts keys when
 * its memory is full. Gives its version.
 * @throws UsageError that says what to set.
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
    const problem = redisProblem(info, place?.kind);
    if (problem !== null) throw new UsageError(`Redis at ${withoutPassword(url)} is not usable: ${problem}`);
  }
  return {
    version: infos.map((info) => field(info, "redis_version") ?? "unknown")[0] ?? "unknown",
    nodes: infos.length,
  };
}

async function askServer(url: string, options: ServerOptions): Promise<string> {
  const redis = new Redis(url, options);
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

/** What every node says of itself that has slots; a replica that is away is the cluster's own business. */
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

/** What is wrong with a Redis, by its answer to INFO, and what to do; null where it will do as what it was given for. */
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

/** What ioredis says of a command that was refused, cut off, or not answered in time; such errors have no code. */
const NO_ANSWER =
  /^(?:Command timed out|Connection is closed\.|Stream isn't writeable|Reached the max retries|CLUSTERDOWN|Too many Cluster redirections|Cluster is |Cluster isn't ready|Failed to refresh slots cache|None of startup nodes)/;

/** True where Redis is away, went away, or was silent too long: what was asked of it may have been done or not. */
export function isRedisTrouble(error: unknown): boolean {
  return isConnectionError(error) || (error instanceof Error && NO_ANSWER.test(error.message));
}

/**
 * A listener for 'error' events of a queue or its worker. Trouble of the connection is left out: all of a process's
 * queues hear of it, and the connection they share tells it once.
 */
export function logQueueTrouble(log: Log, what: string): (error: unknown) => void {
  const tell = logTrouble(log, what);
  return (error) => {
    if (!isRedisTrouble(error)) tell(error);
  };
}

/**
 * A listener for 'error' events. The same trouble again within a minute is logged at debug level only: while a server
 * is away, every connection repeats itself each second.
 */
function logTrouble(log: Log, what: string): (error: unknown) => void {
  const loggedAt = new Map<string, number>();
  return (error) => {
    const reason = reasonOf(error);
    const now = performance.now();
    for (const [text, at] of loggedAt) if (now - at > REPEATS_QUIET_MS) loggedAt.delete(text);
    const level = loggedAt.has(reason) ? "debug" : "warn";
    if (level === "warn") loggedAt.set(reason, now);
    log[level](`${what}: ${reason}`);
  };
}
