import type { Queryable } from "../../db/client.ts";

/** The holder of an account, as operators see them. */
export interface HolderSummary {
  closedAt: Date | null;
  /** Null if the account has no holder: created by command and not claimed, or closed. */
  userId: string | null;
  hasTwoFactor: boolean;
  /** Open sessions at the console. */
  sessions: number;
  /** Version of the terms that was accepted last; null for none. */
  terms: string | null;
}

/** The holder of an account; null if there is no such account. */
export async function findHolderSummary(sql: Queryable, accountId: bigint): Promise<HolderSummary | null> {
  const [found] = await sql<HolderSummary[]>`
    select
      a.closed_at as "closedAt",
      a.user_id as "userId",
      coalesce(u.two_factor_enabled, false) as "hasTwoFactor",
      count_console_sessions(a.user_id) as sessions,
      (
        select version
        from consents c
        where c.account_id = a.id and c.kind = 'terms'
        order by c.id desc
        limit 1
      ) as terms
    from accounts a
    left join auth.users u on u.id = a.user_id
    where a.id = ${accountId}`;
  return found ?? null;
}
