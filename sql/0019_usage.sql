-- Metering: every call is admitted against the plan of its account and counted, exactly.

create table quotas (
  account_id bigint not null references accounts,
  period text not null
    constraint period_is_a_day_or_a_month check (period ~ '^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$'),
  used bigint not null default 0
    constraint used_is_not_negative check (used >= 0),
  primary key (account_id, period)
) with (fillfactor = 50);
create index quotas_by_period on quotas (period);
comment on table quotas is 'calls of an account that were admitted in a UTC day (2026-11-21) or month (2026-11)';

alter table quotas enable row level security;

create sequence usage_batches;

create table usage_facts (
  minute timestamptz not null,
  key_id bigint not null,
  account_id bigint not null,
  endpoint text not null,
  batch bigint not null,
  n integer not null
    constraint usage_is_positive check (n > 0),
  primary key (minute, key_id, endpoint, batch)
) partition by range (minute);
comment on table usage_facts is 'calls as each batch admitted them; what is billed can be recomputed from these';
create index usage_facts_by_account on usage_facts (account_id, minute);
-- Calls of a day without a partition must not be refused; make_day_partitions moves them to it.
create table usage_facts_default partition of usage_facts default;

-- A read of the facts of a day (1,000,000 of them at 25 calls/s of one key) occupied every connection of the API.
create table usage_counts (
  account_id bigint not null references accounts,
  day date not null,
  key_id bigint not null references keys,
  endpoint text not null,
  n bigint not null
    constraint usage_count_is_positive check (n > 0),
  primary key (account_id, day, key_id, endpoint)
) with (fillfactor = 50); -- each batch updates its rows in place
alter table usage_counts enable row level security;
create index usage_counts_by_day on usage_counts (day);
comment on table usage_counts is
  'calls per key, endpoint and UTC day: always the sum of usage_facts, written in the same statement by a trigger';

-- A comparison that sums every fact of a day (5 s for 2 million) each ten minutes would never end at 24 million a day.
create table usage_days (
  day date primary key,
  summed_to timestamptz not null,
  is_recount boolean not null default true,
  compared_at timestamptz,
  is_closed boolean not null default false
);
comment on table usage_days is 'how far the facts of a UTC day are summed, and when quotas and counts were compared with them';
comment on column usage_days.is_recount is 'whether the sums were started from the beginning of the day since the last comparison';
comment on column usage_days.is_closed is 'whether the day is over and all three agreed after a recount';

create table usage_sums (
  day date not null references usage_days on delete cascade,
  account_id bigint not null,
  key_id bigint not null,
  endpoint text not null,
  n bigint not null,
  primary key (day, account_id, key_id, endpoint)
);
comment on table usage_sums is 'the facts of a day before usage_days.summed_to, summed; deleted when the day is closed';

create table call_minutes (
  minute timestamptz not null,
  account_id bigint not null,
  key_id bigint not null,
  endpoint text not null,
  outcome text not null,
  n integer not null
    constraint calls_of_a_minute_are_positive check (n > 0),
  last_at timestamptz not null,
  primary key (account_id, minute, key_id, endpoint, outcome)
) partition by range (minute);
comment on table call_minutes is
  'calls per minute by key, endpoint and outcome, refused ones included, for their holder to look at; written about once a second, not billed by';
comment on column call_minutes.outcome is 'ok, not_modified, or the code of the error that was returned';
comment on column call_minutes.last_at is 'when the last of them ended';

-- Runs as its owner, so that no role needs the right to change a count.
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
  -- a clock that stepped back, or rows added manually: the day is summed again
  delete from public.usage_days d
    where d.is_closed and d.day in (select (f.minute at time zone 'UTC')::date from added f);
  return null;
end $$;
comment on function count_usage is
  'adds new facts to their counts in the transaction that stores them, and reopens a closed day that gets some';
revoke execute on function count_usage() from public;

create trigger facts_are_counted
  after insert on usage_facts
  referencing new table as added
  for each statement
  execute function count_usage();

-- One call is one batch and one transaction. A batch is a list of runs: a number of calls of one key and endpoint in a row.
-- Calls are admitted in the order given while their key, account and plan are valid and the account has calls left today
-- and this month. After the deadline nothing is counted: the caller has been refused meanwhile.
create function consume_runs(
  run_keys bigint[], run_endpoints text[], run_sizes integer[], deadline timestamptz default null
)
returns table (
  ordinal integer, admitted integer, refusal text, day_before bigint, month_before bigint, day_allowed bigint,
  month_allowed bigint, decided_at timestamptz
)
language plpgsql security definer
set search_path = public, pg_temp
-- otherwise a batch of one call is planned each time: 1.2 ms instead of 0.5
set plan_cache_mode = force_generic_plan
as $$
declare
  at timestamptz := clock_timestamp();
  this_day text := to_char(at at time zone 'UTC', 'YYYY-MM-DD');
  this_month text := to_char(at at time zone 'UTC', 'YYYY-MM');
  accounts_in_order bigint[];
