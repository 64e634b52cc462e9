-- One row per table with everything that a pass changes, and the locks under which passes write.

create table palettes (
  id smallint generated always as identity primary key,
  bands jsonb not null,
  constraint palette_is_stored_once unique (bands)
);
comment on table palettes is
  'the color bands that tables have or had, lowest first; a round stores its palette and the index of its color in it';

create table models (
  name text primary key,
  thresholds integer[] not null,
  edge double precision,
  parameters jsonb not null
);
comment on table models is
  'what each model is, insert-only: lower ends of its bands in hundredths, declared edge, constants; its name has a hash of them';

create table table_heads (
  table_id integer primary key references tables,
  version bigint not null default 0
    constraint head_version_counts_from_zero check (version >= 0),
  changed_at timestamptz not null default clock_timestamp(),
  palette smallint not null references palettes,
  first_model text not null references models,
  model text not null references models,
  pause_ms integer not null
    constraint head_pause_is_positive check (pause_ms > 0),
  last_seq bigint not null default 0
    constraint head_seq_counts_from_zero check (last_seq >= 0),
  last_ordinal bigint not null default 0
    constraint head_ordinal_is_at_most_its_seq check (last_ordinal between 0 and last_seq),
  newest_seq bigint,
  newest_round_id text
    constraint head_newest_round_id_is_short check (length(newest_round_id) <= 128),
  newest_number bigint,
  newest_occurred_at timestamptz,
  same_hundredths bigint,
  same_count integer not null default 0,
  history_hash bytea not null default decode(repeat('00', 32), 'hex')
    constraint head_history_hash_is_sha256 check (length(history_hash) = 32),
  forecast_seq bigint not null default 0
    constraint head_forecast_seq_counts_from_zero check (forecast_seq >= 0),
  forecast_hash bytea not null default decode(repeat('00', 32), 'hex')
    constraint head_forecast_hash_is_sha256 check (length(forecast_hash) = 32),
  score_hash bytea not null default decode(repeat('00', 32), 'hex')
    constraint head_score_hash_is_sha256 check (length(score_hash) = 32),
  first_forecast_at timestamptz,
  first_forecast_ordinal bigint,
  proof_number bigint,
  proof_hash bytea,
  proof_of text,
  responded_at timestamptz,
  payload_sha256 bytea,
  part_sha256 bytea,
  payload_path text
    constraint head_payload_path_is_short check (length(payload_path) <= 4000),
  open_sets bigint[] not null default '{}',
  set_seq bigint,
  now_ppm integer[] not null default '{}',
  has_ended boolean not null default false,
  last_round_at timestamptz,
  last_polled_round_at timestamptz,
  constraint head_newest_round_is_whole check ((newest_seq is null) = (newest_round_id is null)),
  constraint head_newest_round_is_stored check (newest_seq <= last_seq),
  constraint head_proof_is_whole check (num_nulls(proof_number, proof_hash, proof_of) in (0, 3))
) with (fillfactor = 50); -- an update finds room on the same page and touches no index
comment on table table_heads is
  'one row per table, changed by every pass: counters, the ends of its chains and what callers see of its open windows';
comment on column table_heads.version is
  'moved by every writer of anything a cached state is made of; a writer with an older version is refused';
comment on column table_heads.changed_at is 'when the version moved; set by each writer to clock_timestamp()';
comment on column table_heads.first_model is 'the model before the first promotion';
comment on column table_heads.last_ordinal is 'on-time rounds of the table; late rounds take a seq and no ordinal';
comment on column table_heads.responded_at is
  'request time of the newest good response; null when it is no evidence on rounds that it does not list; changes without a new version';
comment on column table_heads.part_sha256 is
  'the part for this table of the response that it shared with others and read last; null: it must read the next response';
comment on column table_heads.open_sets is 'cutoff_seq of each forecast set with a forecast that is not settled';
comment on column table_heads.has_ended is
  'a forecast ended while settling was paused: score-accuracy settles it when no response does';
comment on column table_heads.set_seq is 'cutoff_seq of the newest forecast set';
comment on column table_heads.now_ppm is
  'current chance of each window by feature code, from 1, in ppm; -1: it is open and hit; null: none is open';

