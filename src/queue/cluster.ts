import { Cluster, type Redis, type RedisOptions } from "ioredis";
import { reasonOf } from "../errors.ts";
import type { RedisPlace } from "../redis-url.ts";
import { within } from "../within.ts";

/** The address of a Redis Cluster: some of its nodes. */
export type ClusterPlace = RedisPlace & { kind: "cluster" };
/** Options of the connection to one server. */
export type ServerOptions = Omit<RedisOptions, "replyMapping">;

/** A running node responds in milliseconds; a cluster that has just lost one needs its own timeout to notice. */
const CONNECT_MS = 10_000;
const SLOTS_MS = 2_000;

/**
 * How often a command is sent again if its node is unavailable or its slot has moved: a few times within half a second, or
 * until it succeeds.
 */
const TRIES = {
  few: { maxRedirections: 5, retryDelayOnFailover: 100, retryDelayOnClusterDown: 100 },
  endless: { maxRedirections: Number.MAX_SAFE_INTEGER, retryDelayOnFailover: 500, retryDelayOnClusterDown: 500 },
};
export type Tries = keyof typeof TRIES;

/** Creates a client for all nodes of a cluster, not yet connected. `options` apply to the connection to each node. */
export function makeCluster({ nodes, access }: ClusterPlace, options: ServerOptions, tries: Tries): Cluster {
  const { lazyConnect: _always, retryStrategy, enableOfflineQueue, ...each } = options;
  const cluster = new Cluster(nodes, {
    lazyConnect: true,
    clusterRetryStrategy: retryStrategy,
    enableOfflineQueue,
    ...TRIES[tries],
    slotsRefreshTimeout: SLOTS_MS,
    // by name, since certificates are issued for names
    dnsLookup: (address, found) => found(null, address),
    redisOptions: { ...each, ...access },
  });
  connectEarly(cluster);
  return cluster;
}

/**
 * Connects to each node as soon as the cluster is ready, since a command that fails fast does not wait for a pending
 * connection. Not earlier: the check whether the cluster is up would fail on such a connection.
 */
function connectEarly(cluster: Cluster): void {
  const connect = (node: Redis) => {
    // the command that needs the node reports the error
    if (cluster.status === "ready" && node.status === "wait") node.connect().catch(() => undefined);
  };
  cluster.on("+node", connect);
  cluster.on("ready", () => cluster.nodes().forEach(connect));
}

/** The servers behind a connection: the masters of a cluster, or the one server. */
export function nodesOf(redis: Redis | Cluster): Redis[] {
  return redis instanceof Cluster ? redis.nodes("master") : [redis];
}

/**
 * Connects to the cluster and to those of its nodes that respond.
 * @throws Error if no node responds, or if the cluster reports that it is down.
 */
export async function connectCluster(cluster: Cluster): Promise<void> {
  let last: unknown;
  const remember = (error: unknown) => (last = error);
  cluster.on("error", remember);
  cluster.on("node error", remember);
  try {
    // if the cluster reports that it is down, the client would wait for it silently
    await within(CONNECT_MS, notUp, cluster.connect());
    await Promise.allSettled(cluster.nodes("master").map((node) => node.ping()));
  } catch (error) {
    cluster.disconnect();
    throw last === undefined ? error : new Error(reasonOf(last), { cause: error });
  } finally {
    cluster.off("error", remember);
    cluster.off("node error", remember);
  }
}

function notUp(): Error {
  return new Error(
    `the cluster was not up within ${CONNECT_MS / 1_000} s; \`redis-cli cluster info\` shows what it lacks`,
  );
}
