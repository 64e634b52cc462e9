import type { Queryable, Sql } from "../../db/client.ts";
import type { Certificate } from "./answers.ts";

/** Keys are asked for anew after a day, and sooner where a notice names one that is not known. */
const DAY_SECONDS = 86_400;
/** However often unknown keys are named, they are asked for no more often than this. */
const WANTED_AGAIN_SECONDS = 300;
/** After a failure they are asked for again after this. */
const TRIED_AGAIN_SECONDS = 60;
/** Longer than a notice may be old, so that none counts twice. */
const NONCES_KEPT_SECONDS = 3_600;

/** The public key of a serial; null where it is not known, which is then remembered so that it is asked for. */
export async function findPublicKey(sql: Queryable, serial: string): Promise<string | null> {
  const [found] = await sql<{ key: string }[]>`
    select public_key as key
    from payment_app_certificates
    where serial = ${serial}`;
  if (found !== undefined) return found.key;
  // at most one write a second, whoever asks with made-up serials
  await sql`
    update payment_app_state
    set certificates_wanted_at = clock_timestamp()
    where certificates_wanted_at is null
      or certificates_wanted_at < clock_timestamp() - interval '1 second'`;
  return null;
}

/** Whether the keys are to be fetched now. */
export async function wantsCertificates(sql: Queryable): Promise<boolean> {
  const [wanted] = await sql<{ wanted: boolean }[]>`
    select
      coalesce(certificates_tried_at < clock_timestamp() - make_interval(secs => ${TRIED_AGAIN_SECONDS}), true)
      and (
        certificates_at is null
        or certificates_at < clock_timestamp() - make_interval(secs => ${DAY_SECONDS})
        or (
          certificates_wanted_at > certificates_at
          and certificates_at < clock_timestamp() - make_interval(secs => ${WANTED_AGAIN_SECONDS})
        )
      ) as wanted
    from payment_app_state`;
  return wanted?.wanted === true;
}

/** Notes that the keys are being asked for. */
export async function noteTry(sql: Queryable): Promise<void> {
  await sql`
    update payment_app_state
    set certificates_tried_at = clock_timestamp()`;
}

/** Keeps the keys that there are now, in place of those before, and forgets nonces that are too old to matter. */
export async function saveCertificates(sql: Sql, keys: readonly Certificate[]): Promise<void> {
  const serials = keys.map(({ certSerial }) => certSerial);
  await sql.begin(async (tx) => {
    await tx`
      delete from payment_app_certificates
      where serial <> all(${serials})`;
    await tx`
      insert into payment_app_certificates (serial, public_key)
      select serial, public_key
      from unnest(${serials}::text[], ${keys.map(({ certPublic }) => certPublic)}::text[]) as t (serial, public_key)
      on conflict (serial) do update
      set public_key = excluded.public_key, fetched_at = clock_timestamp()`;
    await tx`
      update payment_app_state
      set certificates_at = clock_timestamp()`;
    await tx`
      delete from payment_app_nonces
      where seen_at < clock_timestamp() - make_interval(secs => ${NONCES_KEPT_SECONDS})`;
  });
}

/** What became of a notice whose signature holds. */
export type TakenNotice = "taken" | "unknown-order" | "too-old" | "seen";

/**
 * Takes a notice: it is not older or newer than `windowSeconds` by the database clock, its nonce was not seen, and the
 * order that it names is asked for at once. The nonce and the order's turn are written together.
 */
export async function takeNotice(
  sql: Sql,
  notice: { timestampMs: number; nonce: string; prepayId: string },
  windowSeconds: number,
): Promise<TakenNotice> {
  return sql.begin(async (tx) => {
    const [clock] = await tx<{ ageMs: number }[]>`
      select (extract(epoch from clock_timestamp()) * 1000 - ${notice.timestampMs}::float8)::float8 as "ageMs"`;
    if (clock === undefined || Math.abs(clock.ageMs) > windowSeconds * 1_000) return "too-old";
    const fresh = await tx`
      insert into payment_app_nonces (nonce)
      values (${notice.nonce})
      on conflict do nothing
      returning nonce`;
    if (fresh.length === 0) return "seen";
    const named = await tx`
      update payment_app_orders
      set ask_at = clock_timestamp()
      where prepay_id = ${notice.prepayId}
        and state <> 'paid'`;
    return named.count === 0 ? "unknown-order" : "taken";
  });
}
