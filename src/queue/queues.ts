import { Queue, type JobsOptions } from "bullmq";
import { UsageError } from "../errors.ts";
import { queueTelemetry } from "../telemetry.ts";
import type { Log } from "../log.ts";
import type { Job } from "./job.ts";
import { connectProducer, logQueueErrors, type RedisConnection } from "./redis.ts";

/** Events are for debugging only, and their streams grow without a reader. */
const KEPT_EVENTS = 1_000;
const FAILED_KEPT = { age: 7 * 24 * 3_600, count: 1_000 };
/** Failed attempts that a run keeps with their stacks; the most that a job makes is 5. */
const STACKS_KEPT = 5;

/** The name of the back-off of every worker; its delays are those of the job's `retry`. */
export const BACKOFF = "roundhouse";

/** All queues of the system, for adding work. */
export interface Queues {
  readonly jobs: readonly Job<unknown>[];
  readonly redis: RedisConnection;
  /**
   * Adds a run of a job. If a run of its key waits already, nothing changes; if one is active, exactly one more run with the
   * newest payload follows.
   * @throws Error if the payload is not valid or Redis is unavailable.
   */
  enqueue<Payload>(job: Job<Payload>, payload: Payload): Promise<void>;
  /** @throws UsageError that lists the existing queues. */
  get(name: string): Queue;
  /** Writes the settings of the queues again, after Redis lost its data. */
  restoreSettings(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens one queue per job, all over one connection.
 * @throws UsageError if Redis cannot be reached.
 */
export async function openQueues(jobs: readonly Job<unknown>[], redisUrl: string, log: Log): Promise<Queues> {
  const redis = await connectProducer(redisUrl, log);
  const queues = new Map(jobs.map(({ name }) => [name, openQueue(name, redis, log)]));
  const get = (name: string): Queue => {
    const queue = queues.get(name);
    if (queue !== undefined) return queue;
    throw new UsageError(`there is no queue ${JSON.stringify(name)}; there are ${[...queues.keys()].join(", ")}`);
  };
  return {
    jobs,
    redis,
    get,
    async enqueue(job, payload) {
      const { error } = job.payload.safeParse(payload);
      if (error) throw new Error(`a payload for ${job.name} is not valid: ${problemsOf(error)}`);
      if (redis.status !== "ready") throw new Error(`Redis is away; ${job.name} was not asked for`);
      const deduplication = { id: `${job.name}-${job.key(payload)}`, keepLastIfActive: true };
      await get(job.name).add(job.name, payload, {
        ...runOptions(job),
        removeOnFail: job.lasts === undefined ? FAILED_KEPT : true,
        deduplication,
      });
    },
    async restoreSettings() {
      await Promise.all([...queues.values()].map((queue) => queue.getBackend().setQueueMeta(queue.metaValues)));
    },
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
      redis.disconnect();
    },
  };
}

/** Keys of a queue share a hash tag, so that a Redis Cluster keeps them together and spreads the queues. */
export function prefixOf(queue: string): string {
  return `{rh-${queue}}`;
}

/**
 * The options of every run of a job. A run that is done is removed: its result is in PostgreSQL and the log, and a kept run
 * of a scheduler would stop its chain permanently (taskforcesh/bullmq#3272).
 */
export function runOptions(job: Job<unknown>) {
  return {
    attempts: job.retry.attempts,
    backoff: { type: BACKOFF },
    removeOnComplete: true,
    stackTraceLimit: STACKS_KEPT,
  } satisfies JobsOptions;
}

/** The problems of a payload, on one line. */
export function problemsOf(error: { issues: readonly { path: PropertyKey[]; message: string }[] }): string {
  return error.issues.map(({ path, message }) => `${path.map(String).join(".") || "payload"}: ${message}`).join("; ");
}

function openQueue(name: string, redis: RedisConnection, log: Log): Queue {
  const queue = new Queue(name, {
    connection: redis,
    prefix: prefixOf(name),
    ...queueTelemetry(),
    streams: { events: { maxLen: KEPT_EVENTS } },
  });
  queue.on("error", logQueueErrors(log, `queue ${name}`));
  return queue;
}
