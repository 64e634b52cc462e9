-- the head of each table's chain of forecasts; moved only by who holds the tables row
alter table tables
  add column forecast_seq bigint not null default 0,
  add column forecast_hash text not null default repeat('0', 64)
    constraint forecast_hash_is_sha256 check (forecast_hash ~ '^[0-9a-f]{64}$'),
  add column first_forecast_at timestamptz,
  add column first_forecast_after_seq bigint;

create table model_states (
  table_id integer not null references tables,
  model text not null,
  learned_seq bigint not null default 0,
  state bytea not null,
  state_hash text not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (table_id, model)
) with (fillfactor = 70);
comment on table model_states is
  'the live state of a model and the seq it has learned up to: a pure function of the on-time rounds in seq order';

create table forecasts (
  table_id integer not null references tables,
  seq bigint not null
    constraint forecast_seq_counts_from_one check (seq >= 1),
  forecast_id text not null,
  model text not null,
  feature text not null,
  issued_at timestamptz not null,
  issue_hour timestamptz not null,
  cutoff_seq bigint not null,
  cutoff_round_id text not null,
  history_hash text not null,
  target_round_id text,
  horizon integer not null
    constraint forecast_looks_ahead check (horizon between 1 and 400),
  p_ppm integer[] not null,
  base_ppm integer[] not null,
  prev_hash text not null,
  hash text not null,
  primary key (table_id, seq),
  constraint forecast_is_issued_once unique (table_id, model, feature, cutoff_seq),
  unique (table_id, forecast_id),
  constraint forecast_is_filed_under_its_hour check (issue_hour = date_trunc('hour', issued_at, 'UTC')),
  constraint forecast_and_baseline_have_the_same_shape check (cardinality(p_ppm) = cardinality(base_ppm))
) partition by hash (table_id);
comment on table forecasts is
  'claims issued before their round, insert-only and chained by hash; not write-protected on purpose: verify shows any change';
create index forecasts_by_hour on forecasts (table_id, model, feature, issue_hour);

do $$
begin
  for n in 0..15 loop
    execute format(
      'create table forecasts_%s partition of forecasts for values with (modulus 16, remainder %s)', lpad(n::text, 2, '0'), n
    );
  end loop;
end $$;

