import { Cluster, type Redis } from "ioredis";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { makeServerClient } from "../redis-client.ts";
import { placeOfRedis } from "../redis-url.ts";

/** Redis answers in well under a millisecond; whoever calls must not notice when it does not. */
const ANSWER_WITHIN_MS = 100;
/** A connection that is silent for so long is given up, so that the calls after it need not wait at all. */
const SILENCE_MS = 250;

/**
 * The connection on which limits are counted. It is made in the background and made again forever, and it never holds
 * anybody up: a command fails at once while there is no connection, and after 100 ms while there is no answer.
 */
export function connectForLimits(url: string, log: Log): Redis | Cluster {
  const redis = open(url);
  let isAway = false;
  redis.on("error", (error: unknown) => {
    if (!isAway) log.warn(`Redis is away, so this process keeps the limits alone: ${reasonOf(error)}`);
    isAway = true;
  });
  redis.on("ready", () => {
    log[isAway ? "info" : "debug"]("limits are shared by way of Redis");
    isAway = false;
  });
  return redis;
}

function open(url: string): Redis | Cluster {
  const each = {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 5_000,
    commandTimeout: ANSWER_WITHIN_MS,
    socketTimeout: SILENCE_MS,
    keepAlive: 10_000,
  };
  const again = (times: number) => Math.min(times * 100, 1_000);
  const place = placeOfRedis(url);
  if (place?.kind !== "cluster") {
    return makeServerClient(url, { ...each, enableOfflineQueue: false, retryStrategy: again });
  }
  const cluster = new Cluster(place.nodes, {
    enableOfflineQueue: false,
    clusterRetryStrategy: again,
    // a slot may have moved; a node that is away is not waited for
    maxRedirections: 2,
    retryDelayOnFailover: ANSWER_WITHIN_MS / 4,
    retryDelayOnClusterDown: ANSWER_WITHIN_MS / 4,
    dnsLookup: (address, found) => found(null, address),
    redisOptions: { ...each, ...place.access },
  });
  // a command that fails at once does not wait for a connection that is still being made
  const connect = (node: Redis) => {
    if (cluster.status === "ready" && node.status === "wait") node.connect().catch(() => undefined);
  };
  cluster.on("+node", connect);
  cluster.on("ready", () => cluster.nodes().forEach(connect));
  return cluster;
}
