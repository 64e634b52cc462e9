import type { Sql } from "../../db/client.ts";
import { legalText } from "../legal.ts";

/** Interval between updates of `seen_at`. The idle limit is days, so minutes are exact enough. */
const NOTED_EVERY_SECONDS = 300;

/** A valid session at the console, and its person. */
export interface HolderSession {
  sessionId: string;
  userId: string;
  email: string;
  accountId: bigint;
  isSuspended: boolean;
  /** Whether the person signed in or confirmed the password within `freshSeconds`. */
  isFresh: boolean;
  hasTwoFactor: boolean;
  /** Whether the account accepted the current terms. */
  hasCurrentTerms: boolean;
}

/** The session, marked as used if `isUse`; null if it expired, was idle for too long, or is not of a holder at the console. */
export async function useHolderSession(
  sql: Sql,
  sessionId: string,
  { idleSeconds, freshSeconds, isUse }: { idleSeconds: number; freshSeconds: number; isUse: boolean },
): Promise<HolderSession | null> {
  const { version, sha256 } = legalText("terms");
  const [found] = await sql<HolderSession[]>`
    with used as (
      update auth.sessions
      set seen_at = clock_timestamp()
      where ${isUse}::boolean
        and id = ${sessionId}
        and surface = 'console'
        and seen_at between clock_timestamp() - make_interval(secs => ${idleSeconds})
          and clock_timestamp() - make_interval(secs => ${NOTED_EVERY_SECONDS})
    )
    select
      s.id as "sessionId",
      u.id as "userId",
      u.email,
      a.id as "accountId",
      a.suspended_at is not null as "isSuspended",
      coalesce(s.confirmed_at > t.fresh_from, false) or s.created_at > t.fresh_from as "isFresh",
      coalesce(u.two_factor_enabled, false) as "hasTwoFactor",
      exists (
        select
        from consents c
        where c.account_id = a.id and c.kind = 'terms' and c.version = ${version} and c.sha256 = ${sha256}
      ) as "hasCurrentTerms"
    from auth.sessions s
    join auth.users u on u.id = s.user_id and u.email_verified
    join accounts a on a.user_id = u.id and a.closed_at is null
    cross join (select clock_timestamp() - make_interval(secs => ${freshSeconds}) as fresh_from) t
    where s.id = ${sessionId}
      and s.surface = 'console'
      and s.expires_at > clock_timestamp()
      and s.seen_at > clock_timestamp() - make_interval(secs => ${idleSeconds})`;
  return found ?? null;
}
