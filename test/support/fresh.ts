import { connect } from "../../src/db/client.ts";

/** If a table has more rows than this, dropping the database is faster than deleting them. */
const MOST_BYTES = 4_000_000;

/**
 * Lets copies of a template be reused: stores its rows and sequences, and records every change of the schema.
 * Copying a thousand files for each of some hundred databases was a third of the suite's time.
 */
export async function rememberFresh(template: string): Promise<void> {
  const sql = connect(template, { name: "test", max: 1 });
  try {
    await sql.unsafe(REMEMBER);
  } finally {
    await sql.end();
  }
}

const REMEMBER = `
    create schema fresh;
    create table fresh.changes (tag text not null);
    create table fresh.sequences as
      select schemaname as schema, sequencename as name, start_value, last_value
      from pg_sequences
      where schemaname in ('public', 'auth');
    create table fresh.tables (id regclass primary key, columns text not null);
    do $$
    declare one record; has_rows boolean;
    begin
      for one in
        select c.oid::regclass as id, string_agg(quote_ident(a.attname), ', ' order by a.attnum) as columns
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
        where c.relkind = 'r' and c.relnamespace in ('public'::regnamespace, 'auth'::regnamespace)
        group by c.oid
      loop
        execute format('select exists (select from %s)', one.id) into has_rows;
        if has_rows then
          execute format('create table fresh.%I as select %s from %s', 'rows of ' || one.id, one.columns, one.id);
          insert into fresh.tables values (one.id, one.columns);
        end if;
      end loop;
    end $$;
    create function fresh.note_change() returns event_trigger security definer language plpgsql as $$
    begin
      if tg_event = 'sql_drop' then
        if not exists (select from pg_event_trigger_dropped_objects() where not is_temporary) then return; end if;
      elsif not exists (select from pg_event_trigger_ddl_commands() where schema_name is distinct from 'pg_temp') then
        return;
      end if;
      insert into fresh.changes values (tg_tag);
    end $$;
    create function fresh.restore() returns boolean language plpgsql as $$
    declare one record;
    begin
      if exists (select from fresh.changes) then return false; end if;
      set local session_replication_role = replica;
      for one in
        select c.oid::regclass as id, pg_relation_size(c.oid) as bytes, f.columns
        from pg_class c
        left join fresh.tables f on f.id = c.oid
        where c.relkind = 'r' and c.relnamespace in ('public'::regnamespace, 'auth'::regnamespace)
          and (f.id is not null or pg_relation_size(c.oid) > 0)
      loop
        if one.bytes > ${MOST_BYTES} then return false; end if;
        execute format('delete from %s', one.id);
        if one.columns is not null then
          execute format('insert into %s (%s) overriding system value select %s from fresh.%I',
            one.id, one.columns, one.columns, 'rows of ' || one.id);
        end if;
      end loop;
      perform setval(format('%I.%I', f.schema, f.name)::regclass, coalesce(f.last_value, f.start_value), f.last_value is not null)
      from fresh.sequences f
      join pg_sequences s on s.schemaname = f.schema and s.sequencename = f.name
      where s.last_value is distinct from f.last_value;
      return true;
    end $$;
    create event trigger note_change on ddl_command_end execute function fresh.note_change();
    create event trigger note_drop on sql_drop execute function fresh.note_change();
    alter event trigger note_change enable always;
    alter event trigger note_drop enable always;
  `;

/** Restores a database to its template; false if its schema was changed, much was written or a session is still open in it. */
export async function makeFresh(url: string): Promise<boolean> {
  const sql = connect(url, { name: "test", max: 1 });
  try {
    const [row] = await sql<{ restored: boolean }[]>`
      select fresh.restore() as restored
      from (select 1) as one
      where to_regprocedure('fresh.restore()') is not null`;
    return row?.restored ?? false;
  } finally {
    await sql.end();
  }
}
