import { setTimeout as delay } from "node:timers/promises";
import { Cluster, type Redis, type RedisOptions } from "ioredis";
import { reasonOf } from "../errors.ts";
import type { RedisPlace } from "../redis-url.ts";

/** A Redis Cluster by some of its nodes. */
export type ClusterPlace = RedisPlace & { kind: "cluster" };
/** How to speak with one server. */
export type ServerOptions = Omit<RedisOptions, "replyMapping">;

/** A node that is there answers in milliseconds; a cluster that has just lost one takes its timeout to know. */
const CONNECT_MS = 10_000;
const SLOTS_MS = 2_000;

/**
 * How often a command goes out again where its node is away or its slot has moved: a few times within half a second, or
 * until it is done.
 */
const TRIES = {
  few: { maxRedirections: 5, retryDelayOnFailover: 100, retryDelayOnClusterDown: 100 },
  endless: { maxRedirections: Number.MAX_SAFE_INTEGER, retryDelayOnFailover: 500, retryDelayOnClusterDown: 500 },
};
export type Tries = keyof typeof TRIES;

/** A client for all nodes of a cluster, not yet connected. `options` are those that one server would be spoken with. */
export function makeCluster({ nodes, access }: ClusterPlace, options: ServerOptions, tries: Tries): Cluster {
  const { lazyConnect: _always, retryStrategy, enableOfflineQueue, ...each } = options;
  const cluster = new Cluster(nodes, {
    lazyConnect: true,
    clusterRetryStrategy: retryStrategy,
    enableOfflineQueue,
    ...TRIES[tries],
    slotsRefreshTimeout: SLOTS_MS,
    // by their names, which their certificates are made out to
    dnsLookup: (address, found) => found(null, address),
    redisOptions: { ...each, ...access },
  });
  connectEarly(cluster);
  return cluster;
}

/**
 * Connects to each node as soon as the cluster is known, since a command that fails fast does not wait for a connection
 * that is still being made. Not before: the question whether the cluster is up would meet such a connection.
 */
function connectEarly(cluster: Cluster): void {
  const connect = (node: Redis) => {
    // whoever needs the node hears of it
    if (cluster.status === "ready" && node.status === "wait") node.connect().catch(() => undefined);
  };
  cluster.on("+node", connect);
  cluster.on("ready", () => cluster.nodes().forEach(connect));
}

/** The servers behind a connection that hold slots of their own: of a cluster its masters. */
export function nodesOf(redis: Redis | Cluster): Redis[] {
  return redis instanceof Cluster ? redis.nodes("master") : [redis];
}

/**
 * Connects to the cluster and to those of its nodes that answer.
 * @throws Error where no node answers, or the cluster itself says that it is down.
 */
export async function connectCluster(cluster: Cluster): Promise<void> {
  const patience = new AbortController();
  let last: unknown;
  const remember = (error: unknown) => (last = error);
  cluster.on("error", remember);
  cluster.on("node error", remember);
  try {
    // where the cluster says that it is down, the client would wait for it without a word
    await Promise.race([cluster.connect(), tooLong(patience.signal)]);
    await Promise.allSettled(cluster.nodes("master").map((node) => node.ping()));
  } catch (error) {
    cluster.disconnect();
    throw last === undefined ? error : new Error(reasonOf(last), { cause: error });
  } finally {
    patience.abort();
    cluster.off("error", remember);
    cluster.off("node error", remember);
  }
}

async function tooLong(signal: AbortSignal): Promise<never> {
  await delay(CONNECT_MS, undefined, { signal });
  throw new Error(
    `the cluster was not up within ${CONNECT_MS / 1_000} s; \`redis-cli cluster info\` says what it lacks`,
  );
}
