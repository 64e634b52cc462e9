-- Finished rounds, and how many there were when.

create table rounds (
  table_id integer not null,
  seq bigint not null
    constraint round_seq_counts_from_one check (seq >= 1),
  ordinal bigint
    constraint round_ordinal_is_at_most_its_seq check (ordinal between 1 and seq),
  hundredths bigint not null
    constraint round_multiplier_is_at_least_one check (hundredths >= 100),
  requested_at timestamptz,
  received_at timestamptz not null,
  occurred_at timestamptz,
  absent_at timestamptz,
  palette smallint not null,
  color smallint not null
    constraint round_color_counts_from_zero check (color >= 0),
  source smallint not null
    constraint round_source_is_known check (source between 0 and 3),
  after_gap boolean not null,
  late boolean not null,
  verified boolean,
  round_id text not null
    constraint round_id_is_short_text check (length(round_id) between 1 and 128),
  raw_value text not null
    constraint round_raw_value_is_short_text check (length(raw_value) <= 128),
  proof_hash bytea,
  history_hash bytea not null
    constraint round_history_hash_is_sha256 check (length(history_hash) = 32),
  primary key (table_id, seq),
  constraint round_is_stored_once unique (table_id, round_id),
  constraint late_round_has_no_ordinal check (late = (ordinal is null)),
  constraint round_was_requested_before_it_was_received check (requested_at <= received_at),
  constraint round_was_absent_before_it_was_requested check (absent_at <= requested_at),
  constraint polled_round_has_a_request check (source >= 2 or requested_at is not null),
  constraint verified_round_has_its_hash check (verified is null or proof_hash is not null)
-- a fixed number: a fifth of the rows, the default, would be months of rounds in one vacuum
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 500000);
comment on table rounds is
  'finished rounds, insert-only; not write-protected: the chain of history_hash shows any change to anyone who runs verify';
comment on column rounds.ordinal is 'number of the round among the on-time rounds of its table; null when it is late';
comment on column rounds.source is '0 poll, 1 history, 2 computed, 3 import';
comment on column rounds.color is 'index in the bands of its palette, lowest first';
comment on column rounds.absent_at is
  'request time of the newest good response before the one that brought it: the round was not there yet';
-- without autosummarize a search reads everything that was added since the last vacuum
create index rounds_by_receipt on rounds using brin (received_at) with (autosummarize = on);
-- the late rounds of a replay by number: on-time ones follow each other in both orders
create index late_rounds_by_number on rounds (table_id, length(round_id), (round_id collate "C")) where late;
-- whose hash it is, of houses whose ids do not count up
create index rounds_by_proof_hash on rounds using hash (proof_hash) where proof_hash is not null;

create table round_cells (
  hour timestamptz not null
    constraint cells_begin_with_an_hour check (hour = date_trunc('hour', hour, 'UTC')),
  table_id integer not null references tables on delete cascade,
  rounds integer[] not null
    constraint an_hour_has_twelve_cells check (cardinality(rounds) between 1 and 12),
  primary key (hour, table_id)
);
comment on table round_cells is
  'on-time rounds of polls by table and hour: one number for each five minutes that are over, so that a chart reads no rounds; without rounds whose payloads waited to be read';
