import type { Readable, Writable } from "node:stream";
import type { Queryable, Sql, Transaction } from "../db/client.ts";
import { RETENTION } from "../housekeeping/retention.ts";
import type { BackupHeader, BackupTable, SequencePlace } from "./format.ts";

/** How values are written, on both sides: everything that changes the text of one. */
const TEXT_SETTINGS = {
  datestyle: "ISO, YMD",
  intervalstyle: "postgres",
  extra_float_digits: "1",
  bytea_output: "hex",
  timezone: "UTC",
  search_path: "public",
};

/** Does something that sees the database as it is at one moment, however long it takes and whatever is written meanwhile. */
export async function atOneMoment<Result>(sql: Sql, work: (tx: Transaction) => Promise<Result>): Promise<Result> {
  let failure: { thrown: unknown } | null = null;
  try {
    const { result } = await sql.begin("isolation level repeatable read read only", async (tx) => {
      await setText(tx);
      return {
        result: await work(tx).catch((thrown: unknown) => {
          failure = { thrown };
          throw thrown;
        }),
      };
    });
    return result;
  } catch (error) {
    // in the middle of a COPY the driver refuses the rollback and throws that instead of the cause
    throw (failure as { thrown: unknown } | null)?.thrown ?? error;
  }
}

/**
 * Makes an empty database, with the server's own encoding and collation, if there is none of that name; gives whether it did.
 * @throws the server's error if the user may not create databases.
 */
export async function createDatabase(sql: Sql, name: string): Promise<boolean> {
  const there = await sql`select from pg_database where datname = ${name}`;
  if (there.length > 0) return false;
  await sql`create database ${sql(name)} template template0`;
  return true;
}

/** Does all of a restore or none of it. */
export async function allOrNothing<Result>(sql: Sql, work: (tx: Transaction) => Promise<Result>): Promise<Result> {
  const { result } = await sql.begin(async (tx) => {
    await setText(tx);
    return { result: await work(tx) };
  });
  return result;
}

async function setText(tx: Transaction): Promise<void> {
  await tx`select set_config('idle_in_transaction_session_timeout', '0', true)`;
  for (const [name, value] of Object.entries(TEXT_SETTINGS)) await tx`select set_config(${name}, ${value}, true)`;
}

const DAY_OF_TABLE = "^(payloads|polls|poll_failures|usage_facts|call_minutes)_[0-9]{8}$";

/** Describes the database for the first line of a backup; the days are those of any partitioned table. */
export async function describeDatabase(tx: Transaction): Promise<Omit<BackupHeader, "version">> {
  const [row] = await tx<Omit<BackupHeader, "version">[]>`
    with days as (
      select to_date(right(part.relname, 8), 'YYYYMMDD') as day
      from pg_inherits i
      join pg_class part on part.oid = i.inhrelid
      join pg_partitioned_table whole on whole.partrelid = i.inhparent
      where whole.partstrat = 'r'
        and part.relname ~ '_[0-9]{8}$'
    )
    select
      utc_text(now()) as snapshot_at,
      (select array_agg(name order by id) from migrations) as migrations,
      (
        select jsonb_build_object('from', min(day)::text, 'count', max(day) - min(day) + 1)
        from days
        having count(*) > 0
      ) as days,
      (
        select coalesce(sum(greatest(c.reltuples, 0)), 0)::float8
        from pg_class c
        where c.relkind = 'r'
          and c.relnamespace in ('public'::regnamespace, 'auth'::regnamespace)
      ) as rows_expected`;
  if (row === undefined) throw new Error("expected one row that describes the database, found none");
  return row;
}

/** Our sequences that are not of a column. */
const OWN_SEQUENCES = ["usage_batches"];

