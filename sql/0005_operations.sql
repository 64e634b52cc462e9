create table queue_controls (
  queue text primary key,
  paused_at timestamptz not null default now(),
  paused_by text not null,
  reason text not null
);
comment on table queue_controls is 'queues an operator paused: the truth that is applied again after Redis lost its data';

create table workers (
  id text primary key,
  pid integer not null,
  host text not null,
  version text not null,
  queues text[] not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  clock_problem text
);
comment on table workers is 'worker processes that report every few seconds';
comment on column workers.clock_problem is 'why it takes no work while the clock of its machine is wrong';

create table alerts (
  kind text not null,
  subject text not null,
  text text not null,
  opened_at timestamptz not null default clock_timestamp(),
  closed_at timestamptz,
  primary key (kind, subject, opened_at)
);
comment on table alerts is 'critical notices: logged once when they open and once when they recover';
create unique index alert_is_open_once on alerts (kind, subject) where closed_at is null;

create table heartbeats (
  name text primary key,
  at timestamptz not null default clock_timestamp(),
  detail jsonb not null default '{}'
);
comment on table heartbeats is 'when the reconciler and other single workers were last alive';
