-- Leadership with expiry: an advisory lock ended only with its TCP session, so a leader that was stopped (SIGSTOP) kept
-- the other workers from leading for as long as its machine answered.

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
