import { z } from "zod";
import { groupOf, listRuns, MOST_RUNS_READ, type Run, RUN_STATES, type RunState } from "../../queue/runs/inspect.ts";
import { excerptOf } from "../payloads/listing.ts";
import { orUnavailable, type QueuePath } from "./access.ts";

/** Ages of failed runs that the filter offers, in seconds. */
const AGES = { "": 0, "1h": 3_600, "1d": 86_400, "3d": 259_200 } as const;

/** The ages for a select field. */
export const AGE_OPTIONS = [
  { value: "", label: "any" },
  { value: "1h", label: "more than 1 hour ago" },
  { value: "1d", label: "more than 1 day ago" },
  { value: "3d", label: "more than 3 days ago" },
];

/** The filter of a list of runs, as it is in a URL. */
export const runFilter = z.object({
  state: z.enum(RUN_STATES).default("failed"),
  /** Part of an id or of a payload. */
  q: z.string().trim().max(200).default(""),
  /** A kind of reason, see `groupOf`. */
  group: z.string().max(300).default(""),
  older: z.enum(["", "1h", "1d", "3d"]).default(""),
});
export type RunFilter = z.infer<typeof runFilter>;

/** Whether a filter leaves out runs of its state. */
export function isFiltered({ q, group, older }: RunFilter): boolean {
  return q !== "" || group !== "" || older !== "";
}

/** Finds the runs that match, out of the first thousand in their state. */
export async function findRuns({ queue, queues }: QueuePath, filter: RunFilter, now: number): Promise<Run[]> {
  const found = await orUnavailable(listRuns(queues, queue, { state: filter.state, from: 0, limit: MOST_RUNS_READ }));
  return found.filter((run) => matches(run, filter, now));
}

/** The parameters of a filter for a URL. */
export function filterText({ state, q, group, older }: RunFilter): string {
  const given = Object.entries({ state, q, group, older }).filter(([, value]) => value !== "");
  return new URLSearchParams(given).toString();
}

/** A run as a row of a list. */
export function rowOf(run: Run) {
  return {
    ...run,
    href: runPath(run),
    payload: excerptOf(JSON.stringify(run.payload)),
    reason: excerptOf(run.reason),
  };
}

/** The path of a run's page. */
function runPath({ queue, id }: { queue: string; id: string }): string {
  return `/ops/queues/${encodeURIComponent(queue)}/runs/${encodeURIComponent(id)}`;
}

/** The states in which an action finds its runs. */
export const ACTION_STATES = {
  retry: ["failed"],
  promote: ["delayed"],
  discard: ["waiting", "delayed", "failed"],
} as const satisfies Record<string, readonly RunState[]>;
export type RunAct = keyof typeof ACTION_STATES;

/** The actions for runs in a state. */
export function actsFor(state: string): RunAct[] {
  const acts = Object.keys(ACTION_STATES) as RunAct[];
  return acts.filter((act) => ACTION_STATES[act].some((one) => one === state));
}

function matches(run: Run, { q, group, older }: RunFilter, now: number): boolean {
  const isOldEnough = run.failedAt === null || now - run.failedAt.getTime() >= AGES[older] * 1_000;
  const isOfGroup = group === "" || groupOf(run.reason) === group;
  return isOldEnough && isOfGroup && (q === "" || run.id === q || JSON.stringify(run.payload).includes(q));
}
