-- What a turn of many tables costs: forecasts are looked at together, a window without asking of each of its rounds whether
-- it is disputed, and an hour is summed when it is published, not with each score.

drop index forecasts_by_hour;
drop index forecasts_of_hour;

-- they are stored by the statement that stores their forecasts, from its rows: to ask again whether each is there took
-- longer than to store it
alter table open_forecasts drop constraint open_forecasts_table_id_seq_fkey;

-- As in 0019, but that a table's disputed rounds are looked through only where it has any.
create or replace function window_span(
  of_table integer, after_seq bigint, first_round_id text, horizon integer, issued timestamptz, color text,
  knows_conflicts boolean
) returns table (
  status text,
  -- the round that ended it; null while it is open
  settled_seq bigint,
  seen integer,
  hit boolean,
  -- the earliest request of a round seen
  requested_at timestamptz
)
language sql stable parallel safe as $$
  select
    coalesce(max(until.fault), case when count(*) = window_span.horizon then 'complete' else 'open' end),
    case when count(until.fault) > 0 or count(*) = window_span.horizon then max(until.seq) end,
    count(*)::integer,
    coalesce(bool_or(until.color = window_span.color), false),
    min(until.requested_at)
  from (
    select
      judged.*,
      count(judged.fault) over (order by judged.seq rows between unbounded preceding and 1 preceding) as faults_before
    from (
      select
        r.seq,
        r.color,
        r.requested_at,
        case
          when r.after_gap then 'void_gap'
          when window_span.first_round_id is not null
            -- a damaged id is no reason to fail: no round has it, and the forecast's hash shows it
            and r.round_number is distinct from
              case when window_span.first_round_id ~ '^[0-9]{1,18}$' then window_span.first_round_id::bigint end
                + row_number() over (order by r.seq) - 1 then 'void_gap'
          when r.requested_at is null or r.requested_at <= window_span.issued then 'void_late'
          when window_span.knows_conflicts
            and (select exists (select from disputed_rounds d where d.table_id = window_span.of_table))
            and exists (select from disputed_rounds d where d.table_id = r.table_id and d.round_id = r.round_id)
            then 'void_quarantine'
        end as fault
      from (
        select *
        from rounds
        where rounds.table_id = window_span.of_table
          and rounds.seq > window_span.after_seq
          and not rounds.late
        order by rounds.seq
        limit window_span.horizon
      ) r
    ) judged
  ) until
  where until.faults_before = 0
$$;

-- Whatever a program believes, the database refuses a forecast that could already be known (RH002), and one that says
-- something untrue of itself or overlaps another window of its feature (RH001). It takes the lock under which rounds are
-- added, so that no round can come in between this look and the end of the transaction, whether or not the program took
-- it. All forecasts of a statement are looked at together, and those of a table that follow the same round only once.
drop trigger forecast_is_issued_before_its_round on forecasts;
drop function refuse_late_forecast();

create function refuse_late_forecasts() returns trigger
language plpgsql as $$
declare
  refused record;
