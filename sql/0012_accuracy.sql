-- Sums of scored forecasts. An hour, a day and a period are sums of the same form, so cost does not grow with history.

create table accuracy_marks (
  table_id integer primary key references tables,
  version bigint not null default 0,
  set_seq bigint not null default 0,
  settled_seq bigint not null default 0,
  revision bigint not null default 0,
  round_seq bigint not null,
  hour timestamptz not null
    constraint accuracy_mark_hour_is_whole check (hour = date_trunc('hour', hour, 'UTC')),
  updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
comment on table accuracy_marks is
  'how far forecast sets, score sets, revisions and rounds are added to the sums; moved with them in one transaction, under its row lock';
comment on column accuracy_marks.version is 'counts the changes of the table''s accuracy';
comment on column accuracy_marks.hour is
  'the current UTC hour at the last change: periods end with it, and hours before the one before it are in days and periods';

create table accuracy_models (
  table_id integer not null references tables,
  model text not null,
  palette smallint not null references palettes,
  first_hour timestamptz not null,
  primary key (table_id, model)
);
comment on table accuracy_models is
  'models that a table was forecast with; first_hour is the hour of the first set, where the period "all" starts';

-- sums are bytes: jsonb of decimal strings took six times as much in every row that a round rewrites
create table accuracy_hours (
  table_id integer not null references tables,
  hour timestamptz not null
    constraint accuracy_hour_is_whole check (hour = date_trunc('hour', hour, 'UTC')),
  feature smallint not null,
  model text not null,
  sums bytea not null,
  primary key (table_id, hour, feature, model)
) with (fillfactor = 70);
comment on table accuracy_hours is 'integer sums of the forecasts issued, and of the rounds received, in one UTC hour';
comment on column accuracy_hours.sums is 'written by src/forecasts/accuracy/sum-vector.ts; which key is what: src/forecasts/accuracy/keys.ts';

create table accuracy_days (
  table_id integer not null references tables,
  day date not null,
  feature smallint not null,
  model text not null,
  sums bytea not null,
  primary key (table_id, day, feature, model)
) with (fillfactor = 70);
comment on table accuracy_days is 'sums of the hours of a UTC day that lie before the hour before accuracy_marks.hour';

create table accuracy_periods (
  table_id integer not null references tables,
  feature smallint not null,
  model text not null,
  period text not null
    constraint period_is_known check (period in ('24h', '7d', '30d', '90d', 'all')),
  sums bytea not null,
  version bigint not null default 0,
  primary key (table_id, feature, model, period)
) with (fillfactor = 50);
comment on table accuracy_periods is
  'sums of the hours of a period that lie before the hour before accuracy_marks.hour; what callers see adds the hours since';
comment on column accuracy_periods.version is 'accuracy_marks.version of the change that wrote the row: rows of a model that was replaced keep theirs';
