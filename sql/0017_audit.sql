create table audit_log (
  seq bigint primary key,
  at timestamptz not null,
  surface text not null constraint surface_is_known check (surface in ('ops', 'cli', 'system')),
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
comment on table audit_log is 'who did what, when, to what and why; rows are only ever added, each hashed with the one before it';
create index audit_action on audit_log (action, seq desc);
create index audit_actor on audit_log (actor, seq desc);
create index audit_request on audit_log (request_id);

-- One row: the lock under which entries are added, and the newest of them, so that taking the last ones away shows.
create table audit_head (
  only_one boolean primary key default true constraint there_is_one_head check (only_one),
  seq bigint not null,
  hash text not null
);
comment on table audit_head is 'the newest entry of the audit log';
insert into audit_head (seq, hash) values (0, repeat('0', 64));

create function refuse_change_of_audit() returns trigger language plpgsql as $$
begin
  raise exception 'the audit log is only ever added to: % is refused', lower(tg_op);
end
$$;
create trigger audit_is_never_changed before update or delete on audit_log
  for each row execute function refuse_change_of_audit();
create trigger audit_is_never_emptied before truncate on audit_log
  for each statement execute function refuse_change_of_audit();
create trigger audit_head_is_never_taken before delete on audit_head
  for each row execute function refuse_change_of_audit();
create trigger audit_head_is_never_emptied before truncate on audit_head
  for each statement execute function refuse_change_of_audit();
