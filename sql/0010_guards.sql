-- What the database refuses, whatever a program assumes. SQLSTATE RH001: untrue; RH002: a forecast set too late. Raised elsewhere:
-- RH003, a revision that is changed (0007) or calls that are counted after their deadline (0019); RH008, the lease is another
-- holder's, and RH009, the head has another version (0003). Each guard is one statement, planned once per session.

create function refuse_set(of_table integer, after_seq bigint, reason text) returns void
language plpgsql
set search_path = public, pg_temp as $$
declare
  place text := format('the set after seq %s of table %s', after_seq, of_table);
begin
  case reason
    when 'isolation' then
      raise exception 'expected % under READ COMMITTED, which sees what others commit meanwhile', place using errcode = 'RH001';
    when 'head' then
      raise exception 'expected a head with the pause of %', place using errcode = 'RH001';
    when 'cutoff' then
      raise exception 'expected % to name a stored round with its ordinal, id, hash and absence', place using errcode = 'RH001';
    when 'not_polled' then
      raise exception 'expected % to follow a round that was polled on time', place using errcode = 'RH001';
    when 'future' then
      raise exception 'expected % to be issued before it is stored, found a time in the future', place using errcode = 'RH001';
    when 'chain' then
      raise exception 'expected % to continue the chain of the table''s newest set', place using errcode = 'RH001';
    when 'windows' then
      raise exception 'expected each window of % once, with its end', place using errcode = 'RH001';
    when 'overlap' then
      raise exception 'expected the windows of % to follow the end of those before, found one that is open', place
        using errcode = 'RH001';
    when 'old' then
      raise exception '% is stored more than a second after its issue', place using errcode = 'RH002';
    when 'pause_over' then
      raise exception '% is stored after the pause', place using errcode = 'RH002';
    when 'followed' then
      raise exception '% is stored after the next round', place using errcode = 'RH002';
    when 'unread' then
      raise exception '% is stored while a payload of the table is unread', place using errcode = 'RH002';
  end case;
end $$;

-- Has the newest window of a feature ended before a set? A set's `ends` gives the end as planned. A window that was voided
-- ended earlier, and sets of another model do not know it: for those its own set and score decide.
create function window_is_open(of_table integer, of_model text, code smallint, at_seq bigint, at_ordinal bigint)
returns boolean
language sql stable
return coalesce(
  (
    select
      newest.cutoff_ordinal + newest.horizons[newest.place] > at_ordinal
      and not exists (
        select
        from score_sets s
        where s.table_id = of_table
          and s.settled_seq > newest.cutoff_seq
          and newest.first_seq + newest.place - 1 = any (s.forecast_seqs)
      )
    from (
      select recent.*, array_position(recent.features, code) as place
      from (
        select *
        from forecast_sets
        where table_id = of_table
          and cutoff_seq < at_seq
        order by cutoff_seq desc
        limit 400 -- the longest horizon: each set has its own ordinal
      ) recent
      where recent.model = of_model
        and code = any (recent.features)
      order by recent.cutoff_seq desc
      limit 1
    ) newest
  ),
  false
);

create function check_new_sets() returns trigger
language plpgsql
set plan_cache_mode = force_generic_plan
set search_path = public, pg_temp as $$
declare
  refused record;
