import type { Sql } from "./client.ts";

/** From the last renewal to the expiry: a tick of five seconds, and as long again for a slow one. */
export const LEASE_MS = 10_000;
/** A renewal holds for this part of the lease without another statement: the short parts of a tick cost one. */
const RENEWED_WITHIN = 0.1;
/** Added to the expiry, so that an attempt at that time does not come a moment too early. */
const MARGIN_MS = 100;

/** The result of an attempt to hold a lease. */
export type LeaseState =
  | { isHeld: true; epoch: bigint }
  /** Another process holds it; an attempt after `freeInMs` succeeds unless that process renews it. */
  | { isHeld: false; freeInMs: number };

/** A role that one process at a time may have, for as long as it renews it. */
export interface Lease {
  /**
   * Acquires the lease if it is free, or renews it. Call it before each piece of work, so that a holder whose work hangs
   * loses the lease: nothing else renews it.
   * @throws the driver's error if the database cannot be asked; the lease may then be held until it expires.
   */
  hold(): Promise<LeaseState>;
  /** Whether this process holds the lease, by its own monotonic clock; asks nothing. */
  isHeld(): boolean;
  /** Ends the lease, so that another process can acquire it immediately. Does nothing if it is not held. */
  release(): Promise<void>;
}

/**
 * A lease kept as one row of `leases`. Every time in that row is the database's; the holder counts its own time from
 * before it sent the renewal, so that it stops before the lease expires. No session state: any pool will do, also one
 * behind a transaction pooler.
 *
 * Work that began while the lease was held may end after it expired: it must bear being done twice, or carry the epoch.
 * `holder` must be a name that no other process has.
 */
export function createLease(
  sql: Sql,
  { name, holder, leaseMs = LEASE_MS }: { name: string; holder: string; leaseMs?: number },
): Lease {
  let epoch: bigint | null = null;
  let renewedAt = -Infinity; // performance.now() before the renewal was sent

  const age = () => performance.now() - renewedAt;
  const isHeld = () => epoch !== null && age() < leaseMs;

  return {
    async hold() {
      if (epoch !== null && age() < leaseMs * RENEWED_WITHIN) return { isHeld: true, epoch };
      const sentAt = performance.now();
      const row = await acquire(sql, { name, holder, epoch, leaseMs });
      epoch = row.epoch;
      renewedAt = sentAt;
      if (epoch === null) return { isHeld: false, freeInMs: Math.max(0, row.expiresInMs ?? 0) + MARGIN_MS };
      return isHeld() ? { isHeld: true, epoch } : { isHeld: false, freeInMs: leaseMs };
    },
    isHeld,
    async release() {
      const held = epoch;
      epoch = null;
      if (held === null) return;
      await sql`
        update leases
        set expires_at = clock_timestamp()
        where name = ${name}
          and holder = ${holder}
          and epoch = ${held}`;
    },
  };
}

interface Attempt {
  name: string;
  holder: string;
  /** The epoch in which the holder last had the lease; null if it never had it or gave it back. */
  epoch: bigint | null;
  leaseMs: number;
}

/**
 * One statement, so that of two contenders one waits for the other's row and then sees that it came second. A lease from
 * before a restart of the server is still held; one from another server is void only if it lasts longer than a lease can.
 */
async function acquire(
  sql: Sql,
  { name, holder, epoch, leaseMs }: Attempt,
): Promise<{ epoch: bigint | null; expiresInMs: number | null }> {
  const isOurs = sql`(l.holder = ${holder} and l.epoch = ${epoch}::bigint)`;
  const newExpiry = sql`clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond'`;
  const [row] = await sql<{ epoch: bigint | null; expiresInMs: number | null }[]>`
    with held as (
      insert into leases as l (name, holder, epoch, expires_at, server_started_at)
      values (${name}, ${holder}, 1, ${newExpiry}, pg_postmaster_start_time())
      on conflict (name) do update
      set
        holder = excluded.holder,
        epoch = case when ${isOurs} then l.epoch else l.epoch + 1 end,
        expires_at = ${newExpiry},
        server_started_at = excluded.server_started_at
      where ${isOurs}
        or l.expires_at <= clock_timestamp()
        or (l.server_started_at <> excluded.server_started_at and l.expires_at > ${newExpiry})
      returning l.epoch
    )
    select
      (select epoch from held) as epoch,
      (
        select (extract(epoch from expires_at - clock_timestamp()) * 1000)::float8
        from leases
        where name = ${name}
      ) as "expiresInMs"`;
  return row ?? { epoch: null, expiresInMs: null };
}
