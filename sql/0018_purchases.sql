-- Plans bought from the balance. What a plan was when it was bought is part of the purchase, since the plan may change.

create table purchases (
  id bigint generated always as identity primary key,
  account_id bigint not null references accounts,
  idempotency_key text not null
    constraint purchase_key_is_short check (length(idempotency_key) between 1 and 100),
  kind text not null
    constraint purchase_kind_is_known check (kind in ('buy', 'renew', 'upgrade', 'downgrade')),
  plan text not null,
  plan_revision bigint not null,
  listed_micros bigint not null
    constraint listed_price_is_not_negative check (listed_micros >= 0),
  discount_micros bigint not null default 0
    constraint discount_is_not_negative check (discount_micros >= 0),
  paid_micros bigint not null
    constraint paid_is_listed_less_discount check (paid_micros = greatest(listed_micros - discount_micros, 0)),
  days integer not null
    constraint purchase_lasts_a_day check (days > 0),
  day_limit bigint,
  month_limit bigint,
  burst_per_second integer not null,
  burst integer not null,
  houses text[],
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  start_now_version text not null,
  no_withdrawal_version text not null,
  transaction_id bigint references ledger_transactions
    constraint transaction_pays_one_purchase unique,
  made_at timestamptz not null default clock_timestamp(),
  constraint purchase_is_made_once unique (account_id, idempotency_key),
  constraint purchase_ends_after_it_starts check (ends_at > starts_at),
  constraint only_upgrades_have_a_discount check (discount_micros = 0 or kind = 'upgrade'),
  constraint what_costs_something_is_posted check ((transaction_id is null) = (paid_micros = 0))
);
comment on table purchases is 'what was bought, at which price and for which time, as offered then; append-only';
comment on column purchases.days is 'days that the plan was sold for; an upgrade from a plan with more value left lasts longer';
comment on column purchases.day_limit is 'calls per day of the plan then, as its other limits; null is no limit';
comment on column purchases.houses is 'ids of the houses of the plan then; null is all';
comment on column purchases.start_now_version is 'version of the text by which its holder asked for it to begin immediately, stored in consents';
create index purchases_of_account on purchases (account_id, id desc);

create table purchase_credits (
  purchase_id bigint not null references purchases,
  of_purchase bigint not null references purchases
    constraint unused_share_is_credited_once unique,
  micros bigint not null
    constraint credit_is_not_negative check (micros >= 0),
  primary key (purchase_id, of_purchase),
  constraint purchase_is_no_credit_of_itself check (purchase_id <> of_purchase)
);
comment on table purchase_credits is 'what an upgrade replaced, and how much of its value was left; the sum is its discount';

-- checked when a transaction commits, whichever program wrote it
create function refuse_purchase_beside_the_books() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
declare
  bought record;
  offered_at timestamptz;
begin
  if tg_table_name = 'purchases' then
    select * into bought from purchases where id = new.id;
  else
    select * into bought from purchases where id = new.purchase_id;
  end if;
  -- A quote is valid for half an hour (quote.ts). The clock decides if the purchase is dated back; it takes no minute to commit.
  -- One that begins later has no credits: each of a row of them could take the full value of the one before. A plan that has
  -- begun is replaced by a higher one alone: equal ones, half an hour apart, would take the full value again and again.
  -- Whatever is credited has ended, and another isolation could hide that its payment was reversed.
  offered_at := greatest(bought.starts_at, clock_timestamp() - interval '1 minute') - interval '30 minutes';
  if bought.discount_micros <> (select coalesce(sum(micros), 0) from purchase_credits where purchase_id = bought.id) or exists (
    select
    from purchase_credits c
    join purchases p on p.id = c.of_purchase
    where c.purchase_id = bought.id
      and (
        p.account_id <> bought.account_id
        or current_setting('transaction_isolation') <> 'read committed'
        or bought.starts_at > clock_timestamp() + interval '1 minute'
        or p.starts_at <= clock_timestamp() and not exists (
          select
          from plans higher
          join plans lower on lower.name = p.plan
          where higher.name = bought.plan
            and higher.position > lower.position
        )
        or exists (select from entitlements where purchase_id = p.id and ends_at > bought.starts_at)
        or c.micros > case
          when p.ends_at <= bought.starts_at then 0
          -- its value times the remaining share of its period, as in unused.ts
          else ceil(
            (case when reversed_at(p.transaction_id) is null then p.paid_micros else 0 end + p.discount_micros)
              * extract(epoch from p.ends_at - greatest(p.starts_at, offered_at))
              / extract(epoch from p.ends_at - p.starts_at)
          )
        end
      )
  ) then
    raise exception 'a discount is what was left of purchases of the same account: that of purchase % is not', bought.id
      using errcode = 'check_violation', constraint = 'discount_is_what_was_left';
  end if;
  return null;
