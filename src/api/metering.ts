import type { Caller } from "../callers/caller-store.ts";
import { reasonOf } from "../errors.ts";
import type { Log } from "../log.ts";
import { Meter } from "../usage/meter.ts";
import type { Call, Verdict } from "../usage/store.ts";
import { ApiError, FAILURES, type ErrorCode } from "./errors.ts";
import { within } from "./within.ts";

/** Calls whose turn in the database comes later than this are not counted any more. */
const COUNTED_WITHIN_MS = 800;
/** How long an answer is waited for: longer, so that what was counted in the last moment is still answered. */
const PATIENCE_MS = 1_200;
/** More batches than this without an answer are not sent: the database would only have them to refuse. */
const MOST_UNANSWERED = 3;
const RETRY_AFTER_SECONDS = 5;
const DAY_MS = 86_400_000;

/** Counts a call that is about to be answered with a 200. */
export interface Metering {
  /** @throws ApiError where the call may not be answered: its quota is gone, its key is no longer good, or nobody can tell. */
  admit(caller: Caller, endpoint: string): Promise<void>;
}

/**
 * The last step before an answer: nothing is taken back afterwards, so what was admitted is what was answered. A call
 * that cannot be counted is not answered, since it would be free; and one that was refused for that is not counted
 * afterwards, since the database keeps to the deadline that goes with each batch. Only an answer of the database that
 * is lost on its way leaves a call counted and not answered.
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

  async function send(calls: readonly Call[]): Promise<Verdict[]> {
    try {
      const verdicts = await within(PATIENCE_MS, "PostgreSQL", ask(calls));
      if (isFailing) log.info("calls can be counted again");
      isFailing = false;
      return verdicts;
    } catch (error) {
      if (!isFailing) log.error(`calls cannot be counted, so they are refused: ${reasonOf(error)}`);
      isFailing = true;
      throw error;
    }
  }

  async function ask(calls: readonly Call[]): Promise<Verdict[]> {
    if (unanswered >= MOST_UNANSWERED) throw new Error(`${unanswered} batches of calls are still without an answer`);
    unanswered++;
    try {
      return await consume(calls, new Date(nowMs() + COUNTED_WITHIN_MS));
    } finally {
      unanswered--;
    }
  }

  const meter = new Meter(send);
  return {
    async admit({ keyId }, endpoint) {
      let verdict: Verdict;
      try {
        verdict = await meter.consume({ keyId, endpoint });
      } catch (cause) {
        throw new ApiError("temporarily_unavailable", { cause, headers: { "Retry-After": `${RETRY_AFTER_SECONDS}` } });
      }
      if (verdict.outcome !== "ok") throw refusalOf(verdict);
    },
  };
}

function refusalOf({ outcome, judgedAtMs }: Verdict): Error {
  if (!isErrorCode(outcome)) {
    return new Error(`expected an outcome of the meter that is in the table of errors, got ${outcome}`);
  }
  if (FAILURES[outcome].status !== 429) return new ApiError(outcome);
  const waitMs = outcome === "month_quota_exceeded" ? untilNextMonth(judgedAtMs) : DAY_MS - (judgedAtMs % DAY_MS);
  return new ApiError(outcome, { headers: { "Retry-After": `${Math.ceil(waitMs / 1_000)}` } });
}

function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(FAILURES, text);
}

function untilNextMonth(nowMs: number): number {
  const now = new Date(nowMs);
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) - nowMs;
}
