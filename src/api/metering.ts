import type { Allowance, Caller } from "../callers/caller-store.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { untilNextDay, untilNextMonth } from "../usage/calendar.ts";
import { Meter } from "../usage/meter.ts";
import type { Quota } from "../usage/quota.ts";
import type { Call, Verdict } from "../usage/store.ts";
import { ApiError, FAILURES, type ErrorCode } from "../http/errors.ts";
import { within } from "../http/within.ts";

/** A call whose turn to be sent comes later than this after it came is refused. */
const SENT_WITHIN_MS = 500;
/** Calls whose turn in the database comes later than this are not counted any more. */
const COUNTED_WITHIN_MS = 700;
/** How long an answer is waited for: longer, so that what was counted in the last moment is still answered. */
const PATIENCE_MS = 950;
/** More batches than this without an answer are not sent: the database would only have them to refuse. */
const MOST_UNANSWERED = 3;
const RETRY_AFTER_SECONDS = 5;

/** A call that was held against its account's quota. */
export interface Counted {
  /** Null where the call is counted and must be answered; else what to answer instead. */
  refusal: ApiError | null;
  /** The account's counts after this call; null where it was refused for another reason than its quota. */
  quota: Quota | null;
}

/** Counts a call that is about to be answered with a 200. */
export interface Metering {
  /**
   * @param call whose it is, by which plan, and since when it is here, by `performance.now()`
   * @throws ApiError `temporarily_unavailable` where nobody can tell whether the call may be answered.
   */
  count(call: { caller: Caller; plan: Allowance; begunAt: number }, endpoint: string): Promise<Counted>;
  /** The refusal of a call by a plan whose quota is known to be used up; null when counting the call must decide. */
  exhausted(plan: Allowance): Counted | null;
}

/**
 * The last step before an answer: nothing is taken back afterwards, so what was admitted is what was answered. A call
 * that cannot be counted is not answered, since it would be free; and one that was refused for that is not counted
 * afterwards: times run from when the oldest call of a batch came, the database keeps to the deadline that goes with
 * each batch, and whoever waits too long behind another is never sent. What leaves a call counted and not answered is an
 * answer of the database that is lost on its way, or comes a quarter of a second after it could still count.
 *
 * An account whose quota is used up is refused without asking the database, until its caller is looked up again (after a
 * change of plan, key or account, and every five seconds) or its day ends by the database clock.
 * @param consume counts a batch unless the deadline, in database time, has passed
 * @param nowMs tells database time in milliseconds
 */
export function meterCalls(
  consume: (calls: readonly Call[], deadline: Date) => Promise<Verdict[]>,
  nowMs: () => number,
  log: Log,
): Metering {
  let unanswered = 0;
  let isFailing = false;
  // by plan object: looking up a caller makes another one, with what was used by then
  const counted = new WeakMap<Allowance, { outcome: ErrorCode | null; quota: Quota }>();

  async function send(calls: readonly Call[], oldestAt: number): Promise<Verdict[]> {
    const waitedMs = performance.now() - oldestAt;
    try {
      const verdicts = await within(PATIENCE_MS - waitedMs, "PostgreSQL", ask(calls, COUNTED_WITHIN_MS - waitedMs));
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
    if (unanswered >= MOST_UNANSWERED) throw new Error(`${unanswered} batches of calls are still without an answer`);
    unanswered++;
    try {
      return await consume(calls, new Date(nowMs() + withinMs));
    } finally {
      unanswered--;
    }
  }

  function exhausted(plan: Allowance): Counted | null {
    const { quota, outcome } = counted.get(plan) ?? lookedUp(plan);
    const now = nowMs();
    // also when the month is used up: what is left of the day changes at midnight
    const isOver = now >= quota.atMs + untilNextDay(quota.atMs);
    return outcome === null || isOver ? null : refused(outcome, { ...quota, atMs: now });
  }

  const meter = new Meter(send, { ms: SENT_WITHIN_MS, nowMs: () => performance.now() });
  return {
    exhausted,
    async count({ caller: { keyId }, plan, begunAt }, endpoint) {
      const known = exhausted(plan);
      if (known !== null) return known;
      let verdict: Verdict;
      try {
        verdict = await meter.consume({ keyId, endpoint }, begunAt);
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
        throw new Error(`expected an outcome of the meter that is in the table of errors, got ${outcome}`);
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

/** Which limit refuses the next call, as `consume_calls` decides it; null when none does. */
function outcomeOf({ dayCeiling }: Allowance, { dayUsed, monthUsed, dayLimit, monthLimit }: Quota): ErrorCode | null {
  if (monthLimit !== null && monthUsed >= monthLimit) return "month_quota_exceeded";
  if (dayLimit !== null && dayUsed >= dayLimit) return "day_quota_exceeded";
  return dayCeiling !== null && dayUsed >= dayCeiling ? "service_ceiling_reached" : null;
}

function refused(outcome: ErrorCode, quota: Quota): Counted {
  const seconds = Math.ceil(waitMs(outcome, quota.atMs) / 1_000);
  return { refusal: new ApiError(outcome, { headers: { "Retry-After": `${seconds}` } }), quota };
}

function waitMs(outcome: ErrorCode, atMs: number): number {
  return outcome === "month_quota_exceeded" ? untilNextMonth(atMs) : untilNextDay(atMs);
}

function quotaOf({ dayUsed, monthUsed, dayLimit, monthLimit, judgedAtMs }: Verdict): Quota {
  return { dayUsed: dayUsed ?? 0n, monthUsed: monthUsed ?? 0n, dayLimit, monthLimit, atMs: judgedAtMs };
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(FAILURES, text);
}
