import type { Queryable, Transaction } from "../../db/client.ts";
import type { TopupState } from "../contract.ts";
import { type Decided, isPending } from "./decision-store.ts";

/** A match of a line with an account, and its outcome. People are shown by e-mail address and identified by id. */
export interface BankMatch extends Decided {
  id: bigint;
  lineId: bigint;
  topupId: bigint;
  accountId: bigint;
  /** USD for one unit of the line's currency, in 1e-8. */
  rateE8: bigint;
  /** The amount to credit, in 1e-6 USD. */
  micros: bigint;
  note: string;
  /** The state of the top-up before the match. */
  topupState: Exclude<TopupState, "seen" | "credited" | "rejected">;
  reference: string;
  email: string;
  isClosed: boolean;
  isSuspended: boolean;
  enteredById: string;
  /** Who set the rate at which the line was in suspense; null if it was not, or is in USD. */
  heldById: string | null;
  matchedBy: string;
  matchedById: string;
  matchedAt: Date;
}

/** Stores a match. Returns its id. */
export async function saveMatch(
  tx: Transaction,
  match: Pick<BankMatch, "lineId" | "topupId" | "accountId" | "rateE8" | "micros" | "note" | "topupState"> & {
    by: string;
  },
): Promise<bigint> {
  const [saved] = await tx<{ id: bigint }[]>`
    insert into bank_matches (
      line_id, entered_by, held_by, topup_id, account_id, rate_e8, micros, note, topup_state, matched_by
    )
    select
      id, entered_by, case when currency <> 'USD' then held_by end, ${match.topupId}, ${match.accountId},
      ${match.rateE8}, ${match.micros}, ${match.note}, ${match.topupState}, ${match.by}
    from bank_lines
    where id = ${match.lineId}
    returning id`;
  if (saved === undefined) throw new Error(`there is no bank line ${match.lineId}`);
  return saved.id;
}

/** Returns the matches of a line, newest first. */
export async function listMatches(sql: Queryable, lineId: bigint): Promise<BankMatch[]> {
  return sql<BankMatch[]>`
    select
      m.id, m.line_id as "lineId", m.topup_id as "topupId", m.account_id as "accountId", m.rate_e8 as "rateE8",
      m.micros, m.note, m.topup_state as "topupState", t.reference, a.email, a.closed_at is not null as "isClosed",
      a.suspended_at is not null as "isSuspended", m.entered_by as "enteredById", m.held_by as "heldById", maker.email as "matchedBy",
      m.matched_by as "matchedById", m.matched_at as "matchedAt", approver.email as "approvedBy",
      m.approved_at as "approvedAt", m.one_person as "onePerson", ender.email as "endedBy", m.ended_at as "endedAt",
      m.ended_why as "endedWhy"
    from bank_matches m
    join topups t on t.id = m.topup_id
    join accounts a on a.id = m.account_id
    join auth.users maker on maker.id = m.matched_by
    left join auth.users approver on approver.id = m.approved_by
    left join auth.users ender on ender.id = m.ended_by
    where m.line_id = ${lineId}
    order by m.id desc
    limit 100`;
}

/** Returns the match of a line that is pending approval; null if there is none. */
export async function findOpenMatch(sql: Queryable, lineId: bigint): Promise<BankMatch | null> {
  const [newest] = await listMatches(sql, lineId);
  return newest !== undefined && isPending(newest) ? newest : null;
}