begin
  select array_agg(distinct k.account_id order by k.account_id) into accounts_in_order
    from keys k where k.id = any (run_keys);
  insert into quotas (account_id, period)
    select a, p from unnest(accounts_in_order) a, unnest(array[this_month, this_day]) p order by a, p
    on conflict do nothing;
  -- every process locks in this order, the day before its month, and after all inserts: no deadlocks
  perform from quotas q
    where q.account_id = any (accounts_in_order) and q.period in (this_day, this_month)
    order by q.account_id, q.period desc
    for update;
  if clock_timestamp() > deadline then
    raise exception 'expected the calls to be counted before their deadline: it is %, the deadline was %', clock_timestamp(), deadline
      using errcode = 'RH003';
  end if;
  return query
  with runs as (
    select r.n::integer as n, r.key_id, r.endpoint, r.size
    from unnest(run_keys, run_endpoints, run_sizes) with ordinality as r(key_id, endpoint, size, n)
  ),
  standing as (
    select
      k.id as key_id,
      k.account_id,
      p.day_limit, p.month_limit,
      case when p.day_limit is null then p.day_ceiling end as day_ceiling,
      case
        when k.revoked_at is not null and k.revoked_at <= at then 'revoked_api_key'
        when k.expires_at is not null and k.expires_at <= at then 'expired_api_key'
        when a.suspended_at is not null then 'account_suspended'
        when a.verified_at is null then 'email_not_verified'
        when p.name is not null then 'ok'
        when exists (select from entitlements e where e.account_id = a.id and e.ends_at <= at) then 'plan_expired'
        else 'no_active_plan'
      end as verdict
    from keys k
    join accounts a on a.id = k.account_id
    left join lateral (
      select e.plan
      from entitlements e
      where e.account_id = a.id and e.starts_at <= at and (e.ends_at is null or e.ends_at > at)
      order by e.starts_at desc
      limit 1
    ) current on true
    left join plans p on p.name = current.plan
    where k.id = any (run_keys)
  ),
  placed as (
    select
      r.n, r.key_id, r.endpoint, r.size, s.account_id, coalesce(s.verdict, 'invalid_api_key') as verdict,
      s.day_limit, s.month_limit, s.day_ceiling,
      d.used as day_used, m.used as month_used,
      -- calls left to the account, negative after its plan has shrunk; null without a limit
      least(s.day_limit - d.used, s.month_limit - m.used, s.day_ceiling - d.used) as room,
      sum(r.size) over (partition by s.account_id, s.verdict order by r.n) - r.size as before
    from runs r
    left join standing s on s.key_id = r.key_id
    left join quotas d on d.account_id = s.account_id and d.period = this_day
    left join quotas m on m.account_id = s.account_id and m.period = this_month
  ),
  decided as (
    select
      *,
      case when verdict = 'ok' then greatest(0, least(size, room - before))::integer else 0 end as good,
      case
        when verdict <> 'ok' then verdict
        -- the month first: if both are used up, it is no use to come back at midnight
        when month_limit - month_used <= greatest(room, 0) then 'month_quota_exceeded'
        when day_limit - day_used <= room then 'day_quota_exceeded'
        when day_ceiling - day_used <= room then 'service_ceiling_reached'
      end as reason
    from placed
  ),
  counted as (
    update quotas q
    set used = q.used + g.n
    from (select j.account_id, sum(j.good) as n from decided j where j.good > 0 group by j.account_id) g
    where q.account_id = g.account_id and q.period in (this_day, this_month)
  ),
  kept as (
    insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
    select date_trunc('minute', at, 'UTC'), f.key_id, f.account_id, f.endpoint, f.batch, f.n
    from (
      select j.key_id, j.account_id, j.endpoint, sum(j.good)::integer as n, b.batch
      from decided j, (select nextval('usage_batches') as batch) b
      where j.good > 0
      group by j.key_id, j.account_id, j.endpoint, b.batch
    ) f
  )
  select
    j.n,
    j.good,
    j.reason,
    j.day_used + greatest(0, least(j.before, j.room))::bigint,
    j.month_used + greatest(0, least(j.before, j.room))::bigint,
    j.day_limit,
    j.month_limit,
    at
  from decided j
  order by j.n;
