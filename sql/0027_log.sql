-- The transparency log: statements about every chain of the record, which outsiders can keep and hold against this database.

create table logs (
  id integer primary key
    constraint log_ids_count_from_one check (id >= 1),
  origin text not null unique
    constraint log_origin_is_a_key_name check (origin ~ '^[^[:space:]+]{1,200}$'),
  public_key bytea not null
    constraint log_key_is_ed25519 check (length(public_key) = 32),
  size bigint not null default 0
    constraint log_size_is_not_negative check (size >= 0),
  audit_seq bigint not null default 0,
  accuracy_hour timestamptz not null default '-infinity',
  declared_at timestamptz not null default clock_timestamp(),
  declared_by text,
  reason text,
  constraint later_log_says_who_and_why check (id = 1 or num_nulls(declared_by, reason) = 0)
);
comment on table logs is
  'the log of this instance; an operator declares another one after the database was restored from a backup, and the newest counts';
comment on column logs.size is 'entries; moved with them in one transaction, from the size that was read';
comment on column logs.accuracy_hour is 'the hour of the newest statements of accuracy';

create table log_entries (
  log_id integer not null references logs,
  index bigint not null
    constraint log_index_is_not_negative check (index >= 0),
  table_id integer,
  forecast_seq bigint,
  entry text not null
    constraint log_entry_fits_its_length check (octet_length(entry) between 1 and 65535),
  primary key (log_id, index)
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 500000);
comment on table log_entries is 'entries of logs as JSON in the form of RFC 8785, append-only; src/record/log/statements.ts makes them';
comment on column log_entries.forecast_seq is 'the newest forecast that a statement about a table covers; null in other entries';
create index log_entries_of_table on log_entries (table_id, forecast_seq) where table_id is not null;
create trigger log_entries_are_append_only
  before update or delete on log_entries
  for each row execute function refuse_change_of_record();
create trigger log_entries_are_not_truncated
  before truncate on log_entries
  for each statement execute function refuse_change_of_record();

create table log_heads (
  log_id integer not null references logs,
  table_id integer not null references tables,
  version bigint not null,
  statement jsonb not null,
  accuracy_version bigint,
  accuracy_day date,
  primary key (log_id, table_id)
) with (fillfactor = 50);
comment on table log_heads is 'the newest statement about each table, and the version of the head that it was made from';
comment on column log_heads.accuracy_version is 'accuracy_marks.version up to which the accuracy of the table is stated; null if none is';
comment on column log_heads.accuracy_day is 'the newest UTC day on which all rows of the accuracy of the table were stated, changed or not';

create table log_tiles (
  log_id integer not null references logs,
  level smallint not null,
  n bigint not null,
  hashes bytea not null
    constraint tile_has_up_to_256_hashes check (length(hashes) % 32 = 0 and length(hashes) between 32 and 8192),
  primary key (log_id, level, n)
) with (fillfactor = 50);
comment on table log_tiles is 'hashes of the tree over log_entries, 256 in each full tile, as C2SP tlog-tiles has them';

create table log_checkpoints (
  log_id integer not null references logs,
  size bigint not null,
  note text not null,
  signed_at timestamptz not null default clock_timestamp(),
  cosigned_at timestamptz,
  primary key (log_id, size)
);
comment on table log_checkpoints is 'signed checkpoints with the cosignatures of witnesses; one per size';
comment on column log_checkpoints.cosigned_at is 'the earliest time that a witness signed; null if none did';
-- the first cosigned one after an entry; without witnesses there is none among millions
create index log_checkpoints_cosigned on log_checkpoints (log_id, size) where cosigned_at is not null;
