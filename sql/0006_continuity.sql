-- What is missing, refused or contradictory in what houses send.

create table gaps (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  from_number bigint,
  to_number bigint,
  missing bigint,
  after_round_id text not null
    constraint gap_begin_is_a_short_id check (length(after_round_id) <= 128),
  before_round_id text not null
    constraint gap_end_is_a_short_id check (length(before_round_id) <= 128),
  opened_at timestamptz not null default clock_timestamp(),
  state text not null default 'open'
    constraint gap_state_is_known check (state in ('open', 'filled', 'given_up')),
  filled bigint not null default 0,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default clock_timestamp(),
  -- one request at a time for all gaps of a house: the process that sends it holds this lease
  lease_until timestamptz not null default '-infinity',
  -- how far back the house's history was read in this attempt
  cursor_round_id text
    constraint gap_cursor_is_a_short_id check (length(cursor_round_id) <= 128),
  cursor_page integer not null default 0
    constraint gap_pages_count_from_zero check (cursor_page >= 0),
  reason text
    constraint gap_reason_is_short check (length(reason) <= 1000),
  closed_at timestamptz,
  closed_by text,
  constraint gap_is_opened_once unique (table_id, before_round_id),
  constraint gap_range_is_whole check (
    (from_number is null) = (to_number is null) and (from_number is null) = (missing is null)
  ),
  constraint gap_range_is_not_empty check (to_number >= from_number),
  constraint gap_misses_no_more_than_its_range check (missing between 0 and to_number - from_number + 1),
  constraint closed_gap_says_when check ((state = 'open') = (closed_at is null)),
  constraint given_up_gap_says_why check (state <> 'given_up' or reason is not null),
  constraint manual_close_has_reason check (closed_by is null or (state = 'given_up' and reason is not null))
);
comment on table gaps is
  'rounds known to exist and not received; with opaque ids the size is unknown and from, to and missing are null';
comment on column gaps.cursor_page is
  'pages read so far in this attempt, for houses that count pages of history from the newest';
comment on column gaps.closed_by is 'who gave it up manually: its rounds are not requested until it is opened again';
create index gaps_open on gaps (table_id, next_attempt_at) where state = 'open';
create index gaps_closed on gaps (table_id, closed_at) where state <> 'open';
create index gaps_of_table on gaps (table_id, id);
-- finds the gap that a late round was missing in
create index gaps_unfilled on gaps (table_id, to_number, from_number) where state <> 'filled';

create table quarantine (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  payload_received_at timestamptz,
  code text not null
    constraint quarantine_code_is_short check (length(code) <= 64),
  reason text not null
    constraint quarantine_reason_is_short check (length(reason) <= 500),
  round_id text
    constraint quarantine_names_a_short_id check (length(round_id) <= 128),
  item text not null,
  item_sha256 text not null,
  first_seen_at timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp(),
  times integer not null default 1,
  state text not null default 'open'
    constraint quarantine_state_is_known check (state in ('open', 'released', 'discarded')),
  decided_by text,
  decision_reason text,
  decided_at timestamptz,
  constraint quarantined_item_is_listed_once unique (table_id, item_sha256, code),
  constraint quarantined_item_is_bounded check (length(item) <= 16384)
);
comment on table quarantine is 'items of a payload that failed validation, with the reason and the raw item';
comment on column quarantine.payload_received_at is 'with table_id the key of the payload that it was first seen in';
create index quarantine_of_round on quarantine (table_id, round_id);
create index quarantine_of_payload on quarantine (table_id, payload_received_at);
create index quarantine_by_sight on quarantine (table_id, last_seen_at desc);
create index quarantine_by_time on quarantine (last_seen_at desc, id desc);
create index quarantine_open_by_time on quarantine (last_seen_at desc, id desc) where state = 'open';
create index quarantine_settled on quarantine (greatest(last_seen_at, decided_at)) where state <> 'open';
-- counted at each scrape of the metrics
create index quarantine_open on quarantine (table_id) where state = 'open';

create table conflicts (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  round_id text not null
    constraint conflict_names_a_short_id check (length(round_id) <= 128),
  kept_hundredths bigint not null,
  other_hundredths bigint not null,
  other_raw text not null
    constraint conflict_raw_value_is_short check (length(other_raw) <= 128),
  payload_received_at timestamptz,
  first_seen_at timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp(),
  times integer not null default 1,
  further integer not null default 0,
  decided_at timestamptz,
  scores_voided_at timestamptz,
  constraint conflict_is_listed_once unique (table_id, round_id, other_hundredths),
  constraint conflict_differs check (kept_hundredths <> other_hundredths)
);
comment on table conflicts is 'a round that was received again with another result: the first is kept, the other is listed here';
comment on column conflicts.payload_received_at is 'with table_id the key of the payload with the other result';
comment on column conflicts.further is
  'how often other results of the round were received that are not listed: src/rounds/conflict-limits.ts bounds those that are';
comment on column conflicts.scores_voided_at is 'when the forecasts that this conflict touches were voided';
create index conflicts_by_sight on conflicts (table_id, last_seen_at desc);
create index conflicts_of_payload on conflicts (table_id, payload_received_at);
create index conflicts_open on conflicts (id desc) where decided_at is null;
create index conflicts_undecided on conflicts (table_id) where decided_at is null;
create index conflicts_not_voided on conflicts (table_id) where scores_voided_at is null;

create table notices (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  kind text not null
    constraint notice_kind_is_known check (
      kind in ('gap', 'conflict', 'proof', 'stalled', 'stuck', 'format', 'quarantine', 'ids', 'model', 'operator')
    ),
  text text not null
    constraint notice_text_is_bounded check (length(text) <= 2000),
  opened_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  closed_at timestamptz,
  opened_by text,
  closed_by text
);
comment on table notices is 'continuity notices of a table; at most one of a kind is open';
create unique index notice_is_open_once on notices (table_id, kind) where closed_at is null;
create index notices_by_time on notices (opened_at desc, id desc);
create index notices_of_table on notices (table_id, opened_at desc);
create index notices_closed on notices (closed_at) where closed_at is not null;
