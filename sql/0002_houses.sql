-- Houses, their tables, and what polling knows between two requests.

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
  'operators that are polled, as houses.yaml names them; one that was removed from the file is disabled, never deleted';
comment on column houses.settings is
  'the entry of houses.yaml with ${VAR} unexpanded, so that no secret is stored';

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
  revision_hash text not null default repeat('0', 64),
  created_at timestamptz not null default now(),
  unique (house_id, game, market)
);
comment on table tables is
  'one house, game and market: the unit of rounds, forecasts and scores; its settings are here, its counters in table_heads';
comment on column tables.revision_hash is 'hash of the table''s newest revision; 64 zeros before the first';

create table feeds (
  table_id integer primary key references tables,
  etag text
    constraint etag_is_short check (length(etag) <= 1000),
  last_modified text
    constraint last_modified_is_short check (length(last_modified) <= 100),
  last_full_at timestamptz,
  last_asked_at timestamptz,
  refused_since timestamptz,
  bad_responses integer not null default 0
    constraint bad_responses_count_from_zero check (bad_responses >= 0),
  format_since timestamptz
);
comment on table feeds is
  'what a poll of a table needs to know of the responses before: validators, times and the form of the feed';
comment on column feeds.last_asked_at is
  'when its newest request was sent, successful or not: the table that waits longest is requested first';
comment on column feeds.refused_since is
  'set while the newest stored payload could not be read: no ETag is sent, and repeats of it count for nothing';
comment on column feeds.bad_responses is 'stored payloads in a row of which nothing, or nearly nothing, could be read';
comment on column feeds.format_since is
  'since when the house counts as having changed its format; null again with the first payload that can be read';

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
  last_due_at timestamptz,
  last_ok_at timestamptz,
  last_status integer,
  last_error text
    constraint poll_error_is_short check (length(last_error) <= 500),
  last_error_at timestamptz,
  bytes_on date not null default '-infinity',
  bytes_today bigint not null default 0,
  primary key (house_id, shard)
) with (fillfactor = 70);
comment on table poll_leases is
  'which worker may poll a house: a lease by database time with a fencing epoch, and the circuit that all workers share';
comment on column poll_leases.bytes_today is 'bytes of the responses that were stored on the UTC day bytes_on';
comment on column poll_leases.last_due_at is
  'when the last poll of a run was due: polls of other runs that were due then or up to two seconds earlier are refused';
comment on column poll_leases.recent is 'the last 20 polls, newest last, 1 = successful';

-- Its own row, since every request updates it.
create table request_budgets (
  house_id text primary key references houses on delete cascade,
  spent_until timestamptz not null default '-infinity'
) with (fillfactor = 70);
comment on table request_budgets is
  'requests_per_minute of a house over all processes: each request moves spent_until on by its share of a minute';

create table circuit_changes (
  id bigint generated always as identity primary key,
  house_id text not null references houses on delete cascade,
  shard integer not null,
  at timestamptz not null default clock_timestamp(),
  state text not null
    constraint circuit_change_is_known check (state in ('open', 'closed')),
  -- how long it was open; null when it opened
  lasted interval,
  reason text
    constraint circuit_reason_is_short check (length(reason) <= 500)
);
comment on table circuit_changes is 'when the circuit of a house opened and closed in the last 30 days; probes are not noted';
create index circuit_changes_of_house on circuit_changes (house_id, at desc);

create function note_circuit_change() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  delete from circuit_changes
  where house_id = new.house_id
    and at < clock_timestamp() - interval '30 days';
  insert into circuit_changes (house_id, shard, state, lasted, reason)
  values (
    new.house_id,
    new.shard,
    case new.circuit when 'closed' then 'closed' else 'open' end,
    case new.circuit when 'closed' then clock_timestamp() - old.opened_at end,
    case new.circuit when 'closed' then null else new.last_error end
  );
  return null;
end $$;
create trigger circuit_changes_are_noted
  after update of circuit on poll_leases
  for each row when ((old.circuit = 'closed') <> (new.circuit = 'closed'))
  execute function note_circuit_change();

create table polls (
  house_id text not null,
  shard integer not null,
  minute timestamptz not null,
  requests integer not null,
  statuses jsonb not null,
  bytes bigint not null,
  latency_ms integer[] not null,
  primary key (minute, house_id, shard)
) partition by range (minute);
comment on table polls is
  'polls summed by minute: requests, count by status code (0 = no response, absent = the 404 of a round that was not played yet), bytes, and a latency histogram';
comment on column polls.latency_ms is
  'counts of responses within 10, 25, 50, 100, 250, 500, 1000, 2500, 5000 ms, and slower';

create table uptime_days (
  component text not null,
  day date not null,
  good bigint not null,
  total bigint not null,
  primary key (component, day),
  constraint uptime_good_is_part_of_total check (0 <= good and good <= total)
);
comment on table uptime_days is
  'what the status page shows by UTC day: of house:<id> its polls and the good ones, of others the minutes in which they worked';

create table uptime_minutes (
  component text not null
    constraint uptime_component_is_known check (component in ('api', 'polling', 'scheduling', 'parsing')),
  minute timestamptz not null,
  primary key (component, minute)
);
comment on table uptime_minutes is
  'minutes in which a component reported that it works; summed into uptime_days and deleted after three days';

create table poll_failures (
  house_id text not null,
  table_id integer,
  at timestamptz not null default clock_timestamp(),
  status integer,
  reason text not null
    constraint failure_reason_is_short check (length(reason) <= 64),
  detail text not null
    constraint failure_detail_is_short check (length(detail) <= 500)
) partition by range (at);
comment on table poll_failures is 'each poll without a usable response, with its reason';
create index poll_failures_of_house on poll_failures (house_id, at desc);
