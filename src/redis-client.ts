import { Redis, type RedisOptions } from "ioredis";
import { placeOfRedis } from "./redis-url.ts";

const SENTINEL_ANSWERS_WITHIN_MS = 5_000;

/**
 * A client for one server, or for the master that sentinels name: it follows a failover, and leaves a server that became a
 * replica. Connects as `options` say.
 */
export function makeServerClient(url: string, options: Omit<RedisOptions, "replyMapping">): Redis {
  const place = placeOfRedis(url);
  if (place?.kind !== "sentinel") return new Redis(url, options);
  const { sentinels, master, access, sentinelPassword } = place;
  const bySentinel: Omit<RedisOptions, "replyMapping"> = {
    ...options,
    ...access,
    sentinels,
    name: master,
    sentinelPassword,
    enableTLSForSentinelMode: access.tls !== undefined,
    sentinelTLS: access.tls,
    sentinelRetryStrategy: (attempts) => options.retryStrategy?.(attempts) ?? null,
    sentinelCommandTimeout: SENTINEL_ANSWERS_WITHIN_MS,
    failoverDetector: true,
    // 2: connects again and sends the command once more
    reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 2 : false),
  };
  return new Redis(bySentinel);
}
