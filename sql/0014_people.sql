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
  two_factor_enabled boolean default false,
  revocations integer not null default 0,
  surface text not null constraint person_is_of_a_surface check (surface in ('ops', 'console')),
  constraint person_keeps_their_surface unique (id, surface)
);
comment on table auth.users is 'people: operators of the service and account holders, never both under one address';
comment on column auth.users.surface is
  'where this person signs in; row security hides operators from the role of the console, and holders'' secrets from that of ops';
comment on column auth.users.revocations is
  'how often sessions of theirs were ended from elsewhere: a sign-in during which it rises is refused';
alter table auth.users enable row level security;

create table auth.sessions (
  id text primary key,
  expires_at timestamptz not null,
  token text not null unique,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null,
  ip_address text,
  user_agent text,
  user_id text not null,
  surface text not null,
  by_link boolean not null default false,
  seen_at timestamptz not null default clock_timestamp(),
  confirmed_at timestamptz,
  constraint session_is_of_its_holders_surface
    foreign key (user_id, surface) references auth.users (id, surface) on delete cascade
);
alter table auth.sessions enable row level security;
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
alter table auth.accounts enable row level security;

create table auth.verifications (
  id text primary key,
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  surface text not null constraint verification_is_of_a_surface check (surface in ('ops', 'console'))
);
comment on table auth.verifications is 'pending second factors of sign-ins';
create index verification_identifier on auth.verifications (identifier);
alter table auth.verifications enable row level security;

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
create unique index two_factor_user on auth.two_factors (user_id);
alter table auth.two_factors enable row level security;

-- The library reads the factor before it stores another one, and the one before may be confirmed meanwhile.
create function refuse_to_replace_factor() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  raise exception 'expected no second factor that is confirmed, found one: turn it off first';
end $$;
create trigger confirmed_factor_is_not_replaced before update on auth.two_factors
  for each row when (old.verified and not new.verified) execute function refuse_to_replace_factor();

create table auth.used_codes (
  user_id text not null references auth.users (id) on delete cascade,
  code text not null,
  used_at timestamptz not null default clock_timestamp(),
  primary key (user_id, code)
);
comment on table auth.used_codes is 'codes of authenticators used in the last minutes: none is accepted twice (RFC 6238, 5.2)';
alter table auth.used_codes enable row level security;

create table operators (
  user_id text primary key,
  surface text not null generated always as ('ops') stored,
  role text not null constraint role_is_known check (role in ('viewer', 'operator', 'data', 'admin')),
  created_at timestamptz not null default clock_timestamp(),
  created_by text not null,
  disabled_at timestamptz,
  constraint operator_is_a_person_of_ops foreign key (user_id, surface) references auth.users (id, surface)
);
alter table operators enable row level security;
comment on table operators is
  'who may sign in at /ops, and with which role; rows are never deleted, so that the audit log keeps its names';

create table operator_changes (
  id bigint generated always as identity primary key,
  user_id text not null references operators,
  what text not null constraint operator_change_is_known check (what in ('created', 'enabled', 'role', 'password', 'second-factor')),
  made_by text not null,
  made_at timestamptz not null default clock_timestamp()
);
comment on table operator_changes is
  'who created or enabled an operator, reset their password or second factor, or gave them a role that may approve: for a day the operator approves nothing, and who was created or reset never that person''s work, because that person could sign in as them';
create index operator_changes_of_user on operator_changes (user_id, made_at desc);
create trigger operator_change_is_never_changed before update or delete on operator_changes
  for each row execute function refuse_change_of_record();
create trigger operator_changes_are_never_emptied before truncate on operator_changes
  for each statement execute function refuse_change_of_record();

create table sign_in_links (
  sha256 bytea primary key,
  user_id text not null references auth.users (id) on delete cascade,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  used_at timestamptz,
  constraint link_is_used_while_it_works check (used_at <= expires_at)
);
comment on table sign_in_links is 'one-time links that a start on this machine prints; only their hashes are stored';

-- What an operator does for a holder without seeing the holder's secrets. Each runs as the owner of the schema.
create function take_off_second_factor(of_user text) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update auth.users set two_factor_enabled = false, updated_at = clock_timestamp() where id = of_user;
  delete from auth.two_factors where user_id = of_user;
  return found;
end $$;
comment on function take_off_second_factor is 'turns the second factor of a person off; false if there was none';

create function end_console_sessions(of_user text) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  ended integer;
begin
  -- first: from here on a sign-in that is being checked waits
  update auth.users set revocations = revocations + 1 where id = of_user and surface = 'console';
  delete from auth.verifications v
  using auth.users u
  where u.id = of_user and u.surface = 'console' and v.value = u.id and starts_with(v.identifier, '2fa-');
  delete from auth.sessions where user_id = of_user and surface = 'console';
  get diagnostics ended = row_count;
  return ended;
end $$;
comment on function end_console_sessions is 'signs a holder out everywhere, also where a second step is pending; returns the number of sign-ins';

create function count_console_sessions(of_user text) returns integer
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select count(*)::integer
  from auth.sessions
  where user_id = of_user and surface = 'console' and expires_at > clock_timestamp()
$$;
comment on function count_console_sessions is 'current sign-ins of a holder';

-- Row security on `operators` cannot read `operators` itself.
create function is_admin(of_user text) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$ select exists (select from public.operators where user_id = of_user and role = 'admin') $$;
comment on function is_admin is 'whether a person was an admin before the current statement';

revoke execute on function take_off_second_factor(text) from public;
revoke execute on function end_console_sessions(text) from public;
revoke execute on function count_console_sessions(text) from public;
revoke execute on function is_admin(text) from public;
