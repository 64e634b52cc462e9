create table reading_memories (
  table_id integer primary key references tables,
  learned_seq bigint not null,
  memory text not null,
  memory_hash text not null
    constraint reading_memory_hash_is_sha256 check (memory_hash ~ '^[0-9a-f]{64}$'),
  updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70);
comment on table reading_memories is
  'what readings and house audits rest on: a pure function of a table''s rounds up to learned_seq; a deleted row is made anew from them';

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
  rejected_seq bigint,
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
  'evidence on each house over time, one row for each UTC hour in which rounds came in, as it stood after its last round';
comment on column house_audits.ln_e is
  'ln of the e-value against the declared edge, micro-nats; ln_e_max is the most it ever was, and rejected_seq where it first was ln 20';
comment on column house_audits.missing is 'rounds known to exist and not received; null where ids do not count up';
comment on column house_audits.proofs_failed is
  'items that failed their proof and rounds that came with another result, seen up to the end of the hour';

alter table published_now
  add column reading jsonb;
comment on column published_now.reading is
  'facts of the newest reading, the seq and the number of rounds it rests on, and when it was made';
