-- what the references would have scored on exactly the forecasts that an accuracy row counts as scored
alter table accuracy_hours
  add column reference_sums jsonb not null default '{}';
alter table published_accuracy
  add column reference_sums jsonb not null default '{}';
comment on column accuracy_hours.reference_sums is
  'integer sums by reference, recomputed with the row from rounds and forecasts; empty while nothing is scored';

create table reference_marks (
  table_id integer not null references tables,
  seq bigint not null,
  memory jsonb not null,
  primary key (table_id, seq)
);
comment on table reference_marks is
  'what the references remember after the on-time rounds up to a seq, so that an hour is made anew from its own rounds; each can be rebuilt from the rounds';
