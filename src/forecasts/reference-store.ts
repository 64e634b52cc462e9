import type { Queryable } from "../db/client.ts";
import type { ReferencesJson } from "./references.ts";
import type { Band } from "./table-model.ts";

/** What the references of a table remember after its on-time rounds up to a seq; not read yet. */
export interface ReferenceMark {
  seq: bigint;
  memory: unknown;
}

/** The newest mark of a table at or before a seq. */
export async function findReferenceMark(
  sql: Queryable,
  tableId: number,
  upToSeq: bigint,
): Promise<ReferenceMark | null> {
  const [mark] = await sql<ReferenceMark[]>`
    select seq, memory
    from reference_marks
    where table_id = ${tableId}
      and seq <= ${upToSeq}
    order by seq desc
    limit 1`;
  return mark ?? null;
}

/** Keeps a mark. One that is there already is the same, unless it was damaged. */
export async function saveReferenceMark(
  sql: Queryable,
  tableId: number,
  { seq, memory }: { seq: bigint; memory: ReferencesJson },
): Promise<void> {
  await sql`
    insert into reference_marks (table_id, seq, memory)
    values (${tableId}, ${seq}, ${sql.json(memory)})
    on conflict (table_id, seq) do update
    set memory = excluded.memory`;
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
