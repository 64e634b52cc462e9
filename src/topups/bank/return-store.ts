import type { Queryable, Transaction } from "../../db/client.ts";

/** A return of money to its sender, and its outcome. */
export interface BankReturn {
  id: bigint;
  lineId: bigint;
  reason: string;
  enteredById: string;
  askedBy: string;
  askedById: string;
  askedAt: Date;
  approvedBy: string | null;
  approvedAt: Date | null;
  onePerson: boolean;
  endedBy: string | null;
  endedAt: Date | null;
  endedWhy: string | null;
}

/** Stores a return. Returns its id. */
export async function saveReturn(
  tx: Transaction,
  { lineId, reason, by }: { lineId: bigint; reason: string; by: string },
): Promise<bigint> {
  const [saved] = await tx<{ id: bigint }[]>`
    insert into bank_returns (line_id, entered_by, reason, asked_by)
    select id, entered_by, ${reason}, ${by}
    from bank_lines
    where id = ${lineId}
    returning id`;
  if (saved === undefined) throw new Error(`there is no bank line ${lineId}`);
  return saved.id;
}

/** Returns the returns of a line, newest first. */
export async function listReturns(sql: Queryable, lineId: bigint): Promise<BankReturn[]> {
  return sql<BankReturn[]>`
    select
      r.id, r.line_id as "lineId", r.reason, r.entered_by as "enteredById", requester.email as "askedBy",
      r.asked_by as "askedById", r.asked_at as "askedAt", approver.email as "approvedBy",
      r.approved_at as "approvedAt", r.one_person as "onePerson", ender.email as "endedBy", r.ended_at as "endedAt",
      r.ended_why as "endedWhy"
    from bank_returns r
    join auth.users requester on requester.id = r.asked_by
    left join auth.users approver on approver.id = r.approved_by
    left join auth.users ender on ender.id = r.ended_by
    where r.line_id = ${lineId}
    order by r.id desc
    limit 100`;
}

/** Returns the return of a line that is pending approval; null if there is none. */
export async function findOpenReturn(sql: Queryable, lineId: bigint): Promise<BankReturn | null> {
  const [newest] = await listReturns(sql, lineId);
  return newest !== undefined && newest.endedAt === null && newest.approvedAt === null ? newest : null;
}

/**
 * Records the second person's approval. The database refuses the same person, unless the team is configured to have one
 * member.
 */
export async function saveReturnApproval(tx: Transaction, id: bigint, by: string, onePerson: boolean): Promise<void> {
  await tx`
    update bank_returns
    set
      approved_by = ${by},
      approved_at = clock_timestamp(),
      one_person = ${onePerson}
    where id = ${id}`;
}

/** Closes a return: the money was not sent. */
export async function endReturn(tx: Transaction, id: bigint, by: string, why: string): Promise<void> {
  await tx`
    update bank_returns
    set
      ended_by = ${by},
      ended_at = clock_timestamp(),
      ended_why = ${why}
    where id = ${id}`;
}
