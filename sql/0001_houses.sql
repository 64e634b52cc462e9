create function utc_text(at timestamptz) returns text
language sql stable parallel safe
return to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"0Z"');
comment on function utc_text is 'a time as every surface prints it: 2026-11-21T04:00:12.1234560Z';

create table houses (
  id text primary key
    constraint house_id_is_a_slug check (id ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  name text not null,
  base_url text,
  settings jsonb not null,
  demo boolean not null default false,
  simulated boolean not null default false,
  enabled boolean not null,
  poll_every_ms integer not null default 2000
    constraint poll_interval_is_positive check (poll_every_ms > 0),
  paused_at timestamptz,
  paused_by text,
  pause_reason text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint house_pause_says_who_and_why check (
    (paused_at is null) = (paused_by is null) and (paused_at is null) = (pause_reason is null)
  )
);
comment on table houses is
  'operators we poll, as houses.yaml names them; a house that left the file is disabled, never deleted';
comment on column houses.settings is
  'the entry of houses.yaml with ${VAR} still unexpanded, so that no secret is stored here';

create table tables (
  id integer generated always as identity primary key,
  house_id text not null references houses,
  game text not null
    constraint game_is_a_slug check (game ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  market text not null
    constraint market_is_a_slug check (market ~ '^[a-z0-9][a-z0-9_-]{0,63}$'),
  position integer not null,
  shard integer not null default 0
    constraint shard_counts_from_zero check (shard >= 0),
  enabled boolean not null default true,
  settings jsonb not null,
  round_ids text not null
    constraint round_ids_are_consecutive_or_opaque check (round_ids in ('consecutive', 'opaque')),
  pause_ms integer not null
    constraint pause_is_positive check (pause_ms > 0),
  colors jsonb not null,
  -- the seq counter and the head of the chain of rounds: whoever adds rounds holds this row's lock
  last_seq bigint not null default 0
    constraint seq_counts_from_zero check (last_seq >= 0),
  history_hash text not null default repeat('0', 64)
    constraint history_hash_is_sha256 check (history_hash ~ '^[0-9a-f]{64}$'),
  -- newest on-time round; where ids are numbers, anything below it is late
  newest_round_id text,
  newest_number bigint,
  newest_occurred_at timestamptz,
  -- identical unproven results in a row, to recognize a stuck feed
  same_hundredths bigint,
  same_count integer not null default 0,
  -- fairness: the newest round whose hash is linked to the published end of the chain
  proof_number bigint,
  proof_hash text,
  proof_of text,
  rounds bigint not null default 0,
  last_round_at timestamptz,
  last_polled_round_at timestamptz,
  created_at timestamptz not null default now(),
  unique (house_id, game, market),
  constraint proof_anchor_is_whole check (
    (proof_number is null) = (proof_hash is null) and (proof_number is null) = (proof_of is null)
  )
);
comment on column tables.proof_of is
  'hash of the fairness settings that the anchor was proven with: with other ones it proves nothing';
comment on table tables is
  'one house + game + market: the unit of rounds, forecasts and scores, and the lock under which seq is given';

-- what poll-house knows of each table's feed between two requests
create table feeds (
  table_id integer primary key references tables,
  etag text,
  last_modified text,
  last_sha256 text,
  last_answer_at timestamptz,
  last_full_at timestamptz,
  last_asked_at timestamptz,
  refused_since timestamptz
);
comment on table feeds is
  'the newest good answer of a table''s feed; last_answer_at is the time its request was sent';
comment on column feeds.last_answer_at is
  'null until the first good answer, and again from an answer that could not be read to the next different one';
comment on column feeds.refused_since is
  'set while the newest stored answer is one that could not be read: no ETag is sent, and its repeats count for nothing';
comment on column feeds.last_asked_at is 'when its newest request was sent, good or not: who waits longest goes first';

create table poll_leases (
  house_id text not null references houses,
  shard integer not null default 0,
  lease_until timestamptz not null default '-infinity',
  lease_epoch bigint not null default 0,
  next_allowed_at timestamptz not null default '-infinity',
  circuit text not null default 'closed'
    constraint circuit_is_known check (circuit in ('closed', 'open', 'half_open')),
  failures_in_row integer not null default 0,
  recent text not null default ''
    constraint recent_outcomes_are_bounded check (recent ~ '^[01]{0,20}$'),
  opened_at timestamptz,
  opened_times integer not null default 0,
  throttled_in_row integer not null default 0,
  last_poll_at timestamptz,
  last_ok_at timestamptz,
  last_status integer,
  last_error text,
  last_error_at timestamptz,
  primary key (house_id, shard)
) with (fillfactor = 70);
comment on table poll_leases is
  'who may poll a house now: a lease by database time with a fencing epoch, and the circuit all workers share';
comment on column poll_leases.recent is 'the last 20 polls, newest last, 1 = good';
