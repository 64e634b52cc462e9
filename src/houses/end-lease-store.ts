import type { Queryable, Transaction } from "../db/client.ts";
import type { afterPoll } from "./circuit.ts";
import type { PollSummary } from "./poll-summary.ts";
import { type Lease, nameOf } from "./lease-store.ts";

/** Gives a lease back without a word about the house, so that another worker need not wait until it expires. */
export async function releaseLease(sql: Queryable, { house, shard, epoch }: Lease): Promise<void> {
  await sql`
    update poll_leases
    set lease_until = '-infinity'
    where house_id = ${house}
      and shard = ${shard}
      and lease_epoch = ${epoch}`;
}

/** The polls of a batch whose leases are still held: those that may be saved now, and those that would have to wait. */
export interface HeldPolls<One> {
  free: One[];
  busy: One[];
}

/**
 * The fence: locks what saving these polls writes or refers to, so that no epoch changes under it. Polls whose lease another
 * worker took are left out. A poll is `busy` if somebody else holds one of its rows, such as an operator's psql; with `waits`
 * none is, and the statement waits instead.
 */
export async function keepHeld<One extends { lease: Lease; asked: readonly { tableId: number }[] }>(
  sql: Transaction,
  polls: readonly One[],
  { waits }: { waits: boolean },
): Promise<HeldPolls<One>> {
  const skip = waits ? sql`` : sql`skip locked`;
  const locked = await sql<LeaseName[]>`
    select l.house_id as house, l.shard, l.lease_epoch as epoch
    from ${leasesOf(sql, polls)}
    join houses h on h.id = l.house_id
    order by l.house_id, l.shard
    for update of l ${skip}
    for key share of h ${skip}`;
  const names = new Set(locked.map(nameOfLease));
  const isLocked = ({ lease }: One) => names.has(nameOfLease(lease));
  const tableIds = polls.filter(isLocked).flatMap(({ asked }) => asked.map(({ tableId }) => tableId));
  const rows =
    tableIds.length === 0
      ? []
      : await sql<{ id: number }[]>`
          select t.id
          from unnest(${tableIds}::integer[]) as a (id)
          join tables t on t.id = a.id
          join feeds f on f.table_id = t.id
          order by t.id
          for key share of t ${skip}
          for update of f ${skip}`;
  const freeIds = new Set(rows.map(({ id }) => id));
  const isFree = (poll: One) => isLocked(poll) && poll.asked.every(({ tableId }) => freeIds.has(tableId));
  const others = polls.filter((poll) => !isFree(poll));
  const held =
    others.length === 0 || waits
      ? []
      : await sql<LeaseName[]>`
    select l.house_id as house, l.shard, l.lease_epoch as epoch
    from ${leasesOf(sql, others)}`;
  const heldNames = new Set(held.map(nameOfLease));
  return { free: polls.filter(isFree), busy: others.filter(({ lease }) => heldNames.has(nameOfLease(lease))) };
}

type LeaseName = Pick<Lease, "house" | "shard" | "epoch">;

function nameOfLease(lease: LeaseName): string {
  return `${nameOf(lease)} ${lease.epoch}`;
}

/** The leases of polls, as `l`, that are still of the same epoch. */
function leasesOf(sql: Transaction, polls: readonly { lease: Lease }[]) {
  return sql`
    unnest(
      ${polls.map(({ lease }) => lease.house)}::text[],
      ${polls.map(({ lease }) => lease.shard)}::integer[],
      ${polls.map(({ lease }) => String(lease.epoch))}::bigint[]
    ) as a (house, shard, epoch)
    join poll_leases l on l.house_id = a.house and l.shard = a.shard and l.lease_epoch = a.epoch`;
}

/** A poll that is over: its lease goes back with what it says of the house. `next` is null where nothing was asked. */
export interface EndedPoll {
  lease: Lease;
  summary: PollSummary;
  next: ReturnType<typeof afterPoll> | null;
}

/** Gives leases back, whose rows are locked. */
export async function endLeases(sql: Transaction, polls: readonly EndedPoll[]): Promise<void> {
  const rows = polls.map(({ lease, summary, next }) => ({
    house_id: lease.house,
    shard: lease.shard,
    asked_at: lease.now,
    has_asked: next !== null,
    state: next?.circuit.state ?? lease.circuit.state,
    failures_in_row: next?.circuit.failuresInRow ?? 0,
    recent: next?.circuit.recent ?? "",
    opened_times: next?.circuit.openedTimes ?? 0,
    throttled_in_row: next?.circuit.throttledInRow ?? 0,
    wait_ms: next?.waitMs ?? 0,
    is_good: summary.outcome.kind === "good",
    status: summary.status,
    error: summary.error,
  }));
  await sql`
    with ended as (
      select *
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as e (
        house_id text, shard integer, asked_at timestamptz, has_asked boolean, state text, failures_in_row integer,
        recent text, opened_times integer, throttled_in_row integer, wait_ms float8, is_good boolean, status integer,
        error text
      )
    ),
    left_alone as (
      update poll_leases l
      set lease_until = '-infinity'
      from ended e
      where l.house_id = e.house_id
        and l.shard = e.shard
        and not e.has_asked
    )
    update poll_leases l
    set
      lease_until = '-infinity',
      circuit = e.state,
      failures_in_row = e.failures_in_row,
      recent = e.recent,
      opened_times = e.opened_times,
      throttled_in_row = e.throttled_in_row,
      opened_at = case when e.state = 'closed' then null else coalesce(l.opened_at, clock_timestamp()) end,
      next_allowed_at = case
        when e.wait_ms > 0 then clock_timestamp() + e.wait_ms * interval '1 millisecond'
        else l.next_allowed_at
      end,
      last_poll_at = e.asked_at,
      last_ok_at = case when e.is_good then e.asked_at else l.last_ok_at end,
      last_status = e.status,
      last_error = coalesce(e.error, l.last_error),
      last_error_at = case when e.error is null then l.last_error_at else e.asked_at end
    from ended e
    where l.house_id = e.house_id
      and l.shard = e.shard
      and e.has_asked`;
}
