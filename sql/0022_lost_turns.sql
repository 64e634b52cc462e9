-- how often in a row whoever worked on something that a person asked for fell silent, killed rather than stopped
alter table calibration_runs
  add column lost_turns integer not null default 0;
comment on column calibration_runs.lost_turns is
  'turns of workers at a run by hand that ended without a word since its last checkpoint; too many of them end the run';
alter table calibration_comparisons
  add column lost_turns integer not null default 0;
comment on column calibration_comparisons.lost_turns is
  'turns of workers that ended without a word since it was asked for; too many of them end the comparison';
