import { Cluster, type Redis, type RedisOptions } from "ioredis";
import { isConnectionError } from "../db/errors.ts";
import { reasonOf, UsageError } from "../errors.ts";
import { withoutPassword, type Log } from "../log.ts";
import { makeServerClient } from "../redis-client.ts";
import { placeOfRedis } from "../redis-url.ts";
import { type ClusterPlace, connectCluster, makeCluster, type ServerOptions, type Tries } from "./cluster.ts";

const OLDEST_VERSION = [6, 2] as const;

/*
 * A connection on which a command waits this long for any data is destroyed and made again, since a peer that went silent
 * closes nothing. What waits is sent again on the new one.
 *
 * - Handing out work: before a command is given up, so that it still has its answer in time.
 * - Taking work: polling must be back within 20 s. Longer than the 6 s that a busy Redis was seen to pause, since a fetch
 *   that is sent twice costs its run 10 s; shorter than a run's lock of 10 s, so that the end of a short run is still noted.
 * - Waiting for work: BullMQ's read blocks for 10 s at most, and this holds after its own watchdog of 11 s, if that fails.
 */
const SILENCE_MS = { producer: 4_000, consumer: 7_000, blocking: 12_000 } as const;
const COMMAND_MS = 5_000;
const REPEATS_QUIET_MS = 60_000;

const always = {
  lazyConnect: true,
  connectTimeout: 5_000,
  keepAlive: 10_000,
  retryStrategy: (times: number) => Math.min(times * 100, 2_000),
} satisfies ServerOptions;

/** One Redis, or all nodes of a Redis Cluster. */
export type RedisConnection = Redis | Cluster;

/**
 * Connects a process that hands out work. Commands fail fast: while Redis is away they are refused immediately, and after
 * 5 s without a response, because a caller must not wait for a nudge that may be lost anyway.
 * @throws UsageError if Redis cannot be reached.
 */
export async function connectProducer(url: string, log: Log): Promise<RedisConnection> {
  const failFast = { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: COMMAND_MS };
  const client = makeClient(url, { ...always, ...failFast, socketTimeout: SILENCE_MS.producer }, "few");
  return open(url, client, logTrouble(log, "Redis, for handing out work"));
}

/**
 * Connects a process that does the work. Commands wait for Redis as long as it takes, so that a run that is done while Redis
 * restarts is still noted as done; each connection that goes silent is replaced. BullMQ duplicates the client for its
 * blocking reads, and these connections have longer.
 * @throws UsageError if Redis cannot be reached.
 */
export async function connectConsumer(url: string, log: Log): Promise<RedisConnection> {
  const patient = { ...always, maxRetriesPerRequest: null, socketTimeout: SILENCE_MS.consumer };
  const client = makeClient(url, patient, "endless");
  duplicateForReads(client);
  return open(url, client, logTrouble(log, "Redis, for taking work"));
}

function makeClient(url: string, options: ServerOptions, tries: Tries): RedisConnection {
  const place = placeOfRedis(url);
  return place?.kind === "cluster" ? makeCluster(place, options, tries) : makeServerClient(url, options);
}

/** Makes duplicates of a client bear a read that blocks. */
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

async function open(url: string, client: RedisConnection, trouble: (error: unknown) => void): Promise<RedisConnection> {
  if (client instanceof Cluster) {
    await connectCluster(client).catch((error: unknown) => {
      throw unreachable(url, error);
    });
    client.on("error", trouble);
    client.on("node error", (error: unknown, node: string) => trouble(new Error(`${node}: ${reasonOf(error)}`)));
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
  client.on("error", trouble);
  client.off("error", remember);
  return client;
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

/** What is wrong with a Redis, by its answer to INFO, and what to do; null if it will do as what it was given for. */
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
