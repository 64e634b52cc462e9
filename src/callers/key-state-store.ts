import type { Queryable } from "../db/client.ts";

/** The state of a key; `expiring`: it still works and has an end. */
export type KeyState = "active" | "expiring" | "expired" | "revoked";

/** The {@link KeyState} of a key `k`. */
export function keyState(sql: Queryable) {
  return sql`
    case
      when k.revoked_at is not null then 'revoked'
      when k.expires_at <= now() then 'expired'
      when k.expires_at > now() then 'expiring'
      else 'active'
    end`;
}

/** Whether a key `k` works: it is neither revoked nor expired. */
export function keyWorks(sql: Queryable) {
  return sql`(k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))`;
}

/** When a key `k` was last used: its column is written once a minute, the counts of calls about once a second. */
export function lastUse(sql: Queryable) {
  return sql`
    greatest(k.last_used_at, (
      select max(c.last_at)
      from call_minutes c
      where c.account_id = k.account_id
        and c.minute > now() - interval '5 minutes'
        and c.key_id = k.id
        and c.outcome not in ('revoked_api_key', 'expired_api_key')
    ))`;
}
