-- Accounts of callers: keys, plans and money belong to them. A person signs up and signs in for an account at the console.

create table accounts (
  id bigint generated always as identity primary key,
  email text not null,
  created_at timestamptz not null default now(),
  verified_at timestamptz,
  suspended_at timestamptz,
  suspended_by text,
  suspend_reason text,
  user_id text unique,
  surface text not null default 'console' constraint holder_signs_in_at_the_console check (surface = 'console'),
  closed_at timestamptz,
  quota_mails boolean not null default true,
  -- as strict as mails.recipient: mails to many accounts are written in one transaction
  constraint email_looks_like_one check (
    email ~ '^[^@\s]+@[^@\s]+$' and email !~ '[[:cntrl:],;:<>()"\\]' and length(email) <= 254
  ),
  constraint suspension_says_why check ((suspended_at is null) = (suspend_reason is null)),
  constraint closed_account_has_no_user check (closed_at is null or user_id is null),
  constraint holder_is_a_person_of_the_console
    foreign key (user_id, surface) references auth.users (id, surface) on delete set null (user_id)
);
comment on table accounts is 'holders of keys and plans';
comment on column accounts.suspended_by is 'who suspended it; null when it is not suspended, or no one was named';
comment on column accounts.user_id is 'who signs in for it; null when it was made at the command line and never claimed';
comment on column accounts.closed_at is 'when its holder closed it: its ledger stays, under an address that names no person';
comment on column accounts.quota_mails is 'whether its holder gets a mail when 80 % and 100 % of the calls of a day or month are used';
create unique index account_email_is_unique on accounts (lower(email));

create table sign_ups (
  sha256 bytea primary key,
  browser_sha256 bytea not null,
  email text not null constraint sign_up_is_written_small check (email = lower(email)),
  password_hash text not null,
  consents jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null
);
comment on table sign_ups is 'sign-ups whose address is not confirmed yet; of the token in the mail only the hash is stored';
comment on column sign_ups.browser_sha256 is 'the hash of a cookie: the browser that signed up confirms the address without the password';
create index sign_ups_by_end on sign_ups (expires_at);
create index sign_ups_of_address on sign_ups (email);

create table mail_tokens (
  sha256 bytea primary key,
  purpose text not null constraint token_purpose_is_known check (purpose in ('reset-password', 'change-email', 'first-sign-in')),
  user_id text not null references auth.users (id) on delete cascade,
  email text not null,
  created_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  used_at timestamptz,
  constraint token_is_used_while_it_works check (used_at <= expires_at)
);
comment on table mail_tokens is 'links in mails that set a new password or confirm a new address; only their hashes are stored';
create index mail_tokens_of_user on mail_tokens (user_id);

create table legal_texts (
  kind text not null,
  version text not null,
  sha256 text not null constraint legal_text_hash_is_hex check (sha256 ~ '^[0-9a-f]{64}$'),
  body text not null,
  first_shown_at timestamptz not null default clock_timestamp(),
  primary key (kind, version)
);
comment on table legal_texts is 'the wording of every text that a person agreed to';
create trigger legal_text_is_never_changed before update or delete on legal_texts
  for each row execute function refuse_change_of_record();
create trigger legal_texts_are_never_emptied before truncate on legal_texts
  for each statement execute function refuse_change_of_record();

create table consents (
  id bigint generated always as identity primary key,
  account_id bigint not null references accounts,
  kind text not null,
  version text not null,
  sha256 text not null,
  given_at timestamptz not null default clock_timestamp(),
  address text,
  user_agent text,
  foreign key (kind, version) references legal_texts
);
comment on table consents is 'who agreed to which text, when and from where; append-only';
create index consents_of_account on consents (account_id, kind, id desc);
create trigger consent_is_never_deleted before delete on consents
  for each row execute function refuse_change_of_record();
create trigger consent_is_never_emptied before truncate on consents
  for each statement execute function refuse_change_of_record();

-- closing an account clears from where consent was given, and nothing else
create function refuse_change_of_consent() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if (new.id, new.account_id, new.kind, new.version, new.sha256, new.given_at)
    is distinct from (old.id, old.account_id, old.kind, old.version, old.sha256, old.given_at)
    or new.address is not null or new.user_agent is not null
  then
    raise exception 'a consent is only ever added, and then forgets from where it came';
  end if;
  return new;
end
$$;
create trigger consent_is_never_changed before update on consents
  for each row execute function refuse_change_of_consent();
