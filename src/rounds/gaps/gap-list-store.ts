import type { Queryable, Transaction } from "../../db/client.ts";

/** The state of a gap. */
export interface GapState {
  tableId: number;
  state: "open" | "filled" | "given_up";
  reason: string | null;
  closedBy: string | null;
  closedAt: string | null;
  attempts: number;
}

/** Returns the state of a gap; null if there is no such gap. */
export async function findGapState(sql: Queryable, id: bigint): Promise<GapState | null> {
  const [row] = await sql<GapState[]>`
    select
      table_id as "tableId", state, reason, closed_by as "closedBy", utc_text(closed_at) as "closedAt", attempts
    from gaps
    where id = ${id}`;
  return row ?? null;
}

/** Gives up an open gap in the name of `actor`. The caller holds the lock of the table. */
export async function closeGapManually(
  tx: Transaction,
  id: bigint,
  { by, reason }: { by: string; reason: string },
): Promise<void> {
  await tx`
    update gaps
    set
      state = 'given_up',
      reason = ${reason},
      closed_by = ${by},
      closed_at = clock_timestamp(),
      lease_until = '-infinity'
    where id = ${id}
      and state = 'open'`;
}

/**
 * Reopens a gap that was given up: it is requested immediately and from its end. The caller holds the lock of the
 * table.
 */
export async function reopenGap(tx: Transaction, id: bigint): Promise<void> {
  await tx`
    update gaps
    set
      state = 'open',
      reason = null,
      closed_by = null,
      closed_at = null,
      attempts = 0,
      cursor_round_id = null,
      cursor_page = 0,
      lease_until = '-infinity',
      next_attempt_at = clock_timestamp()
    where id = ${id}
      and state = 'given_up'`;
}

/** The filters of a list of gaps; `tables` are ids, null for all. */
export interface GapFilter {
  tableIds: readonly number[] | null;
  state: GapState["state"] | null;
}

/** A gap in a list. */
export interface ListedGap {
  id: bigint;
  table: string;
  state: GapState["state"];
  from: string | null;
  to: string | null;
  missing: bigint | null;
  filled: bigint;
  afterRoundId: string;
  beforeRoundId: string;
  openedAt: string;
  closedAt: string | null;
  closedBy: string | null;
  reason: string | null;
  attempts: number;
  nextAttemptAt: string | null;
  /** A job is filling it now. */
  isBusy: boolean;
  cursorRoundId: string | null;
}

/** Gaps, newest or oldest first; `after` is the id of the last gap of the previous page. */
export async function listGaps(
  sql: Queryable,
  { tableIds, state }: GapFilter,
  { after, oldestFirst, limit }: { after: bigint | null; oldestFirst: boolean; limit: number },
): Promise<ListedGap[]> {
  const beyond = oldestFirst ? sql`g.id > ${after}` : sql`g.id < ${after}`;
  return sql<ListedGap[]>`
    select
      g.id,
      t.house_id || '/' || t.game || '/' || t.market as "table",
      g.state,
      g.from_number::text as "from",
      g.to_number::text as "to",
      g.missing,
      g.filled,
      g.after_round_id as "afterRoundId",
      g.before_round_id as "beforeRoundId",
      utc_text(g.opened_at) as "openedAt",
      utc_text(g.closed_at) as "closedAt",
      g.closed_by as "closedBy",
      g.reason,
      g.attempts,
      case when g.state = 'open' then utc_text(g.next_attempt_at) end as "nextAttemptAt",
      g.state = 'open' and g.lease_until > clock_timestamp() as "isBusy",
      g.cursor_round_id as "cursorRoundId"
    from gaps g
    join tables t on t.id = g.table_id
    where ${tableIds === null ? sql`true` : sql`g.table_id = any(${[...tableIds]}::integer[])`}
      and (${state}::text is null or g.state = ${state})
      and ${after === null ? sql`true` : beyond}
    order by g.id ${oldestFirst ? sql`asc` : sql`desc`}
    limit ${limit}`;
}

/** The number of gaps in each state. */
export async function countGaps(
  sql: Queryable,
  { tableIds }: Pick<GapFilter, "tableIds">,
): Promise<Record<GapState["state"], number>> {
  const rows = await sql<{ state: GapState["state"]; gaps: number }[]>`
    select state, count(*)::integer as gaps
    from gaps
    where ${tableIds === null ? sql`true` : sql`table_id = any(${[...tableIds]}::integer[])`}
    group by state`;
  const count = (state: GapState["state"]) => rows.find((row) => row.state === state)?.gaps ?? 0;
  return { open: count("open"), filled: count("filled"), given_up: count("given_up") };
}
