import type { Sql, Transaction } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import { applyRevision } from "../forecasts/score/apply-revision.ts";
import { standingText, type Outcome, type Revised } from "../rounds/revision.ts";
import { announce } from "./announce.ts";
import { audited } from "./audited.ts";
import { listenForInterruption } from "./interruption.ts";

/** What a decision on a round came to; null where what it touches is left to the next score-accuracy. */
export type Decided = Revised & { voided: number | null; windows: number | null };

/**
 * Takes a decision on a round, written down, and voids what it touches.
 * @throws Error with the problem where it was not taken.
 */
export async function takeDecision(
  { sql, level }: { sql: Sql; level: string },
  { action, reason }: { action: string; reason: string },
  decide: (tx: Transaction) => Promise<Outcome>,
): Promise<Decided> {
  const outcome = await audited(sql, decide, (done) =>
    done.ok
      ? {
          action,
          target: `round ${done.revised.roundId} of ${done.revised.table}`,
          before: standingText(done.revised.from),
          after: standingText(done.revised.to),
          reason,
        }
      : null,
  );
  if (!outcome.ok) throw new Error(outcome.problem);
  const interruption = listenForInterruption(
    "interrupted; the decision is stored, and the next score-accuracy applies it",
  );
  try {
    const touched = await applyRevision(sql, outcome.revised.tableId, interruption.signal);
    return { ...outcome.revised, ...touched };
  } catch (error) {
    // the decision is stored, whatever becomes of this; a stop is a stop
    interruption.signal.throwIfAborted();
    process.stderr.write(`the decision is stored, and what it touches could not be voided yet: ${reasonOf(error)}\n`);
    return { ...outcome.revised, voided: null, windows: null };
  } finally {
    interruption.end();
    await announce(sql, level);
  }
}

/** A decision as programs read it. */
export function decidedForPrograms({ revisionId, conflictId, table, roundId, from, to, voided, windows }: Decided) {
  return {
    revision_id: Number(revisionId),
    conflict_id: conflictId === null ? null : Number(conflictId),
    table,
    round_id: roundId,
    from: multiplierOf(from),
    to: multiplierOf(to),
    voided,
    windows,
  };
}

/** A decision in words. */
export function decidedText({ table, roundId, from, to, voided, windows }: Decided): string {
  const what = from === to ? `stays ${standingText(to)}` : `is ${standingText(to)} now, not ${standingText(from)}`;
  const touched =
    voided === null || windows === null
      ? "forecasts on it become void with the next score-accuracy"
      : `forecasts that became void now: ${voided}, windows that ended: ${windows}`;
  return `round ${roundId} of ${table} ${what}; ${touched}`;
}

function multiplierOf(hundredths: bigint | null): number | null {
  return hundredths === null ? null : Number(hundredths) / 100;
}
