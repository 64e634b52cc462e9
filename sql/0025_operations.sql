-- Running the service: processes, queues, alerts, backups, and the audit log.

create table queue_controls (
  queue text primary key,
  paused_at timestamptz not null default now(),
  paused_by text not null,
  reason text not null,
  until timestamptz,
  constraint pause_ends_after_it_began check (until > paused_at)
);
comment on table queue_controls is 'queues that were paused: applied again when Redis has lost its data';
comment on column queue_controls.until is 'when the reconciler resumes the queue; null: when an operator does';

create table workers (
  id text primary key,
  pid integer not null,
  host text not null,
  version text not null,
  queues text[] not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  clock_problem text,
  rss_bytes bigint,
  heap_bytes bigint
);
comment on table workers is 'worker processes, which report every few seconds';
comment on column workers.clock_problem is 'why it takes no work while the clock of its machine is wrong';
comment on column workers.rss_bytes is 'memory of the process at its last report; heap_bytes is the part that JavaScript uses';

create table heartbeats (
  name text primary key,
  at timestamptz not null default clock_timestamp(),
  detail jsonb not null default '{}'
);
comment on table heartbeats is 'when the reconciler and other single workers last reported';

create table leases (
  name text primary key,
  holder text not null,
  epoch bigint not null,
  expires_at timestamptz not null,
  server_started_at timestamptz not null,
  constraint lease_epoch_is_positive check (epoch > 0),
  constraint lease_names_its_holder check (length(holder) between 1 and 200)
);
comment on table leases is
  'which process holds a role that one process at a time may have; it expires unless its holder renews it';
comment on column leases.epoch is 'increases with each change of holder: a write that carries an older epoch is refused';
comment on column leases.expires_at is 'by the clock of the database; any process may acquire the lease from then on';
comment on column leases.server_started_at is
  'pg_postmaster_start_time() when it was renewed: a lease from another server, such as one restored from a backup, is void';

create table alerts (
  kind text not null,
  subject text not null,
  text text not null
    constraint alert_text_is_bounded check (length(text) <= 2000),
  opened_at timestamptz not null default clock_timestamp(),
  closed_at timestamptz,
  opening_mailed_at timestamptz,
  recovery_mailed_at timestamptz,
  opening_posted_at timestamptz,
  recovery_posted_at timestamptz,
  primary key (kind, subject, opened_at)
);
comment on table alerts is 'critical notices: logged once when they open and once when they recover';
comment on column alerts.opening_mailed_at is 'when a mail to ALERT_EMAIL was written that reports its opening';
comment on column alerts.recovery_mailed_at is 'when a mail to ALERT_EMAIL was written that reports its recovery';
comment on column alerts.opening_posted_at is 'when STAFF_WEBHOOK_URL accepted a message that reports its opening';
comment on column alerts.recovery_posted_at is 'when STAFF_WEBHOOK_URL accepted a message that reports its recovery';
create unique index alert_is_open_once on alerts (kind, subject) where closed_at is null;
alter table alerts enable row level security;
create index alerts_to_mail on alerts (opened_at) where opening_mailed_at is null or recovery_mailed_at is null;
create index alerts_to_post on alerts (opened_at) where opening_posted_at is null or recovery_posted_at is null;

create table snoozes (
  kind text not null,
  subject text not null,
  tone text not null,
  what text not null,
  since timestamptz,
  ends_on_change boolean not null,
  until timestamptz not null,
  made_by text not null,
  made_at timestamptz not null default clock_timestamp(),
  reason text not null
    constraint snooze_reason_is_bounded check (length(reason) between 3 and 500),
  primary key (kind, subject),
  constraint snooze_is_bounded check (until <= made_at + interval '31 days')
);
comment on table snoozes is 'problems that staff have hidden from the board for some time, each as it was then; the audit log has all of them';
comment on column snoozes.ends_on_change is 'whether it ends with any change of the problem; it always ends when the problem gets worse';

create table staff_webhook_failure (
  is_only boolean primary key default true
    constraint there_is_one_staff_webhook check (is_only),
  since timestamptz not null default clock_timestamp(),
  tries integer not null default 1,
  next_try_at timestamptz not null,
  reason text not null
    constraint webhook_reason_is_short check (length(reason) <= 300)
);
comment on table staff_webhook_failure is
  'STAFF_WEBHOOK_URL accepts no message: nothing is posted before next_try_at; no row while it works';

create table alert_mails (
  written_at timestamptz primary key,
  quiet tstzrange not null,
  alerts integer not null
    constraint mail_has_alerts check (alerts > 0),
  constraint alert_mails_are_minutes_apart exclude using gist (quiet with &&),
  constraint quiet_begins_with_the_mail check (lower(quiet) = written_at)
);
comment on table alert_mails is
  'mails that reported alerts, each with the minutes in which no other is written: at most six mails per hour';

