import type { Transaction } from "../../db/client.ts";

/** The outcome of a match or a return: approved by a second person, ended, or neither while it is pending. */
export interface Decided {
  approvedBy: string | null;
  approvedAt: Date | null;
  onePerson: boolean;
  endedBy: string | null;
  endedAt: Date | null;
  endedWhy: string | null;
}

/** Whether it is neither approved nor ended. */
export function isPending({ approvedAt, endedAt }: Pick<Decided, "approvedAt" | "endedAt">): boolean {
  return approvedAt === null && endedAt === null;
}

/** The tables of decisions on lines that need a second person. */
type Decisions = "bank_matches" | "bank_returns";

/**
 * Records the second person's approval. The database refuses the same person, unless the team is configured to have one
 * member.
 */
export async function saveApproval(
  tx: Transaction,
  decisions: Decisions,
  id: bigint,
  { by, onePerson }: { by: string; onePerson: boolean },
): Promise<void> {
  await tx`
    update ${tx(decisions)}
    set
      approved_by = ${by},
      approved_at = clock_timestamp(),
      one_person = ${onePerson}
    where id = ${id}`;
}

/** Ends a match without a credit, or a return whose money was not sent. */
export async function endDecision(
  tx: Transaction,
  decisions: Decisions,
  id: bigint,
  { by, why }: { by: string; why: string },
): Promise<void> {
  await tx`
    update ${tx(decisions)}
    set
      ended_by = ${by},
      ended_at = clock_timestamp(),
      ended_why = ${why}
    where id = ${id}`;
}
