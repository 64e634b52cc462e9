-- Top-ups: one row each, whatever the payment method. The tables of each method are in its own file.

create table topups (
  id bigint generated always as identity primary key,
  account_id bigint not null references accounts,
  method text not null constraint topup_method_is_known check (method in ('bank', 'usdt', 'binance-pay', 'demo')),
  reference text not null
    constraint topup_reference_is_unique unique
    constraint topup_reference_is_short check (length(reference) between 1 and 200),
  state text not null default 'expected'
    constraint topup_state_is_known
    check (state in ('expected', 'seen', 'credited', 'rejected', 'cancelled', 'expired')),
  amount_micros bigint constraint topup_is_above_zero check (amount_micros > 0),
  requested_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz,
  credited_at timestamptz,
  transaction_id bigint unique references ledger_transactions,
  reason text,
  details jsonb not null default '{}',
  constraint credited_topup_says_what_and_when check (
    (state = 'credited') = (credited_at is not null)
    and (state = 'credited') = (transaction_id is not null)
    and (state <> 'credited' or amount_micros is not null)
  ),
  constraint rejected_topup_says_why check (state <> 'rejected' or reason is not null),
  constraint topup_is_of_its_account unique (id, account_id)
);
comment on table topups is 'money that a caller sends or sent; expected = announced, seen = received and under review, credited = in the wallet';
comment on column topups.amount_micros is 'what was credited (1e-6 USD); before that the amount announced, if it is in USD and known';
comment on column topups.expires_at is 'after it an expected top-up counts as expired; money that arrives later is accepted all the same';
comment on column topups.transaction_id is 'the ledger transaction that credited it';
create index topups_of_account on topups (account_id, id desc);
create index topups_by_state on topups (method, state, id);

-- A credited top-up never changes, and no row is deleted.
create function refuse_change_of_credited() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'a top-up is never deleted';
  end if;
  if old.state = 'credited' then
    raise exception 'top-up % was credited and is not changed any more', old.id;
  end if;
  if (new.id, new.account_id, new.method, new.reference, new.requested_at)
    is distinct from (old.id, old.account_id, old.method, old.reference, old.requested_at)
  then
    raise exception 'whose a top-up is, and by what it is known, does not change';
  end if;
  return new;
end
$$;
create trigger credited_topup_is_never_changed before update or delete on topups
  for each row execute function refuse_change_of_credited();
create trigger topups_are_never_emptied before truncate on topups
  for each statement execute function refuse_change_of_record();