/** Tables and sequences that are not of our schema, such as those that an operator or an extension added. */
export async function listForeign(sql: Queryable): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select c.oid::regclass::text as name
    from pg_class c
    left join pg_depend d on c.relkind = 'S'
      and d.classid = 'pg_class'::regclass
      and d.objid = c.oid
      and d.refclassid = 'pg_class'::regclass
      and d.deptype in ('a', 'i')
    where c.relnamespace in ('public'::regnamespace, 'auth'::regnamespace)
      and c.relkind in ('r', 'p', 'S')
      and not c.relispartition
      and c.relname !~ ${DAY_OF_TABLE}
      and coalesce(d.refobjid, c.oid)::regclass::text <> all(${[...Object.keys(RETENTION), ...OWN_SEQUENCES]}::text[])
    order by 1`;
  return rows.map(({ name }) => name);
}

/**
 * Every table that a backup holds, each after those that its foreign keys lead to. Left out are what migrations wrote down,
 * parts of a table (which their table shows), leftovers of an import or of a day that is being dropped, and `foreign` ones.
 * @throws Error where tables refer to each other in a circle, which would fit no order.
 */
export async function listTables(sql: Queryable, foreign: readonly string[] = []): Promise<BackupTable[]> {
  const rows = await sql<(BackupTable & { needs: string[] })[]>`
    select
      c.oid::regclass::text as name,
      array(
        select quote_ident(a.attname)
        from pg_attribute a
        where a.attrelid = c.oid
          and a.attnum > 0
          and not a.attisdropped
          and a.attgenerated = ''
        order by a.attnum
      ) as columns,
      array(
        select distinct f.confrelid::regclass::text
        from pg_constraint f
        where f.conrelid = c.oid
          and f.contype = 'f'
          and f.confrelid <> c.oid
      ) as needs
    from pg_class c
    where c.relnamespace in ('public'::regnamespace, 'auth'::regnamespace)
      and c.relkind in ('r', 'p')
      and not c.relispartition
      and c.relname <> 'migrations'
      and c.relname !~ ${DAY_OF_TABLE}
      and c.oid::regclass::text <> all(${foreign}::text[])
    order by 1`;
  const ordered: BackupTable[] = [];
  let waiting = [...rows];
  while (waiting.length > 0) {
    const names = new Set(waiting.map(({ name }) => name));
    const ready = waiting.filter(({ needs }) => !needs.some((need) => names.has(need)));
    if (ready.length === 0) throw new Error(`these tables refer to each other in a circle: ${[...names].join(", ")}`);
    ordered.push(...ready.map(({ name, columns }) => ({ name, columns })));
    waiting = waiting.filter((row) => !ready.includes(row));
  }
  return ordered;
}

/** Keeps tables from being changed in their form or dropped until the transaction ends; rows are written all the same. */
export async function holdTables(tx: Transaction, tables: readonly BackupTable[]): Promise<void> {
  await tx.unsafe(`lock table ${tables.map(({ name }) => name).join(", ")} in access share mode`);
}

/** The rows of a table in the text format of COPY. */
export async function readRows(tx: Transaction, { name, columns }: BackupTable): Promise<Readable> {
  return tx.unsafe(`copy (select ${columns.join(", ")} from ${name}) to stdout`).readable();
}

/** Takes the rows of a table in the text format of COPY. */
export async function writeRows(tx: Transaction, { name, columns }: BackupTable): Promise<Writable> {
  return tx.unsafe(`copy ${name} (${columns.join(", ")}) from stdin`).writable();
}

/** The position of every sequence: at or after that of the snapshot, since sequences are not part of one. */
export async function listSequences(sql: Queryable, foreign: readonly string[]): Promise<SequencePlace[]> {
  return sql<SequencePlace[]>`
    select
      format('%I.%I', schemaname, sequencename) as name,
      coalesce(last_value, start_value)::text as value,
      last_value is not null as "isUsed"
    from pg_sequences
    where schemaname in ('public', 'auth')
      and sequencename <> 'migrations_id_seq'
      and format('%I.%I', schemaname, sequencename)::regclass::text <> all(${foreign}::text[])
    order by 1`;
}

/** Sets a sequence to its stored position; returns false if the schema has none of that name. */
export async function setSequence(tx: Transaction, { name, value, isUsed }: SequencePlace): Promise<boolean> {
  const rows = await tx`
    select setval(sequence, ${value}::bigint, ${isUsed})
    from to_regclass(${name}::text) sequence
    where sequence is not null`;
  return rows.length > 0;
}

/**
 * Skips the account ids and deposit addresses that may have been given out after the backup. Returns how many addresses
 * after the newest one with a deposit a wallet must search to find the next one.
 */
export async function skipLostIdentifiers(tx: Transaction): Promise<number> {
  const [row] = await tx<{ gap: number }[]>`select skip_lost_identifiers() as gap`;
  if (row === undefined) throw new Error("expected one row of skip_lost_identifiers, found none");
  return row.gap;
}

/** What prevents a restore; null if the database is empty, or has a schema and no data. */
export async function findInTheWay(sql: Queryable): Promise<string | null> {
  const tables = await sql<{ name: string }[]>`
    select format('%I.%I', schemaname, tablename) as name
    from pg_tables
    where schemaname in ('public', 'auth')
    order by 1`;
  if (tables.length === 0) return null;
  const names = new Set(tables.map(({ name }) => name));
  if (!names.has("public.migrations")) return `it has the table ${tables[0]?.name}, which is none of ours`;
  for (const name of ["public.houses", "public.accounts", "auth.users", "public.audit_log"]) {
    if (!names.has(name)) continue;
    const [row] = await sql.unsafe<{ found: boolean }[]>(`select exists (select from ${name}) as found`);
    if (row?.found === true) return `the table ${name} has rows`;
  }
  return null;
}

/** The migrations of a database, in order; none where it has no schema. */
export async function listMigrations(sql: Queryable): Promise<string[]> {
  const [there] = await sql<{ there: boolean }[]>`select to_regclass('public.migrations') is not null as there`;
  if (there?.there !== true) return [];
  const rows = await sql<{ name: string }[]>`
    select name
    from migrations
    order by id`;
  return rows.map(({ name }) => name);
}

/**
 * Empties every table, and disables our triggers until {@link enableTriggers}, so that rows are written as they are. Foreign
 * keys are checked.
 */
export async function emptyTables(
  tx: Transaction,
  tables: readonly BackupTable[],
  days: BackupHeader["days"],
): Promise<void> {
  await switchTriggers(tx, "disable");
  await tx.unsafe(`truncate ${tables.map(({ name }) => name).join(", ")}`);
  if (days !== null) await tx`select make_day_partitions(${days.from}::date, ${days.count})`;
}

/** Enables our triggers again. */
export async function enableTriggers(tx: Transaction): Promise<void> {
  await switchTriggers(tx, "enable");
}

async function switchTriggers(tx: Transaction, how: "enable" | "disable"): Promise<void> {
  const rows = await tx<{ name: string }[]>`
    select distinct c.oid::regclass::text as name
    from pg_trigger t
    join pg_class c on c.oid = t.tgrelid
    where not t.tgisinternal
      and c.relnamespace in ('public'::regnamespace, 'auth'::regnamespace)
    order by 1`;
  for (const { name } of rows) await tx.unsafe(`alter table ${name} ${how} trigger user`);
}