begin
  perform
  from tables t
  where t.id in (select table_id from issued)
  order by t.id
  for no key update of t;

  -- a look of its own, after the lock: it sees what the last holder of the lock committed
  select looked.*
  into refused
  from (
    select
      turn.*,
      case
        when cutoff.round_id is distinct from turn.cutoff_round_id or cutoff.history_hash is distinct from turn.history_hash
          then 'untrue_cutoff'
        when cutoff.late or cutoff.source <> 'poll' then 'cutoff_not_on_time'
        when turn.issued_at > now.at then 'future'
        -- a request for the target sent after issued_at is what makes a forecast count: backdating must gain nothing
        when turn.issued_at < now.at - interval '1 second' then 'backdated'
        -- the next round may be in flight from here on, and a round in flight is likelier to be a long one
        when cutoff.absent_at is null or now.at - cutoff.absent_at >= table_now.pause then 'pause_over'
        when table_now.is_followed then 'followed'
        when table_now.has_unread then 'unread'
      end as reason
    from (
      select distinct table_id, cutoff_seq, cutoff_round_id, history_hash, issued_at
      from issued
    ) turn
    cross join lateral (
      select
        t.pause_ms * interval '1 millisecond' as pause,
        exists (select from rounds r where r.table_id = t.id and r.seq > turn.cutoff_seq and not r.late) as is_followed,
        exists (select from payloads p where p.table_id = t.id and p.state = 'unread') as has_unread
      from tables t
      where t.id = turn.table_id
      offset 0
    ) table_now
    left join lateral (
      select r.round_id, r.history_hash, r.late, r.source, r.absent_at
      from rounds r
      where r.table_id = turn.table_id
        and r.seq = turn.cutoff_seq
      offset 0
    ) cutoff on true
    cross join lateral (select clock_timestamp() as at offset 0) now
  ) looked
  where looked.reason is not null
  order by looked.table_id
  limit 1;
  if found then
    case refused.reason
      when 'untrue_cutoff' then
        raise exception 'a forecast must name a stored round as its cutoff; table % has no such round with seq %',
          refused.table_id, refused.cutoff_seq using errcode = 'RH001';
      when 'cutoff_not_on_time' then
        raise exception 'a forecast must follow a round that was polled on time; seq % of table % was not',
          refused.cutoff_seq, refused.table_id using errcode = 'RH001';
      when 'future' then
        raise exception 'a forecast must not be issued in the future; table % said %', refused.table_id, refused.issued_at
          using errcode = 'RH001';
      when 'backdated' then
        raise exception 'a forecast must be stored within a second of its issue; table % said %',
          refused.table_id, refused.issued_at using errcode = 'RH002';
      when 'pause_over' then
        raise exception 'the pause after seq % of table % is over', refused.cutoff_seq, refused.table_id
          using errcode = 'RH002';
      when 'followed' then
        raise exception 'a round already follows seq % of table %', refused.cutoff_seq, refused.table_id
          using errcode = 'RH002';
      when 'unread' then
        raise exception 'table % has an answer that is not read yet', refused.table_id
          using errcode = 'RH002';
    end case;
  end if;

  select * into refused from issued where feature = 'next_color' and horizon <> 1 limit 1;
  if found then
    raise exception 'next_color must speak of one round; table % said %', refused.table_id, refused.horizon
      using errcode = 'RH001';
  end if;
  select * into refused from issued where feature like 'window:%' and cardinality(p_ppm) <> 1 limit 1;
  if found then
    raise exception 'a window must have one probability; table % said %', refused.table_id, refused.p_ppm
      using errcode = 'RH001';
  end if;

  -- outcomes of windows that overlap depend on each other: the next one is issued when the one before has ended
  select i.table_id, before.forecast_id
  into refused
  from issued i
  cross join lateral (
    select f.forecast_id, f.cutoff_seq, f.target_round_id, f.horizon, f.issued_at
    from forecasts f
    where f.table_id = i.table_id
      and f.model = i.model
      and f.feature = i.feature
      and f.cutoff_seq < i.cutoff_seq
    order by f.cutoff_seq desc
    limit 1
  ) before
  cross join lateral window_span(
    i.table_id, before.cutoff_seq, before.target_round_id, before.horizon, before.issued_at,
    split_part(i.feature, ':', 2), true
  ) span
  where i.feature like 'window:%'
    and span.settled_seq is null
  order by i.table_id, i.seq
  limit 1;
  if found then
    raise exception 'a window must follow the end of the one before; % of table % is open',
      refused.forecast_id, refused.table_id using errcode = 'RH001';
  end if;
  return null;
end $$;

-- A statement has the triggers of the table that it names alone: whoever names a part is looked at as well.
do $$
declare
  named text;
begin
  foreach named in array
    array['forecasts'] || array(select 'forecasts_' || lpad(n::text, 2, '0') from generate_series(0, 15) n)
  loop
    execute format(
      'create trigger forecasts_are_issued_before_their_round
        after insert on %I
        referencing new table as issued
        for each statement execute function refuse_late_forecasts()',
      named
    );
  end loop;
end $$;

create table hours_to_sum (
  table_id integer not null references tables,
  model text not null,
  feature text not null,
  hour timestamptz not null,
  primary key (table_id, model, feature, hour)
);
comment on table hours_to_sum is
  'hours in which something was scored, voided or received since they were summed: noted in the same transaction, and removed by the one that sums them';

comment on table accuracy_marks is
  'how far score-accuracy has come in a table: every forecast on a round up to this seq is scored, and its hour summed or noted in hours_to_sum';
