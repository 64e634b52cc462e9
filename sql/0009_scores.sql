-- What became of forecasts.

create table score_sets (
  table_id integer not null,
  settled_seq bigint not null,
  settled_ordinal bigint,
  target_requested_at timestamptz,
  scored_at timestamptz not null,
  forecast_seqs bigint[] not null,
  cutoff_seqs bigint[] not null,
  features smallint[] not null,
  statuses smallint[] not null
    constraint score_status_is_known check (0 <= all (statuses) and 1 >= all (statuses)),
  reasons smallint[] not null
    constraint score_reason_is_known check (0 <= all (reasons) and 5 >= all (reasons)),
  outcomes smallint[] not null,
  prev_hash bytea not null
    constraint score_prev_hash_is_sha256 check (length(prev_hash) = 32),
  hashes bytea not null,
  primary key (table_id, settled_seq),
  constraint score_set_has_a_value_for_each_forecast check (
    cardinality(forecast_seqs) > 0
    and cardinality(cutoff_seqs) = cardinality(forecast_seqs)
    and cardinality(features) = cardinality(forecast_seqs)
    and cardinality(statuses) = cardinality(forecast_seqs)
    and cardinality(reasons) = cardinality(forecast_seqs)
    and cardinality(outcomes) = cardinality(forecast_seqs)
    and length(hashes) = 32 * cardinality(forecast_seqs)
  )
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 500000);
comment on table score_sets is
  'everything settled for a table by one round, insert-only; its figures follow from the forecast set and the outcome';
comment on column score_sets.target_requested_at is 'request time of the round that settled it';
comment on column score_sets.statuses is '0 scored, 1 void';
comment on column score_sets.reasons is '0 none, 1 gap, 2 late, 3 conflict, 4 impossible, 5 operator';
comment on column score_sets.outcomes is 'of next_color the index of the color, of a window 1 when hit and 0 when not; null when void';
create index score_sets_with_voids on score_sets (table_id, settled_seq) where 1 = any (statuses);

create table score_revisions (
  table_id integer not null,
  forecast_seq bigint not null,
  rev integer not null
    constraint revision_counts_from_two check (rev >= 2),
  cutoff_seq bigint not null,
  feature smallint not null,
  settled_seq bigint not null,
  status smallint not null,
  reason smallint not null,
  outcome smallint,
  scored_at timestamptz not null,
  cause bigint,
  prev_hash bytea not null
    constraint revision_prev_hash_is_sha256 check (length(prev_hash) = 32),
  hash bytea not null
    constraint revision_hash_is_sha256 check (length(hash) = 32),
  revision bigint generated always as identity,
  primary key (table_id, forecast_seq, rev),
  constraint revision_status_is_known check (status in (0, 1)),
  constraint revised_void_says_why check (
    reason between 0 and 5 and (status = 1) = (reason > 0) and (status = 0) = (outcome is not null)
  )
);
comment on table score_revisions is
  'later scores of forecasts that were settled before: conflicts and corrections; chained with score sets, the highest rev counts';
comment on column score_revisions.cause is 'id of the conflict (reason 3) or revision (reason 5) that caused it';
create index score_revisions_of_set on score_revisions (table_id, cutoff_seq);
comment on column score_revisions.revision is
  'order in which revisions are added to the sums: one is made under the lock of its table''s head, so numbers of a table commit in order';
create unique index score_revisions_in_order on score_revisions (table_id, revision);
