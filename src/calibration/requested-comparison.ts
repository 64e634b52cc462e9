import { z } from "zod";
import type { Sql } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import { compareCalibrations, type Comparison } from "./compare.ts";
import { giveUpLostComparison } from "./runs/lost-attempts-store.ts";
import { beatComparison, finishComparison, leaveComparison, takeComparison, type Pair } from "./comparison-store.ts";

/** A chunk takes 10 ms for each of the two, since the process has other work. */
const ROUNDS_PER_CHUNK = 1000;

/** Orders two ids, the older record first, so that a pair has one comparison. */
export function pairOf(one: string, other: string): Pair {
  return BigInt(one) < BigInt(other) ? [one, other] : [other, one];
}

/**
 * Executes a pending comparison and stores its paired difference; returns false if it is not pending. It fails with a stored
 * reason if the records cannot be compared or too many workers were lost; a stopping worker leaves it to the next one.
 */
export async function runComparison(sql: Sql, pair: Pair, signal: AbortSignal): Promise<boolean> {
  const lost = await giveUpLostComparison(sql, pair);
  if (lost !== null) throw new Error(lost);
  const attempt = await takeComparison(sql, pair);
  if (attempt === null) return false;
  try {
    const { paired } = await compareCalibrations(sql, [...pair], {
      signal,
      roundsPerChunk: ROUNDS_PER_CHUNK,
      afterChunk: (done, of) => beatComparison(sql, attempt, done, of),
    });
    await finishComparison(sql, attempt, paired);
    return true;
  } catch (error) {
    await leaveComparison(sql, attempt, { status: signal.aborted ? "queued" : "failed", reason: reasonOf(error) });
    throw error;
  }
}

const paired = z.strictObject({
  from_seq: z.number(),
  to_seq: z.number(),
  rounds: z.number(),
  a_log_loss: z.number(),
  b_log_loss: z.number(),
  difference: z.number(),
  interval_95: z.tuple([z.number(), z.number()]).nullable(),
}) satisfies z.ZodType<Comparison["paired"]>;

/** Parses a stored paired difference, or returns why it cannot be read; both records are stored, so it can be recomputed. */
export function readPaired(json: unknown): { ok: true; paired: Comparison["paired"] } | { ok: false; reason: string } {
  const parsed = paired.safeParse(json);
  if (parsed.success) return { ok: true, paired: parsed.data };
  const found = z.prettifyError(parsed.error);
  return { ok: false, reason: `expected the paired difference of two records, got ${found}; compare again` };
}

/** Which of `a` and `b` is better by a paired difference; null if the interval contains 0. */
export function betterOf({ interval_95: interval }: Pick<Comparison["paired"], "interval_95">): "a" | "b" | null {
  if (interval === null || (interval[0] <= 0 && interval[1] >= 0)) return null;
  return interval[1] < 0 ? "a" : "b";
}
