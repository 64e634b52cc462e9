import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";
import type { Queryable, Sql } from "../db/client.ts";

/** A row of a file, each field trimmed; null if it is empty or its column is missing. */
export interface StagedRow {
  line: number;
  roundId: string | null;
  multiplier: string | null;
  occurredAt: string | null;
  hash: string | null;
}

type StagedField = Exclude<keyof StagedRow, "line">;

/** The next import drops staging tables of killed imports after this time. */
const LEFT_OVER_HOURS = 24;

/**
 * Creates an empty staging table for one import, and drops those of killed imports. It is unlogged: faster to fill, and
 * a crash empties it, when it would be useless anyway.
 */
export async function createStaging(sql: Sql): Promise<string> {
  const old = await sql<{ name: string }[]>`
    select relname as name
    from pg_class
    where relname ~ '^import_[0-9]{10}_[0-9a-f]{12}$'
      and relkind = 'r'
      and split_part(relname, '_', 2)::bigint
        < extract(epoch from clock_timestamp() - make_interval(hours => ${LEFT_OVER_HOURS}))`;
  for (const { name } of old) await dropStaging(sql, name);
  const [clock] = await sql<
    { seconds: string }[]
  >`select floor(extract(epoch from clock_timestamp()))::text as seconds`;
  const name = `import_${clock?.seconds ?? "0000000000"}_${randomBytes(6).toString("hex")}`;
  await sql`
    create unlogged table ${sql(name)} (
      line integer primary key,
      round_id text,
      multiplier text,
      occurred_at text,
      hash text
    )`;
  return name;
}

/**
 * The stream that fills a staging table: rows in PostgreSQL's text format of COPY, with the columns of {@link
 * StagedRow} in their order.
 */
export async function copyToStaging(sql: Sql, staging: string): Promise<Writable> {
  return sql`copy ${sql(staging)} (line, round_id, multiplier, occurred_at, hash) from stdin`.writable();
}

/** Drops a staging table; does nothing if it does not exist. */
export async function dropStaging(sql: Sql, staging: string): Promise<void> {
  await sql`drop table if exists ${sql(staging)}`;
}

/**
 * The staged rows of these lines, in the requested order. They are read as one array per column, which costs the driver
 * fewer objects than rows. Adjacent lines, which nearly all are, are read as one range, in a third of the time of single
 * look-ups.
 */
export async function listStagedLines(sql: Queryable, staging: string, lines: Int32Array): Promise<StagedRow[]> {
  const first = lines.reduce((low, line) => Math.min(low, line), Infinity);
  const last = lines.reduce((high, line) => Math.max(high, line), 0);
  if (lines.length === 0) return [];
  const isRange = last - first < lines.length * 2;
  const [columns] = await sql<({ line: number[] | null } & Record<StagedField, (string | null)[]>)[]>`
    select
      array_to_json(array_agg(line)) as line,
      array_to_json(array_agg(round_id)) as "roundId",
      array_to_json(array_agg(multiplier)) as multiplier,
      array_to_json(array_agg(occurred_at)) as "occurredAt",
      array_to_json(array_agg(hash)) as hash
    from ${sql(staging)}
    where ${isRange ? sql`line between ${first} and ${last}` : sql`line = any(${[...lines]}::integer[])`}`;
  if (columns?.line == null) return [];
  const { roundId, multiplier, occurredAt, hash } = columns;
  const places = new Map(columns.line.map((line, place) => [line, place]));
  return Array.from(lines).flatMap((line) => {
    const at = places.get(line);
    if (at === undefined) return [];
    return {
      line,
      roundId: roundId[at] ?? null,
      multiplier: multiplier[at] ?? null,
      occurredAt: occurredAt[at] ?? null,
      hash: hash[at] ?? null,
    };
  });
}

/** Lines of ids that more than one row has, by id and line, some thousand at a time. */
export function listRepeats(sql: Sql, staging: string): AsyncIterable<{ line: number; round_id: string }[]> {
  return sql<{ line: number; round_id: string }[]>`
    select line, round_id
    from ${sql(staging)}
    where round_id in (
      select round_id
      from ${sql(staging)}
      group by round_id
      having count(*) > 1
    )
    order by round_id, line`.cursor(5_000);
}

/** Staged rows whose hash other ids of the file have too, by hash and line, some thousand at a time. */
export function listSharedHashes(sql: Sql, staging: string): AsyncIterable<StagedRow[]> {
  return sql<StagedRow[]>`
    select line, round_id as "roundId", multiplier, occurred_at as "occurredAt", lower(hash) as hash
    from ${sql(staging)}
    where lower(hash) in (
      select lower(hash)
      from ${sql(staging)}
      group by lower(hash)
      having count(distinct round_id) > 1
    )
    order by lower(hash), line`.cursor(5_000);
}

/** Staged rows whose hash a stored round of the table has, with its id, some thousand at a time. */
export function listStoredHashes(
  sql: Sql,
  staging: string,
  tableId: number,
): AsyncIterable<(StagedRow & { owner: string })[]> {
  return sql<(StagedRow & { owner: string })[]>`
    select s.line, s.round_id as "roundId", s.multiplier, s.occurred_at as "occurredAt", s.hash, r.round_id as owner
    from ${sql(staging)} s
    join rounds r on r.table_id = ${tableId} and r.proof_hash = case when s.hash ~ '^[0-9a-fA-F]{64}$' then decode(s.hash, 'hex') end`.cursor(
    5_000,
  );
}

/** Whether a table has rounds that are not from an import. */
export async function hasHouseRounds(sql: Sql, tableId: number): Promise<boolean> {
  const [found] = await sql`
    select 1 as one
    from rounds
    where table_id = ${tableId}
      and source <> 3
    limit 1`;
  return found !== undefined;
}
