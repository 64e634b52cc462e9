import type { Transaction } from "../../db/client.ts";
import type { Fact } from "./reading-facts.ts";
import type { ReadRound } from "./reading-memory.ts";

/** A table's reading memory as it is stored. */
export interface StoredReading {
  tableId: number;
  learnedSeq: bigint;
  text: string;
  hash: string;
}

/** The stored memories of these tables; none for a table that has none yet. */
export async function listReadingMemories(tx: Transaction, tableIds: readonly number[]): Promise<StoredReading[]> {
  return tx<StoredReading[]>`
    select table_id as "tableId", learned_seq as "learnedSeq", memory as text, memory_hash as hash
    from reading_memories
    where table_id = any(${tableIds}::integer[])`;
}

/** Keeps the memories of tables; needs their locks. */
export async function saveReadingMemories(tx: Transaction, readings: readonly StoredReading[]): Promise<void> {
  if (readings.length === 0) return;
  await tx`
    insert into reading_memories (table_id, learned_seq, memory, memory_hash)
    select *
    from unnest(
      ${readings.map(({ tableId }) => tableId)}::integer[],
      ${readings.map(({ learnedSeq }) => String(learnedSeq))}::bigint[],
      ${readings.map(({ text }) => text)}::text[],
      ${readings.map(({ hash }) => hash)}::text[]
    ) as x (table_id, learned_seq, memory, memory_hash)
    order by table_id
    on conflict (table_id) do update
    set
      learned_seq = excluded.learned_seq,
      memory = excluded.memory,
      memory_hash = excluded.memory_hash,
      updated_at = clock_timestamp()`;
}

/** Forgets a memory, to be made anew from the rounds; needs the table's lock. */
export async function deleteReadingMemory(tx: Transaction, tableId: number): Promise<void> {
  await tx`
    delete from reading_memories
    where table_id = ${tableId}`;
}

/** A part of a table's rounds: after one seq, up to and with another. */
export interface ReadSpan {
  tableId: number;
  afterSeq: bigint;
  upToSeq: bigint;
}

/** The first `limit` rounds of each span, late ones too, by table and seq; a span that gives fewer is given whole. */
export async function listRoundsToRead(
  tx: Transaction,
  spans: readonly ReadSpan[],
  limit: number,
): Promise<(ReadRound & { tableId: number })[]> {
  if (spans.length === 0) return [];
  return tx<(ReadRound & { tableId: number })[]>`
    select
      r.table_id as "tableId", r.seq, r.round_id as "roundId", r.hundredths::float8 as hundredths, r.late,
      r.after_gap as "afterGap", r.verified,
      utc_text(date_trunc('hour', r.received_at, 'UTC')) as "receivedHour"
    from unnest(
      ${spans.map(({ tableId }) => tableId)}::integer[],
      ${spans.map(({ afterSeq }) => String(afterSeq))}::bigint[],
      ${spans.map(({ upToSeq }) => String(upToSeq))}::bigint[]
    ) as span (table_id, after_seq, up_to_seq)
    cross join lateral (
      select *
      from rounds
      where table_id = span.table_id
        and seq > span.after_seq
        and seq <= span.up_to_seq
      order by seq
      limit ${limit}
    ) r
    order by r.table_id, r.seq`;
}

/** Tables that are looked at, of all houses. */
export async function countTables(tx: Transaction): Promise<number> {
  const [row] = await tx<{ tables: number }[]>`
    select count(*)::integer as tables
    from tables`;
  return row?.tables ?? 0;
}

/** What `published_now.reading` holds. */
export type PublishedReading = {
  /** The newest round it knows, and on-time rounds up to it. */
  seq: string;
  rounds: number;
  made_at: string;
  facts: Fact[];
};

/** Shows callers the readings of tables, made now. */
export async function publishReadings(
  tx: Transaction,
  readings: readonly ({ tableId: number } & Omit<PublishedReading, "made_at">)[],
): Promise<void> {
  if (readings.length === 0) return;
  const rows = readings.map(({ tableId, ...reading }) => ({ table_id: tableId, reading }));
  await tx`
    update published_now p
    set
      reading = x.reading || jsonb_build_object('made_at', utc_text(clock_timestamp())),
      updated_at = clock_timestamp()
    from jsonb_to_recordset(${tx.json(rows)}) as x (table_id integer, reading jsonb)
    where p.table_id = x.table_id`;
}

/** The published reading of a table; null before the first. */
export async function findPublishedReading(tx: Transaction, tableId: number): Promise<PublishedReading | null> {
  const [row] = await tx<{ reading: PublishedReading | null }[]>`
    select reading
    from published_now
    where table_id = ${tableId}`;
  return row?.reading ?? null;
}
