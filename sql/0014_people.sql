-- How people prove who they are. The tables of the schema auth have the columns that better-auth expects (a test compares
-- them); it finds them by its search path. Who may do what at /ops is in `operators`.
create schema auth;

create table auth.users (
  id text primary key,
  name text not null,
  email text not null unique constraint email_is_written_small check (email = lower(email)),
  email_verified boolean not null default false,
  image text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  two_factor_enabled boolean default false
);
comment on table auth.users is 'people: operators of the service and account holders';

create table auth.sessions (
  id text primary key,
  expires_at timestamptz not null,
  token text not null unique,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null,
  ip_address text,
  user_agent text,
  user_id text not null references auth.users (id) on delete cascade,
  surface text not null constraint session_is_of_a_surface check (surface in ('ops', 'console')),
  by_link boolean not null default false,
  seen_at timestamptz not null default clock_timestamp(),
  confirmed_at timestamptz
);
comment on table auth.sessions is 'current sign-ins';
comment on column auth.sessions.surface is 'where it was made: a sign-in of the console opens nothing at /ops';
comment on column auth.sessions.by_link is 'made with the one-time link that a start on this machine prints, so without a password';
comment on column auth.sessions.seen_at is 'when it was last used; a sign-in that is idle for too long has expired';
comment on column auth.sessions.confirmed_at is 'when its holder last gave the password again';
create index sessions_by_user on auth.sessions (user_id);

create table auth.accounts (
  id text primary key,
  account_id text not null,
  provider_id text not null,
  user_id text not null references auth.users (id) on delete cascade,
  access_token text,
  refresh_token text,
  id_token text,
  access_token_expires_at timestamptz,
  refresh_token_expires_at timestamptz,
  scope text,
  password text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  constraint one_account_of_a_provider unique (provider_id, account_id)
);
comment on table auth.accounts is 'how a person signs in: only by password (argon2id)';
create index account_user on auth.accounts (user_id);

create table auth.verifications (
  id text primary key,
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp()
);
comment on table auth.verifications is 'pending second factors of sign-ins';
create index verification_identifier on auth.verifications (identifier);

create table auth.two_factors (
  id text primary key,
  secret text not null,
  backup_codes text not null,
  user_id text not null references auth.users (id) on delete cascade,
  verified boolean default true,
  failed_verification_count integer default 0,
  locked_until timestamptz
);
comment on table auth.two_factors is 'second factors (TOTP): secrets and backup codes, encrypted with AUTH_SECRET';
create index two_factor_secret on auth.two_factors (secret);
create index two_factor_user on auth.two_factors (user_id);

create table auth.used_codes (
  user_id text not null references auth.users (id) on delete cascade,
  code text not null,
  used_at timestamptz not null default clock_timestamp(),
  primary key (user_id, code)
);
comment on table auth.used_codes is 'codes of authenticators used in the last minutes: none is accepted twice (RFC 6238, 5.2)';

create table operators (
  user_id text primary key references auth.users (id),
  role text not null constraint role_is_known check (role in ('viewer', 'operator', 'data', 'admin')),
  created_at timestamptz not null default clock_timestamp(),
  created_by text not null,
  disabled_at timestamptz
);
comment on table operators is
  'who may sign in at /ops, and with which role; rows are never deleted, so that the audit log keeps its names';

create table sign_in_links (
  sha256 bytea primary key,
  user_id text not null references auth.users (id) on delete cascade,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  used_at timestamptz,
  constraint link_is_used_while_it_works check (used_at <= expires_at)
);
comment on table sign_in_links is 'one-time links that a start on this machine prints; only their hashes are stored';
