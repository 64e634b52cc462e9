import { z } from "zod";
import {
  groupFailures,
  listPauses,
  listRuns,
  MOST_RUNS_READ,
  readQueue,
  readRates,
  RUN_STATES,
} from "../../queue/runs/inspect.ts";
import { opsPage } from "../contract.ts";
import { mayDo } from "../routes.ts";
import { orUnavailable, requireReadableQueue } from "./access.ts";
import { pauseQueueAction } from "./pause.ts";
import { actsFor, AGE_OPTIONS, filterText, findRuns, isFiltered, rowOf, runFilter } from "./run-filter.ts";

const PER_PAGE = 50;
const RATE_MINUTES = 60;

const query = runFilter.extend({ page: z.coerce.number().int().min(1).max(100_000).default(1) });

/** A queue: its rates, and its runs in one state. */
export const queuePage = opsPage({
  path: "/queues/:queue",
  query,
  async show(parts, { visitor, params, query: filter }) {
    const { queue, queues } = requireReadableQueue(parts, params);
    const now = Date.now();
    const pauses = await listPauses(parts.sql);
    const reads = [readQueue(queues, queue, pauses), readRates(queues, queue, RATE_MINUTES, now)] as const;
    const [state, rates] = await orUnavailable(Promise.all(reads));
    const { state: runState, page } = filter;
    const from = (page - 1) * PER_PAGE;
    // the counts of reasons are for the filter of failed runs; other lists are read page by page
    const all = runState === "failed" || isFiltered(filter) ? await findRuns({ queue, queues }, filter, now) : null;
    const rows =
      all === null
        ? await orUnavailable(listRuns(queues, queue, { state: runState, from, limit: PER_PAGE }))
        : all.slice(from, from + PER_PAGE);
    const unfiltered = { ...filter, q: "", group: "", older: "" as const };
    const groups = runState === "failed" ? groupFailures(await findRuns({ queue, queues }, unfiltered, now)) : [];
    const mayAct = mayDo(pauseQueueAction, visitor.role);
    const isPaused = state.paused !== null;
    return {
      template: "queues/queue",
      title: queue,
      refreshSeconds: 10,
      crumbs: [{ label: "Queues", href: "/ops/queues" }],
      header: {
        badges: [isPaused ? { text: "paused", tone: "warn" } : { text: "running", tone: "good" }],
        ...(mayAct && {
          more: [
            isPaused
              ? { label: "Resume", href: `/ops/queues/${queue}/resume` }
              : { label: "Pause", href: `/ops/queues/${queue}/pause` },
          ],
        }),
        tabs: RUN_STATES.map((name) => ({
          label: `${name.charAt(0).toUpperCase()}${name.slice(1)}`,
          href: `/ops/queues/${queue}?state=${name}`,
          isCurrent: name === runState,
          count: state[name],
        })),
      },
      data: {
        queue,
        state,
        rates,
        filter,
        filterText: filterText(filter),
        isFiltered: isFiltered(filter),
        groups,
        ages: AGE_OPTIONS,
        rows: rows.map(rowOf),
        total: all === null ? state[runState] : all.length,
        perPage: PER_PAGE,
        most: MOST_RUNS_READ,
        acts: mayAct ? actsFor(runState) : [],
      },
    };
  },
});
