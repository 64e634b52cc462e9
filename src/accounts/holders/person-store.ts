import { randomUUID } from "node:crypto";
import type { Queryable, Transaction } from "../../db/client.ts";
import { savePassword } from "../operators/operator-store.ts";

/** A holder. Operators are separate people with other addresses. */
export interface KnownPerson {
  userId: string;
  email: string;
  hasTwoFactor: boolean;
  /** The account that they hold; null if they hold none. */
  accountId: bigint | null;
}

/** A holder by address or id; null if there is none. */
export async function findPerson(
  sql: Queryable,
  by: { email: string } | { userId: string },
): Promise<KnownPerson | null> {
  const [found] = await sql<KnownPerson[]>`
    select
      u.id as "userId",
      u.email,
      coalesce(u.two_factor_enabled, false) as "hasTwoFactor",
      a.id as "accountId"
    from auth.users u
    left join accounts a on a.user_id = u.id and a.closed_at is null
    where u.surface = 'console'
      and ${"userId" in by ? sql`u.id = ${by.userId}` : sql`u.email = lower(${by.email})`}`;
  return found ?? null;
}

/** Whether a person may sign in at the console: they hold an open account, and their address is confirmed. */
export async function isHolder(sql: Queryable, userId: string): Promise<boolean> {
  const rows = await sql`
    select
    from auth.users u
    join accounts a on a.user_id = u.id and a.closed_at is null
    where u.id = ${userId} and u.email_verified and u.surface = 'console'`;
  return rows.length > 0;
}

/** Creates a person with a confirmed address and returns the id; null if the address is registered already. */
export async function insertPerson(
  tx: Transaction,
  { email, passwordHash }: { email: string; passwordHash: string },
): Promise<string | null> {
  const [made] = await tx<{ id: string }[]>`
    insert into auth.users (id, name, email, email_verified, surface)
    values (${randomUUID()}, ${email}, ${email}, true, 'console')
    on conflict (email) do nothing
    returning id`;
  if (made === undefined) return null;
  await savePassword(tx, made.id, passwordHash);
  return made.id;
}

/**
 * Opens the account of a person's address: a new one, or an unclaimed one that was created by command. Null if another
 * person holds it.
 */
export async function openAccount(
  tx: Transaction,
  { userId, email }: { userId: string; email: string },
): Promise<{ accountId: bigint; isClaimed: boolean } | null> {
  const [row] = await tx<{ accountId: bigint; isClaimed: boolean }[]>`
    insert into accounts (email, verified_at, user_id)
    values (${email}, clock_timestamp(), ${userId})
    on conflict (lower(email)) do update
    set
      user_id = excluded.user_id,
      verified_at = coalesce(accounts.verified_at, excluded.verified_at)
    where accounts.user_id is null and accounts.closed_at is null
    returning id as "accountId", xmax <> 0 as "isClaimed"`;
  return row ?? null;
}

/** Whether an address belongs to a person or an account. */
export async function isTaken(sql: Queryable, email: string): Promise<boolean> {
  const rows = await sql`
    select from auth.users where email = lower(${email})
    union all
    select from accounts where lower(email) = lower(${email})`;
  return rows.length > 0;
}

/** Changes the address of a person and of their account. */
export async function saveAddress(tx: Transaction, userId: string, email: string): Promise<void> {
  await tx`
    update auth.users
    set email = ${email}, name = ${email}, email_verified = true, updated_at = clock_timestamp()
    where id = ${userId}`;
  await tx`
    update accounts
    set email = ${email}
    where user_id = ${userId}`;
}

/** Locks a person's row until the transaction ends, so that changes of a person are serialized. */
export async function lockPerson(tx: Transaction, userId: string): Promise<void> {
  await tx`
    select
    from auth.users
    where id = ${userId}
    for no key update`;
}

/** Deletes a person with their password, sessions, second factor and links. */
export async function deletePerson(tx: Transaction, userId: string): Promise<void> {
  await tx`
    delete from auth.users
    where id = ${userId}`;
}
