import type { Queryable, Transaction } from "../../db/client.ts";
import { isToBeSummed } from "../accuracy/accuracy-store.ts";

const TABLES_PER_TRANSACTION = 100;

/** A house whose tables with ids above `afterTableId` are to be looked at. */
export interface HouseToScore {
  house: string;
  afterTableId: number;
}

/** A table that has something to score. */
export interface TableToScore {
  id: number;
  house: string;
}

/**
 * Tables of houses, each given once, with rounds that score-accuracy has not come to, or with conflicts or revisions to
 * apply: at most 100, of each house its first, then of each its second; in id order. Houses of which some are left are
 * `cutOff`.
 */
export async function listTablesToScore(
  sql: Queryable,
  houses: readonly HouseToScore[],
): Promise<{ tables: TableToScore[]; cutOff: ReadonlySet<string> }> {
  const rows = await sql<(TableToScore & { wanted: number })[]>`
    select *
    from (
      select t.id, asked.house, (count(*) over (partition by asked.place))::integer as wanted
      from unnest(
        ${houses.map(({ house }) => house)}::text[],
        ${houses.map(({ afterTableId }) => afterTableId)}::integer[]
      ) with ordinality as asked (house, after_id, place)
      join tables t on t.house_id = asked.house and t.id > asked.after_id
      left join accuracy_marks m on m.table_id = t.id
      where t.first_forecast_at is not null
        and (
          coalesce(m.seq, t.first_forecast_after_seq) < t.last_seq
          or exists (select from disputed_rounds d where d.table_id = t.id and d.scores_voided_at is null)
        )
      order by row_number() over (partition by asked.place order by t.id), asked.place
      limit ${TABLES_PER_TRANSACTION}
    ) due
    order by id`;
  const given = Map.groupBy(rows, ({ house }) => house);
  const cutOff = rows.filter(({ house, wanted }) => (given.get(house)?.length ?? 0) < wanted);
  return { tables: rows.map(({ id, house }) => ({ id, house })), cutOff: new Set(cutOff.map(({ house }) => house)) };
}

/** The rounds of a table that score-accuracy comes to now: after one seq, up to and with another. */
export interface MarkedSpan {
  tableId: number;
  afterSeq: bigint;
  upToSeq: bigint;
}

/** Spans as a statement takes them: `table_id`, `after_seq` and `up_to_seq`. */
export function spansToJson(spans: readonly MarkedSpan[]): Record<string, string | number>[] {
  return spans.map(({ tableId, afterSeq, upToSeq }) => ({
    table_id: tableId,
    after_seq: String(afterSeq),
    up_to_seq: String(upToSeq),
  }));
}

/** From each table's mark to its newest round; none of a table without forecasts. Needs the accuracy locks. */
export async function listNewSpans(tx: Transaction, tableIds: readonly number[]): Promise<MarkedSpan[]> {
  return tx<MarkedSpan[]>`
    select
      t.id as "tableId",
      coalesce(m.seq, t.first_forecast_after_seq) as "afterSeq",
      t.last_seq as "upToSeq"
    from tables t
    left join accuracy_marks m on m.table_id = t.id
    where t.id = any(${[...tableIds]}::integer[])
      and t.first_forecast_after_seq is not null
    order by t.id`;
}

/** Moves the marks of tables to the end of their spans. */
export async function saveMarks(tx: Transaction, spans: readonly MarkedSpan[]): Promise<void> {
  const rows = spans.map(({ tableId, upToSeq }) => ({ table_id: tableId, seq: String(upToSeq) }));
  await tx`
    insert into accuracy_marks (table_id, seq)
    select table_id, seq
    from jsonb_to_recordset(${tx.json(rows)}) as x (table_id integer, seq bigint)
    on conflict (table_id) do update
    set seq = excluded.seq`;
}

/** Houses with rounds that score-accuracy has not come to, conflicts or revisions not applied, or sums that are due. */
export async function listHousesToScore(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select t.house_id as house
    from tables t
    left join accuracy_marks m on m.table_id = t.id
    where t.first_forecast_at is not null
      and coalesce(m.seq, t.first_forecast_after_seq) < t.last_seq
    union
    select t.house_id
    from disputed_rounds d
    join tables t on t.id = d.table_id
    where d.scores_voided_at is null
      and t.first_forecast_at is not null
    union
    select t.house_id
    from accuracy_series s
    join tables t on t.id = s.table_id
    where s.due_at <= now()
    union
    select t.house_id
    from (select distinct table_id from hours_to_sum) noted
    join tables t on t.id = noted.table_id
    where ${isToBeSummed(sql)}
    limit 1000`;
}
