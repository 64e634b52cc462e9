-- What each part of the program may do is listed in src/db/role-grants.ts and granted after every migration; here is what
-- a role cannot be given by a grant. Such functions run as whoever owns the schema, so their search path is fixed, and
-- nobody may call them but the roles of the list.

-- As in 0002. Whoever makes a day, it belongs to the owner of the whole table, which is the role of the workers: they
-- drop days, and only an owner can take one out without locking readers out.
create or replace function make_day_partitions(from_day date, days integer) returns void
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
    select c.relname as name, pg_get_userbyid(c.relowner) as owner
    from pg_partitioned_table p
    join pg_class c on c.oid = p.partrelid
    where p.partstrat = 'r'
      and c.relnamespace = 'public'::regnamespace
    order by c.relname
  loop
    for day in select from_day + n from generate_series(0, days - 1) n loop
      part := parent.name || '_' || to_char(day, 'YYYYMMDD');
      continue when to_regclass(format('public.%I', part)) is not null;
      execute format('create table public.%I (like public.%I including all)', part, parent.name);
      execute format(
        'alter table public.%I attach partition public.%I for values from (%L) to (%L)',
        parent.name, part, day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'
      );
      perform public.give_table(format('public.%I', part)::regclass, parent.owner);
    end loop;
  end loop;
end $$;

-- A new owner must be allowed to make tables where the table is, unless a superuser hands it over: for that moment alone
-- it is, since whoever may make functions there could put one in the way of ours.
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
comment on function give_table is 'makes a table somebody else''s, who need not be allowed to make tables';

create function sessions() returns table (pid integer, application_name text, state text, xact_start timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select pid, application_name, state, xact_start
  from pg_stat_activity
  where datname = current_database()
$$;
comment on function sessions is
  'who is connected to this database, since when in a transaction: a role sees no more than the names of the sessions of others';

-- before PostgreSQL 15 everybody may put tables and functions beside ours
revoke create on schema public from public;
revoke execute on function make_day_partitions(date, integer) from public;
revoke execute on function give_table(regclass, name) from public;
revoke execute on function sessions() from public;

create table backups (
  id bigint generated always as identity primary key,
  snapshot_at timestamptz not null,
  made_at timestamptz not null default clock_timestamp(),
  file text not null,
  bytes bigint not null
    constraint backup_has_bytes check (bytes > 0),
  sha256 text not null
    constraint backup_hash_is_hex check (sha256 ~ '^[0-9a-f]{64}$'),
  rows bigint not null
    constraint backup_rows_are_not_negative check (rows >= 0),
  constraint backup_is_made_after_its_snapshot check (made_at >= snapshot_at)
);
comment on table backups is 'backups that `roundhouse backup` finished: the state of which moment, and the hash of the file';