end $$;
comment on function consume_runs is
  'admits the calls of any number of runs: of each run how many and why not the others, the account''s counts before it, its limits and the time of the decision; all in one transaction';

-- Most batches are one run of one key and endpoint. Plain statements take six tenths of the time of the one statement that
-- judges any number of runs, most of which is its setup. Locks (day before month), checks and deadline are the same.
create function consume_calls(
  run_keys bigint[], run_endpoints text[], run_sizes integer[], deadline timestamptz default null
)
returns table (
  ordinal integer, admitted integer, refusal text, day_before bigint, month_before bigint, day_allowed bigint,
  month_allowed bigint, decided_at timestamptz
)
language plpgsql security definer
set search_path = public, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  at timestamptz := clock_timestamp();
  this_day text := to_char(at at time zone 'UTC', 'YYYY-MM-DD');
  this_month text := left(this_day, 7);
  run_key bigint := run_keys[1];
  size integer := run_sizes[1];
  account bigint;
  day_ceiling bigint;
  room bigint;
  verdict text;
begin
  if cardinality(run_keys) = 1 then
    select k.account_id into account from keys k where k.id = run_key;
  end if;
  if account is null then
    return query select * from consume_runs(run_keys, run_endpoints, run_sizes, deadline);
    return;
  end if;

  select q.used into day_before from quotas q where q.account_id = account and q.period = this_day for update;
  if day_before is null then
    -- The first call of a day: its rows are inserted there, which may wait for another process, so nothing is locked here.
    return query select * from consume_runs(run_keys, run_endpoints, run_sizes, deadline);
    return;
  end if;
  -- the row of a month is as old as that of its first day, and stays longer
  select q.used into month_before from quotas q where q.account_id = account and q.period = this_month for update;
  if clock_timestamp() > deadline then
    raise exception 'expected the calls to be counted before their deadline: it is %, the deadline was %', clock_timestamp(), deadline
      using errcode = 'RH003';
  end if;

  select
    p.day_limit, p.month_limit,
    case when p.day_limit is null then p.day_ceiling end,
    case
      when k.revoked_at is not null and k.revoked_at <= at then 'revoked_api_key'
      when k.expires_at is not null and k.expires_at <= at then 'expired_api_key'
      when a.suspended_at is not null then 'account_suspended'
      when a.verified_at is null then 'email_not_verified'
      when p.name is not null then 'ok'
      when exists (select from entitlements e where e.account_id = a.id and e.ends_at <= at) then 'plan_expired'
      else 'no_active_plan'
    end
  into day_allowed, month_allowed, day_ceiling, verdict
  from keys k
  join accounts a on a.id = k.account_id
  left join plans p on p.name = (
    select e.plan
    from entitlements e
    where e.account_id = a.id and e.starts_at <= at and (e.ends_at is null or e.ends_at > at)
    order by e.starts_at desc
    limit 1
  )
  where k.id = run_key;

  ordinal := 1;
  decided_at := at;
  admitted := 0;
  if verdict <> 'ok' then
    refusal := verdict;
  else
    room := least(day_allowed - day_before, month_allowed - month_before, day_ceiling - day_before);
    admitted := greatest(0, least(size, room));
    refusal := case
      -- the month first: if both are used up, it is no use to come back at midnight
      when month_allowed - month_before <= greatest(room, 0) then 'month_quota_exceeded'
      when day_allowed - day_before <= room then 'day_quota_exceeded'
      when day_ceiling - day_before <= room then 'service_ceiling_reached'
    end;
  end if;
  if admitted > 0 then
    update quotas q set used = q.used + admitted where q.account_id = account and q.period = this_month;
    update quotas q set used = q.used + admitted where q.account_id = account and q.period = this_day;
    insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
      values (date_trunc('minute', at, 'UTC'), run_key, account, run_endpoints[1], nextval('usage_batches'), admitted);
  end if;
  return next;
end $$;
comment on function consume_calls is
  'admits calls exactly: of each run how many and why not the others, the account''s counts before it, its limits and the time of the decision; all in one transaction';

-- Both run as the owner of the schema: a process that counts calls can neither reset a quota nor write a count directly.
revoke execute on function consume_runs(bigint[], text[], integer[], timestamptz) from public;
revoke execute on function consume_calls(bigint[], text[], integer[], timestamptz) from public;
