import { Cluster, type Redis } from "ioredis";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { makeServerClient } from "../redis-client.ts";
import { placeOfRedis } from "../redis-url.ts";

/** Redis responds in well under a millisecond; a caller must not notice when it does not. */
const TIMEOUT_MS = 100;
/** A connection without a response for this long is closed, so that later calls need not wait at all. */
const SILENT_MS = 250;

/**
 * The connection on which limits are counted. It is opened in the background, reopened without end, and never delays a
 * caller: a command fails immediately without a connection, and after 100 ms without a response.
 */
export function connectForLimits(url: string, log: Log): Redis | Cluster {
  const redis = open(url);
  let isDown = false;
  redis.on("error", (error: unknown) => {
    if (!isDown) log.warn(`Redis is not available, so this process enforces the limits by itself: ${reasonOf(error)}`);
    isDown = true;
  });
  redis.on("ready", () => {
    log[isDown ? "info" : "debug"]("limits are shared through Redis");
    isDown = false;
  });
  return redis;
}

function open(url: string): Redis | Cluster {
  const each = {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: 5_000,
    commandTimeout: TIMEOUT_MS,
    socketTimeout: SILENT_MS,
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
    // a slot may have moved; an unavailable node is not waited for
    maxRedirections: 2,
    retryDelayOnFailover: TIMEOUT_MS / 4,
    retryDelayOnClusterDown: TIMEOUT_MS / 4,
    dnsLookup: (address, found) => found(null, address),
    redisOptions: { ...each, ...place.access },
  });
  // while a connection is being opened, a command fails immediately instead of waiting for it
  const connect = (node: Redis) => {
    if (cluster.status === "ready" && node.status === "wait") node.connect().catch(() => undefined);
  };
  cluster.on("+node", connect);
  cluster.on("ready", () => cluster.nodes().forEach(connect));
  return cluster;
}
