import type { Queryable } from "../../db/client.ts";
import type { HeldBack } from "../../rounds/intake.ts";
import type { KnownRound } from "../../rounds/round.ts";
import { HELD_ROUNDS, KNOWN_ROUNDS } from "../compute/state.ts";
import { fromDatabase, optionalTime } from "../compute/times.ts";

interface StoredKnown {
  table_id: number;
  seqs: number[] | null;
  round_ids: string[];
  hundredths: number[];
  late: boolean[];
  verified: (boolean | null)[];
  proof_hashes: (string | null)[];
  received_at: string[];
}

/** Rounds as one array per column: of a thousand tables, a row for each would take several times as long to read. */
function knownColumns(sql: Queryable) {
  return sql`
    array_to_json(array_agg(r.seq)) as seqs,
    array_to_json(array_agg(r.round_id)) as round_ids,
    array_to_json(array_agg(r.hundredths)) as hundredths,
    array_to_json(array_agg(r.late)) as late,
    array_to_json(array_agg(r.verified)) as verified,
    array_to_json(array_agg(encode(r.proof_hash, 'hex'))) as proof_hashes,
    array_to_json(array_agg(r.received_at::text)) as received_at`;
}

/** The newest rounds of tables, newest first. */
export function listNewest(sql: Queryable, ids: readonly number[]) {
  return sql<StoredKnown[]>`
    select own.table_id, r.*
    from unnest(${ids}::integer[]) as own (table_id)
    cross join lateral (
      select ${knownColumns(sql)}
      from (
        select *
        from rounds
        where table_id = own.table_id
        order by seq desc
        limit ${KNOWN_ROUNDS}
      ) r
    ) r`;
}

/** Rounds by id, from their stored columns. */
export function asKnown(row: StoredKnown | undefined): [string, KnownRound][] {
  return (row?.seqs ?? []).map((seq, at) => [
    valueAt(row?.round_ids, at),
    {
      seq: BigInt(seq),
      hundredths: valueAt(row?.hundredths, at),
      late: valueAt(row?.late, at),
      verified: valueAt(row?.verified, at),
      proofHash: valueAt(row?.proof_hashes, at),
      receivedAt: fromDatabase(valueAt(row?.received_at, at)),
    },
  ]);
}

function valueAt<Value>(values: readonly Value[] | undefined, at: number): Value {
  const value = values?.[at];
  if (value === undefined) throw new Error("expected arrays of one length from the database");
  return value;
}

/** The quarantine state of a round, from its rows `q`. */
export interface StoredHeld {
  table_id: number;
  round_id: string;
  stuck: boolean;
  ahead_at: string | null;
  released: boolean;
  /** Rows of the round that were read. */
  items: number;
}

/** The columns of {@link StoredHeld}, grouped by round. */
function heldColumns(sql: Queryable) {
  return sql`
    bool_or(q.code = 'stuck_feed') as stuck,
    min(coalesce(q.payload_received_at, q.first_seen_at)) filter (where q.code = 'far_ahead')::text as ahead_at,
    bool_or(q.state = 'released') as released,
    count(*)::integer as items`;
}

/** The rounds of the newest quarantined items of tables. */
export function listHeld(sql: Queryable, ids: readonly number[]) {
  return sql<StoredHeld[]>`
    select
      q.table_id,
      q.round_id,
      ${heldColumns(sql)}
    from unnest(${ids}::integer[]) as own (table_id)
    cross join lateral (
      select *
      from quarantine
      where table_id = own.table_id
        and round_id is not null
      order by last_seen_at desc
      limit ${HELD_ROUNDS}
    ) q
    group by q.table_id, q.round_id`;
}

/** The quarantine state of a round, from its columns. */
export function asHeld({ stuck, ahead_at, released }: StoredHeld): HeldBack {
  return { stuck, aheadAt: optionalTime(ahead_at), released };
}

/** The stored part of these rounds, which a response lists, and those with a quarantined item, by round id. */
export async function listStored(
  sql: Queryable,
  tableId: number,
  roundIds: readonly string[],
): Promise<{ known: Map<string, KnownRound>; heldBack: Map<string, HeldBack> }> {
  const rows = await sql<StoredKnown[]>`
    select ${tableId}::integer as table_id, ${knownColumns(sql)}
    from (
      select *
      from rounds
      where table_id = ${tableId}
        and round_id = any(${[...roundIds]}::text[])
      order by round_id -- makes the planner use the index by id
    ) r`;
  return {
    known: new Map(asKnown(rows[0])),
    heldBack: await listHeldBack(sql, tableId, roundIds),
  };
}

/** Which rounds have an item in quarantine, and why. */
async function listHeldBack(
  sql: Queryable,
  tableId: number,
  roundIds: readonly string[],
): Promise<Map<string, HeldBack>> {
  const rows = await sql<StoredHeld[]>`
    select q.table_id, q.round_id, ${heldColumns(sql)}
    from quarantine q
    where table_id = ${tableId}
      and round_id = any(${[...roundIds]}::text[])
    group by q.table_id, q.round_id`;
  return new Map(rows.map((row) => [row.round_id, asHeld(row)]));
}
