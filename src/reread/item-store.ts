import type { Queryable, Transaction } from "../db/client.ts";
import { UNDECIDED_LISTED } from "../rounds/conflict-limits.ts";
import type { QuarantineRow } from "../pass/compute/rows.ts";

/** What is listed of the rounds of these conflicts. */
export interface KnownConflicts {
  results: { roundId: string; other: string; isDecided: boolean }[];
  /** Undecided conflicts of the table, counted up to the limit from which a round gets only one. */
  undecided: number;
}

/** Returns the conflicts of these rounds of a table, and how many of the table are undecided. */
export async function listKnownConflicts(
  sql: Queryable,
  tableId: number,
  roundIds: readonly string[],
): Promise<KnownConflicts> {
  if (roundIds.length === 0) return { results: [], undecided: 0 };
  const results = await sql<KnownConflicts["results"]>`
    select c.round_id as "roundId", c.other_hundredths::text as other, c.decided_at is not null as "isDecided"
    from conflicts c
    where c.table_id = ${tableId}
      and c.round_id = any(${[...roundIds]}::text[])`;
  const [open] = await sql<{ undecided: number }[]>`
    select count(*)::integer as undecided
    from (
      select from conflicts where table_id = ${tableId} and decided_at is null limit ${UNDECIDED_LISTED}
    ) first`;
  return { results: [...results], undecided: open?.undecided ?? 0 };
}

/** Which of these items of a table are in quarantine already, in any state, as `hash|code`. */
export async function listKnownItems(
  sql: Queryable,
  tableId: number,
  asked: readonly Pick<QuarantineRow, "itemSha256" | "code">[],
): Promise<string[]> {
  if (asked.length === 0) return [];
  const rows = await sql<{ key: string }[]>`
    select q.item_sha256 || '|' || q.code as key
    from unnest(
      ${asked.map(({ itemSha256 }) => itemSha256)}::text[],
      ${asked.map(({ code }) => code)}::text[]
    ) as a (sha256, code)
    join quarantine q on q.table_id = ${tableId} and q.item_sha256 = a.sha256 and q.code = a.code`;
  return rows.map(({ key }) => key);
}

/** Items that are readable now: the same item, or another item of the same round in this payload. */
export interface ReadableItem {
  tableId: number;
  payloadReceivedAt: string;
  sha256: string;
  roundId: string;
}

/** The open items of quarantine that are readable now. */
export async function listReleasable(sql: Queryable, readable: readonly ReadableItem[]): Promise<bigint[]> {
  if (readable.length === 0) return [];
  const rows = await sql<{ id: bigint }[]>`
    select distinct q.id
    from unnest(
      ${readable.map(({ tableId }) => tableId)}::integer[],
      ${readable.map(({ payloadReceivedAt }) => payloadReceivedAt)}::timestamptz[],
      ${readable.map(({ sha256 }) => sha256)}::text[],
      ${readable.map(({ roundId }) => roundId)}::text[]
    ) as a (table_id, received_at, sha256, round_id)
    join quarantine q on q.table_id = a.table_id
      and (q.item_sha256 = a.sha256 or (q.payload_received_at = a.received_at and q.round_id = a.round_id))
    where q.state = 'open'`;
  return rows.map(({ id }) => id);
}

/** Releases items from quarantine that are readable now. */
export async function releaseItems(tx: Transaction, ids: readonly bigint[], by: string): Promise<void> {
  if (ids.length === 0) return;
  await tx`
    update quarantine
    set
      state = 'released',
      decided_by = ${by},
      decision_reason = 'its payload was read again, and the item can be read now',
      decided_at = clock_timestamp()
    where id = any(${ids.map(String)}::bigint[])
      and state = 'open'`;
}
