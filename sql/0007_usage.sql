create table quotas (
  account_id bigint not null references accounts,
  period text not null
    constraint period_is_a_day_or_a_month check (period ~ '^[0-9]{4}-[0-9]{2}(-[0-9]{2})?$'),
  used bigint not null default 0
    constraint used_is_not_negative check (used >= 0),
  primary key (account_id, period)
) with (fillfactor = 50);
comment on table quotas is 'calls admitted to an account in a UTC day (2026-11-21) or month (2026-11): the meter';

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
comment on table usage_facts is 'calls as each batch of the meter admitted them; rollups are recomputed from these';
create index usage_facts_by_account on usage_facts (account_id, minute);

create table usage_rollups (
  grain text not null
    constraint grain_is_known check (grain in ('hour', 'day', 'month')),
  starts_at timestamptz not null,
  account_id bigint not null references accounts,
  key_id bigint not null references keys,
  endpoint text not null,
  n bigint not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (grain, starts_at, key_id, endpoint)
);
comment on table usage_rollups is 'calls by hour, day and month per key and endpoint, recomputed and never incremented';
create index usage_rollups_of_account on usage_rollups (account_id, grain, starts_at);

-- The meter: one call of this function is one batch, and one transaction. It comes as runs: so many calls of one key and
-- endpoint after each other. Calls are admitted in the order given, each only while its key, account and plan are good and
-- its account has calls left today and this month. After the deadline nothing is counted: whoever asked has been refused
-- meanwhile, since he could not be left waiting.
create function consume_calls(
  run_keys bigint[], run_endpoints text[], run_sizes integer[], deadline timestamptz default null
)
returns table (
  ordinal integer, admitted integer, refusal text, day_before bigint, month_before bigint, day_allowed bigint,
  month_allowed bigint, judged_at timestamptz
)
language plpgsql
-- a batch of one call is planned anew each time otherwise: 1.2 ms and not 0.5
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
  -- everyone locks in the same order, so two processes never wait for each other in a circle
  perform from quotas q
    where q.account_id = any (accounts_in_order) and q.period in (this_day, this_month)
    order by q.account_id, q.period
    for update;
  if clock_timestamp() > deadline then
    raise exception 'the calls came to be counted at %, after their deadline of %', clock_timestamp(), deadline
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
      p.day_limit, p.month_limit, p.day_ceiling,
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
      -- what the account may still call, below zero where its plan has shrunk; null where nothing bounds it
      least(s.day_limit - d.used, s.month_limit - m.used, s.day_ceiling - d.used) as room,
      sum(r.size) over (partition by s.account_id, s.verdict order by r.n) - r.size as before
    from runs r
    left join standing s on s.key_id = r.key_id
    left join quotas d on d.account_id = s.account_id and d.period = this_day
    left join quotas m on m.account_id = s.account_id and m.period = this_month
  ),
  judged as (
    select
      *,
      case when verdict = 'ok' then greatest(0, least(size, room - before))::integer else 0 end as good,
      case
        when verdict <> 'ok' then verdict
        -- the month first: whoever has used up both need not come back at midnight
        when month_limit - month_used <= greatest(room, 0) then 'month_quota_exceeded'
        when day_limit - day_used <= room then 'day_quota_exceeded'
        when day_ceiling - day_used <= room then 'service_ceiling_reached'
      end as reason
    from placed
  ),
  counted as (
    update quotas q
    set used = q.used + g.n
    from (select j.account_id, sum(j.good) as n from judged j where j.good > 0 group by j.account_id) g
    where q.account_id = g.account_id and q.period in (this_day, this_month)
  ),
  kept as (
    insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
    select date_trunc('minute', at, 'UTC'), f.key_id, f.account_id, f.endpoint, f.batch, f.n
    from (
      select j.key_id, j.account_id, j.endpoint, sum(j.good)::integer as n, b.batch
      from judged j, (select nextval('usage_batches') as batch) b
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
  from judged j
  order by j.n;
end $$;
comment on function consume_calls is
  'admits calls exactly: of each run how many and why not the others, the account''s counts before it, its limits and when it was judged; all in one transaction';