-- What has become of a window: the one definition for whoever issues, scores, verifies or refuses one.
--
-- Its span are the on-time rounds after its cutoff, as many as its horizon says. The first round of it that has a fault
-- ends it, whether or not the color has come by then: rounds are missing before it, or it was asked for no later than the
-- window was issued, or it came with another result. Without a fault it ends with its last round, hit or not. Rounds
-- after its end are not looked at. Of one round, the faults it was taken in with go before another result, which may come
-- at any time; without knows_conflicts the answer is that of the rounds alone and never changes once there is an end.
create function window_span(
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
            and exists (select from conflicts c where c.table_id = r.table_id and c.round_id = r.round_id)
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
-- it.
create function refuse_late_forecast() returns trigger
language plpgsql as $$
declare
  pause interval;
  cutoff record;
  window_before record;
begin
  select t.pause_ms * interval '1 millisecond' into pause
    from tables t where t.id = new.table_id for no key update;
  select r.round_id, r.history_hash, r.late, r.source, r.absent_at into cutoff
    from rounds r where r.table_id = new.table_id and r.seq = new.cutoff_seq;
  if not found or cutoff.round_id <> new.cutoff_round_id or cutoff.history_hash <> new.history_hash then
    raise exception 'a forecast must name a stored round as its cutoff; table % has no such round with seq %',
      new.table_id, new.cutoff_seq using errcode = 'RH001';
  end if;
  if cutoff.late or cutoff.source <> 'poll' then
    raise exception 'a forecast must follow a round that was polled on time; seq % of table % was not',
      new.cutoff_seq, new.table_id using errcode = 'RH001';
  end if;
  if new.issued_at > clock_timestamp() then
    raise exception 'a forecast must not be issued in the future; table % said %', new.table_id, new.issued_at
      using errcode = 'RH001';
  end if;
  -- a request for the target sent after issued_at is what makes a forecast count: backdating must gain nothing
  if new.issued_at < clock_timestamp() - interval '1 second' then
    raise exception 'a forecast must be stored within a second of its issue; table % said %', new.table_id, new.issued_at
      using errcode = 'RH002';
  end if;
  -- the next round may be in flight from here on, and a round in flight is likelier to be a long one
  if cutoff.absent_at is null or clock_timestamp() - cutoff.absent_at >= pause then
    raise exception 'the pause after seq % of table % is over', new.cutoff_seq, new.table_id
      using errcode = 'RH002';
  end if;
  if exists (select from rounds r where r.table_id = new.table_id and r.seq > new.cutoff_seq and not r.late) then
    raise exception 'a round already follows seq % of table %', new.cutoff_seq, new.table_id
      using errcode = 'RH002';
  end if;
  if exists (select from payloads p where p.table_id = new.table_id and p.state = 'unread') then
    raise exception 'table % has an answer that is not read yet', new.table_id
      using errcode = 'RH002';
  end if;
  if new.feature = 'next_color' and new.horizon <> 1 then
    raise exception 'next_color must speak of one round; table % said %', new.table_id, new.horizon
      using errcode = 'RH001';
  end if;
  -- outcomes of windows that overlap depend on each other: the next one is issued when the one before has ended
  if new.feature like 'window:%' then
    if cardinality(new.p_ppm) <> 1 then
      raise exception 'a window must have one probability; table % said %', new.table_id, new.p_ppm
        using errcode = 'RH001';
    end if;
    select f.forecast_id, f.cutoff_seq, f.target_round_id, f.horizon, f.issued_at into window_before
      from forecasts f
      where f.table_id = new.table_id and f.model = new.model and f.feature = new.feature
      order by f.cutoff_seq desc
      limit 1;
    if found and exists (
      select
      from window_span(
        new.table_id, window_before.cutoff_seq, window_before.target_round_id, window_before.horizon,
        window_before.issued_at, split_part(new.feature, ':', 2), true
      ) span
      where span.settled_seq is null
    ) then
      raise exception 'a window must follow the end of the one before; % of table % is open',
        window_before.forecast_id, new.table_id using errcode = 'RH001';
    end if;
  end if;
  return new;
end $$;
create trigger forecast_is_issued_before_its_round
  before insert on forecasts
  for each row execute function refuse_late_forecast();

create table open_forecasts (
  table_id integer not null,
  seq bigint not null,
  model text not null,
  feature text not null,
  cutoff_seq bigint not null,
  horizon integer not null,
  issue_hour timestamptz not null,
  primary key (table_id, seq),
  foreign key (table_id, seq) references forecasts
);
comment on table open_forecasts is 'forecasts that wait for their round: inserted with the forecast, removed with its first score';

create table scores (
  table_id integer not null,
  forecast_seq bigint not null,
  rev integer not null
    constraint score_rev_counts_from_one check (rev >= 1),
  model text not null,
  feature text not null,
  issue_hour timestamptz not null,
  issued_at timestamptz not null,
  status text not null
    constraint score_status_is_known check (status in ('scored', 'void_gap', 'void_house', 'void_quarantine', 'void_late')),
  settled_seq bigint,
  target_requested_at timestamptz,
  outcome integer,
  hit boolean,
  p integer,
  base_p integer,
  brier bigint,
  brier_base bigint,
  rps bigint,
  rps_base bigint,
  ll bigint,
  ll_base bigint,
  scored_at timestamptz not null default clock_timestamp(),
  primary key (table_id, forecast_seq, rev),
  foreign key (table_id, forecast_seq) references forecasts,
  constraint scored_forecast_has_its_figures check (
    num_nulls(outcome, hit, p, base_p, brier, brier_base, rps, rps_base, ll, ll_base)
      = case status when 'scored' then 0 else 10 end
  ),
  constraint forecast_was_issued_before_its_round check (
    status <> 'scored' or (target_requested_at is not null and issued_at < target_requested_at)
  )
) partition by hash (table_id);
comment on table scores is
  'what became of each forecast: integers only (ppm, ppm squared, micro-nats); the highest rev counts, and a void is final';
comment on column scores.settled_seq is
  'the round that ended it: its target, of a window the last round of its span or the one that voided it';
comment on column scores.target_requested_at is
  'when its target was asked for, of a window the earliest of the rounds up to settled_seq';
create index scores_by_settling on scores (table_id, settled_seq);

do $$
begin
  for n in 0..15 loop
    execute format(
      'create table scores_%s partition of scores for values with (modulus 16, remainder %s)', lpad(n::text, 2, '0'), n
    );
  end loop;
end $$;

create table accuracy_hours (
  table_id integer not null references tables,
  model text not null,
  feature text not null,
  hour timestamptz not null,
  rev integer not null default 1,
  final boolean not null default false,
  sums jsonb not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (table_id, model, feature, hour, rev)
);
comment on table accuracy_hours is
  'integer sums of the scores of forecasts issued in one UTC hour, recomputed from the facts, never incremented; the highest rev counts';
create index accuracy_hours_unfinished on accuracy_hours (table_id, hour) where not final;

create table accuracy_series (
  table_id integer not null references tables,
  model text not null,
  feature text not null,
  first_hour timestamptz not null,
  changed_at timestamptz not null,
  published_at timestamptz,
  due_at timestamptz not null,
  primary key (table_id, model, feature)
);
comment on table accuracy_series is
  'each feature of a model that has hour rows: when one of them last changed, and when its published rows are due';
create index accuracy_series_due on accuracy_series (due_at);

create table published_accuracy (
  table_id integer not null references tables,
  model text not null,
  feature text not null,
  period text not null
    constraint period_is_known check (period in ('24h', '7d', '30d', '90d', 'all')),
  period_start timestamptz not null,
  period_end timestamptz not null,
  sums jsonb not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (table_id, model, feature, period)
);
comment on table published_accuracy is 'what callers see: the sum of the hour rows of a period, as integers';
create index published_accuracy_by_update on published_accuracy (updated_at);

alter table conflicts
  add column scores_voided_at timestamptz;
comment on column conflicts.scores_voided_at is 'when score-accuracy voided the forecasts that this conflict touches';
create index conflicts_not_voided on conflicts (table_id) where scores_voided_at is null;

-- coverage counts the rounds received in an hour
create index rounds_by_receipt on rounds (table_id, received_at, seq) where not late;

create table accuracy_marks (
  table_id integer primary key references tables,
  seq bigint not null
);
comment on table accuracy_marks is
  'how far score-accuracy has come in a table: every forecast on a round up to this seq is scored, and its hour summed';

create table calibrations (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  model text not null,
  version integer not null,
  kind text not null
    constraint calibration_kind_is_known check (kind in ('rolling', 'manual')),
  from_seq bigint not null,
  to_seq bigint not null,
  rounds bigint not null,
  state bytea not null,
  state_hash text not null,
  live_state_hash text,
  weights jsonb not null,
  sums jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  constraint calibration_version_is_unique unique (table_id, model, version),
  constraint calibration_covers_a_range check (to_seq >= from_seq)
);
comment on table calibrations is
  'versioned records of a model''s state: rolling ones replay the rounds since the one before and must meet the live state';
comment on column calibrations.rounds is 'on-time rounds from the table''s first to to_seq';
comment on column calibrations.live_state_hash is
  'hash of the live state at to_seq; null where a long replay only left a place to go on from';

create table calibration_runs (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  kind text not null
    constraint run_kind_is_known check (kind in ('rolling', 'manual')),
  model text not null,
  status text not null default 'queued'
    constraint run_status_is_known check (status in ('queued', 'running', 'done', 'failed', 'cancelled')),
  requested_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz,
  finished_at timestamptz,
  reason text,
  calibration_id bigint references calibrations
);
comment on table calibration_runs is 'replays asked for and what became of them; at most one rolling run of a table is open';
create unique index table_has_one_open_rolling_run on calibration_runs (table_id, model)
  where kind = 'rolling' and status in ('queued', 'running');
create index runs_open on calibration_runs (requested_at) where status in ('queued', 'running');

alter table published_now
  add column forecast jsonb,
  add column calibration jsonb;
comment on column published_now.forecast is
  'the newest on-time seq the model knows, the next_color forecast after it, null where none was issued, and the open windows; ppm';
comment on column published_now.calibration is 'version, rounds and time of the newest calibration that met the live state';
