create table rounds (
  table_id integer not null references tables,
  seq bigint not null
    constraint round_seq_counts_from_one check (seq >= 1),
  round_id text not null
    constraint round_id_is_short_text check (length(round_id) between 1 and 128),
  round_number bigint generated always as (
    case when round_id ~ '^[0-9]{1,18}$' then round_id::bigint end
  ) stored,
  hundredths bigint not null
    constraint round_multiplier_is_at_least_one check (hundredths >= 100),
  raw_value text not null,
  color text not null,
  source text not null
    constraint round_source_is_known check (source in ('poll', 'history', 'computed', 'import')),
  requested_at timestamptz,
  received_at timestamptz not null,
  occurred_at timestamptz,
  absent_at timestamptz,
  after_gap boolean not null,
  late boolean not null,
  proof_hash text,
  verified boolean,
  payload_id bigint,
  history_hash text not null
    constraint round_history_hash_is_sha256 check (history_hash ~ '^[0-9a-f]{64}$'),
  primary key (table_id, seq),
  unique (table_id, round_id),
  constraint round_was_requested_before_it_was_received check (requested_at <= received_at),
  constraint round_was_absent_before_it_was_requested check (absent_at <= requested_at),
  constraint polled_round_has_a_request check (source = 'import' or source = 'computed' or requested_at is not null),
  constraint verified_round_has_its_hash check (verified is null or proof_hash is not null)
) partition by hash (table_id);
comment on table rounds is
  'finished games, insert-only; not write-protected on purpose: the chain of history_hash shows any change to whoever runs verify';
comment on column rounds.absent_at is
  'request time of the newest good answer before the one that brought it: the round was not there yet';
create index rounds_by_number on rounds (table_id, round_number desc) where round_number is not null;
create index rounds_by_time on rounds (table_id, coalesce(occurred_at, received_at) desc, seq desc);
create index rounds_on_time on rounds (table_id, seq) where not late;

do $$
begin
  for n in 0..15 loop
    execute format(
      'create table rounds_%s partition of rounds for values with (modulus 16, remainder %s)', lpad(n::text, 2, '0'), n
    );
  end loop;
end $$;

create table gaps (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  from_number bigint,
  to_number bigint,
  missing bigint,
  after_round_id text not null,
  before_round_id text not null,
  opened_at timestamptz not null default clock_timestamp(),
  state text not null default 'open'
    constraint gap_state_is_known check (state in ('open', 'filled', 'given_up')),
  filled bigint not null default 0,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default clock_timestamp(),
  -- whoever asks the house holds this lease: one request at a time for all gaps of a house
  lease_until timestamptz not null default '-infinity',
  -- how far back the house's history was read in this attempt
  cursor_round_id text,
  reason text,
  closed_at timestamptz,
  constraint gap_is_opened_once unique (table_id, before_round_id),
  constraint gap_range_is_whole check (
    (from_number is null) = (to_number is null) and (from_number is null) = (missing is null)
  ),
  constraint gap_range_is_not_empty check (to_number >= from_number),
  constraint gap_misses_no_more_than_its_range check (missing between 0 and to_number - from_number + 1),
  constraint closed_gap_says_when check ((state = 'open') = (closed_at is null)),
  constraint given_up_gap_says_why check (state <> 'given_up' or reason is not null)
);
comment on table gaps is
  'rounds known to exist and not received; with opaque ids the size is unknown and from, to and missing are null';
create index gaps_open on gaps (table_id, next_attempt_at) where state = 'open';

create table quarantine (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  payload_id bigint,
  payload_received_at timestamptz,
  code text not null,
  reason text not null,
  round_id text,
  item text not null,
  item_sha256 text not null,
  first_seen_at timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp(),
  times integer not null default 1,
  state text not null default 'open'
    constraint quarantine_state_is_known check (state in ('open', 'released', 'discarded')),
  constraint quarantined_item_is_listed_once unique (table_id, item_sha256, code),
  constraint quarantined_item_is_bounded check (length(item) <= 16384)
);
create index quarantine_of_round on quarantine (table_id, round_id);
create index quarantine_by_sight on quarantine (table_id, last_seen_at desc);
comment on table quarantine is 'items of a payload that were refused, with the reason and the raw item';

create table conflicts (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  round_id text not null,
  kept_hundredths bigint not null,
  other_hundredths bigint not null,
  other_raw text not null,
  payload_id bigint,
  first_seen_at timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp(),
  times integer not null default 1,
  decided_at timestamptz,
  constraint conflict_is_listed_once unique (table_id, round_id, other_hundredths),
  constraint conflict_differs check (kept_hundredths <> other_hundredths)
);
create index conflicts_by_sight on conflicts (table_id, last_seen_at desc);
comment on table conflicts is 'the same round with another result: the first is kept, the other is listed here';

create table notices (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  kind text not null
    constraint notice_kind_is_known check (
      kind in ('gap', 'conflict', 'proof', 'stalled', 'stuck', 'format', 'quarantine', 'ids', 'operator')
    ),
  text text not null,
  opened_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  closed_at timestamptz
);
comment on table notices is 'continuity notices of a table; at most one of a kind is open';
create unique index notice_is_open_once on notices (table_id, kind) where closed_at is null;

-- what the API shows of a table beside its rounds; one row a table, written by workers, read by every API process
create table published_now (
  table_id integer primary key references tables,
  last_seq bigint not null default 0,
  last_round_at timestamptz,
  last_polled_round_at timestamptz,
  continuity_text text,
  updated_at timestamptz not null default clock_timestamp()
) with (fillfactor = 70);
comment on table published_now is
  'what callers see of a table now; the rounds themselves are read from rounds by seq';
create index published_now_by_update on published_now (updated_at);
