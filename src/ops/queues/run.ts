import { findRun, type RunDetail } from "../../queue/runs/inspect.ts";
import type { Tone } from "../../frame/text/format.ts";
import { opsPage } from "../contract.ts";
import { mayDo } from "../routes.ts";
import { orUnavailable, requireReadableQueue } from "./access.ts";
import { pauseQueueAction } from "./pause.ts";
import { actsFor } from "./run-filter.ts";

const TONES: Partial<Record<string, Tone>> = { active: "good", failed: "bad", delayed: "warn", waiting: "info" };
/** Fields of payloads that name something with its own page. */
const PAGES_OF_FIELDS = { house: "/ops/houses/", run: "/ops/calibrations/runs/" } as const;

/** Everything about one run: its payload, times, failed attempts and options. */
export const queueRunPage = opsPage({
  path: "/queues/:queue/runs/:run",
  async show(parts, { visitor, params }) {
    const { queue, queues } = requireReadableQueue(parts, params);
    const run = await orUnavailable(findRun(queues, queue, params["run"] ?? ""));
    if (run === null) return null;
    const acts = actsFor(run.state).filter((act) => act !== "discard" || !run.isScheduled);
    return {
      template: "queues/run",
      title: `Run ${run.id}`,
      refreshSeconds: 10,
      crumbs: [
        { label: "Queues", href: "/ops/queues" },
        { label: queue, href: `/ops/queues/${queue}?state=${run.state}` },
      ],
      header: {
        badges: [
          { text: run.state, tone: TONES[run.state] ?? "quiet" },
          ...(run.isScheduled ? [{ text: "schedule", tone: "info" as const }] : []),
        ],
      },
      data: {
        run,
        times: timesOf(run),
        links: linksOf(run.payload),
        attemptsAllowed: queues.jobs.find(({ name }) => name === queue)?.retry.attempts ?? 1,
        acts: mayDo(pauseQueueAction, visitor.role) ? acts : [],
      },
    };
  },
});

/** Seconds that the run waited for its newest attempt, and that this attempt took; null if unknown. */
function timesOf({ addedAt, startedAt, finishedAt }: RunDetail) {
  const between = (from: Date | null, to: Date | null) =>
    from === null || to === null ? null : (to.getTime() - from.getTime()) / 1_000;
  return { waited: between(addedAt, startedAt), ran: between(startedAt, finishedAt) };
}

function linksOf(payload: unknown): { text: string; href: string }[] {
  const fields = Object.entries(typeof payload === "object" && payload !== null ? payload : {});
  return fields.flatMap(([name, value]) => {
    const page = Object.entries(PAGES_OF_FIELDS).find(([field]) => field === name)?.[1];
    if (page === undefined || typeof value !== "string") return [];
    return [{ text: `${name} ${value}`, href: page + encodeURIComponent(value) }];
  });
}
