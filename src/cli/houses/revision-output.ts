import type { Sql, Transaction } from "../../db/client.ts";
import { resultText, type Outcome, type Revised, type Voided } from "../../corrections/revision.ts";
import { announce } from "../announce.ts";
import { auditedOrThrow } from "../audited.ts";

/** The result of a decision on a round. */
export type Decided = Revised & Voided;

/**
 * Applies a decision on a round and writes its audit entry.
 * @throws Error with the problem when it was not applied
 */
export async function applyDecision(
  { sql, level }: { sql: Sql; level: string },
  { action, reason }: { action: string; reason: string },
  decide: (tx: Transaction) => Promise<Outcome>,
): Promise<Decided> {
  const { revised, voided, windows } = await auditedOrThrow(
    sql,
    decide,
    ({ revised: { roundId, table, from, to } }) => {
      const target = `round ${roundId} of ${table}`;
      return { action, target, before: resultText(from), after: resultText(to), reason };
    },
  );
  await announce(sql, level);
  return { ...revised, voided, windows };
}

/** The JSON form of a decision. */
export function decisionJson({ revisionId, conflictId, table, roundId, from, to, voided, windows }: Decided) {
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

/** A decision as text. */
export function decisionText({ table, roundId, from, to, voided, windows }: Decided): string {
  const what = from === to ? `stays ${resultText(to)}` : `is ${resultText(to)} now, not ${resultText(from)}`;
  return `round ${roundId} of ${table} ${what}; ${voided} scored forecasts became void, ${windows} of them windows`;
}

/** A result in JSON: a multiplier, or null if it is void. */
export function multiplierOf(hundredths: bigint | null): number | null {
  return hundredths === null ? null : Number(hundredths) / 100;
}
