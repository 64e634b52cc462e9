import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import { browserName } from "./browser-name.ts";
import type { IdentitySurface } from "./identity.ts";
import type { OperatorRole } from "../operators/roles.ts";

/** Interval between updates of `seen_at`: small against an idle limit of an hour, and few writes. */
const NOTED_EVERY_SECONDS = 30;

/** Sessions in a list. A person with more can end all others together. */
const MOST_LISTED = 50;

/** A valid session at `/ops`, and its operator. */
export interface OperatorSession {
  sessionId: string;
  userId: string;
  email: string;
  role: OperatorRole;
  /** Whether the operator signed in or confirmed the password within `freshSeconds`. */
  isFresh: boolean;
  hasPassword: boolean;
  hasTwoFactor: boolean;
}

/**
 * The session, marked as used if `isUse`; null if it expired, was idle for too long, its operator is disabled, or it is not of `/ops`.
 * A sign-in by link never counts as fresh for a person with a second factor.
 */
export async function useOperatorSession(
  sql: Sql,
  sessionId: string,
  { idleSeconds, freshSeconds, isUse }: { idleSeconds: number; freshSeconds: number; isUse: boolean },
): Promise<OperatorSession | null> {
  const [found] = await sql<OperatorSession[]>`
    with used as (
      update auth.sessions
      set seen_at = clock_timestamp()
      where ${isUse}::boolean
        and id = ${sessionId}
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

/** Stores that the password was confirmed in a session. False if the session has ended. */
export async function confirmSession(sql: Queryable, sessionId: string): Promise<boolean> {
  const confirmed = await sql`
    update auth.sessions
    set confirmed_at = clock_timestamp()
    where id = ${sessionId}
    returning id`;
  return confirmed.length > 0;
}

/** A session as its owner sees it. */
export interface ListedSession {
  id: string;
  createdAt: Date;
  seenAt: Date;
  expiresAt: Date;
  address: string | null;
  /** Such as "Firefox on Linux"; null if its sign-in named none. */
  browser: string | null;
  byLink: boolean;
}

/** Open sessions of a person at a surface, newest first, up to a page. */
export async function listSessions(
  sql: Sql,
  userId: string,
  { idleSeconds, surface }: { idleSeconds: number; surface: IdentitySurface },
): Promise<ListedSession[]> {
  const sessions = await sql<(Omit<ListedSession, "browser"> & { userAgent: string | null })[]>`
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
  return sessions.map(({ userAgent, ...session }) => ({
    ...session,
    browser: userAgent === null || userAgent === "" ? null : browserName(userAgent),
  }));
}

/**
 * Ends one session of a person, and sign-ins that are being checked: one of them may replace this session. False if they
 * have none with this id at this surface.
 */
export async function endSession(
  tx: Transaction,
  userId: string,
  sessionId: string,
  surface: IdentitySurface,
): Promise<boolean> {
  await addRevocation(tx, userId);
  const gone = await tx`
    delete from auth.sessions
    where id = ${sessionId} and user_id = ${userId} and surface = ${surface}
    returning id`;
  return gone.length > 0;
}

/**
 * Ends the sessions of a person, all but `except`, at one surface if given. Also ends pending second steps, since their
 * password may have changed, and sign-ins that are being checked, see `askSession`. Returns the number of ended sessions.
 */
export async function endSessions(
  tx: Transaction,
  userId: string,
  { except = null, surface = null }: { except?: string | null; surface?: IdentitySurface | null } = {},
): Promise<number> {
  await addRevocation(tx, userId);
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

/** To be called before sessions are deleted: from then on `askSession` waits for the end of the transaction. */
async function addRevocation(tx: Transaction, userId: string): Promise<void> {
  await tx`
    update auth.users
    set revocations = revocations + 1
    where id = ${userId}`;
}

/**
 * How often sessions of a person were ended from elsewhere; null if there is no such person. With `locks` it waits for an
 * end that is not committed yet.
 */
export async function findRevocations(
  sql: Queryable,
  by: { email: string } | { userId: string },
  { locks = false } = {},
): Promise<number | null> {
  const [found] = await sql<{ count: number }[]>`
    select revocations as count
    from auth.users
    where ${"userId" in by ? sql`id = ${by.userId}` : sql`email = lower(${by.email})`}
    ${locks ? sql`for share` : sql``}`;
  return found?.count ?? null;
}

/** Ends all sessions of a holder on behalf of an operator, who cannot see them. Returns their number. */
export async function endHolderSessions(tx: Transaction, userId: string): Promise<number> {
  const [row] = await tx<{ ended: number }[]>`select end_console_sessions(${userId}) as ended`;
  return row?.ended ?? 0;
}

/**
 * Deletes sessions (with their addresses), pending second steps and mail tokens that expired a day ago, and expired
 * sign-ups. Returns the number of deleted rows.
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
