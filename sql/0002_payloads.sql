create sequence payload_ids;

create table payloads (
  id bigint not null default nextval('payload_ids'),
  table_id integer not null,
  kind text not null
    constraint payload_kind_is_known check (kind in ('poll', 'history')),
  requested_at timestamptz not null,
  received_at timestamptz not null,
  previous_requested_at timestamptz,
  path text not null,
  status integer not null,
  content_type text,
  bytes integer not null,
  sha256 text not null,
  body bytea not null,
  state text not null default 'unread'
    constraint payload_state_is_known check (state in ('unread', 'read', 'refused')),
  read_at timestamptz,
  refused_reason text,
  items integer,
  new_rounds integer,
  quarantined integer,
  primary key (received_at, id),
  constraint payload_was_requested_before_it_arrived check (requested_at <= received_at),
  constraint refused_payload_says_why check ((state = 'refused') = (refused_reason is not null)),
  constraint payload_is_read_once check ((state = 'unread') = (read_at is null)),
  constraint history_is_never_unread check (kind = 'poll' or state <> 'unread')
) partition by range (received_at);
comment on table payloads is
  'answers of houses, verbatim (body is gzip), by day of arrival; normalize-rounds reads the unread ones in request order';
create index payloads_unread on payloads (table_id, requested_at, id) where state = 'unread';
create index payloads_of_table on payloads (table_id, received_at desc);

create table payloads_kept (
  id bigint primary key,
  house_id text not null references houses,
  table_id integer not null references tables,
  kind text not null,
  requested_at timestamptz not null,
  received_at timestamptz not null,
  previous_requested_at timestamptz,
  path text not null,
  status integer not null,
  content_type text,
  bytes integer not null,
  sha256 text not null,
  body bytea not null,
  state text not null,
  refused_reason text,
  kept_at timestamptz not null default now()
);
comment on table payloads_kept is
  'refused payloads and those with a quarantined item, copied here before their day is dropped; bounded per house';
create index payloads_kept_of_house on payloads_kept (house_id, received_at);

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
  'polls summed by minute: requests, count by status code (0 = no answer), bytes, and a latency histogram';
comment on column polls.latency_ms is
  'counts of answers within 10, 25, 50, 100, 250, 500, 1000, 2500, 5000 ms, and slower';

create table poll_failures (
  house_id text not null,
  table_id integer,
  at timestamptz not null default clock_timestamp(),
  status integer,
  reason text not null,
  detail text not null
) partition by range (at);
comment on table poll_failures is 'each poll that brought no good answer, with its reason';
create index poll_failures_of_house on poll_failures (house_id, at desc);

-- Days are made ahead and dropped by housekeep; a start makes today's and the next days'. Each is made apart and then
-- attached: `create table … partition of` would lock the parent against everybody, attaching stops nobody.
create function make_day_partitions(from_day date, days integer) returns void
language plpgsql as $$
declare
  parent text;
  part text;
  day date;
begin
  perform pg_advisory_xact_lock(hashtext('make_day_partitions'));
  for parent in
    select c.relname
    from pg_partitioned_table p
    join pg_class c on c.oid = p.partrelid
    where p.partstrat = 'r'
      and c.relnamespace = 'public'::regnamespace
    order by c.relname
  loop
    for day in select from_day + n from generate_series(0, days - 1) n loop
      part := parent || '_' || to_char(day, 'YYYYMMDD');
      continue when to_regclass(part) is not null;
      execute format('create table %I (like %I including all)', part, parent);
      execute format(
        'alter table %I attach partition %I for values from (%L) to (%L)',
        parent, part, day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'
      );
    end loop;
  end loop;
end $$;
comment on function make_day_partitions is
  'the partitions for whole UTC days of every table partitioned by range, all of which are by time';
