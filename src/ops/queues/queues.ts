import { z } from "zod";
import {
  allFailed,
  type FailureGroup,
  groupFailures,
  isRedisTrouble,
  listPauses,
  listQueues,
  listSchedules,
  type Pause,
  type Queues,
  type QueueState,
  readRates,
  type ScheduleState,
} from "../../queue/inspect.ts";
import type { OpsPage, OpsParts } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { listLastPolls } from "./drift-store.ts";

const SILENT =
  "Redis does not answer: what the queues hold is not known now, and what was asked of it was done, in part or not at all. Look again when it is back; pauses are kept in PostgreSQL.";
const RATE_MINUTES = 60;
const LATE_SHOWN = 10;
/** A start may be this late before it is one to look at: ticks of busy queues are seconds late at times. */
const LATE_MS = 5_000;
const PER_PAGE = 50;

/** How many runs of a queue ended, by minute and as sums. */
interface Ended {
  done5: number;
  done60: number;
  failed60: number;
}

/** A queue with what ended and why runs failed. */
export interface QueueRow extends QueueState {
  ended: Ended;
  groups: FailureGroup[];
}

const nothing = z.object({});

/** What waits, runs and fails between the stages, and which starts come late. */
export const queuesPage: OpsPage<z.infer<typeof nothing>> = {
  path: "/queues",
  nav: { label: "Queues", order: 11, group: "Live" },
  query: nothing,
  async show(parts) {
    const { sql, queues } = parts;
    const shown = { template: "queues/queues", title: "Queues", refreshSeconds: 5 };
    const trouble = troubleOf(parts);
    if (queues === null || trouble !== null) {
      const pauses = await listPauses(sql);
      return { ...shown, data: { trouble, pauses, rows: [], late: [], schedules: 0, lateMs: LATE_MS } };
    }
    const now = Date.now();
    const pauses = await listPauses(sql); // apart from what Redis is asked: each says which of the two is away
    const [states, schedules] = await askRedis(Promise.all([listQueues(queues, pauses), listSchedules(queues, now)]));
    const rows = await askRedis(Promise.all(states.map((state) => withFailures(queues, state, now))));
    const late = schedules.filter((one) => one.lateMs > LATE_MS && !isPaused(pauses, one));
    const data = {
      trouble,
      pauses,
      rows,
      late: late.slice(0, LATE_SHOWN),
      lateCount: late.length,
      schedules: schedules.length,
    };
    return { ...shown, data: { ...data, lateMs: LATE_MS } };
  },
};

const scheduleQuery = z.object({
  q: z.string().trim().max(100).default(""),
  page: z.coerce.number().int().min(1).max(100_000).default(1),
});

/** When every repeated start is expected, and how late it is. */
export const schedulesPage: OpsPage<z.infer<typeof scheduleQuery>> = {
  path: "/queues/schedules",
  query: scheduleQuery,
  async show(parts, { query }) {
    const { sql, queues } = parts;
    const trouble = troubleOf(parts);
    const all = queues === null || trouble !== null ? [] : await askRedis(listSchedules(queues, Date.now()));
    const polls = new Map((await listLastPolls(sql)).map((poll) => [poll.key, poll]));
    const found = all.filter(({ queue, key }) => `${queue} ${key}`.includes(query.q));
    const data = {
      trouble,
      query,
      rows: found
        .slice((query.page - 1) * PER_PAGE, query.page * PER_PAGE)
        .map((one) => ({ ...one, poll: one.queue === "poll-house" ? (polls.get(one.key) ?? null) : null })),
      total: found.length,
      perPage: PER_PAGE,
    };
    return {
      template: "queues/schedules",
      title: "Schedules",
      data,
      refreshSeconds: 5,
      crumbs: [{ label: "Queues", href: "/ops/queues" }],
    };
  },
};

/** Why queues cannot be looked at now; null where they can. */
export function troubleOf({ queues }: OpsParts): string | null {
  if (queues === null) return "this process was given no Redis (REDIS_URL), so it cannot look at the queues";
  if (queues.redis.status === "ready") return null;
  return "Redis is away: what is queued is not known now; pauses are kept in PostgreSQL and are put back with it";
}

/**
 * What is read of Redis, or done there.
 * @throws PageError 503 where Redis goes away or falls silent meanwhile.
 */
export async function askRedis<Answer>(work: Promise<Answer>): Promise<Answer> {
  try {
    return await work;
  } catch (error) {
    if (isRedisTrouble(error)) throw new PageError(503, SILENT, { "Retry-After": "5" });
    throw error;
  }
}

async function withFailures(queues: Queues, state: QueueState, now: number): Promise<QueueRow> {
  const [rates, failed] = await Promise.all([
    readRates(queues, state.queue, RATE_MINUTES, now),
    state.failed === 0 ? [] : allFailed(queues, state.queue),
  ]);
  const sum = (counts: readonly number[]) => counts.reduce((total, n) => total + n, 0);
  const ended = { done5: sum(rates.done.slice(0, 5)), done60: sum(rates.done), failed60: sum(rates.failed) };
  return { ...state, ended, groups: groupFailures(failed) };
}

function isPaused(pauses: readonly Pause[], { queue }: ScheduleState): boolean {
  return pauses.some((pause) => pause.queue === queue);
}