create function refuse_head() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if new.version not in (old.version, old.version + 1) then
    raise exception 'expected version % of table %, found %: read the head again', new.version - 1, old.table_id, old.version
      using errcode = 'RH009';
  end if;
  -- a head that was ahead of its rows may be set back to them, and to nothing else
  if new.version = old.version + 1
    and (new.last_seq, new.last_ordinal) = (
      select coalesce(max(seq), 0), coalesce(max(ordinal), 0) from rounds where table_id = new.table_id
    )
    and new.forecast_seq = (
      select coalesce(max(first_seq + cardinality(features) - 1), 0) from forecast_sets where table_id = new.table_id
    ) then
    return new;
  end if;
  if new.version = old.version then
    raise exception 'expected the version of table % to move with what it counts, found % as before', old.table_id, old.version
      using errcode = 'RH001';
  end if;
  raise exception 'expected the head of table % to move forward, found seq %, ordinal %, forecast % after %, %, %',
    old.table_id, new.last_seq, new.last_ordinal, new.forecast_seq, old.last_seq, old.last_ordinal, old.forecast_seq
    using errcode = 'RH001';
end $$;
-- a condition is evaluated without a call of the function: a good update pays nothing for it
create trigger head_moves_forward
  before update on table_heads
  for each row when (
    new.version not in (old.version, old.version + 1)
    or (
      new.version = old.version -- only responded_at may have changed
      and (
        new.palette, new.first_model, new.model, new.pause_ms, new.last_seq, new.last_ordinal, new.newest_seq,
        new.newest_round_id, new.newest_number, new.newest_occurred_at, new.same_hundredths, new.same_count,
        new.history_hash, new.forecast_seq, new.forecast_hash, new.score_hash, new.first_forecast_at,
        new.first_forecast_ordinal, new.proof_number, new.proof_hash, new.proof_of, new.payload_sha256,
        new.part_sha256, new.payload_path, new.open_sets, new.set_seq, new.now_ppm, new.has_ended,
        new.last_round_at, new.last_polled_round_at, new.changed_at
      ) is distinct from (
        old.palette, old.first_model, old.model, old.pause_ms, old.last_seq, old.last_ordinal, old.newest_seq,
        old.newest_round_id, old.newest_number, old.newest_occurred_at, old.same_hundredths, old.same_count,
        old.history_hash, old.forecast_seq, old.forecast_hash, old.score_hash, old.first_forecast_at,
        old.first_forecast_ordinal, old.proof_number, old.proof_hash, old.proof_of, old.payload_sha256,
        old.part_sha256, old.payload_path, old.open_sets, old.set_seq, old.now_ppm, old.has_ended,
        old.last_round_at, old.last_polled_round_at, old.changed_at
      )
    )
    or new.last_seq < old.last_seq
    or new.last_ordinal < old.last_ordinal
    or new.forecast_seq < old.forecast_seq
  )
  execute function refuse_head();

create function lock_passes(
  house_ids text[], shards integer[], epochs bigint[], table_ids integer[], versions bigint[]
) returns void
language plpgsql
set search_path = public, pg_temp as $$
declare
  found_rows integer;
begin
  perform
  from unnest(house_ids, shards, epochs) as own (house_id, shard, epoch)
  join poll_leases l on l.house_id = own.house_id and l.shard = own.shard and l.lease_epoch = own.epoch
  order by l.house_id, l.shard
  for share of l;
  get diagnostics found_rows = row_count;
  if found_rows <> cardinality(house_ids) then
    raise exception 'expected the leases of % in epochs %, found another holder', house_ids, epochs using errcode = 'RH008';
  end if;
  perform
  from unnest(table_ids, versions) as own (table_id, version)
  join table_heads h on h.table_id = own.table_id and h.version = own.version
  order by h.table_id
  for no key update of h;
  get diagnostics found_rows = row_count;
  if found_rows <> cardinality(table_ids) then
    raise exception 'expected the heads of tables % at versions %, found another version: read them again', table_ids, versions
      using errcode = 'RH009';
  end if;
end $$;
comment on function lock_passes is
  'locks the leases of a transaction of passes for share and its heads for update, in one order; refuses a lease of another epoch and a head of another version';
