import { hash } from "node:crypto";
import type { Queryable, Transaction } from "../db/client.ts";
import type { Anchor } from "../houses/fairness/prove.ts";
import type { Color } from "./colors.ts";
import type { Conflict, RefusedItem, TableState } from "./round.ts";

/** A table as it is held while rounds are added: its name, its state, and the newest round that is proven. */
export interface LockedTable {
  id: number;
  name: string;
  game: string;
  market: string;
  isEmpty: boolean;
  state: Omit<TableState, "feedOrder">;
  anchor: StoredAnchor | null;
}

/** The newest proven round of a table, with the id of the chain that it was proven in. */
export type StoredAnchor = Anchor;

interface TableRow {
  id: number;
  name: string;
  game: string;
  market: string;
  round_ids: "consecutive" | "opaque";
  colors: Color[];
  last_seq: bigint;
  history_hash: string;
  newest_round_id: string | null;
  newest_number: bigint | null;
  newest_occurred_at: string | null;
  same_hundredths: bigint | null;
  same_count: number;
  proof_number: bigint | null;
  proof_hash: string | null;
  proof_of: string | null;
}

/** Tables as they are now, without a lock: to prepare with. */
export async function listTableStates(sql: Queryable, ids: readonly number[]): Promise<LockedTable[]> {
  const rows = await sql<TableRow[]>`
    select ${columnsOfTable(sql)}
    from tables t
    where id = any(${[...ids]}::integer[])
    order by id`;
  return rows.map(asLocked);
}

/**
 * Takes the locks under which rounds are added, in id order, which is how nobody waits in a circle. Without `isPatient`
 * those that somebody else holds are left out.
 */
export async function lockTables(
  sql: Transaction,
  ids: readonly number[],
  { isPatient = true }: { isPatient?: boolean } = {},
): Promise<LockedTable[]> {
  const rows = await sql<TableRow[]>`
    select ${columnsOfTable(sql)}
    from tables t
    where id = any(${[...ids]}::integer[])
    order by id
    for no key update ${isPatient ? sql`` : sql`skip locked`}`;
  return rows.map(asLocked);
}

function columnsOfTable(sql: Queryable) {
  return sql`
    id,
    house_id || '/' || game || '/' || market as name,
    game,
    market,
    round_ids,
    colors,
    last_seq,
    history_hash,
    newest_round_id,
    newest_number,
    utc_text(newest_occurred_at) as newest_occurred_at,
    same_hundredths,
    same_count,
    proof_number,
    proof_hash,
    proof_of`;
}

function asLocked(row: TableRow): LockedTable {
  const { proof_number: number, proof_hash: proofHash, proof_of: of } = row;
  return {
    id: row.id,
    name: row.name,
    game: row.game,
    market: row.market,
    isEmpty: row.last_seq === 0n,
    state: {
      roundIds: row.round_ids,
      colors: row.colors,
      lastSeq: row.last_seq,
      historyHash: row.history_hash,
      newestRoundId: row.newest_round_id,
      newestNumber: row.newest_number,
      newestOccurredAt: row.newest_occurred_at,
      sameHundredths: row.same_hundredths === null ? null : Number(row.same_hundredths),
      sameCount: row.same_count,
    },
    anchor: number === null || proofHash === null || of === null ? null : { number, hash: proofHash, of },
  };
}

/** What a table's row becomes after rounds were added. */
export interface TableChange {
  tableId: number;
  state: Omit<TableState, "feedOrder">;
  anchor: StoredAnchor | null;
  added: number;
  /** When the newest of the added rounds arrived; null for now. */
  receivedAt: string | null;
  polledAt: string | null;
}

