import { randomBytes } from "node:crypto";
import type { Writable } from "node:stream";
import type { Queryable, Sql } from "../db/client.ts";
import { copyField } from "../db/copy.ts";

/** A row of a file, each field trimmed; null if it is empty or its column is missing. */
export interface StagedRow {
  line: number;
  roundId: string | null;
  multiplier: string | null;
  occurredAt: string | null;
  hash: string | null;
}

/** Rows that are staged together: PostgreSQL stores and reads them as one row, which takes it a tenth of the time. */
const ROWS_OF_BLOCK = 64;

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
      first_line integer primary key,
      last_line integer not null,
      lines json,
      round_ids json,
      multipliers json,
      times json,
      hashes json
    )`;
  return name;
}

/** The stream that fills a staging table with the texts of {@link stagingText}. */
export async function copyToStaging(sql: Sql, staging: string): Promise<Writable> {
  const columns = sql`first_line, last_line, lines, round_ids, multipliers, times, hashes`;
  return sql`copy ${sql(staging)} (${columns}) from stdin`.writable();
}

/** Rows in the order of their lines as PostgreSQL's COPY text for a staging table, in blocks with a list per column. */
export function stagingText(rows: readonly StagedRow[]): string {
  let text = "";
  for (let from = 0; from < rows.length; from += ROWS_OF_BLOCK) {
    const block = rows.slice(from, from + ROWS_OF_BLOCK);
    const column = (valueOf: (row: StagedRow) => string | null) =>
      block.some((row) => valueOf(row) !== null) ? copyField(JSON.stringify(block.map(valueOf))) : "\\N";
    const [first = 0, last = 0] = [block.at(0)?.line, block.at(-1)?.line];
    const isWhole = last - first === block.length - 1;
    const fields = [
      first,
      last,
      isWhole ? "\\N" : JSON.stringify(block.map(({ line }) => line)),
      column(({ roundId }) => roundId),
      column(({ multiplier }) => multiplier),
      column(({ occurredAt }) => occurredAt),
      column(({ hash }) => hash),
    ];
    text += `${fields.join("\t")}\n`;
  }
  return text;
}

/** Drops a staging table; does nothing if it does not exist. */
export async function dropStaging(sql: Sql, staging: string): Promise<void> {
  await sql`drop table if exists ${sql(staging)}`;
}

/** The staged rows of these lines, in the requested order. */
export async function listStagedLines(sql: Queryable, staging: string, lines: Int32Array): Promise<StagedRow[]> {
  if (lines.length === 0) return [];
  const first = lines.reduce((low, line) => Math.min(low, line), Infinity);
  const last = lines.reduce((high, line) => Math.max(high, line), 0);
  const isRange = last - first < lines.length * 2; // nearly always: a file is in playing order or reversed
  const blocks = await sql<StagedBlock[]>`
    select first_line as "firstLine", last_line as "lastLine", lines, round_ids as "roundIds", multipliers, times, hashes
    from ${sql(staging)}
    where ${
      isRange
        ? sql`last_line >= ${first} and first_line <= ${last}`
        : sql`first_line in (
            select (select max(b.first_line) from ${sql(staging)} b where b.first_line <= wanted.line)
            from unnest(${[...lines]}::integer[]) as wanted (line)
          )`
    }`;
  const places = new Map(Array.from(lines, (line, place) => [line, place]));
  const rows = Array.from(lines, (): StagedRow | null => null);
  for (const block of blocks) {
    const { firstLine, lastLine } = block;
    for (let at = 0; at <= lastLine - firstLine; at++) {
      const line = block.lines === null ? firstLine + at : block.lines[at];
      const place = line === undefined ? undefined : places.get(line);
      if (line !== undefined && place !== undefined) rows[place] = rowAt(block, line, at);
    }
  }
  return rows.filter((row) => row !== null);
}

/** Rows that are staged together, a list per column; a column without any value is null. */
interface StagedBlock {
  firstLine: number;
  lastLine: number;
  /** Null if it has all lines from the first to the last. */
  lines: number[] | null;
  roundIds: (string | null)[] | null;
  multipliers: (string | null)[] | null;
  times: (string | null)[] | null;
  hashes: (string | null)[] | null;
}

function rowAt({ roundIds, multipliers, times, hashes }: StagedBlock, line: number, at: number): StagedRow {
  return {
    line,
    roundId: roundIds?.[at] ?? null,
    multiplier: multipliers?.[at] ?? null,
    occurredAt: times?.[at] ?? null,
    hash: hashes?.[at] ?? null,
  };
}

/** The staged rows as a table of the columns `line`, `round_id`, `multiplier`, `occurred_at` and `hash`. */
function stagedRows(sql: Sql, staging: string) {
  return sql`(
    select
      coalesce(r.line::integer, b.first_line + r.place::integer - 1) as line,
      r.round_id,
      r.multiplier,
      r.occurred_at,
      r.hash
    from ${sql(staging)} b
    cross join lateral rows from (
      json_array_elements_text(b.lines),
      json_array_elements_text(b.round_ids),
      json_array_elements_text(b.multipliers),
      json_array_elements_text(b.times),
      json_array_elements_text(b.hashes)
    ) with ordinality as r (line, round_id, multiplier, occurred_at, hash, place)
  )`;
}

/** Lines of ids that more than one row has, by id and line, some thousand at a time. */
export function listRepeats(sql: Sql, staging: string): AsyncIterable<{ line: number; round_id: string }[]> {
  return sql<{ line: number; round_id: string }[]>`
    with staged as materialized (select line, round_id from ${stagedRows(sql, staging)} as s)
    select line, round_id
    from staged
    where round_id in (
      select round_id
      from staged
      group by round_id
      having count(*) > 1
    )
    order by round_id, line`.cursor(5_000);
}

/** Staged rows whose hash other ids of the file have too, by hash and line, some thousand at a time. */
export function listSharedHashes(sql: Sql, staging: string): AsyncIterable<StagedRow[]> {
  return sql<StagedRow[]>`
    with staged as materialized (select * from ${stagedRows(sql, staging)} as s)
    select line, round_id as "roundId", multiplier, occurred_at as "occurredAt", lower(hash) as hash
    from staged
    where lower(hash) in (
      select lower(hash)
      from staged
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
    from ${stagedRows(sql, staging)} s
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