end
$$;
create constraint trigger purchase_is_in_the_books after insert on purchases
  deferrable initially deferred for each row execute function refuse_purchase_beside_the_books();
create constraint trigger purchase_credit_is_in_the_books after insert on purchase_credits
  deferrable initially deferred for each row execute function refuse_purchase_beside_the_books();

-- The plan's row is locked while it is bought, so it is what it was.
create function refuse_other_price() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
declare
  usual interval := new.days * interval '24 hours';
  longest interval := usual;
begin
  if new.kind = 'upgrade' and new.discount_micros > new.listed_micros and new.listed_micros > 0 then
    longest := usual * (new.discount_micros::float8 / new.listed_micros) + interval '1 second';
  end if;
  if not exists (
    select
    from plans p
    where p.name = new.plan
      and p.revision = new.plan_revision
      and p.price_micros = new.listed_micros
      and (p.days, p.day_limit, p.month_limit, p.burst_per_second, p.burst)
        is not distinct from (new.days, new.day_limit, new.month_limit, new.burst_per_second, new.burst)
      and new.houses is not distinct from case
        when not p.all_houses then array(select house_id from plan_houses where plan = p.name order by house_id)
      end
  ) or new.ends_at - new.starts_at > longest then
    raise exception 'a purchase has the price, days, limits and houses of its plan: % for % days at revision % is not what % is', new.listed_micros, new.days, new.plan_revision, new.plan
      using errcode = 'check_violation', constraint = 'purchase_is_as_its_plan_was_listed';
  end if;
  return new;
end
$$;
create trigger purchase_is_as_its_plan_was_listed before insert on purchases
  for each row execute function refuse_other_price();

create trigger purchase_is_never_changed before update or delete on purchases
  for each row execute function refuse_change_of_record();
create trigger purchases_are_never_emptied before truncate on purchases
  for each statement execute function refuse_change_of_record();
create trigger purchase_credit_is_never_changed before update or delete on purchase_credits
  for each row execute function refuse_change_of_record();
create trigger purchase_credits_are_never_emptied before truncate on purchase_credits
  for each statement execute function refuse_change_of_record();

create table entitlements (
  id bigint generated always as identity primary key,
  account_id bigint not null references accounts,
  plan text not null references plans on update cascade,
  starts_at timestamptz not null default now(),
  ends_at timestamptz,
  purchase_id bigint
    constraint purchase_gives_one_entitlement unique
    references purchases,
  reminded_at timestamptz,
  end_notified_at timestamptz,
  created_at timestamptz not null default now(),
  constraint entitlement_ends_after_it_starts check (ends_at > starts_at),
  -- int8range instead of `account_id with =`, which needs an extension
  constraint account_has_one_plan_at_a_time
    exclude using gist (int8range(account_id, account_id, '[]') with &&, tstzrange(starts_at, ends_at) with &&)
);
comment on table entitlements is 'which plan an account has and when; a plan without end was granted';
comment on column entitlements.purchase_id is 'what it was bought with; null when it was granted at the command line';
comment on column entitlements.reminded_at is 'when its holder was notified that it ends soon, or bought the next one';
comment on column entitlements.end_notified_at is 'when its holder was notified that it has ended, or bought the next one';
create unique index account_has_one_endless_plan on entitlements (account_id) where ends_at is null;
create index entitlements_of_account on entitlements (account_id, starts_at desc);
create index entitlements_by_end on entitlements (ends_at) where end_notified_at is null and ends_at is not null;

create function refuse_other_entitlement() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if new.purchase_id is not null and not exists (
    select
    from purchases
    where id = new.purchase_id
      and account_id = new.account_id
      and plan = new.plan
      and starts_at = new.starts_at
      and ends_at = new.ends_at
      and xmin = pg_current_xact_id()::xid -- given with its purchase, so that none follows a credit for it
  ) then
    raise exception 'a bought plan equals its purchase and is given with it: that of purchase % is not', new.purchase_id
      using errcode = 'check_violation', constraint = 'entitlement_is_what_was_bought';
  end if;
  return new;
end
$$;
create trigger entitlement_is_what_was_bought before insert on entitlements
  for each row execute function refuse_other_entitlement();

-- Row security compares an entitlement with what it was.
create function entitlement_end(of_entitlement bigint) returns timestamptz
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$ select coalesce(ends_at, 'infinity') from public.entitlements where id = of_entitlement $$;
comment on function entitlement_end is 'when a plan ended before the current statement; infinity if it had no end';
revoke execute on function entitlement_end(bigint) from public;

alter table entitlements enable row level security;
