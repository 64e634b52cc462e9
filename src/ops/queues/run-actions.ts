import { z } from "zod";
import { appendAudit } from "../../audit/store.ts";
import {
  describeReached,
  discardRuns,
  groupFailures,
  MOST_RUNS_READ,
  promoteRuns,
  type Queues,
  retryRuns,
  runsEntry,
  type RunsReached,
  type RunState,
  RUN_STATES,
} from "../../queue/runs/inspect.ts";
import { auditEntry } from "../audit-entry.ts";
import type { OpsAction, OpsPage } from "../contract.ts";
import { reason } from "../payloads/listing.ts";
import { mayDo } from "../routes.ts";
import { orUnavailable, requireReadableQueue } from "./access.ts";
import { ACTION_STATES, findRuns, rowOf, type RunAct, runFilter } from "./run-filter.ts";

/** The number of runs that a preview lists. */
const LISTED = 20;

const tokens = z
  .union([z.string(), z.array(z.string())])
  .default([])
  .transform((given) => [given].flat())
  .pipe(z.array(z.string().max(200)).max(MOST_RUNS_READ));

const form = z.object({
  reason,
  state: z.enum(RUN_STATES).default("failed"),
  run: tokens.refine((given) => given.length > 0, "expected one run or more"),
});
type RunsForm = z.infer<typeof form>;

const previewQuery = runFilter.extend({ run: tokens, all: z.enum(["", "1"]).default("") });
type PreviewQuery = z.infer<typeof previewQuery>;

/** One action on selected runs, and the page that previews it. */
interface RunsAction {
  act: RunAct;
  verb: string;
  /** What follows the object of the verb: "Start … now". */
  adverb?: string;
  /** What it does, for the preview. */
  effect: string;
  isDangerous: boolean;
  work: (queues: Queues, chosen: { queue: string; state: RunState; tokens: readonly string[] }) => Promise<RunsReached>;
}

const RETRY: RunsAction = {
  act: "retry",
  verb: "Retry",
  effect: "Queued again with all attempts. A run that changes before you confirm is left as it is.",
  isDangerous: false,
  work: (queues, { queue, tokens: chosen }) => retryRuns(queues, queue, chosen),
};
const PROMOTE: RunsAction = {
  act: "promote",
  verb: "Start",
  adverb: " now",
  effect: "Started as soon as a worker is free, instead of when due. A schedule keeps its other starts.",
  isDangerous: false,
  work: (queues, { queue, tokens: chosen }) => promoteRuns(queues, queue, chosen),
};
const DISCARD: RunsAction = {
  act: "discard",
  verb: "Discard",
  effect:
    "They are removed from the queue. Nothing in PostgreSQL is lost: work that the sweep of the job finds undone is queued again.",
  isDangerous: true,
  work: discardRuns,
};

/** Queues failed runs again: exactly those that are named, unless they have changed. */
export const retryRunsAction = actionOf(RETRY);
/** Starts delayed runs now: exactly those that are named, unless they have changed. */
export const promoteRunsAction = actionOf(PROMOTE);
/** Removes runs that are not active: exactly those that are named, unless they have changed. */
export const discardRunsAction = actionOf(DISCARD);

export const retryRunsPage = previewOf(RETRY, retryRunsAction);
export const promoteRunsPage = previewOf(PROMOTE, promoteRunsAction);
export const discardRunsPage = previewOf(DISCARD, discardRunsAction);

function actionOf({ act, verb, isDangerous, work }: RunsAction): OpsAction<RunsForm> {
  return {
    name: `queue.${act}`,
    title: `${verb} runs`,
    path: `/queues/:queue/${act}`,
    roles: ["operator"],
    isDangerous,
    form,
    async run(parts, { visitor, params, form: sent }) {
      const { queue, queues } = requireReadableQueue(parts, params);
      if (!isStateOf(act, sent.state)) return { ok: false, problem: stateProblem(act, sent.state) };
      const chosen = { queue, state: sent.state, tokens: sent.run };
      const entry = auditEntry(visitor, { ...runsEntry(chosen), action: `queue.${act}`, reason: sent.reason });
      await parts.sql.begin((tx) => appendAudit(tx, entry));
      const message = describeReached(act, queue, await orUnavailable(work(queues, chosen)));
      return { ok: true, message, location: `/ops/queues/${queue}?state=${sent.state}` };
    },
  };
}

/** Lists the runs that the action would reach, selected or all that match a filter, and asks for the reason. */
function previewOf({ act, verb, adverb = "", effect }: RunsAction, action: OpsAction<RunsForm>): OpsPage<PreviewQuery> {
  return {
    path: action.path,
    query: previewQuery,
    async show(parts, { visitor, params, query }) {
      const { queue, queues } = requireReadableQueue(parts, params);
      const selected = new Set(query.run);
      const all = isStateOf(act, query.state) ? await findRuns({ queue, queues }, query, Date.now()) : [];
      const found = query.all === "1" ? all : all.filter(({ token }) => selected.has(token));
      const chosen = act === "discard" ? found.filter(({ isScheduled }) => !isScheduled) : found;
      const back = `/ops/queues/${queue}?state=${query.state}`;
      return {
        template: "queues/confirm",
        title: `${verb} ${query.state} runs of ${queue}${adverb}`,
        data: {
          queue,
          act,
          verb,
          adverb,
          effect,
          back,
          state: query.state,
          runs: chosen.length,
          gone: query.all === "1" ? 0 : selected.size - found.length,
          scheduled: found.length - chosen.length,
          reasons: groupFailures(chosen.filter(({ reason: why }) => why !== "")),
          listed: chosen.slice(0, LISTED).map(rowOf),
          tokens: chosen.map(({ token }) => token),
          mayAct: mayDo(action, visitor.role),
        },
        crumbs: [
          { label: "Queues", href: "/ops/queues" },
          { label: queue, href: back },
        ],
      };
    },
  };
}

function isStateOf(act: RunAct, state: RunState): boolean {
  return ACTION_STATES[act].some((one) => one === state);
}

function stateProblem(act: RunAct, state: RunState): string {
  return `expected runs that are ${ACTION_STATES[act].join(" or ")}, got ${state} ones`;
}
