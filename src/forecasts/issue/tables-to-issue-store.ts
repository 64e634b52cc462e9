import type { Queryable, Transaction } from "../../db/client.ts";
import type { Band } from "../model/table-model.ts";

/** A table that issue-forecasts has locked: what it must learn and whether it may speak of the next round. */
export interface LockedTable {
  tableId: number;
  house: string;
  /** `house/game/market`. */
  name: string;
  bands: Band[];
  /** What the house declares, null where it declares nothing. */
  edge: number | null;
  consecutive: boolean;
  lastSeq: bigint;
  /** The head of the table's chain of forecasts. */
  forecastSeq: bigint;
  forecastHash: string;
  learnedSeq: bigint;
  /** The live state and its hash, null before the table has learned anything. */
  live: { state: Buffer; stateHash: string } | null;
  /** The newest on-time round, null before the first; without a payload where no house sent it. */
  newest: { seq: bigint; roundId: string; historyHash: string; payloadId: bigint | null } | null;
  /** The newest on-time round was polled, has no forecast yet, and its pause is not over by the database clock. */
  mayIssue: boolean;
  /** An answer is not read yet: what follows may be known already, and the database refuses a forecast of it. */
  hasUnread: boolean;
}

/** A house whose tables with ids above `afterTableId` are to be looked at. */
export interface HouseToIssue {
  house: string;
  afterTableId: number;
}

/** Tables that one transaction locks, so that no round waits long to be taken in. */
const TABLES_PER_TRANSACTION = 100;

/**
 * Locks tables of houses, each given once, that have something to learn or to say: at most 100, of each house its first, then
 * of each its second, locked in id order. Houses of which some are left for another transaction are `cutOff`. Unless it is
 * patient, houses are `busy` of which somebody else holds a table, and none of theirs is given.
 *
 * The lock is the one under which rounds are added: while it is held, nothing can follow the newest round.
 */
export async function lockTablesToIssue(
  tx: Transaction,
  houses: readonly HouseToIssue[],
  { isPatient }: { isPatient: boolean },
): Promise<{ tables: LockedTable[]; busy: ReadonlySet<string>; cutOff: ReadonlySet<string> }> {
  const own = await tx<{ id: number; house: string; wanted: number; isLocked: boolean }[]>`
    with wanted as materialized (
      select
        t.id,
        asked.house,
        count(*) over (partition by asked.place) as wanted
      from unnest(
        ${houses.map(({ house }) => house)}::text[],
        ${houses.map(({ afterTableId }) => afterTableId)}::integer[]
      ) with ordinality as asked (house, after_id, place)
      join tables t on t.house_id = asked.house and t.id > asked.after_id
      join houses h on h.id = t.house_id
      left join model_states s on s.table_id = t.id and s.model = t.model
      left join lateral (${newestOnTime(tx)}) newest on true
      where coalesce(s.learned_seq, 0) < t.last_seq
        or ${isReadingBehind(tx)}
        or (${mayIssue(tx)})
      order by row_number() over (partition by asked.place order by t.id), asked.place
      limit ${TABLES_PER_TRANSACTION}
    ),
    locked as (
      select t.id
      from tables t
      where t.id in (select id from wanted)
      order by t.id
      for no key update of t ${isPatient ? tx`` : tx`skip locked`}
    )
    select wanted.id, wanted.house, wanted.wanted::integer, locked.id is not null as "isLocked"
    from wanted
    left join locked on locked.id = wanted.id`;
  const busy = new Set(own.flatMap(({ house, isLocked }) => (isLocked ? [] : [house])));
  const free = own.filter(({ house }) => !busy.has(house));
  // lock first, read after: this statement sees what the last holder of each lock committed
  const tables = await readLocked(
    tx,
    free.map(({ id }) => id),
  );
  const given = Map.groupBy(own, ({ house }) => house);
  const cutOff = own.filter(({ house, wanted }) => (given.get(house)?.length ?? 0) < wanted);
  return { tables, busy, cutOff: new Set(cutOff.map(({ house }) => house)) };
}

