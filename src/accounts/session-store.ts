import type { Queryable, Sql, Transaction } from "../db/client.ts";
import type { IdentitySurface } from "./identity.ts";
import type { OperatorRole } from "./roles.ts";

/** Between two notes that a sign-in is used: less often than that would make an idle hour of minutes, more often only writes. */
const NOTED_EVERY_SECONDS = 30;

/** Sign-ins of a list. Whoever has more ends all others at once. */
const MOST_LISTED = 50;

/** A sign-in at `/ops` that holds, and whose it is. */
export interface OperatorSession {
  sessionId: string;
  userId: string;
  email: string;
  role: OperatorRole;
  /** Whether it was made, or the password given again, in the last minutes. */
  isFresh: boolean;
  hasPassword: boolean;
  hasTwoFactor: boolean;
}

/**
 * A sign-in that is used now; null where it has ended: its time is over, it was idle for too long, its holder may not
 * sign in any longer, or it is not of `/ops`. By a link alone, somebody with a second factor is never fresh.
 */
export async function useOperatorSession(
  sql: Sql,
  sessionId: string,
  { idleSeconds, freshSeconds }: { idleSeconds: number; freshSeconds: number },
): Promise<OperatorSession | null> {
  const [found] = await sql<OperatorSession[]>`
    with used as (
      update auth.sessions
      set seen_at = clock_timestamp()
      where id = ${sessionId}
        and surface = 'ops'
        and seen_at between clock_timestamp() - make_interval(secs => ${idleSeconds})
          and clock_timestamp() - make_interval(secs => ${NOTED_EVERY_SECONDS})
    )
    select
      s.id as "sessionId",
      u.id as "userId",
      u.email,
      o.role,
      coalesce(s.confirmed_at > t.fresh_from, false)
        or (s.created_at > t.fresh_from and not (s.by_link and coalesce(u.two_factor_enabled, false))) as "isFresh",
      exists (select from auth.accounts a where a.user_id = u.id and a.password is not null) as "hasPassword",
      coalesce(u.two_factor_enabled, false) as "hasTwoFactor"
    from auth.sessions s
    join auth.users u on u.id = s.user_id
    join operators o on o.user_id = u.id and o.disabled_at is null
    cross join (select clock_timestamp() - make_interval(secs => ${freshSeconds}) as fresh_from) t
    where s.id = ${sessionId}
      and s.surface = 'ops'
      and s.expires_at > clock_timestamp()
      and s.seen_at > clock_timestamp() - make_interval(secs => ${idleSeconds})`;
  return found ?? null;
}

/** Notes that the holder of a sign-in gave the password again. */
export async function confirmSession(sql: Queryable, sessionId: string): Promise<void> {
  await sql`
    update auth.sessions
    set confirmed_at = clock_timestamp()
    where id = ${sessionId}`;
}

/** A sign-in as its holder sees it. */
export interface ListedSession {
  id: string;
  createdAt: Date;
  seenAt: Date;
  expiresAt: Date;
  address: string | null;
  userAgent: string | null;
  byLink: boolean;
}

/** Somebody's sign-ins at a surface that have not ended, the newest first: as many as a page has room for. */
export async function listSessions(
  sql: Sql,
  userId: string,
  { idleSeconds, surface }: { idleSeconds: number; surface: IdentitySurface },
): Promise<ListedSession[]> {
  return sql<ListedSession[]>`
    select
      id, created_at as "createdAt", seen_at as "seenAt", expires_at as "expiresAt", ip_address as address,
      user_agent as "userAgent", by_link as "byLink"
    from auth.sessions
    where user_id = ${userId}
      and surface = ${surface}
      and expires_at > clock_timestamp()
      and seen_at > clock_timestamp() - make_interval(secs => ${idleSeconds})
    order by created_at desc
    limit ${MOST_LISTED}`;
}

/** Ends one sign-in of somebody. False where they have none by that id at this surface. */
export async function endSession(
  tx: Transaction,
  userId: string,
  sessionId: string,
  surface: IdentitySurface,
): Promise<boolean> {
  const gone = await tx`
    delete from auth.sessions
    where id = ${sessionId} and user_id = ${userId} and surface = ${surface}
    returning id`;
  return gone.length > 0;
}

/**
 * Ends all sign-ins of somebody, but for one where that is given and those elsewhere where a surface is, and those that
 * wait for their second step: they began with a password that may be no longer right. Gives how many had begun.
 */
export async function endSessions(
  tx: Transaction,
  userId: string,
  { except = null, surface = null }: { except?: string | null; surface?: IdentitySurface | null } = {},
): Promise<number> {
  await tx`
    delete from auth.verifications
    where value = ${userId} and starts_with(identifier, '2fa-')`;
  const gone = await tx`
    delete from auth.sessions
    where user_id = ${userId}
      and id is distinct from ${except}
      and (${surface}::text is null or surface = ${surface})
    returning id`;
  return gone.length;
}

/** Ends all sign-ins of a holder for an operator, who cannot see them. Gives how many there were. */
export async function endHolderSessions(tx: Transaction, userId: string): Promise<number> {
  const [row] = await tx<{ ended: number }[]>`select end_console_sessions(${userId}) as ended`;
  return row?.ended ?? 0;
}

/**
 * Forgets sign-ins whose time has been over for a day, with the addresses they came from, second steps that nobody took,
 * sign-ups that nobody confirmed, and links in mails that no longer work. Gives how many.
 */
export async function forgetEndedSignIns(sql: Sql): Promise<number> {
  const gone = await Promise.all([
    sql`delete from auth.sessions where expires_at < clock_timestamp() - interval '1 day'`,
    sql`delete from auth.verifications where expires_at < clock_timestamp() - interval '1 day'`,
    sql`delete from sign_ups where expires_at < clock_timestamp()`,
    sql`delete from mail_tokens where expires_at < clock_timestamp() - interval '1 day'`,
  ]);
  return gone.reduce((sum, { count }) => sum + count, 0);
}
