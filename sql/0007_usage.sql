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

-- The meter: one call of this function is one batch, and one transaction. Calls are admitted in the order given, each
-- only while its key, account and plan are good and its account has calls left today and this month. After the deadline
-- nothing is counted: whoever asked has been refused meanwhile, since he could not be left waiting.
create function consume_calls(call_keys bigint[], call_endpoints text[], deadline timestamptz default null)
returns table (
  ordinal integer, outcome text, day_used bigint, month_used bigint, day_allowed bigint, month_allowed bigint,
  judged_at timestamptz
)
language plpgsql as $$
declare
  at timestamptz := clock_timestamp();
  this_day text := to_char(at at time zone 'UTC', 'YYYY-MM-DD');
  this_month text := to_char(at at time zone 'UTC', 'YYYY-MM');
  accounts_in_order bigint[];
begin
  select array_agg(distinct k.account_id order by k.account_id) into accounts_in_order
    from keys k where k.id = any (call_keys);
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
  with calls as (
    select c.n::integer as n, c.key_id, c.endpoint
    from unnest(call_keys, call_endpoints) with ordinality as c(key_id, endpoint, n)
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
    where k.id = any (call_keys)
  ),
  placed as (
    select
      c.n, c.key_id, c.endpoint, s.account_id, coalesce(s.verdict, 'invalid_api_key') as verdict,
      s.day_limit, s.month_limit, s.day_ceiling,
      d.used as day_before, m.used as month_before,
      row_number() over (partition by s.account_id, s.verdict order by c.n) as place
    from calls c
    left join standing s on s.key_id = c.key_id
    left join quotas d on d.account_id = s.account_id and d.period = this_day
    left join quotas m on m.account_id = s.account_id and m.period = this_month
  ),
  judged as (
    select
      *,
      case
        when verdict <> 'ok' then verdict
        when day_before + place > day_limit then 'day_quota_exceeded'
        when month_before + place > month_limit then 'month_quota_exceeded'
        when day_before + place > day_ceiling then 'service_ceiling_reached'
        else 'ok'
      end as result
    from placed
  ),
  counted as (
    update quotas q
    set used = q.used + g.n
    from (select j.account_id, count(*) as n from judged j where j.result = 'ok' group by j.account_id) g
    where q.account_id = g.account_id and q.period in (this_day, this_month)
  ),
  kept as (
    insert into usage_facts (minute, key_id, account_id, endpoint, batch, n)
    select date_trunc('minute', at, 'UTC'), f.key_id, f.account_id, f.endpoint, f.batch, f.n
    from (
      select j.key_id, j.account_id, j.endpoint, count(*)::integer as n, b.batch
      from judged j, (select nextval('usage_batches') as batch) b
      where j.result = 'ok'
      group by j.key_id, j.account_id, j.endpoint, b.batch
    ) f
  )
  select
    j.n,
    j.result,
    j.day_before + case when j.result = 'ok' then j.place else least(j.place - 1, coalesce(j.admitted, 0)) end,
    j.month_before + case when j.result = 'ok' then j.place else least(j.place - 1, coalesce(j.admitted, 0)) end,
    j.day_limit,
    j.month_limit,
    at
  from (
    select *, count(*) filter (where result = 'ok') over (partition by account_id) as admitted from judged
  ) j
  order by j.n;
end $$;
comment on function consume_calls is
  'admits calls exactly: the outcome of each, the account''s counts after it, its limits and when it was judged; all in one transaction';
