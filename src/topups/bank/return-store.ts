import type { Queryable, Transaction } from "../../db/client.ts";
import { type Decided, isPending } from "./decision-store.ts";

/** A return of money to its sender, and its outcome. */
export interface BankReturn extends Decided {
  id: bigint;
  lineId: bigint;
  reason: string;
  enteredById: string;
  askedBy: string;
  askedById: string;
  askedAt: Date;
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
  return newest !== undefined && isPending(newest) ? newest : null;
}
