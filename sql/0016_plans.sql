-- Plans that can be bought, and the keys that call under them.

create table plans (
  name text primary key,
  position integer not null,
  day_limit bigint
    constraint day_limit_is_positive check (day_limit > 0),
  month_limit bigint
    constraint month_limit_is_positive check (month_limit > 0),
  day_ceiling bigint
    constraint day_ceiling_is_positive check (day_ceiling > 0),
  burst_per_second integer not null
    constraint burst_rate_is_positive check (burst_per_second > 0),
  burst integer not null
    constraint burst_is_at_least_its_rate check (burst >= burst_per_second),
  price_micros bigint not null
    constraint price_is_not_negative check (price_micros >= 0),
  days integer not null
    constraint plan_lasts_a_day check (days > 0),
  all_houses boolean not null default true,
  on_sale boolean not null default true,
  revision bigint not null default 1,
  updated_at timestamptz not null default clock_timestamp()
);
comment on table plans is
  'what can be bought; a null limit is none, and day_ceiling protects the service where there is no day limit';
comment on column plans.on_sale is 'whether it can be bought now; current holders keep it to its end either way';
comment on column plans.revision is 'counts its changes, so that a form shows whether it was made from what is stored';

create function count_plan_change() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  new.revision := old.revision + 1;
  return new;
end
$$;
create trigger plan_change_is_counted before update on plans
  for each row execute function count_plan_change();

insert into plans (name, position, day_limit, month_limit, day_ceiling, burst_per_second, burst, price_micros, days) values
  ('Starter', 1, 20000, 500000, null, 2, 5, 29000000, 30),
  ('Pro', 2, 100000, 2500000, null, 10, 20, 99000000, 30),
  ('Max', 3, null, null, 1000000, 25, 50, 299000000, 30);

create table plan_houses (
  plan text not null references plans on update cascade,
  house_id text not null references houses,
  primary key (plan, house_id)
);
comment on table plan_houses is 'the houses of a plan that does not include all of them';

create table keys (
  id bigint generated always as identity primary key,
  account_id bigint not null references accounts,
  name text not null,
  sha256 bytea not null
    constraint key_hash_is_sha256 check (length(sha256) = 32),
  last4 text not null
    constraint last4_is_four_characters check (length(last4) = 4),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  last_used_at timestamptz,
  replaced_by bigint references keys
    constraint key_is_replaced_by_another check (replaced_by <> id),
  constraint key_is_unique unique (sha256),
  constraint replaced_key_has_an_end check (replaced_by is null or expires_at is not null or revoked_at is not null)
);
comment on table keys is 'API keys: only the SHA-256 is stored, the key itself is shown once; a rotated one names its replacement';
create index keys_of_account on keys (account_id);

create function refuse_key_of_closed_account() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if exists (select from accounts where id = new.account_id and closed_at is not null) then
    raise exception 'account % was closed by its holder and gets no key', new.account_id;
  end if;
  return new;
end
$$;
create trigger closed_account_gets_no_key before insert on keys
  for each row execute function refuse_key_of_closed_account();

create function refuse_revival_of_key() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if old.revoked_at <= clock_timestamp() and (new.revoked_at is null or new.revoked_at > clock_timestamp()) then
    raise exception 'key % is revoked and stays so', old.id
      using errcode = 'check_violation', constraint = 'revoked_key_stays_revoked';
  end if;
  if old.replaced_by is not null and (
    new.replaced_by is distinct from old.replaced_by or new.expires_at is null or new.expires_at > old.expires_at
  ) then
    raise exception 'key % was rotated and ends no later', old.id
      using errcode = 'check_violation', constraint = 'rotated_key_ends_no_later';
  end if;
  return new;
end
$$;
comment on function refuse_revival_of_key is 'a stolen login of console or ops revives no key that its holder revoked or rotated';
create trigger key_is_not_revived before update of revoked_at, expires_at, replaced_by on keys
  for each row execute function refuse_revival_of_key();
