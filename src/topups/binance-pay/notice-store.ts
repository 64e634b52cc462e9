import type { Queryable, Sql } from "../../db/client.ts";
import type { Certificate } from "./responses.ts";

/** Keys are fetched again after a day, or sooner if a notification names an unknown one. */
const DAY_SECONDS = 86_400;
/** The minimum interval between fetches that unknown keys cause. */
const WANTED_AGAIN_SECONDS = 300;
/** The interval after a failed fetch. */
const TRIED_AGAIN_SECONDS = 60;
/** Longer than the accepted age of a notification, so that none counts twice. */
const NONCES_KEPT_SECONDS = 3_600;
const UNKNOWN_ORDERS_KEPT_DAYS = 90;

/** Returns the public key of a serial. Returns null if it is unknown, and requests a fetch of the keys. */
export async function findPublicKey(sql: Queryable, serial: string): Promise<string | null> {
  const [found] = await sql<{ key: string }[]>`
    select public_key as key
    from payment_app_certificates
    where serial = ${serial}`;
  if (found !== undefined) return found.key;
  // at most one write per second, even for invented serials
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

/** Records an attempt to fetch the keys. */
export async function noteTry(sql: Queryable): Promise<void> {
  await sql`
    update payment_app_state
    set
      certificates_tried_at = clock_timestamp(),
      certificates_failing_since = coalesce(certificates_failing_since, clock_timestamp())`;
}

/** Replaces the stored keys, and deletes nonces and unknown orders that are too old to matter. */
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
      set certificates_at = clock_timestamp(), certificates_failing_since = null`;
    await tx`
      delete from payment_app_nonces
      where seen_at < clock_timestamp() - make_interval(secs => ${NONCES_KEPT_SECONDS})`;
    await tx`
      delete from payment_app_unknown_orders
      where seen_at < clock_timestamp() - make_interval(days => ${UNKNOWN_ORDERS_KEPT_DAYS})`;
  });
}

/** The outcome of a notification with a valid signature. */
export type TakenNotice = "taken" | "already-paid" | "refunded" | "unknown-order" | "too-old" | "seen";

/**
 * Accepts a notification if it is at most `windowSeconds` older or newer than the database clock and its nonce is new,
 * and schedules an immediate query of its order. The nonce and the schedule are written together. A payment of an
 * unknown order that we may have made is stored for an alert, and so is the refund of one that is credited.
 */
export async function takeNotice(
  sql: Sql,
  notice: { timestampMs: number; nonce: string; prepayId: string; isOurPayment: boolean; isRefund: boolean },
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
    if (named.count > 0) return "taken";
    if (notice.isRefund) {
      const refunded = await tx`
        update payment_app_orders
        set refund_reported_at = coalesce(refund_reported_at, clock_timestamp())
        where prepay_id = ${notice.prepayId}`;
      if (refunded.count > 0) return "refunded";
    }
    const known = await tx`
      select
      from payment_app_orders
      where prepay_id = ${notice.prepayId}`;
    if (known.count > 0) return "already-paid";
    if (notice.isOurPayment) {
      await tx`
        insert into payment_app_unknown_orders (prepay_id)
        values (${notice.prepayId})
        on conflict do nothing`;
    }
    return "unknown-order";
  });
}
