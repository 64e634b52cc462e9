-- Replays of a table's rounds, and the records they leave.

create table model_parameters (
  name text primary key,
  parameters jsonb not null,
  first_used_at timestamptz not null default clock_timestamp()
);
comment on table model_parameters is
  'parameter sets of manual replays; the name holds the hash of the set, so that it identifies exactly one';

create table calibrations (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  model text not null,
  version integer not null,
  kind text not null
    constraint calibration_kind_is_known check (kind in ('rolling', 'manual', 'promoted')),
  begin_seq bigint not null,
  from_seq bigint not null,
  to_seq bigint not null,
  rounds bigint not null,
  state bytea not null,
  state_hash text not null,
  live_state_hash text,
  weights jsonb not null,
  sums jsonb not null,
  carry jsonb not null,
  other_bands boolean not null,
  compared jsonb,
  promoted_from bigint references calibrations,
  decided_by text,
  reason text,
  record_hash text not null,
  revision_id bigint not null default 0,
  revised_seq bigint not null default 0,
  seen_seq bigint
    constraint replay_by_id_is_manual check (seen_seq is null or kind = 'manual'),
  late_rounds bigint not null default 0
    constraint late_rounds_are_only_replayed_by_id check (late_rounds = 0 or seen_seq is not null),
  created_at timestamptz not null default clock_timestamp(),
  constraint calibration_version_is_unique unique (table_id, model, version),
  constraint calibration_covers_a_range check (to_seq >= from_seq),
  constraint calibration_begins_before_its_range check (begin_seq <= from_seq),
  constraint promotion_says_who_and_why check (
    (kind = 'promoted') = (num_nulls(promoted_from, decided_by, reason) = 0)
  )
);
comment on table calibrations is
  'versioned records of a model''s state: a rolling one replays the rounds since the one before and must arrive at the live state';
comment on column calibrations.kind is
  'rolling: proves the live state; manual: a backtest that was requested; promoted: the record that became live';
comment on column calibrations.begin_seq is 'first seq that its state learned, from nothing';
comment on column calibrations.rounds is 'rounds replayed from begin_seq to to_seq';
comment on column calibrations.live_state_hash is
  'hash of the live state at to_seq; null when a long replay only stored a checkpoint';
comment on column calibrations.sums is
  'backtest sums by feature: every round is scored, whatever was issued at the time; they never enter published accuracy';
comment on column calibrations.other_bands is 'the model saw the rounds in other bands than the table''s; never promoted';
comment on column calibrations.carry is 'windows and the wait for the top color that were open at to_seq, for the next replay';
comment on column calibrations.compared is 'the live record at the end of a manual run';
comment on column calibrations.record_hash is
  'sha256 over the record with the hash of its state, sums and carry: one changed byte shows';
comment on column calibrations.revision_id is
  'revisions up to this id count for rounds up to revised_seq: those that the manual run saw from which this state was taken';
comment on column calibrations.seen_seq is
  'null: on-time rounds in the order taken in; else rounds up to this seq by the number of their id, late ones too, and begin_seq, from_seq and to_seq are such numbers';
comment on column calibrations.late_rounds is 'how many of the rounds were late';
create index calibrations_of_table on calibrations (table_id, id desc);
create index manual_calibrations on calibrations (id desc) where kind <> 'rolling';
create index calibrations_promoted on calibrations (table_id, to_seq) where kind = 'promoted';
-- the thinning out of rolling calibrations looks up both for each row that it deletes
create index calibrations_promoted_from on calibrations (promoted_from) where promoted_from is not null;

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
  calibration_id bigint references calibrations,
  from_seq bigint,
  to_seq bigint,
  thresholds bigint[],
  out_file text,
  epoch integer not null default 0,
  revision_id bigint not null default 0,
  seen_seq bigint,
  runner text not null default 'cli'
    constraint runner_is_known check (runner in ('cli', 'worker')),
  parent_run_id bigint references calibration_runs
    constraint run_is_no_parent_of_itself check (parent_run_id < id),
  asked_by text,
  asked_why text,
  cancel_asked_at timestamptz,
  attempt_started_at timestamptz,
  attempt_from_seq bigint,
  at_seq bigint,
  lost_attempts integer not null default 0,
  batch_id bigint references calibration_runs
    constraint batch_begins_with_its_first_run check (batch_id <= id),
  note text
    constraint run_note_is_bounded check (length(note) <= 2000),
  tags text[] not null default '{}'
    constraint run_tags_are_bounded check (cardinality(tags) <= 10 and length(array_to_string(tags, ',')) <= 410),
  constraint manual_run_has_a_range check (kind <> 'manual' or to_seq >= from_seq)
);
comment on table calibration_runs is 'replays that were requested and their outcome; at most one rolling run of a table is open';
comment on column calibration_runs.epoch is
  'attempts at a run so far; what a process of an earlier attempt still writes is refused';
