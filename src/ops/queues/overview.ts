import {
  allFailed,
  type FailureGroup,
  groupFailures,
  listPauses,
  listQueues,
  listSchedules,
  type Pause,
  type Queues,
  type QueueState,
  type Rates,
  readRates,
  type ScheduleState,
} from "../../queue/runs/inspect.ts";
import { opsPage } from "../contract.ts";
import { mayDo } from "../routes.ts";
import { orUnavailable, queuesProblem } from "./access.ts";
import { pauseQueueAction } from "./pause.ts";
import { LATE_MS } from "./schedules.ts";

const RATE_MINUTES = 60;
const LATE_LISTED = 10;

/** A queue with its rates over the last hour and the reasons of its failed runs. */
export interface QueueRow extends QueueState {
  rates: Rates;
  groups: FailureGroup[];
}

/** All queues: what waits, runs and fails, and which schedules start late. */
export const overviewPage = opsPage({
  path: "/queues",
  nav: { label: "Queues", order: 11, group: "Live" },
  async show(parts, { visitor }) {
    const { sql, queues } = parts;
    const shown = {
      template: "queues/overview",
      title: "Queues",
      refreshSeconds: 5,
      header: {
        lead: "Runs that wait, run and failed. Facts are in PostgreSQL: if Redis is lost, the queues are rebuilt within seconds.",
        more: [
          { label: "Schedules", href: "/ops/queues/schedules" },
          { label: "Periodic tasks", href: "/ops/queues/tasks" },
          { label: "Workers", href: "/ops/workers" },
        ],
      },
    };
    const mayAct = mayDo(pauseQueueAction, visitor.role);
    const problem = queuesProblem(parts);
    const pauses = await listPauses(sql); // before Redis is read, so that an error names the right server
    if (queues === null || problem !== null) {
      return {
        ...shown,
        data: { problem, pauses, mayAct, rows: [], late: [], lateCount: 0, schedules: 0, lateMs: LATE_MS },
      };
    }
    const now = Date.now();
    const reads = [listQueues(queues, pauses), listSchedules(queues, now)] as const;
    const [states, schedules] = await orUnavailable(Promise.all(reads));
    const rows = await orUnavailable(Promise.all(states.map((state) => withRates(queues, state, now))));
    const late = schedules.filter((one) => one.lateMs > LATE_MS && !isPaused(pauses, one));
    const data = {
      problem,
      pauses,
      mayAct,
      rows,
      late: late.slice(0, LATE_LISTED),
      lateCount: late.length,
      schedules: schedules.length,
      lateMs: LATE_MS,
    };
    return { ...shown, data };
  },
});

async function withRates(queues: Queues, state: QueueState, now: number): Promise<QueueRow> {
  const [rates, failed] = await Promise.all([
    readRates(queues, state.queue, RATE_MINUTES, now),
    state.failed === 0 ? [] : allFailed(queues, state.queue),
  ]);
  return {
    ...state,
    rates,
    groups: groupFailures(failed),
  };
}

function isPaused(pauses: readonly Pause[], { queue }: ScheduleState): boolean {
  return pauses.some((pause) => pause.queue === queue);
}
