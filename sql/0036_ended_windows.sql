-- As in 0035, but that a window which has all its rounds is not judged to know that it has ended: most have when the next
-- one is issued, and to judge it took half of the time in which forecasts are looked at.
create or replace function refuse_late_forecasts() returns trigger
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
  select unended.table_id, unended.forecast_id
  into refused
  from (
    select i.table_id, i.seq, i.feature, before.*
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
    where i.feature like 'window:%'
      -- with all its rounds there it has ended, whatever became of it
      and not exists (
        select
        from (
          select
          from rounds r
          where r.table_id = i.table_id
            and r.seq > before.cutoff_seq
            and not r.late
          order by r.seq
          offset before.horizon - 1
          limit 1
        ) last
      )
    offset 0
  ) unended
  cross join lateral window_span(
    unended.table_id, unended.cutoff_seq, unended.target_round_id, unended.horizon, unended.issued_at,
    split_part(unended.feature, ':', 2), true
  ) span
  where span.settled_seq is null
  order by unended.table_id, unended.seq
  limit 1;
  if found then
    raise exception 'a window must follow the end of the one before; % of table % is open',
      refused.forecast_id, refused.table_id using errcode = 'RH001';
  end if;
  return null;
end $$;