comment on column calibration_runs.revision_id is 'the newest revision of the table when a manual run was requested';
comment on column calibration_runs.seen_seq is
  'as in calibrations: not null for a run by the number of the round id, which its from_seq, to_seq and at_seq are then';
comment on column calibration_runs.runner is
  'who works on a manual run: the process that requested it (cli), or any worker, which finds it by its row';
comment on column calibration_runs.parent_run_id is 'the run that this one repeats';
comment on column calibration_runs.cancel_asked_at is
  'its process stops at its next heartbeat; null again when the run is resumed';
comment on column calibration_runs.attempt_from_seq is
  'the seq after which the present attempt began; its rate is counted from there and from attempt_started_at';
comment on column calibration_runs.at_seq is 'the last seq that the run reported';
comment on column calibration_runs.lost_attempts is
  'attempts of workers that fell silent since the last checkpoint; too many end a manual run, and a rolling one waits then';
comment on column calibration_runs.batch_id is
  'the first of the runs that were requested together, one a table; null for a run that was requested alone';
comment on column calibration_runs.note is 'what staff wrote about the run; it changes nothing that the run computes';
create unique index table_has_one_open_rolling_run on calibration_runs (table_id, model)
  where kind = 'rolling' and status in ('queued', 'running');
create index runs_open on calibration_runs (requested_at) where status in ('queued', 'running');
create index runs_finished on calibration_runs (finished_at) where finished_at is not null;
create index runs_of_parent on calibration_runs (parent_run_id) where parent_run_id is not null;
create index runs_of_calibration on calibration_runs (calibration_id) where calibration_id is not null;
create index manual_runs on calibration_runs (id desc) where kind = 'manual';
create index runs_of_batch on calibration_runs (batch_id, id) where batch_id is not null;
create index runs_by_tag on calibration_runs using gin (tags) where tags <> '{}';

create table backtest_checkpoints (
  run_id bigint primary key references calibration_runs,
  to_seq bigint not null,
  rounds bigint not null,
  late_rounds bigint not null,
  state bytea not null,
  state_hash text not null,
  sums jsonb not null,
  carry jsonb not null,
  file jsonb,
  saved_at timestamptz not null default clock_timestamp()
);
comment on table backtest_checkpoints is
  'where a manual run resumes after it was cancelled or killed; deleted when its calibration is stored';
comment on column backtest_checkpoints.file is 'position in the file of forecasts, and rows that wait for their outcome';

create table calibration_comparisons (
  a_id bigint not null references calibrations,
  b_id bigint not null references calibrations,
  status text not null default 'queued'
    constraint comparison_status_is_known check (status in ('queued', 'running', 'done', 'failed')),
  asked_by text not null,
  requested_at timestamptz not null default clock_timestamp(),
  heartbeat_at timestamptz,
  finished_at timestamptz,
  done bigint not null default 0,
  of bigint not null default 0,
  reason text,
  paired jsonb,
  lost_attempts integer not null default 0,
  primary key (a_id, b_id),
  constraint comparison_names_the_older_first check (a_id < b_id),
  constraint comparison_that_is_done_has_its_pairs check ((status = 'done') = (paired is not null))
);
comment on table calibration_comparisons is
  'paired differences of two records, a minus b, computed by a worker; both records are final, so a result stays true';
comment on column calibration_comparisons.lost_attempts is
  'attempts of workers that fell silent since it was requested; too many end the comparison';
create index comparisons_open on calibration_comparisons (requested_at) where status in ('queued', 'running');
create index comparisons_by_newer on calibration_comparisons (b_id);
