import type { Allowance, Caller } from "../callers/caller-store.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { untilNextDay, untilNextMonth } from "../usage/calendar.ts";
import { Meter } from "../usage/meter.ts";
import type { Quota } from "../usage/quota.ts";
import type { Call, Verdict } from "../usage/store.ts";
import { ApiError, FAILURES, type ErrorCode } from "../http/errors.ts";
import { within } from "../within.ts";
import { TIMES, type ApiTimes } from "./times.ts";

/** The limit of pending batches: the database would refuse more. */
const MOST_PENDING = 3;
const RETRY_AFTER_SECONDS = 5;

/** The result of checking a call against its account's quota. */
export interface Counted {
  /** Null if the call is counted and must be served; otherwise the response. */
  refusal: ApiError | null;
  /** The account's counts after this call; null if it was refused for another reason. */
  quota: Quota | null;
}

/** Counts calls before their 200 responses. */
export interface Metering {
  /**
   * @param call its caller and plan
   * @throws ApiError `temporarily_unavailable` if it is unknown whether the call may be served.
   */
  count(call: { caller: Caller; plan: Allowance }, endpoint: string): Promise<Counted>;
  /** Refuses a call whose quota is known to be used up; null if counting the call must decide. */
  exhausted(plan: Allowance): Counted | null;
}

/**
 * Makes the last step before a response. Nothing is undone afterwards: a counted call is served. An uncounted call is
 * not served, since it would be free, and it is not counted later either: deadlines run from the time at
 * which the oldest call of a batch was handed over, the database enforces them, and a call that waits too long is never
 * sent. A call is counted without being served only if the database's response is lost or arrives more than a quarter of
 * a second after the deadline, or if this process dies after counting: then a proxy or client that sends the request
 * again is counted twice.
 *
 * An account without quota is refused without a query until its caller is looked up again (after a change of plan, key
 * or account, and every five seconds) or its day ends by the database clock.
 * @param consume counts a batch unless the deadline, in database time, has passed
 * @param nowMs returns database time in milliseconds
 */
export function meterCalls(
  consume: (calls: readonly Call[], deadline: Date) => Promise<Verdict[]>,
  nowMs: () => number,
  log: Log,
  {
    sentWithinMs,
    countedWithinMs,
    verdictMs,
  }: Pick<ApiTimes, "sentWithinMs" | "countedWithinMs" | "verdictMs"> = TIMES,
): Metering {
  let pending = 0;
  let isFailing = false;
  // by plan object: each lookup of a caller makes a new one, with its current use
  const counted = new WeakMap<Allowance, { outcome: ErrorCode | null; quota: Quota }>();

  async function send(calls: readonly Call[], oldestAt: number): Promise<Verdict[]> {
    const waitedMs = performance.now() - oldestAt;
    try {
      const verdicts = await within(verdictMs - waitedMs, "PostgreSQL", ask(calls, countedWithinMs - waitedMs));
      if (isFailing) log.info("calls can be counted again");
      isFailing = false;
      return verdicts;
    } catch (error) {
      if (!isFailing) log.error(`calls cannot be counted, so they are refused: ${reasonOf(error)}`);
      isFailing = true;
      throw error;
    }
  }

  async function ask(calls: readonly Call[], withinMs: number): Promise<Verdict[]> {
    if (pending >= MOST_PENDING) throw new Error(`${pending} batches of calls are still pending`);
    pending++;
    try {
      return await consume(calls, new Date(nowMs() + withinMs));
    } finally {
      pending--;
    }
  }

  function exhausted(plan: Allowance): Counted | null {
    const { quota, outcome } = counted.get(plan) ?? lookedUp(plan);
    const now = nowMs();
    // also if the month is used up: the rest of the day changes at midnight
    const isOver = now >= quota.atMs + untilNextDay(quota.atMs);
    return outcome === null || isOver ? null : refused(outcome, { ...quota, atMs: now });
  }

  const meter = new Meter(send, { ms: sentWithinMs, nowMs: () => performance.now() });
  return {
    exhausted,
    async count({ caller: { keyId }, plan }, endpoint) {
      const known = exhausted(plan);
      if (known !== null) return known;
      let verdict: Verdict;
      try {
        verdict = await meter.consume({ keyId, endpoint }, performance.now());
      } catch (cause) {
        throw new ApiError("temporarily_unavailable", { cause, headers: { "Retry-After": `${RETRY_AFTER_SECONDS}` } });
      }
      const { outcome } = verdict;
      const quota = quotaOf(verdict);
      if (outcome === "ok") {
        counted.set(plan, { outcome: outcomeOf(plan, quota), quota });
        return { refusal: null, quota };
      }
      if (!isErrorCode(outcome)) {
        throw new Error(`expected an outcome of the meter that is in the table of errors, found ${outcome}`);
      }
      if (FAILURES[outcome].status !== 429) return { refusal: new ApiError(outcome), quota: null };
      counted.set(plan, { outcome, quota });
      return refused(outcome, quota);
    },
  };
}

function lookedUp(plan: Allowance): { outcome: ErrorCode | null; quota: Quota } {
  const { used, dayLimit, monthLimit } = plan;
  const quota = { dayUsed: used.day, monthUsed: used.month, dayLimit, monthLimit, atMs: used.atMs };
  return { outcome: outcomeOf(plan, quota), quota };
}

/** The limit that refuses the next call, by the rules of `consume_calls`; null if none does. */
function outcomeOf({ dayCeiling }: Allowance, { dayUsed, monthUsed, dayLimit, monthLimit }: Quota): ErrorCode | null {
  if (monthLimit !== null && monthUsed >= monthLimit) return "month_quota_exceeded";
  if (dayLimit !== null) return dayUsed >= dayLimit ? "day_quota_exceeded" : null;
  return dayCeiling !== null && dayUsed >= dayCeiling ? "service_ceiling_reached" : null;
}

function refused(outcome: ErrorCode, quota: Quota): Counted {
  const seconds = Math.ceil(waitMs(outcome, quota.atMs) / 1_000);
  return { refusal: new ApiError(outcome, { headers: { "Retry-After": `${seconds}` } }), quota };
}

function waitMs(outcome: ErrorCode, atMs: number): number {
  return outcome === "month_quota_exceeded" ? untilNextMonth(atMs) : untilNextDay(atMs);
}

function quotaOf({ dayUsed, monthUsed, dayLimit, monthLimit, decidedAtMs }: Verdict): Quota {
  return { dayUsed: dayUsed ?? 0n, monthUsed: monthUsed ?? 0n, dayLimit, monthLimit, atMs: decidedAtMs };
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(FAILURES, text);
}
