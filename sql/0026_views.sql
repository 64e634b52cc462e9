-- Views for people and slow readers: names instead of codes, one row per forecast and score.

create function feature_name(code smallint, bands jsonb) returns text
language sql immutable parallel safe
return case code
  when 0 then 'next_color'
  else format('window:%s:%s', bands -> ((code - 1) / 3) ->> 'name', (array[50, 80, 90])[(code - 1) % 3 + 1])
end;
comment on function feature_name is 'a feature code of forecast_sets as the API names it, such as window:pink:80';

create view named_rounds as
select
  r.table_id,
  r.seq,
  r.ordinal,
  r.round_id,
  r.hundredths,
  r.raw_value,
  p.bands -> r.color::integer ->> 'name' as color,
  (array['poll', 'history', 'computed', 'import'])[r.source + 1] as source,
  r.requested_at,
  r.received_at,
  r.occurred_at,
  r.absent_at,
  r.after_gap,
  r.late,
  r.verified,
  encode(r.proof_hash, 'hex') as proof_hash,
  encode(r.history_hash, 'hex') as history_hash
from rounds r
join palettes p on p.id = r.palette;
comment on view named_rounds is 'rounds with names of colors and sources and hexadecimal hashes, as the export has them';

-- Numbers of forecasts rise with the cutoffs of their sets: halving finds the set in some 25 look-ups, without an index that
-- every set would pay for.
create function cutoff_of_forecast(of_table integer, of_seq bigint) returns bigint
language plpgsql stable
set search_path = public, pg_temp as $$
declare
  low bigint := 1;
  high bigint := (select set_seq from table_heads where table_id = of_table);
  middle bigint;
  found record;
begin
  while low <= high loop
    middle := (low + high) / 2;
    select s.cutoff_seq, s.first_seq, cardinality(s.features) as size
    into found
    from forecast_sets s
    where s.table_id = of_table
      and s.cutoff_seq <= middle
    order by s.cutoff_seq desc
    limit 1;
    if found.cutoff_seq is null or of_seq >= found.first_seq + found.size then
      low := middle + 1;
    elsif of_seq < found.first_seq then
      high := found.cutoff_seq - 1;
    else
      return found.cutoff_seq;
    end if;
  end loop;
  return null;
end $$;
comment on function cutoff_of_forecast is 'cutoff_seq of the set that holds a forecast, by its number; null when there is none';

create view forecasts as
select
  s.table_id,
  s.first_seq + f.place - 1 as seq,
  format('f%s-%s', s.table_id, s.first_seq + f.place - 1) as forecast_id,
  s.model,
  feature_name(f.code, p.bands) as feature,
  s.issued_at,
  s.absent_at,
  s.pause_ms,
  s.cutoff_seq,
  s.cutoff_ordinal,
  s.cutoff_round_id,
  encode(s.history_hash, 'hex') as history_hash,
  s.target_round_id,
  f.horizon,
  s.p_ppm[own.first : own.last] as p_ppm,
  s.base_ppm[own.first : own.last] as base_ppm,
  encode(
    case f.place when 1 then s.prev_hash else substr(s.hashes, (32 * f.place - 63)::integer, 32) end, 'hex'
  ) as prev_hash,
  encode(substr(s.hashes, (32 * f.place - 31)::integer, 32), 'hex') as hash
from forecast_sets s
join rounds r on r.table_id = s.table_id and r.seq = s.cutoff_seq
join palettes p on p.id = r.palette
cross join lateral unnest(s.features, s.horizons) with ordinality as f (code, horizon, place)
cross join lateral (
  select
    case f.place when 1 then 1 else cardinality(s.ends) / 3 + f.place - 1 end::integer as first,
    (cardinality(s.ends) / 3 + f.place - 1)::integer as last
) own;
comment on view forecasts is 'one row per forecast, with the names of the export; made from forecast_sets';

create view scores as
select
  s.table_id,
  u.forecast_seq,
  format('f%s-%s', s.table_id, u.forecast_seq) as forecast_id,
  1 as rev,
  u.cutoff_seq,
  u.feature as feature_code,
  (array['scored', 'void'])[u.status + 1] as status,
  (array['', 'gap', 'late', 'conflict', 'impossible', 'operator'])[u.reason + 1] as reason,
  u.outcome,
  s.settled_seq,
  s.target_requested_at,
  s.scored_at,
  null::bigint as cause,
  encode(case u.place when 1 then s.prev_hash else substr(s.hashes, (32 * u.place - 63)::integer, 32) end, 'hex')
    as prev_hash,
  encode(substr(s.hashes, (32 * u.place - 31)::integer, 32), 'hex') as hash
from score_sets s
cross join lateral unnest(s.forecast_seqs, s.cutoff_seqs, s.features, s.statuses, s.reasons, s.outcomes)
  with ordinality as u (forecast_seq, cutoff_seq, feature, status, reason, outcome, place)
union all
select
  v.table_id,
  v.forecast_seq,
  format('f%s-%s', v.table_id, v.forecast_seq),
  v.rev,
  v.cutoff_seq,
  v.feature,
  (array['scored', 'void'])[v.status + 1],
  (array['', 'gap', 'late', 'conflict', 'impossible', 'operator'])[v.reason + 1],
  v.outcome,
  v.settled_seq,
  r.requested_at,
  v.scored_at,
  v.cause,
  encode(v.prev_hash, 'hex'),
  encode(v.hash, 'hex')
from score_revisions v
left join rounds r on r.table_id = v.table_id and r.seq = v.settled_seq;
comment on view scores is
  'one row per score and revision, with the names of the export; made from score_sets and score_revisions; the highest rev counts';

create view open_forecasts as
select f.*
from table_heads h
cross join lateral unnest(h.open_sets) as open (cutoff_seq)
join forecasts f on f.table_id = h.table_id and f.cutoff_seq = open.cutoff_seq
where not exists (
  select
  from score_sets s
  where s.table_id = f.table_id
    and s.settled_seq > f.cutoff_seq
    and f.seq = any (s.forecast_seqs)
);
comment on view open_forecasts is 'forecasts that are not settled, one row each, found by the open sets of the heads';