begin
  select looked.table_id, looked.cutoff_seq, looked.reason
  into refused
  from (
    select
      i.table_id,
      i.cutoff_seq,
      case
        when current_setting('transaction_isolation') <> 'read committed' then 'isolation'
        when h.pause_ms is distinct from i.pause_ms then 'head'
        when c.ordinal is distinct from i.cutoff_ordinal
          or c.round_id is distinct from i.cutoff_round_id
          or c.history_hash is distinct from i.history_hash
          or c.absent_at is distinct from i.absent_at then 'cutoff'
        when c.source <> 0 or c.late then 'not_polled'
        when i.issued_at > clock.at then 'future'
        when i.issued_at < clock.at - interval '1 second' then 'old'
        when clock.at - i.absent_at >= i.pause_ms * interval '1 millisecond' then 'pause_over'
        when exists (
          select
          from rounds r
          where r.table_id = i.table_id
            and r.seq > i.cutoff_seq
            and not r.late
        ) then 'followed'
        when exists (
          select
          from payloads p
          where p.table_id = i.table_id
            and p.state = 'unread'
        ) then 'unread'
        when i.first_seq <> coalesce(p.first_seq + cardinality(p.features), 1)
          or i.prev_hash <> coalesce(substr(p.hashes, length(p.hashes) - 31), decode(repeat('00', 32), 'hex')) then 'chain'
        when w.issued <> cardinality(i.features) - 1 or w.untrue then 'windows'
        when w.may_overlap and exists (
          select
          from unnest(i.features) as f (code)
          where code > 0
            and window_is_open(i.table_id, i.model, code, i.cutoff_seq, i.cutoff_ordinal)
        ) then 'overlap'
      end as reason
    from issued i
    cross join (select clock_timestamp() as at offset 0) clock
    left join table_heads h on h.table_id = i.table_id
    left join rounds c on c.table_id = i.table_id and c.seq = i.cutoff_seq
    left join lateral (
      select before.first_seq, before.features, before.hashes, before.model, before.ends
      from forecast_sets before
      where before.table_id = i.table_id
        and before.cutoff_seq < i.cutoff_seq
      order by before.cutoff_seq desc
      limit 1
    ) p on true
    cross join lateral (
      select
        count(f.place) as issued,
        bool_or(
          case
            when f.place is not null then i.ends[f.code] <> i.cutoff_ordinal + i.horizons[f.place]
            -- 0: the window has ended, and its color is too rare for the next one
            when p.model = i.model then i.ends[f.code] < p.ends[f.code]
              and (i.ends[f.code] <> 0 or p.ends[f.code] > i.cutoff_ordinal)
            else false
          end
        ) as untrue,
        p.model <> i.model or bool_or(f.place is not null and p.ends[f.code] > i.cutoff_ordinal) as may_overlap
      from (
        select code, array_position(i.features, code::smallint) as place
        from generate_subscripts(i.ends, 1) as code
      ) f
    ) w
    offset 0
  ) looked
  where looked.reason is not null
  order by looked.table_id
  limit 1;
  if found then
    perform refuse_set(refused.table_id, refused.cutoff_seq, refused.reason);
  end if;
  return null;
end $$;
create trigger sets_are_issued_before_their_round
  after insert on forecast_sets
  referencing new table as issued
  for each statement execute function check_new_sets();

-- Again as near to the commit as a trigger can be: the transaction may have been held up, and others may have committed.
create function check_committed_set() returns trigger
language plpgsql
set plan_cache_mode = force_generic_plan
set search_path = public, pg_temp as $$
declare
  reason text := case
    when clock_timestamp() - new.issued_at > interval '1 second' then 'old'
    when clock_timestamp() - new.absent_at >= new.pause_ms * interval '1 millisecond' then 'pause_over'
    when exists (
      select
      from rounds r
      where r.table_id = new.table_id
        and r.seq > new.cutoff_seq
        and not r.late
    ) then 'followed'
    when exists (
      select
      from payloads p
      where p.table_id = new.table_id
        and p.state = 'unread'
    ) then 'unread'
  end;
begin
  if reason is not null then
    perform refuse_set(new.table_id, new.cutoff_seq, reason);
  end if;
  return null;
end $$;
create constraint trigger sets_are_committed_before_their_round
  after insert on forecast_sets
  deferrable initially deferred
  for each row execute function check_committed_set();

create function check_new_scores() returns trigger
language plpgsql
set plan_cache_mode = force_generic_plan
set search_path = public, pg_temp as $$
declare
  refused record;