/** What issuing needs of tables whose locks are held, in id order. */
async function readLocked(tx: Transaction, tableIds: readonly number[]): Promise<LockedTable[]> {
  if (tableIds.length === 0) return [];
  const rows = await tx<
    (Omit<LockedTable, "live" | "newest"> & {
      state: Buffer | null;
      stateHash: string | null;
      newestSeq: bigint | null;
      newestRoundId: string | null;
      newestHistoryHash: string | null;
      newestPayloadId: bigint | null;
    })[]
  >`
    select
      t.id as "tableId",
      t.house_id as house,
      t.house_id || '/' || t.game || '/' || t.market as name,
      t.colors as bands,
      (t.settings ->> 'house_edge')::float8 as edge,
      t.round_ids = 'consecutive' as consecutive,
      t.last_seq as "lastSeq",
      t.forecast_seq as "forecastSeq",
      t.forecast_hash as "forecastHash",
      coalesce(s.learned_seq, 0) as "learnedSeq",
      s.state,
      s.state_hash as "stateHash",
      newest.seq as "newestSeq",
      newest.round_id as "newestRoundId",
      newest.history_hash as "newestHistoryHash",
      newest.payload_id as "newestPayloadId",
      coalesce(${mayIssue(tx)}, false) as "mayIssue",
      exists (select from payloads p where p.table_id = t.id and p.state = 'unread') as "hasUnread"
    from tables t
    join houses h on h.id = t.house_id
    left join model_states s on s.table_id = t.id and s.model = t.model
    left join lateral (${newestOnTime(tx)}) newest on true
    where t.id = any(${[...tableIds]}::integer[])
    order by t.id`;
  return rows.map(
    ({ state, stateHash, newestSeq, newestRoundId, newestHistoryHash, newestPayloadId: payloadId, ...table }) => ({
      ...table,
      live: state === null || stateHash === null ? null : { state, stateHash },
      newest:
        newestSeq === null || newestRoundId === null || newestHistoryHash === null
          ? null
          : { seq: newestSeq, roundId: newestRoundId, historyHash: newestHistoryHash, payloadId },
    }),
  );
}

/** Houses with a table that has something to learn or to say: what issue-forecasts may never have been told of. */
export async function listHousesToIssue(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select t.house_id as house
    from tables t
    left join model_states s on s.table_id = t.id and s.model = t.model
    where coalesce(s.learned_seq, 0) < t.last_seq
      or ${isReadingBehind(sql)}
    union
    select t.house_id
    from tables t
    join houses h on h.id = t.house_id
    cross join lateral (${newestOnTime(sql)}) newest
    where t.last_polled_round_at > clock_timestamp() - t.pause_ms * interval '1 millisecond'
      and ${mayIssue(sql)}
    limit 1000`;
}

/** The reading of `t` has rounds to take in. */
function isReadingBehind(sql: Queryable) {
  return sql`coalesce((select learned_seq from reading_memories where table_id = t.id), 0) < t.last_seq`;
}

/** The newest on-time round of `t`. */
function newestOnTime(sql: Queryable) {
  return sql`
    select r.seq, r.round_id, r.history_hash, r.source, r.absent_at, r.payload_id
    from rounds r
    where r.table_id = t.id
      and not r.late
    order by r.seq desc
    limit 1`;
}

/** May the round after `newest` still be spoken of, and was nothing said yet? The trigger on forecasts looks again. */
function mayIssue(sql: Queryable) {
  return sql`
    t.enabled
      and h.enabled
      and h.paused_at is null
      and newest.source = 'poll'
      and newest.absent_at > clock_timestamp() - t.pause_ms * interval '1 millisecond'
      -- the order names the index, of which nobody can know anything while a table is new
      and newest.seq is distinct from (
        select f.cutoff_seq
        from forecasts f
        where f.table_id = t.id
          and f.model = t.model
          and f.feature = 'next_color'
        order by f.cutoff_seq desc
        limit 1
      )`;
}
