import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import {
  discardRuns,
  type ControlOutcome,
  pauseFacts,
  pauseQueue,
  type Queues,
  resumeQueue,
  retryRuns,
} from "../../queue/inspect.ts";
import { auditEntry } from "../audit-entry.ts";
import type { Done, OpsAction, OpsPage, OpsParts, Sent } from "../contract.ts";
import { PageError } from "../../frame/errors.ts";
import { reason, time } from "../payloads/listing.ts";
import { findQueuePause } from "./pause.ts";
import { hasQueue, requireQueues } from "./failed.ts";
import { askRedis } from "./queues.ts";

const roles = ["operator"] as const;
/** Ids of runs that an entry of the audit log names. */
const IDS_NOTED = 100;

/** How long a pause lasts, as the form offers it; in minutes. */
const LENGTHS = { "": null, "15m": 15, "1h": 60, "4h": 240, "12h": 720, "1d": 1_440 } as const;

const controlQuery = z.object({ do: z.enum(["pause", "resume"]) });

/** Asks for the reason of a pause, or of its end, and says how the queue is now. */
export const controlPage: OpsPage<z.infer<typeof controlQuery>> = {
  path: "/queues/:queue/control",
  query: controlQuery,
  async show(parts, { params, query }) {
    const queue = params["queue"] ?? "";
    if (parts.queues !== null && !hasQueue(parts.queues, queue)) return null;
    const paused = await findQueuePause(parts.sql, queue);
    return {
      template: "queues/control",
      title: `${query.do === "pause" ? "Pause" : "Let go on"}: ${queue}`,
      data: { queue, act: query.do, paused, lengths: Object.keys(LENGTHS) },
      crumbs: [{ label: "Queues", href: "/ops/queues" }],
    };
  },
};

const pauseForm = z.object({ reason, until: time, lasts: z.enum(["", "15m", "1h", "4h", "12h", "1d"]).default("") });

/** Pauses a queue, until a time or until somebody lets it go on. */
export const pauseAction: OpsAction<z.infer<typeof pauseForm>> = {
  name: "queue.pause",
  path: "/queues/:queue/pause",
  roles,
  isDangerous: false,
  form: pauseForm,
  async run(parts, { visitor, params, form }) {
    const { queue, queues } = queueOf(parts, params);
    const minutes = LENGTHS[form.lasts];
    if (form.until !== null && minutes !== null) {
      return { ok: false, problem: "expected either a length or a time at which it goes on, got both" };
    }
    const until = minutes === null ? form.until : new Date(Date.now() + minutes * 60_000).toISOString();
    if (until !== null && Date.parse(until) <= Date.now()) {
      return { ok: false, problem: `expected a time ahead at which it goes on, got ${until}` };
    }
    const pause = { queue, by: visitor.email, reason: form.reason, until };
    const outcome = await pauseQueue(parts.sql, queues, pause, async (tx, { before, after }) => {
      const told = { before: pauseFacts(before), after: pauseFacts(after), reason: form.reason };
      await appendAudit(tx, auditEntry(visitor, { action: "queue.pause", target: `queue ${queue}`, ...told }));
    });
    return doneOf(outcome, until === null ? `${queue} is paused` : `${queue} is paused until ${until.slice(0, 16)}Z`);
  },
};

const resumeForm = z.object({ reason, version: z.string().max(60).default("") });

/** Lets a paused queue go on. */
export const resumeAction: OpsAction<z.infer<typeof resumeForm>> = {
  name: "queue.resume",
  path: "/queues/:queue/resume",
  roles,
  isDangerous: false,
  form: resumeForm,
  async run(parts, { visitor, params, form }) {
    const { queue, queues } = queueOf(parts, params);
    const resume = { queue, version: form.version || null };
    const outcome = await resumeQueue(parts.sql, queues, resume, async (tx, { before, after }) => {
      const told = { before: pauseFacts(before), after: pauseFacts(after), reason: form.reason };
      await appendAudit(tx, auditEntry(visitor, { action: "queue.resume", target: `queue ${queue}`, ...told }));
    });
    return doneOf(outcome, `${queue} goes on`);
  },
};

const runsForm = z.object({
  reason,
  run: z
    .union([z.string(), z.array(z.string())])
    .default([])
    .transform((given) => [given].flat())
    .pipe(z.array(z.string().max(200)).min(1, "expected one run or more").max(1_000)),
});
type RunsForm = z.infer<typeof runsForm>;

/** Puts failed runs back to work: exactly those that are named, as far as they have not changed. */
export const retryAction: OpsAction<RunsForm> = {
  name: "queue.retry",
  path: "/queues/:queue/retry",
  roles,
  isDangerous: false,
  form: runsForm,
  run: (parts, sent) => actOnRuns(parts, sent, { action: "queue.retry", work: retryRuns, said: "are tried again" }),
};

/** Forgets failed runs: exactly those that are named, as far as they have not changed. */
export const discardAction: OpsAction<RunsForm> = {
  name: "queue.discard",
  path: "/queues/:queue/discard",
  roles,
  isDangerous: true,
  form: runsForm,
  run: (parts, sent) => actOnRuns(parts, sent, { action: "queue.discard", work: discardRuns, said: "are discarded" }),
};

async function actOnRuns(
  parts: OpsParts,
  { visitor, params, form }: Sent<RunsForm>,
  how: { action: string; work: typeof retryRuns; said: string },
): Promise<Done> {
  const queue = params["queue"] ?? "";
  const queues = requireQueues(parts);
  if (!hasQueue(queues, queue)) throw new PageError(404, `there is no queue ${queue}`);
  const ids = form.run.map((token) => token.split("@")[0] ?? "");
  const after = { runs: ids.length, ids: ids.slice(0, IDS_NOTED) };
  // first what is meant to be done, since Redis knows no transaction with PostgreSQL
  await parts.sql.begin((tx) =>
    appendAudit(tx, auditEntry(visitor, { action: how.action, target: `queue ${queue}`, after, reason: form.reason })),
  );
  const { done, changed } = await askRedis(how.work(queues, queue, form.run));
  const left = changed === 0 ? "" : `; ${changed} had changed meanwhile and were left as they are`;
  const message = `${done} runs of ${queue} ${how.said}${left}`;
  return { ok: true, message, location: `/ops/queues/${queue}/failed` };
}

function queueOf({ queues }: OpsParts, params: Readonly<Record<string, string>>): { queue: string; queues: Queues } {
  const queue = params["queue"] ?? "";
  if (queues === null) throw new PageError(503, "this process was given no Redis (REDIS_URL), so it knows no queues");
  if (!hasQueue(queues, queue)) throw new PageError(404, `there is no queue ${queue}`);
  return { queue, queues };
}

function doneOf(outcome: ControlOutcome, message: string): Done {
  if (outcome.kind === "refused") return { ok: false, problem: outcome.problem };
  const later = outcome.isTold ? "" : "; Redis is away, and is told within seconds of its coming back";
  return { ok: true, message: message + later, location: "/ops/queues" };
}
