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
