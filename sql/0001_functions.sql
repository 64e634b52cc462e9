-- Functions that several tables use. Migrations run in the order of their file names; `migrate` grants what each role may
-- do after them (src/db/roles/role-grants.ts).

-- before PostgreSQL 15 every role may create objects in public
revoke create on schema public from public;

create function utc_text(at timestamptz) returns text
language sql stable parallel safe
return to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"0Z"');
comment on function utc_text is 'a time as every surface prints it: 2026-11-21T04:00:12.1234560Z';

create function refuse_change_of_record() returns trigger language plpgsql as $$
begin
  raise exception '% is only ever added to: % is refused', tg_table_name, lower(tg_op);
end
$$;
comment on function refuse_change_of_record is 'the trigger of append-only tables';

-- A new owner needs the right to create in the schema of the table unless a superuser makes the change. It is granted for
-- this statement only: a role that may create functions there could shadow ours.
create function give_table(which regclass, new_owner name) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  must_be_let_in boolean := not (select rolsuper from pg_roles where rolname = current_user)
    and not has_schema_privilege(new_owner, 'public', 'create');
begin
  if new_owner = (select pg_get_userbyid(relowner) from pg_class where oid = which) then
    return;
  end if;
  if must_be_let_in then
    execute format('grant create on schema public to %I', new_owner);
  end if;
  execute format('alter table %s owner to %I', which, new_owner);
  if must_be_let_in then
    execute format('revoke create on schema public from %I', new_owner);
  end if;
end $$;
comment on function give_table is 'changes the owner of a table to a role that may not create tables';

-- Each partition is created as a table and then attached: `create table … partition of` locks the parent exclusively,
-- attaching does not. It gets the parent's owner, the role of the workers, since only an owner can detach it. Runs as the
-- owner of the schema, so its search path is fixed and only the roles of role-grants.ts may call it.
create function make_day_partitions(from_day date, days integer) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  parent record;
  part text;
  day date;
begin
  perform pg_advisory_xact_lock(hashtext('make_day_partitions'));
  for parent in
    select
      c.relname as name,
      pg_get_userbyid(c.relowner) as owner,
      nullif(p.partdefid, 0)::regclass as default_part,
      a.attname as time
    from pg_partitioned_table p
    join pg_class c on c.oid = p.partrelid
    join pg_attribute a on a.attrelid = c.oid and a.attnum = p.partattrs[0]
    where p.partstrat = 'r'
      and c.relnamespace = 'public'::regnamespace
    order by c.relname
  loop
    for day in select from_day + n from generate_series(0, days - 1) n loop
      part := parent.name || '_' || to_char(day, 'YYYYMMDD');
      continue when to_regclass(format('public.%I', part)) is not null;
      execute format('create table public.%I (like public.%I including all)', part, parent.name);
      if parent.default_part is not null then
        -- attaching locks it, too; a row added in between would make it fail
        execute format('lock table %s in access exclusive mode', parent.default_part);
        execute format(
          'with moved as (delete from %1$s where %2$I >= %3$L and %2$I < %4$L returning *) insert into public.%5$I select * from moved',
          parent.default_part, parent.time,
          day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC', part
        );
      end if;
      execute format(
        'alter table public.%I attach partition public.%I for values from (%L) to (%L)',
        parent.name, part, day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'
      );
      perform public.give_table(format('public.%I', part)::regclass, parent.owner);
    end loop;
  end loop;
end $$;
comment on function make_day_partitions is
  'creates the partitions for whole UTC days of every partitioned table, and moves rows of these days out of a default partition; all of them are partitioned by time';

create function sessions() returns table (pid integer, application_name text, state text, xact_start timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select pid, application_name, state, xact_start
  from pg_stat_activity
  where datname = current_database()
$$;
comment on function sessions is
  'connections to this database and the start of their transactions; a role sees only the names of other sessions otherwise';

revoke execute on function make_day_partitions(date, integer) from public;
revoke execute on function give_table(regclass, name) from public;
revoke execute on function sessions() from public;
