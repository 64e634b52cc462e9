import { Redis, type RedisOptions } from "ioredis";
import { isConnectionTrouble } from "../db/trouble.ts";
import { reasonOf, UsageError } from "../errors.ts";
import { withoutPassword, type Log } from "../log.ts";

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
} satisfies RedisOptions;

/**
 * The connection of those who hand out work. It fails fast: while Redis is away a nudge is refused at once, since a
 * caller must not hang on a message that may be lost anyway.
 * @throws UsageError where Redis cannot be reached.
 */
export async function connectProducer(url: string, log: Log): Promise<Redis> {
  const failFast = { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 5_000 };
  return open(url, { ...always, ...failFast }, logTrouble(log, "Redis, for handing out work"));
}

/**
 * The connection of those who do the work. It waits for Redis as long as it takes, so that a run that is done while
 * Redis restarts is still written down as done.
 * @throws UsageError where Redis cannot be reached.
 */
export async function connectConsumer(url: string, log: Log): Promise<Redis> {
  return open(url, { ...always, maxRetriesPerRequest: null }, logTrouble(log, "Redis, for taking work"));
}

async function open(
  url: string,
  options: Omit<RedisOptions, "replyMapping">,
  trouble: (error: unknown) => void,
): Promise<Redis> {
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
export async function checkRedis(url: string): Promise<{ version: string }> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 5_000,
    commandTimeout: 5_000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let first: unknown;
  redis.on("error", (error: unknown) => (first ??= error));
  let info: string;
  try {
    await redis.connect();
    info = await redis.info();
  } catch (error) {
    throw unreachable(url, first ?? error);
  } finally {
    redis.disconnect();
  }
  const problem = redisProblem(info);
  if (problem !== null) throw new UsageError(`Redis at ${withoutPassword(url)} is not usable: ${problem}`);
  return { version: field(info, "redis_version") ?? "unknown" };
}

/** What is wrong with a Redis, by its answer to INFO, and what to do; null where it will do. */
export function redisProblem(info: string): string | null {
  const version = field(info, "redis_version") ?? "";
  const [major = NaN, minor = NaN] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_VERSION;
  if (!(major > oldestMajor || (major === oldestMajor && minor >= oldestMinor))) {
    return `it is version ${version || "unknown"}, and ${OLDEST_VERSION.join(".")} or newer is needed`;
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
const NO_ANSWER = /^(?:Command timed out|Connection is closed\.|Stream isn't writeable|Reached the max retries)/;

/** True where Redis is away, went away, or was silent too long: what was asked of it may have been done or not. */
export function isRedisTrouble(error: unknown): boolean {
  return isConnectionTrouble(error) || (error instanceof Error && NO_ANSWER.test(error.message));
}

/**
 * A listener for 'error' events of a queue or its worker. Trouble of the connection is left out: all of a process's
 * queues hear of it, and the connection they share tells it once.
 */
export function logQueueTrouble(log: Log, what: string): (error: unknown) => void {
  const tell = logTrouble(log, what);
  return (error) => {
    if (!isConnectionTrouble(error)) tell(error);
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
