-- which model issues a table's forecasts: changed by a promotion alone
alter table tables
  add column model text not null default 'k7@1';
comment on column tables.model is 'the model that learns and issues now; only a promotion changes it';

create table model_parameters (
  name text primary key,
  parameters jsonb not null,
  first_used_at timestamptz not null default clock_timestamp()
);
comment on table model_parameters is
  'parameter sets that replays by hand were made with; the name holds the hash of the set, so that it can mean no other';

alter table calibrations
  drop constraint calibration_kind_is_known,
  add constraint calibration_kind_is_known check (kind in ('rolling', 'manual', 'promoted')),
  add column begin_seq bigint not null,
  add column carry jsonb not null,
  add column other_bands boolean not null,
  add column compared jsonb,
  add column promoted_from bigint references calibrations,
  add column decided_by text,
  add column reason text,
  add column record_hash text not null,
  add constraint calibration_begins_before_its_range check (begin_seq <= from_seq),
  add constraint promotion_says_who_and_why check (
    (kind = 'promoted') = (num_nulls(promoted_from, decided_by, reason) = 0)
  );
comment on column calibrations.kind is
  'rolling: proves the live state; manual: a backtest asked for, labelled as such; promoted: the record that became live';
comment on column calibrations.begin_seq is 'first seq that its state learned, from nothing';
comment on column calibrations.rounds is 'on-time rounds from begin_seq to to_seq';
comment on column calibrations.sums is
  'backtest sums by feature: every round is judged, whatever was issued at the time; they never enter published accuracy';
comment on column calibrations.other_bands is 'the model saw the rounds in other bands than the table''s; never promoted';
comment on column calibrations.carry is 'windows and the wait for the top color that were open at to_seq, to go on from';
comment on column calibrations.compared is 'the live record at the end of a run by hand';
comment on column calibrations.record_hash is
  'sha256 over the record with its state''s hash, sums and carry: one changed byte shows';
create index calibrations_promoted on calibrations (table_id, to_seq) where kind = 'promoted';

alter table calibration_runs
  add column from_seq bigint,
  add column to_seq bigint,
  add column thresholds bigint[],
  add column out_file text,
  add column epoch integer not null default 0,
  add constraint manual_run_has_a_range check (kind <> 'manual' or to_seq >= from_seq);
comment on column calibration_runs.epoch is
  'how often a run by hand was taken up; what a process that lost its turn still writes is refused';

create table backtest_checkpoints (
  run_id bigint primary key references calibration_runs,
  to_seq bigint not null,
  rounds bigint not null,
  state bytea not null,
  state_hash text not null,
  sums jsonb not null,
  carry jsonb not null,
  file jsonb,
  saved_at timestamptz not null default clock_timestamp()
);
comment on table backtest_checkpoints is
  'where a run by hand goes on after it was cancelled or killed; removed when its calibration is kept';
comment on column backtest_checkpoints.file is 'how far the file of forecasts has come, and rows that wait for their outcome';

-- The model that was live when a round was taken in: that of the newest promotion before it. k7@1 is where every table begins.
create function live_model(of_table integer, before_seq bigint) returns text
language sql stable as $$
  select coalesce(
    (
      select model
      from calibrations
      where table_id = of_table
        and kind = 'promoted'
        and to_seq < before_seq
      order by to_seq desc, id desc
      limit 1
    ),
    'k7@1'
  )
$$;
