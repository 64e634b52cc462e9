-- What is computed from rounds: the state that passes resume from, readings and audits.

create table model_snapshots (
  table_id integer not null references tables,
  model text not null,
  ordinal bigint not null,
  seq bigint not null,
  state bytea not null,
  state_hash bytea not null
    constraint snapshot_state_hash_is_sha256 check (length(state_hash) = 32),
  reading text not null,
  reading_hash bytea not null
    constraint snapshot_reading_hash_is_sha256 check (length(reading_hash) = 32),
  refs jsonb not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (table_id, model),
  constraint snapshot_ordinal_is_at_most_its_seq check (ordinal between 0 and seq)
) with (fillfactor = 50);
comment on table model_snapshots is
  'what a table''s state in memory is replayed from: a pure function of its rounds up to seq, which can always be computed again';
comment on column model_snapshots.refs is 'memory of the reference forecasts (last_20, last_100, due)';

create table published_readings (
  table_id integer primary key references tables,
  seq bigint not null,
  reading jsonb not null,
  published_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);
comment on table published_readings is
  'what callers see of a table''s reading; written by a pass at most every ten seconds, and immediately when a fact becomes unusual';

create table house_audits (
  table_id integer not null references tables,
  hour timestamptz not null
    constraint audit_hour_is_a_whole_one check (hour = date_trunc('hour', hour, 'UTC')),
  seq bigint not null,
  rounds bigint not null,
  tested bigint not null,
  edge_ppm integer,
  ln_e bigint not null,
  ln_e_max bigint not null,
  proven bigint not null,
  missing bigint,
  gaps bigint not null,
  proofs_failed bigint not null default 0,
  conflicts bigint not null default 0,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (table_id, hour),
  constraint audit_never_forgets_its_most check (ln_e_max >= ln_e),
  constraint audit_proves_no_more_than_it_has check (proven <= rounds)
);
comment on table house_audits is
  'evidence on each house over time: one row per UTC hour with rounds, as it was after the last of them';
comment on column house_audits.ln_e is
  'ln of the e-value against the declared edge, micro-nats; ln_e_max is its maximum so far';
comment on column house_audits.missing is 'rounds known to exist and not received; null when ids do not count up';
comment on column house_audits.proofs_failed is
  'items that failed their proof and rounds with a conflicting result, up to the end of the hour';
