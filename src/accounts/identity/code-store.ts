import type { Sql } from "../../db/client.ts";

/** The e-mail address of a person; null if there is none by this id. */
export async function findEmail(sql: Sql, userId: string): Promise<string | null> {
  const [found] = await sql<{ email: string }[]>`
    select email
    from auth.users
    where id = ${userId}`;
  return found?.email ?? null;
}

/** Longer than an authenticator code is valid: half a minute, and the half minutes before and after it. */
const REMEMBERED_SECONDS = 300;

/** Marks an authenticator code of a person as used. False if it was used before (RFC 6238, 5.2). */
export async function takeCode(sql: Sql, userId: string, code: string): Promise<boolean> {
  await sql`
    delete from auth.used_codes
    where used_at < clock_timestamp() - make_interval(secs => ${REMEMBERED_SECONDS})`;
  const taken = await sql`
    insert into auth.used_codes (user_id, code)
    values (${userId}, ${code})
    on conflict do nothing
    returning code`;
  return taken.length > 0;
}

/** The encrypted secret of a person's second factor, on or not confirmed yet; null if there is none. */
export async function findFactorSecret(sql: Sql, userId: string): Promise<string | null> {
  const [found] = await sql<{ secret: string }[]>`
    select secret
    from auth.two_factors
    where user_id = ${userId}`;
  return found?.secret ?? null;
}

/**
 * Turns off a second factor that was just confirmed if its secret is not `confirmed`: another one was begun between the check of
 * the code and its storing, so the confirmed authenticator would not open it. False if it is.
 */
export async function dropReplacedFactor(sql: Sql, userId: string, confirmed: string | null): Promise<boolean> {
  const replaced = await sql`
    with factors as (
      delete from auth.two_factors
      where user_id = ${userId} and secret is distinct from ${confirmed}
    )
    update auth.users
    set two_factor_enabled = false, updated_at = clock_timestamp()
    where id = ${userId}
      and exists (select from auth.two_factors where user_id = ${userId} and secret is distinct from ${confirmed})
    returning id`;
  return replaced.length > 0;
}

/** Turns off a second factor that its own surface turned on; the console may not call `deleteTwoFactor`. */
export async function dropTwoFactor(sql: Sql, userId: string): Promise<void> {
  // `factors` is executed last, so that the person's row is locked first, as everywhere
  await sql`
    with factors as (
      delete from auth.two_factors
      where user_id = ${userId}
    )
    update auth.users
    set two_factor_enabled = false, updated_at = clock_timestamp()
    where id = ${userId}`;
}
