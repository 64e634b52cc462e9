import type { Queryable } from "../db/client.ts";

/** Who signs in for an account, as operators see it. */
export interface HolderSummary {
  closedAt: Date | null;
  /** Null where nobody does: it was made at the command line and not claimed, or it is closed. */
  userId: string | null;
  hasTwoFactor: boolean;
  /** Sign-ins at the console that have not ended. */
  sessions: number;
  /** The newest version of the terms that was agreed to; null for none. */
  terms: string | null;
}

/** Who signs in for an account; null where there is no such account. */
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
