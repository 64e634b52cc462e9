import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import type { Decided, Made } from "../../audit/decision.ts";
import type { Sql, Transaction } from "../../db/client.ts";
import { listPauses, type Pause, pauseQueue, resumeQueue } from "../../queue/runs/inspect.ts";
import { auditEntry } from "../audit-entry.ts";
import { type Done, opsAction, opsPage, type OpsParts, type PageRequest, type Visitor } from "../contract.ts";
import { reason, time } from "../payloads/listing.ts";
import { mayDo } from "../routes.ts";
import { requireQueue } from "./access.ts";

/** The lengths of a pause that the form offers, in minutes; null lasts until the queue is resumed. */
const LENGTHS = { "": null, "15m": 15, "1h": 60, "4h": 240, "12h": 720, "1d": 1_440 } as const;
const LENGTH_OPTIONS = [
  { value: "", label: "until the queue is resumed" },
  { value: "15m", label: "15 minutes" },
  { value: "1h", label: "1 hour" },
  { value: "4h", label: "4 hours" },
  { value: "12h", label: "12 hours" },
  { value: "1d", label: "1 day" },
];

const pauseForm = z.object({ reason, until: time, lasts: z.enum(["", "15m", "1h", "4h", "12h", "1d"]).default("") });

/** Pauses a queue, until a time or until it is resumed. */
export const pauseQueueAction = opsAction({
  name: "queue.pause",
  path: "/queues/:queue/pause",
  roles: ["operator"],
  isDangerous: false,
  form: pauseForm,
  async run(parts, { visitor, params, form }) {
    const { queue, queues } = requireQueue(parts, params);
    const minutes = LENGTHS[form.lasts];
    if (form.until !== null && minutes !== null) {
      return { ok: false, problem: "expected either a length or an end, got both" };
    }
    const until = minutes === null ? form.until : new Date(Date.now() + minutes * 60_000).toISOString();
    if (until !== null && Date.parse(until) <= Date.now()) {
      return { ok: false, problem: `expected an end in the future, got ${until}` };
    }
    const pause = { queue, by: visitor.email, reason: form.reason, until };
    const also = entryOf(visitor, "queue.pause", form.reason);
    return doneOf(queue, await pauseQueue(parts.sql, queues, pause, also));
  },
});

const resumeForm = z.object({ reason, version: z.string().max(60).default("") });

/** Resumes a paused queue. */
export const resumeQueueAction = opsAction({
  name: "queue.resume",
  path: "/queues/:queue/resume",
  roles: ["operator"],
  isDangerous: false,
  form: resumeForm,
  async run(parts, { visitor, params, form }) {
    const { queue, queues } = requireQueue(parts, params);
    const resume = { queue, version: form.version || null };
    const also = entryOf(visitor, "queue.resume", form.reason);
    return doneOf(queue, await resumeQueue(parts.sql, queues, resume, also));
  },
});

/** The form that pauses a queue. */
export const pauseQueuePage = opsPage({
  path: pauseQueueAction.path,
  show: (parts, asked) => showForm(parts, asked, "pause"),
});

/** The form that resumes a queue. */
export const resumeQueuePage = opsPage({
  path: resumeQueueAction.path,
  show: (parts, asked) => showForm(parts, asked, "resume"),
});

/** The pause of a queue; null if it is not paused. */
async function findQueuePause(sql: Sql, queue: string): Promise<Pause | null> {
  return (await listPauses(sql)).find((pause) => pause.queue === queue) ?? null;
}

async function showForm(parts: OpsParts, { visitor, params }: PageRequest<unknown>, act: "pause" | "resume") {
  const { queue } = requireQueue(parts, params);
  const paused = await findQueuePause(parts.sql, queue);
  return {
    template: "queues/pause",
    title: `${act === "pause" ? "Pause" : "Resume"} ${queue}`,
    width: "reading" as const,
    data: { queue, act, paused, lengths: LENGTH_OPTIONS, mayAct: mayDo(pauseQueueAction, visitor.role) },
    crumbs: [
      { label: "Queues", href: "/ops/queues" },
      { label: queue, href: `/ops/queues/${queue}` },
    ],
  };
}

function entryOf(visitor: Visitor, action: string, why: string) {
  return (tx: Transaction, made: Made) => appendAudit(tx, auditEntry(visitor, { ...made, action, reason: why }));
}

function doneOf(queue: string, decided: Decided): Done {
  return decided.ok ? { ...decided, location: `/ops/queues/${queue}` } : decided;
}
