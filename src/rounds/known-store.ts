import type { Queryable } from "../db/client.ts";
import type { KnownRound } from "./round.ts";
import type { HeldBack } from "./take-in.ts";

interface KnownRow {
  table_id: number;
  round_id: string;
  seq: bigint;
  hundredths: bigint;
  late: boolean;
  verified: boolean | null;
  proof_hash: string | null;
  payload_id: bigint | null;
}

/** So many rounds of one table are asked for by a statement of its own, see `known_rounds`. */
const MANY_OF_A_TABLE = 200;

/** What is stored of rounds with these ids, by table and then by round id. */
export async function listKnown(
  sql: Queryable,
  ids: readonly { tableId: number; roundId: string }[],
): Promise<Map<number, Map<string, KnownRound>>> {
  const known = new Map<number, Map<string, KnownRound>>();
  const byTable = Map.groupBy(ids, ({ tableId }) => tableId);
  const few: { table_id: number; round_ids: string[] }[] = [];
  for (const [tableId, own] of byTable) {
    if (own.length < MANY_OF_A_TABLE) few.push({ table_id: tableId, round_ids: own.map(({ roundId }) => roundId) });
    else {
      const rows = await sql<KnownRow[]>`
        select ${tableId}::integer as table_id, round_id, seq, hundredths, late, verified, proof_hash, payload_id
        from known_rounds(${tableId}, ${own.map(({ roundId }) => roundId)}::text[])`;
      for (const row of rows) addKnown(known, row);
    }
  }
  if (few.length === 0) return known;
  // those of a table by one look-up; the order inside keeps the planner to the index by id
  const rows = await sql<KnownRow[]>`
    select r.table_id, r.round_id, r.seq, r.hundredths, r.late, r.verified, r.proof_hash, r.payload_id
    from jsonb_to_recordset(${sql.json(few)}) as asked (table_id integer, round_ids text[])
    cross join lateral (
      select *
      from rounds
      where table_id = asked.table_id
        and round_id = any(asked.round_ids)
      order by round_id
      offset 0
    ) r`;
  for (const row of rows) addKnown(known, row);
  return known;
}

function addKnown(known: Map<number, Map<string, KnownRound>>, row: KnownRow): void {
  const ofTable = known.get(row.table_id) ?? new Map<string, KnownRound>();
  known.set(row.table_id, ofTable);
  ofTable.set(row.round_id, {
    seq: row.seq,
    hundredths: Number(row.hundredths),
    late: row.late,
    verified: row.verified,
    proofHash: row.proof_hash,
    payloadId: row.payload_id === null ? null : String(row.payload_id),
  });
}

/** Which rounds have an item in quarantine; `stuck` where a stuck feed is why, unless a person released it. */
export async function listHeldBack(
  sql: Queryable,
  ids: readonly { tableId: number; roundId: string }[],
): Promise<Map<number, Map<string, HeldBack>>> {
  const held = new Map<number, Map<string, HeldBack>>();
  if (ids.length === 0) return held;
  const rows = await sql<{ table_id: number; round_id: string; stuck: boolean; released: boolean }[]>`
    select
      q.table_id,
      q.round_id,
      bool_or(q.code = 'stuck_feed') as stuck,
      bool_or(q.code = 'stuck_feed' and q.state = 'released') as released
    from unnest(${ids.map(({ tableId }) => tableId)}::integer[], ${ids.map(({ roundId }) => roundId)}::text[])
      as asked (table_id, round_id)
    join quarantine q on q.table_id = asked.table_id and q.round_id = asked.round_id
    group by q.table_id, q.round_id`;
  for (const { table_id, round_id, stuck, released } of rows) {
    const ofTable = held.get(table_id) ?? new Map<string, HeldBack>();
    held.set(table_id, ofTable);
    ofTable.set(round_id, { stuck, released });
  }
  return held;
}
