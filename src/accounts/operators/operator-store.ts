import { randomUUID } from "node:crypto";
import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import type { OperatorRole } from "./roles.ts";

/** An operator, active or disabled. */
export interface Operator {
  id: string;
  email: string;
  role: OperatorRole;
  createdAt: Date;
  createdBy: string;
  disabledAt: Date | null;
  hasPassword: boolean;
  hasTwoFactor: boolean;
  /** Open sessions. */
  sessions: number;
  seenAt: Date | null;
}

/** All operators, by address. */
export async function listOperators(sql: Queryable): Promise<Operator[]> {
  return sql<Operator[]>`
    select ${columns(sql)}
    from operators o
    join auth.users u on u.id = o.user_id
    order by u.email`;
}

/** An operator by address or id; null if there is none. In a transaction, the row stays locked. */
export async function findOperator(sql: Queryable, by: { email: string } | { id: string }): Promise<Operator | null> {
  const [found] = await sql<Operator[]>`
    select ${columns(sql)}
    from operators o
    join auth.users u on u.id = o.user_id
    where ${"id" in by ? sql`u.id = ${by.id}` : sql`u.email = lower(${by.email})`}
    for update of o`;
  return found ?? null;
}

function columns(sql: Queryable) {
  return sql`
    u.id,
    u.email,
    o.role,
    o.created_at as "createdAt",
    o.created_by as "createdBy",
    o.disabled_at as "disabledAt",
    exists (select from auth.accounts a where a.user_id = u.id and a.password is not null) as "hasPassword",
    coalesce(u.two_factor_enabled, false) as "hasTwoFactor",
    (
      select count(*)::integer
      from auth.sessions s
      where s.user_id = u.id and s.surface = 'ops' and s.expires_at > clock_timestamp()
    ) as sessions,
    (select max(s.seen_at) from auth.sessions s where s.user_id = u.id and s.surface = 'ops') as "seenAt"`;
}

/** The number of active admins. Locks their rows, so that concurrent changes of admins wait. */
export async function countAdmins(tx: Transaction): Promise<number> {
  const rows = await tx`
    select user_id
    from operators
    where role = 'admin' and disabled_at is null
    order by user_id
    for update`;
  return rows.length;
}

/**
 * Creates an operator. Null if the address belongs to an operator or a holder: no person is both, so that a session at the
 * console never opens `/ops`.
 */
export async function insertOperator(
  tx: Transaction,
  given: { email: string; role: OperatorRole; passwordHash: string | null; by: string },
): Promise<{ id: string } | null> {
  const email = given.email.toLowerCase();
  const [made] = await tx<{ id: string }[]>`
    insert into auth.users (id, name, email, email_verified, surface)
    values (${randomUUID()}, ${email}, ${email}, true, 'ops')
    on conflict (email) do nothing
    returning id`;
  if (made === undefined) return null;
  await tx`
    insert into operators (user_id, role, created_by)
    values (${made.id}, ${given.role}, ${given.by})`;
  if (given.passwordHash !== null) await savePassword(tx, made.id, given.passwordHash);
  return made;
}

/** Stores the password hash of an operator. */
export async function savePassword(tx: Transaction, userId: string, passwordHash: string): Promise<void> {
  await tx`
    insert into auth.accounts (id, account_id, provider_id, user_id, password)
    values (${randomUUID()}, ${userId}, 'credential', ${userId}, ${passwordHash})
    on conflict (provider_id, account_id) do update
    set password = excluded.password, updated_at = clock_timestamp()`;
}

/** Changes a password if its hash is still `from`: null if there was none. False if it was changed meanwhile. */
export async function replacePassword(
  tx: Transaction,
  userId: string,
  { from, to }: { from: string | null; to: string },
): Promise<boolean> {
  const saved = await tx`
    insert into auth.accounts (id, account_id, provider_id, user_id, password)
    values (${randomUUID()}, ${userId}, 'credential', ${userId}, ${to})
    on conflict (provider_id, account_id) do update
    set password = excluded.password, updated_at = clock_timestamp()
    where accounts.password = ${from}
    returning id`;
  return saved.length > 0;
}

/** The password hash of a person; null if they have none. */
export async function findPasswordHash(sql: Queryable, { userId }: { userId: string }): Promise<string | null> {
  const [found] = await sql<{ password: string | null }[]>`
    select password
    from auth.accounts
    where user_id = ${userId}
      and provider_id = 'credential'`;
  return found?.password ?? null;
}

/** Changes the role of an operator. */
export async function saveRole(tx: Transaction, userId: string, role: OperatorRole): Promise<void> {
  await tx`
    update operators
    set role = ${role}
    where user_id = ${userId}`;
}

/** Disables or enables an operator. */
export async function saveDisabled(tx: Transaction, userId: string, isDisabled: boolean): Promise<void> {
  await tx`
    update operators
    set disabled_at = ${isDisabled ? tx`clock_timestamp()` : null}
    where user_id = ${userId}`;
}

/** Turns the second factor off for an operator or holder who lost it. False if there was none. */
export async function deleteTwoFactor(tx: Transaction, userId: string): Promise<boolean> {
  const [row] = await tx<{ isOff: boolean }[]>`select take_off_second_factor(${userId}) as "isOff"`;
  return row?.isOff === true;
}

/** Whether a person may sign in at `/ops`. */
export async function isOperator(sql: Sql, userId: string): Promise<boolean> {
  const rows = await sql`
    select from operators
    where user_id = ${userId} and disabled_at is null`;
  return rows.length > 0;
}