begin
  select looked.table_id, looked.settled_seq, looked.forecast_seq, looked.reason
  into refused
  from (
    select
      j.table_id,
      j.settled_seq,
      u.forecast_seq,
      case
        when c.seq is null
          or c.ordinal is distinct from j.settled_ordinal
          or c.requested_at is distinct from j.target_requested_at then 'a stored round with its ordinal and request'
        when s.features[u.forecast_seq - s.first_seq + 1] is distinct from u.feature then 'a forecast of a stored set'
        when array_position(j.forecast_seqs, u.forecast_seq) <> u.place then 'each forecast once'
        when (u.status = 0) <> (u.reason = 0) or (u.status = 0) <> (u.outcome is not null)
          then 'an outcome when scored and a reason when void'
        when j.settled_seq <= s.cutoff_seq then 'a round after the cutoff'
        when u.status = 0
          and s.cutoff_ordinal + s.horizons[u.forecast_seq - s.first_seq + 1] is distinct from j.settled_ordinal
          then 'the round at which the forecast ends'
        when s.cutoff_ordinal + s.horizons[u.forecast_seq - s.first_seq + 1] < j.settled_ordinal
          then 'a round of the forecast''s span'
        when u.status = 0 and (j.target_requested_at > s.issued_at) is not true then 'a round requested after the issue'
        -- only one round has the ordinal at which a forecast is scored, so a second settlement is, or follows, a void
        when exists (
          select
          from score_sets v
          where v.table_id = j.table_id
            and v.settled_seq > s.cutoff_seq
            and v.settled_seq <> j.settled_seq
            and 1 = any (v.statuses)
            and u.forecast_seq = any (v.forecast_seqs)
        ) then 'a forecast that is not settled'
        when u.status = 1 and exists (
          select
          from score_sets v
          where v.table_id = j.table_id
            and v.settled_seq > s.cutoff_seq
            and v.settled_seq <> j.settled_seq
            and u.forecast_seq = any (v.forecast_seqs)
        ) then 'a forecast that is not settled'
      end as reason
    from settled j
    left join rounds c on c.table_id = j.table_id and c.seq = j.settled_seq
    cross join lateral unnest(j.forecast_seqs, j.cutoff_seqs, j.features, j.statuses, j.reasons, j.outcomes)
      with ordinality as u (forecast_seq, cutoff_seq, feature, status, reason, outcome, place)
    -- one look-up for each: as a plain join, planned while the table is new, it reads every set of the table
    left join lateral (
      select own.first_seq, own.cutoff_seq, own.cutoff_ordinal, own.issued_at, own.features, own.horizons
      from forecast_sets own
      where own.table_id = j.table_id
        and own.cutoff_seq = u.cutoff_seq
      order by own.cutoff_seq
      limit 1
    ) s on true
    offset 0
  ) looked
  where looked.reason is not null
  order by looked.table_id, looked.settled_seq
  limit 1;
  if found then
    raise exception 'the score of forecast f%-% at seq %: expected %',
      refused.table_id, refused.forecast_seq, refused.settled_seq, refused.reason using errcode = 'RH001';
  end if;
  return null;
end $$;
create trigger scores_are_of_forecasts_that_end
  after insert on score_sets
  referencing new table as settled
  for each statement execute function check_new_scores();

create function check_new_revisions() returns trigger
language plpgsql
set plan_cache_mode = force_generic_plan
set search_path = public, pg_temp as $$
declare
  refused record;
begin
  select r.table_id, r.forecast_seq, r.rev
  into refused
  from revised r
  where not exists (
      select
      from forecast_sets s
      where s.table_id = r.table_id
        and s.cutoff_seq = r.cutoff_seq
        and s.features[r.forecast_seq - s.first_seq + 1] = r.feature
    )
    or case
      when r.rev = 2 then not exists (
        select
        from score_sets s
        where s.table_id = r.table_id
          and s.settled_seq > r.cutoff_seq
          and r.forecast_seq = any (s.forecast_seqs)
      )
      else not exists (
        select
        from score_revisions before
        where before.table_id = r.table_id
          and before.forecast_seq = r.forecast_seq
          and before.rev = r.rev - 1
      )
    end
  limit 1;
  if found then
    raise exception 'revision % of the score of forecast f%-%: expected a settled forecast and the revision before',
      refused.rev, refused.table_id, refused.forecast_seq using errcode = 'RH001';
  end if;
  return null;
end $$;
create trigger revisions_count_up
  after insert on score_revisions
  referencing new table as revised
  for each statement execute function check_new_revisions();
