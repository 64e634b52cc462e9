-- Responses as houses sent them. The only partitions are by day, of tables whose rows expire: detaching and dropping a day of
-- 200,000 payloads of 2 kB took 0.3 s and no WAL, deleting them in batches 18 s or more and 55 MB of WAL, while an insert
-- cost the same within the noise.

create table payloads (
  table_id integer not null,
  received_at timestamptz not null,
  kind text not null
    constraint payload_kind_is_known check (kind in ('poll', 'history')),
  requested_at timestamptz not null,
  previous_requested_at timestamptz,
  path text not null
    constraint payload_path_is_short check (length(path) <= 4000),
  status integer not null,
  content_type text
    constraint payload_content_type_is_short check (length(content_type) <= 200),
  bytes integer not null,
  sha256 bytea not null
    constraint payload_hash_is_sha256 check (length(sha256) = 32),
  body bytea,
  body_of integer,
  served integer[] not null default '{}',
  state text not null default 'unread'
    constraint payload_state_is_known check (state in ('unread', 'read', 'refused')),
  read_at timestamptz,
  refused_reason text
    constraint payload_refusal_is_short check (length(refused_reason) <= 500),
  error text
    constraint payload_error_is_short check (length(error) <= 500),
  items integer,
  new_rounds integer,
  quarantined integer,
  reread_at timestamptz,
  primary key (table_id, received_at),
  constraint payload_was_requested_before_it_arrived check (requested_at <= received_at),
  constraint refused_payload_says_why check ((state = 'refused') = (refused_reason is not null)),
  constraint payload_is_read_once check ((state = 'unread') = (read_at is null)),
  constraint only_an_unread_payload_has_an_error check (error is null or state = 'unread'),
  constraint history_is_never_unread check (kind = 'poll' or state <> 'unread'),
  constraint payload_has_one_body check ((body is null) = (body_of is not null))
) partition by range (received_at);
comment on table payloads is
  'responses of houses as they were received (body is gzip), by day; a pass stores its payload read, and unread when it fails';
comment on column payloads.body_of is
  'the table whose payload of the same time has the body: one response lists rounds of several tables';
comment on column payloads.served is
  'other tables of the response, which listed nothing new for them; they have no payload of their own';
comment on column payloads.error is 'why a pass could not take it in; normalize-rounds tries again';
create index payloads_unread on payloads (table_id, requested_at) where state = 'unread';
create index payloads_pending on payloads (received_at) where state = 'unread' and error is null;

create function payload_body(body bytea, body_of integer, received_at timestamptz) returns bytea
language sql stable
return coalesce($1, (select p.body from payloads p where p.table_id = $2 and p.received_at = $3));
comment on function payload_body is 'the body of a payload, which another table may hold';

create table payloads_kept (
  table_id integer not null references tables,
  received_at timestamptz not null,
  house_id text not null references houses,
  kind text not null,
  requested_at timestamptz not null,
  previous_requested_at timestamptz,
  path text not null,
  status integer not null,
  content_type text,
  bytes integer not null,
  sha256 bytea not null,
  body bytea not null,
  state text not null,
  read_at timestamptz,
  refused_reason text
    constraint kept_payload_refusal_is_short check (length(refused_reason) <= 500),
  items integer,
  new_rounds integer,
  quarantined integer,
  reread_at timestamptz,
  primary key (table_id, received_at)
);
comment on table payloads_kept is
  'payloads that were refused, have a quarantined item or are named by an open alert, copied here before their day is dropped; bounded per house';
create index payloads_kept_of_house on payloads_kept (house_id, received_at);
