import type { Queryable } from "../../db/client.ts";
import type { ReferencesJson } from "./references.ts";
import type { Band } from "../model/table-model.ts";

/** What the references of a table remember after its on-time rounds up to a seq; not read yet. */
export interface ReferenceMark {
  seq: bigint;
  memory: unknown;
}

/** A seq of a table. */
export interface TableSeq {
  tableId: number;
  seq: bigint;
}

/** The newest mark of each table at or before its seq, in the order they were asked for. */
export async function listNewestMarks(
  sql: Queryable,
  places: readonly TableSeq[],
): Promise<(ReferenceMark | undefined)[]> {
  if (places.length === 0) return [];
  const rows = await sql<(ReferenceMark & { place: number })[]>`
    select (asked.place - 1)::integer as place, mark.seq, mark.memory
    from unnest(
      ${places.map(({ tableId }) => tableId)}::integer[],
      ${places.map(({ seq }) => String(seq))}::bigint[]
    ) with ordinality as asked (table_id, seq, place)
    cross join lateral (
      select seq, memory
      from reference_marks
      where table_id = asked.table_id
        and seq <= asked.seq
      order by seq desc
      limit 1
    ) mark`;
  const marks = new Map(rows.map(({ place, seq, memory }) => [place, { seq, memory }]));
  return places.map((_, place) => marks.get(place));
}

/** A mark ready to be kept. */
export interface NewMark extends TableSeq {
  memory: ReferencesJson;
}

/** Keeps marks. One that is there already, or given twice, is the same, unless it was damaged. */
export async function saveReferenceMarks(sql: Queryable, marks: readonly NewMark[]): Promise<void> {
  if (marks.length === 0) return;
  const rows = marks.map(({ tableId, seq, memory }) => ({ table_id: tableId, seq: String(seq), memory }));
  await sql`
    insert into reference_marks (table_id, seq, memory)
    select distinct on (table_id, seq) table_id, seq, memory
    from jsonb_to_recordset(${sql.json(rows)}) as x (table_id integer, seq bigint, memory jsonb)
    order by table_id, seq
    on conflict (table_id, seq) do update
    set memory = excluded.memory`;
}

/** A part of a table's history: after one seq, up to and with another. */
export interface HistoryPart {
  tableId: number;
  afterSeq: bigint;
  upToSeq: bigint;
}

/** A round as references learn it. */
export interface ColoredRound {
  seq: bigint;
  color: string;
  afterGap: boolean;
}

/** The first `limit` on-time rounds of each part, in seq order; a part that gives fewer is given whole. */
export async function listColoredRounds(
  sql: Queryable,
  parts: readonly HistoryPart[],
  limit: number,
): Promise<ColoredRound[][]> {
  const asked = parts.map(({ tableId, afterSeq, upToSeq }, place) => ({
    place,
    table_id: tableId,
    after_seq: String(afterSeq),
    up_to_seq: String(upToSeq),
  }));
  const rows = await sql<(ColoredRound & { place: number })[]>`
    select part.place, r.seq, r.color, r.after_gap as "afterGap"
    from jsonb_to_recordset(${sql.json(asked)})
      as part (place integer, table_id integer, after_seq bigint, up_to_seq bigint)
    cross join lateral (
      select seq, color, after_gap
      from rounds
      where table_id = part.table_id
        and seq > part.after_seq
        and seq <= part.up_to_seq
        and not late
      order by seq
      limit ${limit}
    ) r
    order by part.place, r.seq`;
  const rounds = parts.map((): ColoredRound[] => []);
  for (const { place, ...round } of rows) rounds[place]?.push(round);
  return rounds;
}

/** Marks of a table after a seq, in order. */
export async function listReferenceMarks(sql: Queryable, tableId: number, afterSeq: bigint, limit: number) {
  return sql<ReferenceMark[]>`
    select seq, memory
    from reference_marks
    where table_id = ${tableId}
      and seq > ${afterSeq}
    order by seq
    limit ${limit}`;
}

/** A table with many rounds after its newest mark. */
export interface LaggingTable {
  tableId: number;
  bands: Band[];
  lastSeq: bigint;
}

/** Those of these tables that have taken in at least so many rounds since their newest mark. */
export async function listLaggingTables(
  sql: Queryable,
  tableIds: readonly number[],
  rounds: number,
): Promise<LaggingTable[]> {
  return sql<LaggingTable[]>`
    select t.id as "tableId", t.colors as bands, t.last_seq as "lastSeq"
    from tables t
    where t.id = any(${[...tableIds]}::integer[])
      and t.last_seq - ${rounds} >= coalesce((select max(seq) from reference_marks where table_id = t.id), 0)
    order by t.id`;
}

/** The bands of tables by id. */
export async function readBands(sql: Queryable, tableIds: readonly number[]): Promise<Map<number, Band[]>> {
  const rows = await sql<{ id: number; bands: Band[] }[]>`
    select id, colors as bands
    from tables
    where id = any(${[...tableIds]}::integer[])`;
  return new Map(rows.map(({ id, bands }) => [id, bands]));
}
