import type { PollOutcome } from "./circuit.ts";
import type { HouseResponse } from "./client.ts";

/** The request and result for one table; times are milliseconds since the lease's database time. */
export interface RequestedTable {
  tableId: number;
  /** game/market, for display. */
  name: string;
  /** The path as stored: values of variables are replaced with `${NAME}`. */
  path: string;
  requestedMs: number;
  receivedMs: number;
  response: HouseResponse;
  /** The round whose own page was requested; absent if the response is a list. */
  roundId?: string;
  /** A page that was requested ahead of its order: when its round was still missing is unknown. */
  isAhead?: boolean;
  /** Another table is listed first with the same response, which counts there. */
  isShared?: boolean;
  /** False for a failure without a request: all connections waited for the house. */
  isSent?: boolean;
  /** A response with status 200 from a feed whose format changed, or the repeat of an unreadable one. */
  isUnreadable?: boolean;
}

/** The figures of one poll of a house. */
export interface PollSummary {
  requests: number;
  /**
   * Requests by status code; 0 = no response, "absent" = the expected 404 of a page whose round was not played yet. A map,
   * because an object with the key 200 takes 2.5 kB.
   */
  statuses: ReadonlyMap<number | "absent", number>;
  /** Of the bodies, decompressed, also of those that are not stored. */
  bytes: number;
  /** Responses within each of {@link LATENCY_BOUNDS_MS}, and slower. */
  latency: number[];
  outcome: PollOutcome;
  /**
   * Milliseconds for which no shard of the house is polled, because it asked us to wait; 0 if it asked for one of several
   * requests, since a path may have a limit of its own.
   */
  houseWaitMs: number;
  /** The status of the poll: that of its newest failure or, without one, of its newest response. */
  status: number;
  /** The last error, or null. */
  error: string | null;
}

/** Upper bounds of the latency histogram in the table `polls`. */
const LATENCY_BOUNDS_MS = [10, 25, 50, 100, 250, 500, 1000, 2500, 5000];

/**
 * Sums up the responses of one poll. One good response makes a good poll, whatever the pages of other tables return;
 * responses that are as unreadable as before do not.
 */
export function summarizePoll(asked: readonly RequestedTable[]): PollSummary {
  const statuses = new Map<number | "absent", number>();
  const retryAfterMs = longestWait(asked);
  const summary: PollSummary = {
    requests: asked.filter((one) => one.isShared !== true && one.isSent !== false).length,
    statuses,
    bytes: 0,
    latency: Array.from({ length: LATENCY_BOUNDS_MS.length + 1 }, () => 0),
    outcome: { kind: outcomeOf(asked), retryAfterMs },
    houseWaitMs: isOfHouse(asked) ? (retryAfterMs ?? 0) : 0,
    status: 0,
    error: null,
  };
  for (const { name, response, isShared, isSent } of asked) {
    if (isShared === true) continue;
    const status = response.status ?? 0;
    const code = response.kind === "absent" ? response.kind : status;
    if (isSent !== false) statuses.set(code, (statuses.get(code) ?? 0) + 1);
    if (response.kind === "response") summary.bytes += response.body.length;
    if (status > 0) {
      const bucket = LATENCY_BOUNDS_MS.findIndex((bound) => response.elapsedMs <= bound);
      const at = bucket < 0 ? LATENCY_BOUNDS_MS.length : bucket;
      summary.latency[at] = (summary.latency[at] ?? 0) + 1;
    }
    if (response.kind === "failed") {
      summary.status = status;
      summary.error = `${name}: ${response.detail}`;
    } else if (summary.error === null) summary.status = status;
  }
  if (summary.error === null && summary.outcome.kind === "failed") {
    summary.error = `${asked[0]?.name ?? ""}: status ${summary.status}, but its responses still cannot be read; see its format notice`;
  }
  return summary;
}

function outcomeOf(asked: readonly RequestedTable[]): PollOutcome["kind"] {
  if (asked.some(({ response }) => response.status === 429)) return "throttled";
  return asked.some(isGood) ? "good" : "failed";
}

/** A response with a good HTTP status that is not known to be unreadable. */
function isGood({ response, isUnreadable }: RequestedTable): boolean {
  return response.kind !== "failed" && isUnreadable !== true;
}

/** Whether a wait is of the house: several requests were refused with one, or none had a good response. */
function isOfHouse(asked: readonly RequestedTable[]): boolean {
  const refused = asked.filter((one) => one.isShared !== true && waitOf(one) !== null);
  return refused.length > 1 || !asked.some(isGood);
}

function longestWait(asked: readonly RequestedTable[]): number | null {
  const waits = asked.map(waitOf).filter((waitMs) => waitMs !== null);
  return waits.length === 0 ? null : Math.max(...waits);
}

/** How long a response asked us to wait. */
function waitOf({ response }: RequestedTable): number | null {
  return response.kind === "failed" ? response.retryAfterMs : null;
}
