import type { Revised, Voided } from "../../corrections/revision.ts";

/** The JSON form of a decision on a round. */
export function decisionJson({ revised, voided, windows }: { revised: Revised } & Voided) {
  const { revisionId, conflictId, table, roundId, from, to } = revised;
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

/** A result in JSON: a multiplier, or null if it is void. */
export function multiplierOf(hundredths: bigint | null): number | null {
  return hundredths === null ? null : Number(hundredths) / 100;
}
