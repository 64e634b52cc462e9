-- GET /usage added up the facts of the day: with 1,000,000 of them, 25 calls/s of one key took every connection of the API.
-- Calls are now counted per key, endpoint and UTC day as the facts are written, so that a read is a few index look-ups. The
-- hourly and monthly sums are dropped, since nothing read them; `quotas` keeps the months of each account.
create table usage_counts (
  account_id bigint not null,
  day date not null,
  key_id bigint not null,
  endpoint text not null,
  n bigint not null
    constraint usage_count_is_positive check (n > 0),
  primary key (account_id, day, key_id, endpoint)
) with (fillfactor = 50); -- as quotas: each batch updates its rows in place
create index usage_counts_by_day on usage_counts (day);
comment on table usage_counts is
  'calls per key, endpoint and UTC day: always the sum of usage_facts, written by the same statement through a trigger';

-- A fact is written by a statement that its batch began at most a second before, and a statement ends within a minute: facts
-- older than an hour are complete, and are counted while calls go on being metered.
insert into usage_counts (account_id, day, key_id, endpoint, n)
  select account_id, (minute at time zone 'UTC')::date, key_id, endpoint, sum(n)
  from usage_facts
  where minute < date_trunc('hour', now(), 'UTC') - interval '1 hour'
  group by 1, 2, 3, 4;

-- days whose facts were dropped already
insert into usage_counts (account_id, day, key_id, endpoint, n)
  select account_id, (starts_at at time zone 'UTC')::date, key_id, endpoint, n
  from usage_rollups
  where grain = 'day'
    and starts_at < coalesce((select date_trunc('day', min(minute), 'UTC') from usage_facts), 'infinity');

-- Runs as its owner: no role may change a count itself, and an older API needs no new grant.
create function count_usage() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into public.usage_counts as c (account_id, day, key_id, endpoint, n)
    select f.account_id, (f.minute at time zone 'UTC')::date, f.key_id, f.endpoint, sum(f.n)
    from added f
    group by 1, 2, 3, 4
    order by 1, 2, 3, 4 -- writers lock the rows in one order
    on conflict (account_id, day, key_id, endpoint) do update set n = c.n + excluded.n;
  return null;
end $$;
comment on function count_usage is 'adds new facts to their counts, in the transaction that writes them';
revoke execute on function count_usage() from public;

-- Waits for the batches that are being written and keeps new ones out until the rest is counted.
create trigger facts_are_counted
  after insert on usage_facts
  referencing new table as added
  for each statement
  execute function count_usage();

insert into usage_counts as c (account_id, day, key_id, endpoint, n)
  select account_id, (minute at time zone 'UTC')::date, key_id, endpoint, sum(n)
  from usage_facts
  where minute >= date_trunc('hour', now(), 'UTC') - interval '1 hour'
  group by 1, 2, 3, 4
  on conflict (account_id, day, key_id, endpoint) do update set n = c.n + excluded.n;

-- last, since accounts and keys take no writes from here to the end of the file
alter table usage_counts
  add foreign key (account_id) references accounts,
  add foreign key (key_id) references keys;

-- An API that is one version behind reads this on its pages for callers and staff.
drop table usage_rollups;
create view usage_rollups as
  select 'day' as grain, day::timestamp at time zone 'UTC' as starts_at, account_id, key_id, endpoint, n
  from usage_counts;
comment on view usage_rollups is 'the counts as an API before migration 39 reads them; drop it with the version after next';