/** Writes the heads of tables whose locks are held. */
export async function saveTableStates(sql: Transaction, changes: readonly TableChange[]): Promise<void> {
  const rows = changes.map(({ tableId, state, anchor, added, receivedAt, polledAt }) => ({
    id: tableId,
    last_seq: String(state.lastSeq),
    history_hash: state.historyHash,
    newest_round_id: state.newestRoundId,
    newest_number: state.newestNumber === null ? null : String(state.newestNumber),
    newest_occurred_at: state.newestOccurredAt,
    same_hundredths: state.sameHundredths,
    same_count: state.sameCount,
    proof_number: anchor === null ? null : String(anchor.number),
    proof_hash: anchor?.hash ?? null,
    proof_of: anchor?.of ?? null,
    added,
    received_at: receivedAt,
    polled_at: polledAt,
  }));
  await sql`
    update tables t
    set
      last_seq = c.last_seq,
      history_hash = c.history_hash,
      newest_round_id = c.newest_round_id,
      newest_number = c.newest_number,
      newest_occurred_at = c.newest_occurred_at,
      same_hundredths = c.same_hundredths,
      same_count = c.same_count,
      proof_number = c.proof_number,
      proof_hash = c.proof_hash,
      proof_of = c.proof_of,
      rounds = t.rounds + c.added,
      last_round_at = case
        when c.added > 0 then greatest(t.last_round_at, coalesce(c.received_at, clock_timestamp()))
        else t.last_round_at
      end,
      last_polled_round_at = greatest(t.last_polled_round_at, c.polled_at)
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as c (
      id integer, last_seq bigint, history_hash text, newest_round_id text, newest_number bigint,
      newest_occurred_at timestamptz, same_hundredths bigint, same_count integer, proof_number bigint, proof_hash text,
      proof_of text, added bigint, received_at timestamptz, polled_at timestamptz
    )
    where t.id = c.id
      and (c.added > 0 or (t.proof_hash, t.proof_of) is distinct from (c.proof_hash, c.proof_of))`;
}

/** Where something came from: the answer, if it was one. */
export interface From {
  tableId: number;
  payloadId: bigint | null;
  receivedAt: string | null;
}

/** Lists other results of rounds we have; the same one again only counts. */
export async function saveConflicts(
  sql: Transaction,
  groups: readonly (From & { conflicts: readonly Conflict[] })[],
): Promise<void> {
  const rows = countedBy(
    groups.flatMap(({ conflicts, tableId, payloadId }) =>
      conflicts.map(({ roundId, kept, other, otherRaw }) => ({
        key: `${tableId}|${other}|${roundId}`,
        table_id: tableId,
        round_id: roundId,
        kept_hundredths: kept,
        other_hundredths: other,
        other_raw: otherRaw,
        payload_id: payloadId === null ? null : String(payloadId),
      })),
    ),
  );
  if (rows.length === 0) return;
  await sql`
    insert into conflicts as c (
      table_id, round_id, kept_hundredths, other_hundredths, other_raw, payload_id, times
    )
    select table_id, round_id, kept_hundredths, other_hundredths, other_raw, payload_id, times
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (
      table_id integer, round_id text, kept_hundredths bigint, other_hundredths bigint, other_raw text,
      payload_id bigint, times integer
    )
    on conflict on constraint conflict_is_listed_once do update
    set
      times = c.times + excluded.times,
      last_seen_at = clock_timestamp()`;
}

/** Characters of a raw item that are kept; the answer itself is kept whole beside it. */
const LONGEST_ITEM = 16_384;

/** Keeps items apart with their reason and as they came; the same item for the same reason again only counts. */
export async function saveQuarantine(
  sql: Transaction,
  groups: readonly (From & { refused: readonly RefusedItem[] })[],
): Promise<void> {
  const rows = countedBy(
    groups.flatMap(({ refused, tableId, payloadId, receivedAt }) =>
      refused.map(({ code, reason, roundId, raw }) => {
        const item = JSON.stringify(raw) ?? "null";
        const sha256 = hash("sha256", item);
        return {
          key: `${tableId}|${sha256}|${code}`,
          table_id: tableId,
          payload_id: payloadId === null ? null : String(payloadId),
          payload_received_at: receivedAt,
          code,
          reason,
          round_id: roundId,
          item: item.slice(0, LONGEST_ITEM).toWellFormed(),
          item_sha256: sha256,
        };
      }),
    ),
  );
  if (rows.length === 0) return;
  await sql`
    insert into quarantine as q (
      table_id, payload_id, payload_received_at, code, reason, round_id, item, item_sha256, times
    )
    select table_id, payload_id, payload_received_at, code, reason, round_id, item, item_sha256, times
    from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as r (
      table_id integer, payload_id bigint, payload_received_at timestamptz, code text, reason text, round_id text,
      item text, item_sha256 text, times integer
    )
    on conflict on constraint quarantined_item_is_listed_once do update
    set
      times = q.times + excluded.times,
      reason = excluded.reason,
      last_seen_at = clock_timestamp()`;
}

/** Rows with the same key as one, with how many there were: one statement may not touch a row twice. */
function countedBy<Row extends { key: string }>(rows: readonly Row[]): (Row & { times: number })[] {
  const counted = new Map<string, Row & { times: number }>();
  for (const row of rows) {
    const one = counted.get(row.key) ?? { ...row, times: 0 };
    one.times += 1;
    counted.set(row.key, one);
  }
  return [...counted.values()];
}
