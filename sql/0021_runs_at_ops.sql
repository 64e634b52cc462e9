-- runs by hand that are asked for at /ops and worked on by a worker
alter table calibration_runs
  add column runner text not null default 'cli'
    constraint runner_is_known check (runner in ('cli', 'worker')),
  add column parent_run_id bigint references calibration_runs
    constraint run_is_no_parent_of_itself check (parent_run_id < id),
  add column asked_by text,
  add column asked_why text,
  add column cancel_asked_at timestamptz,
  add column turn_started_at timestamptz,
  add column turn_from_seq bigint,
  add column at_seq bigint;
comment on column calibration_runs.runner is
  'who works on a run by hand: the process that asked for it (cli), or any worker, which finds it by its row';
comment on column calibration_runs.parent_run_id is 'the run that this one asks for again';
comment on column calibration_runs.cancel_asked_at is 'whoever works on it stops at its next sign of life; null once it is taken up again';
comment on column calibration_runs.turn_from_seq is 'the seq after which the present turn began; its rate is counted from there and from turn_started_at';
comment on column calibration_runs.at_seq is 'the last seq that the run was seen at';
create index runs_of_parent on calibration_runs (parent_run_id) where parent_run_id is not null;
create index runs_of_calibration on calibration_runs (calibration_id) where calibration_id is not null;
create index runs_by_hand on calibration_runs (id desc) where kind = 'manual';

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
  primary key (a_id, b_id),
  constraint comparison_names_the_older_first check (a_id < b_id),
  constraint comparison_that_is_done_has_its_pairs check ((status = 'done') = (paired is not null))
);
comment on table calibration_comparisons is
  'paired differences of two records, a minus b, made by a worker; both records are final, so a result stays true';
create index comparisons_open on calibration_comparisons (requested_at) where status in ('queued', 'running');

-- rolling records come by the hundred each day, those that persons look for by the week
create index calibrations_by_hand on calibrations (id desc) where kind <> 'rolling';
create index calibrations_of_table on calibrations (table_id, id desc);

-- what operators decide on callers
alter table accounts
  add column suspended_by text;
comment on column accounts.suspended_by is 'who suspended it; null where nobody did, or it was done before this was kept';