create table backups (
  id bigint generated always as identity primary key,
  snapshot_at timestamptz not null,
  made_at timestamptz not null default clock_timestamp(),
  file text not null,
  bytes bigint not null
    constraint backup_has_bytes check (bytes > 0),
  sha256 text not null
    constraint backup_hash_is_hex check (sha256 ~ '^[0-9a-f]{64}$'),
  rows bigint not null
    constraint backup_rows_are_not_negative check (rows >= 0),
  constraint backup_is_made_after_its_snapshot check (made_at >= snapshot_at)
);
comment on table backups is 'finished backups: their snapshot time, and the hash of the file';

create table restores (
  id bigint generated always as identity primary key,
  restored_at timestamptz not null default clock_timestamp(),
  next_address_index integer not null
    constraint next_address_index_is_not_hardened check (next_address_index between 0 and 2147483647)
);
comment on table restores is 'restored backups; accounts and deposit addresses that were given out after one are not given out again';
comment on column restores.next_address_index is 'no deposit address with a lower index is given out any more';

-- 19 addresses: most wallets look for money up to 20 addresses after the last one that was paid to.
create function skip_lost_identifiers(addresses integer default 19, accounts integer default 1000) returns integer
language plpgsql
set search_path = public, pg_temp
as $$
declare
  next_index integer;
begin
  perform setval('accounts_id_seq', s.last_value + skip_lost_identifiers.accounts) from accounts_id_seq s;
  insert into restores (next_address_index)
    select greatest(
      (select coalesce(max(d.address_index) + 1, 0) from deposit_addresses d),
      (select coalesce(max(r.next_address_index), 0) from restores r)
    ) + addresses
    returning next_address_index into next_index;
  return next_index - coalesce(
    (
      select max(a.address_index)
      from deposit_addresses a
      where exists (select from chain_deposits d where d.account_id = a.account_id and d.state <> 'orphaned')
    ),
    -1
  );
end $$;
comment on function skip_lost_identifiers is
  'skips the account ids and deposit addresses that may have been given out after the backup that was restored; returns how many addresses after the newest one with a deposit a wallet must search to find the next one';
revoke execute on function skip_lost_identifiers(integer, integer) from public;

create table audit_log (
  seq bigint primary key,
  at timestamptz not null,
  surface text not null constraint surface_is_known check (surface in ('ops', 'console', 'cli', 'system')),
  actor text not null,
  role text,
  action text not null,
  target text not null,
  before jsonb,
  after jsonb,
  reason text,
  request_id text,
  address text,
  prev_hash text not null unique,
  hash text not null unique,
  constraint only_ops_has_roles check ((surface = 'ops') = (role is not null))
);
comment on table audit_log is 'who did what, when, to what and why; append-only, each row hashed with the one before it';
alter table audit_log enable row level security;
create index audit_action on audit_log (action, seq desc);
create index audit_actor on audit_log (actor, seq desc);
create index audit_request on audit_log (request_id);
-- a target may be longer than an index entry
create index audit_target on audit_log (left(target, 40), seq desc);

-- The console reads only entries of its own surface.
create function changes_by_staff(of_account bigint, before_seq bigint, most integer)
returns table (seq bigint, at timestamptz, action text, target text, before jsonb, after jsonb)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  with own (target) as (
    select 'account ' || of_account
    union all
    select named.target
    from public.keys k
    cross join lateral (values ('key ' || k.id), ('key ' || k.id || ' of account ' || of_account)) named (target)
    where k.account_id = of_account
  )
  select l.seq, l.at, l.action, l.target, l.before, l.after
  from public.audit_log l
  where left(l.target, 40) = any(array(select left(target, 40) from own))
    and l.target = any(array(select target from own))
    and l.surface <> 'console'
    and (before_seq is null or l.seq < before_seq)
  order by l.seq desc
  limit most
$$;
comment on function changes_by_staff is
  'what others than its holder changed of an account and its keys, newest first, for its holder: without who it was and from where';
revoke execute on function changes_by_staff(bigint, bigint, integer) from public;

-- One row: the lock under which entries are added, and the newest entry, so that a deleted end of the log shows.
create table audit_head (
  only_one boolean primary key default true constraint there_is_one_head check (only_one),
  seq bigint not null,
  hash text not null
);
comment on table audit_head is 'the newest entry of the audit log';
insert into audit_head (seq, hash) values (0, repeat('0', 64));

create trigger audit_is_never_changed before update or delete on audit_log
  for each row execute function refuse_change_of_record();
create trigger audit_is_never_emptied before truncate on audit_log
  for each statement execute function refuse_change_of_record();
create trigger audit_head_is_never_taken before delete on audit_head
  for each row execute function refuse_change_of_record();
create trigger audit_head_is_never_emptied before truncate on audit_head
  for each statement execute function refuse_change_of_record();
