-- What is forecast after a round. No hash partitions: sixteen of them cost 0.42 ms of processor time per round.

create table forecast_sets (
  table_id integer not null,
  cutoff_seq bigint not null,
  cutoff_ordinal bigint not null,
  first_seq bigint not null
    constraint set_seq_counts_from_one check (first_seq >= 1),
  issued_at timestamptz not null,
  absent_at timestamptz not null,
  pause_ms integer not null,
  model text not null,
  cutoff_round_id text not null,
  target_round_id text,
  history_hash bytea not null
    constraint set_history_hash_is_sha256 check (length(history_hash) = 32),
  features smallint[] not null,
  horizons smallint[] not null
    constraint set_looks_ahead check (1 <= all (horizons) and 400 >= all (horizons)),
  p_ppm integer[] not null
    constraint set_probabilities_are_ppm check (0 <= all (p_ppm) and 1000000 >= all (p_ppm)),
  base_ppm integer[] not null,
  reference_ppm integer[] not null,
  ends bigint[] not null,
  prev_hash bytea not null
    constraint set_prev_hash_is_sha256 check (length(prev_hash) = 32),
  hashes bytea not null,
  primary key (table_id, cutoff_seq),
  -- features[1] is next_color with one probability per color, of which there are a third as many as window features
  constraint set_begins_with_next_color check (features[1] = 0 and horizons[1] = 1),
  constraint set_has_a_value_for_each_forecast check (
    cardinality(horizons) = cardinality(features)
    and cardinality(ends) >= 6
    and cardinality(ends) % 3 = 0
    and cardinality(p_ppm) = cardinality(ends) / 3 + cardinality(features) - 1
    and cardinality(base_ppm) = cardinality(p_ppm)
    and cardinality(reference_ppm) = 3 * cardinality(p_ppm)
    and length(hashes) = 32 * cardinality(features)
  )
) with (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 500000);
comment on table forecast_sets is
  'everything forecast for a table after one round, insert-only; not write-protected: the chain of hashes shows any change';
comment on column forecast_sets.first_seq is 'number of its first forecast in the chain of the table; the others follow';
comment on column forecast_sets.features is
  '0 = next_color; 1 + 3·color + target (0: 50 %, 1: 80 %, 2: 90 %) = a window; next_color first, codes ascending';
comment on column forecast_sets.p_ppm is 'of all features in order; next_color has one number per color';
comment on column forecast_sets.reference_ppm is
  'last_20, last_100 and due, each in the layout of p_ppm; null if a reference has no value';
comment on column forecast_sets.ends is
  'by window feature code, from 1: the ordinal at which its newest window ends; 0 if there was none, or if its color is too rare for the next';
comment on column forecast_sets.hashes is '32 bytes per forecast, in order; each covers the one before';
