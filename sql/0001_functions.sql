-- Functions that several tables use. Migrations run in the order of their file names; `migrate` grants what each role may
-- do after them (src/db/roles/role-grants.ts).

-- before PostgreSQL 15 every role may create objects in public
revoke create on schema public from public;

create function utc_text(at timestamptz) returns text
language sql stable parallel safe
return to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"0Z"');
comment on function utc_text is 'a time as every surface prints it: 2026-11-21T04:00:12.1234560Z';

create function refuse_change_of_record() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  raise exception '% is only ever added to: % is refused', tg_table_name, lower(tg_op);
end
$$;
comment on function refuse_change_of_record is 'the trigger of append-only tables';

-- Each partition is created as a table and then attached: `create table … partition of` locks the parent exclusively,
-- attaching does not. Runs as the owner of the schema, and so would the defaults, expressions, rules and triggers of a
-- table that it touches: it refuses one of another owner.
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
      nullif(p.partdefid, 0)::regclass as default_part,
      a.attname as time,
      (
        select string_agg(format('%s of %s', t.relname, t.relowner::regrole), ', ')
        from pg_class t
        where t.oid in (c.oid, p.partdefid)
          and pg_get_userbyid(t.relowner) <> current_user
      ) as of_others
    from pg_partitioned_table p
    join pg_class c on c.oid = p.partrelid
    join pg_attribute a on a.attrelid = c.oid and a.attnum = p.partattrs[0]
    where p.partstrat = 'r'
      and c.relnamespace = 'public'::regnamespace
    order by c.relname
  loop
    if parent.of_others is not null then
      raise exception 'expected tables that are made of days to belong to %, found %; give them to it with alter table', current_user, parent.of_others;
    end if;
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
    end loop;
  end loop;
end $$;
comment on function make_day_partitions is
  'creates the partitions for whole UTC days of every partitioned table, and moves rows of these days out of a default partition; all of them are partitioned by time';

create function worked_lately() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from public.uptime_days
    where day between (clock_timestamp() at time zone 'UTC')::date - 8 and (clock_timestamp() at time zone 'UTC')::date - 2
      and good > 0
  );
end $$;
comment on function worked_lately is
  'whether the instance worked two to eight days ago; otherwise the clock may be months ahead, and what is deleted by its day stays';

-- No role owns a table. Called once it detaches a day, called again it drops it, so that the table is locked for a moment.
-- Detaching concurrently would not lock it, but is possible in no function and next to no default partition.
-- With a clock that is months ahead for an hour it would drop everything: it requires worked_lately(). After months
-- without work it begins two days later.
create function drop_day(of_table text, of_day date) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
  is_unread boolean;
  part text := of_table || '_' || to_char(of_day, 'YYYYMMDD');
  kept interval := case of_table
    when 'usage_facts' then '60 days'
    when 'polls' then '15 days'
    when 'poll_failures' then '15 days'
    when 'call_minutes' then '2 days'
    when 'payloads' then '25 hours' -- at least; PAYLOAD_RETENTION_HOURS
  end;
begin
  if kept is null then
    raise exception 'expected a table that is made of days, found %', of_table;
  end if;
  if of_day::timestamp at time zone 'UTC' + kept > clock_timestamp() then
    raise exception 'a day of % is kept for %: % stays', of_table, kept, of_day;
  end if;
  if not public.worked_lately() then
    raise exception 'expected this instance at work two to eight days ago by the clock of the database, found nothing: set the clock if it is wrong; % of % stays until then or for two days', of_day, of_table;
  end if;
  if exists (select from pg_inherits where inhrelid = to_regclass('public.' || part)) then
    if of_table = 'payloads' then
      execute format('select exists (select from public.%I where state = ''unread'')', part) into is_unread;
      if is_unread then
        raise exception 'payloads of % are unread: they stay', of_day;
      end if;
    end if;
    execute format('alter table public.%I detach partition public.%I', of_table, part);
  else
    execute format('drop table if exists public.%I', part);
  end if;
end $$;
comment on function drop_day is
  'detaches, then drops, a UTC day of a table that is made of days, once the time for which it is kept is over';

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
revoke execute on function drop_day(text, date) from public;
revoke execute on function sessions() from public;
