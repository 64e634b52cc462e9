import type { PollOutcome } from "./circuit.ts";
import type { HouseAnswer } from "./client.ts";

/** What one table was asked and what came; times are milliseconds since the lease's database time. */
export interface AskedTable {
  tableId: number;
  /** game/market, for people. */
  name: string;
  /** The path as it is stored: values of variables are back to `${NAME}`. */
  path: string;
  requestedMs: number;
  receivedMs: number;
  answer: HouseAnswer;
  /** The round whose own page was asked for; left out where the answer is a list. */
  roundId?: string;
  /** A page that was looked for ahead of its turn: when its round was not there yet is not known. */
  isAhead?: boolean;
  /** Another table is listed first with the same response, which counts there. */
  isShared?: boolean;
  /** A good answer of a feed whose format changed, or the repeat of one that could not be read. */
  isUnreadable?: boolean;
}

/** One poll of a house in numbers. */
export interface PollSummary {
  requests: number;
  /** Requests by status code; 0 = no answer. */
  statuses: Record<string, number>;
  /** Of the bodies, unpacked. */
  bytes: number;
  /** Answers within each of {@link LATENCY_BOUNDS_MS}, and slower. */
  latency: number[];
  outcome: PollOutcome;
  /** The status that stands for the poll: of its newest failure, or where all went well of its newest answer. */
  status: number;
  /** What went wrong last, or null. */
  error: string | null;
}

/** Upper bounds of the latency histogram in the table `polls`. */
const LATENCY_BOUNDS_MS = [10, 25, 50, 100, 250, 500, 1000, 2500, 5000];

/**
 * Sums up the answers of one poll. One good answer makes a good poll: the house is there, whatever a table's page says;
 * answers that cannot be read as before make none.
 */
export function summarizePoll(asked: readonly AskedTable[]): PollSummary {
  const summary: PollSummary = {
    requests: asked.filter((one) => one.isShared !== true).length,
    statuses: {},
    bytes: 0,
    latency: Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0),
    outcome: { kind: outcomeOf(asked), retryAfterMs: longestWait(asked) },
    status: 0,
    error: null,
  };
  for (const { name, answer, isShared } of asked) {
    if (isShared === true) continue;
    const status = answer.status ?? 0;
    summary.statuses[status] = (summary.statuses[status] ?? 0) + 1;
    if (answer.kind === "answer") summary.bytes += answer.body.length;
    if (status > 0) {
      const bucket = LATENCY_BOUNDS_MS.findIndex((bound) => answer.elapsedMs <= bound);
      const at = bucket < 0 ? LATENCY_BOUNDS_MS.length : bucket;
      summary.latency[at] = (summary.latency[at] ?? 0) + 1;
    }
    if (answer.kind === "failed") {
      summary.status = status;
      summary.error = `${name}: ${answer.detail}`;
    } else if (summary.error === null) summary.status = status;
  }
  if (summary.error === null && summary.outcome.kind === "failed") {
    summary.error = `${asked[0]?.name ?? ""}: answered ${summary.status}, but its answers cannot be read as before; see its format notice`;
  }
  return summary;
}

function outcomeOf(asked: readonly AskedTable[]): PollOutcome["kind"] {
  if (asked.some(({ answer }) => answer.status === 429)) return "throttled";
  return asked.some(isGood) ? "good" : "failed";
}

/** An answer that is good HTTP, and not known to be none. */
function isGood({ answer, isUnreadable }: AskedTable): boolean {
  return answer.kind !== "failed" && isUnreadable !== true;
}

function longestWait(asked: readonly AskedTable[]): number | null {
  const waits = asked.flatMap(({ answer }) =>
    answer.kind === "failed" && answer.retryAfterMs !== null ? [answer.retryAfterMs] : [],
  );
  return waits.length === 0 ? null : Math.max(...waits);
}
