-- Money in micro-units (1e-6 of a USD), as double entry: the entries of every transaction sum to zero.

create table ledger_accounts (
  id bigint generated always as identity primary key,
  kind text not null
    constraint ledger_kind_is_known
    check (kind in ('wallet', 'cash_bank', 'cash_onchain', 'cash_payapp', 'cash_demo', 'revenue', 'suspense')),
  owner_id bigint references accounts,
  currency text not null default 'USD' constraint ledger_is_in_usd check (currency = 'USD'),
  allow_negative boolean generated always as (kind like 'cash\_%') stored,
  balance bigint not null default 0,
  constraint wallet_and_only_it_has_an_owner check ((kind = 'wallet') = (owner_id is not null)),
  constraint there_is_no_overdraft check (allow_negative or balance >= 0),
  constraint ledger_account_is_unique unique nulls not distinct (kind, owner_id, currency)
);
comment on table ledger_accounts is
  'who holds how much: wallets of callers, revenue, money not assigned yet (suspense), and where money came in (negative)';
insert into ledger_accounts (kind) values ('cash_bank'), ('cash_onchain'), ('cash_payapp'), ('cash_demo'), ('revenue'), ('suspense');

create table ledger_transactions (
  id bigint generated always as identity primary key,
  kind text not null
    constraint ledger_transaction_kind_is_known
    check (kind in ('topup', 'purchase', 'suspense', 'placement', 'reversal')),
  idempotency_key text not null
    constraint ledger_key_is_used_once unique
    constraint ledger_key_is_short check (length(idempotency_key) between 1 and 200),
  request_hash text not null constraint request_hash_is_hex check (request_hash ~ '^[0-9a-f]{64}$'),
  meta jsonb not null default '{}',
  reverses bigint unique references ledger_transactions
    constraint reversal_names_what_it_reverses check ((kind = 'reversal') = (reverses is not null)),
  created_at timestamptz not null default clock_timestamp()
);
comment on table ledger_transactions is 'what moved money; the key makes a repeated request harmless, the hash refuses another request under the same key';

create table ledger_entries (
  transaction_id bigint not null references ledger_transactions,
  seq integer not null,
  account_id bigint not null references ledger_accounts,
  amount bigint not null constraint entry_moves_something check (amount <> 0),
  balance_after bigint not null,
  primary key (transaction_id, seq)
);
comment on table ledger_entries is 'how much each transaction moved to each account; negative: from it';
create unique index transaction_moves_an_account_once on ledger_entries (account_id, transaction_id desc);

create trigger ledger_transaction_is_never_changed before update or delete on ledger_transactions
  for each row execute function refuse_change_of_record();
create trigger ledger_transactions_are_never_emptied before truncate on ledger_transactions
  for each statement execute function refuse_change_of_record();
create trigger ledger_entry_is_never_changed before update or delete on ledger_entries
  for each row execute function refuse_change_of_record();
create trigger ledger_entries_are_never_emptied before truncate on ledger_entries
  for each statement execute function refuse_change_of_record();
create trigger ledger_account_is_never_deleted before delete on ledger_accounts
  for each row execute function refuse_change_of_record();
create trigger ledger_accounts_are_never_emptied before truncate on ledger_accounts
  for each statement execute function refuse_change_of_record();

create function reversed_at(transaction_id bigint) returns timestamptz
language sql stable strict
set search_path = public, pg_temp
as $$
  with recursive reversals (id, at, times) as (
    select r.id, r.created_at, 1
    from ledger_transactions r
    where r.reverses = reversed_at.transaction_id
    union all
    select r.id, r.created_at, n.times + 1
    from reversals n
    join ledger_transactions r on r.reverses = n.id
  )
  select max(at)
  from reversals
  having max(times) % 2 = 1
$$;
comment on function reversed_at is 'when a transaction was reversed; null if it was not, or if its reversal was reversed';

-- checked when a transaction commits, whichever program wrote it
create function refuse_unbalanced() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
declare
  written bigint;
  moved record;
  mirrored bigint;
begin
  if tg_table_name = 'ledger_entries' then
    written := new.transaction_id;
  else
    written := new.id;
    mirrored := new.reverses;
  end if;
  select count(*) as legs, coalesce(sum(amount), 0) as total
  into moved
  from ledger_entries
  where transaction_id = written;
  if moved.legs < 2 or moved.total <> 0 then
    raise exception 'a ledger transaction moves what some accounts lose to others: % has % entries with the sum %', written, moved.legs, moved.total
      using errcode = 'check_violation', constraint = 'ledger_transaction_is_balanced';
  end if;
  if mirrored is not null and exists (
    select 1
    from (select account_id, amount from ledger_entries where transaction_id = written) ours
    full join (select account_id, amount from ledger_entries where transaction_id = mirrored) theirs using (account_id)
    where ours.amount is distinct from -theirs.amount
  ) then
    raise exception 'a reversal moves back what another transaction moved, and nothing else: % does not mirror %', written, mirrored
      using errcode = 'check_violation', constraint = 'reversal_mirrors_what_it_reverses';
  end if;
  return null;
end
$$;
create constraint trigger ledger_transaction_is_balanced after insert on ledger_transactions
  deferrable initially deferred for each row execute function refuse_unbalanced();
create constraint trigger ledger_entries_are_balanced after insert on ledger_entries
  deferrable initially deferred for each row execute function refuse_unbalanced();

create function refuse_balance_without_entry() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
declare
  moved bigint;
  held bigint;
  written bigint;
begin
  if tg_table_name = 'ledger_entries' then
    moved := new.account_id;
    select balance_after
    into held
    from ledger_entries
    where account_id = moved
      and transaction_id < new.transaction_id
    order by transaction_id desc
    limit 1;
    if new.balance_after <> coalesce(held, 0) + new.amount then
      raise exception 'an entry leaves what was there before it and what it moved: account % held %, got % and % was written', moved, coalesce(held, 0), new.amount, new.balance_after
        using errcode = 'check_violation', constraint = 'entry_follows_from_the_one_before';
    end if;
    select balance_after - amount
    into held
    from ledger_entries
    where account_id = moved
      and transaction_id > new.transaction_id
    order by transaction_id
    limit 1;
    if held <> new.balance_after then
      raise exception 'an entry is added after those that are there: account % has later ones than transaction %', moved, new.transaction_id
        using errcode = 'check_violation', constraint = 'entry_is_added_at_the_end';
    end if;
  else
    moved := new.id;
  end if;
  select balance into held from ledger_accounts where id = moved;
  select balance_after into written from ledger_entries where account_id = moved order by transaction_id desc limit 1;
  if held <> coalesce(written, 0) then
    raise exception 'a balance equals that of the newest entry: account % has %, and its entry has %', moved, held, coalesce(written, 0)
      using errcode = 'check_violation', constraint = 'balance_is_what_the_newest_entry_left';
  end if;
  return null;
end
$$;
create constraint trigger balance_is_what_the_newest_entry_left after insert or update on ledger_accounts
  deferrable initially deferred for each row execute function refuse_balance_without_entry();
create constraint trigger entry_is_what_its_balance_moved_by after insert on ledger_entries
  deferrable initially deferred for each row execute function refuse_balance_without_entry();

create function refuse_other_account() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if (new.id, new.kind, new.owner_id, new.currency) is distinct from (old.id, old.kind, old.owner_id, old.currency) then
    raise exception 'a ledger account stays what it is; only its balance moves';
  end if;
  return new;
end
$$;
create trigger ledger_account_stays_what_it_is before update on ledger_accounts
  for each row execute function refuse_other_account();

-- A mistake is corrected by a transaction that reverses another: one person proposes it, another approves it.
create table reversal_proposals (
  id bigint generated always as identity primary key,
  transaction_id bigint not null references ledger_transactions,
  reason text not null
    constraint reversal_says_why check (length(trim(reason)) between 3 and 500),
  proposed_by text not null references operators,
  proposed_at timestamptz not null default clock_timestamp(),
  state text not null default 'proposed'
    constraint proposal_state_is_known check (state in ('proposed', 'approved', 'declined')),
  decided_by text references operators,
  decided_at timestamptz,
  decided_why text,
  reversal_id bigint references ledger_transactions
    constraint reversal_is_of_one_proposal unique,
  constraint reversal_is_approved_by_another check (state <> 'approved' or decided_by <> proposed_by),
  constraint decided_proposal_says_by_whom check (
    (state = 'proposed') = (decided_by is null)
    and (state = 'proposed') = (decided_at is null)
    and (state = 'proposed') = (decided_why is null)
  ),
  constraint approved_proposal_names_its_reversal check ((state = 'approved') = (reversal_id is not null))
);
comment on table reversal_proposals is 'who proposed to reverse a transaction and why, and who approved or declined it; a decided proposal does not change';
create unique index transaction_has_one_proposal on reversal_proposals (transaction_id) where state <> 'declined';

create function refuse_change_of_proposal() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'a proposal to reverse is never deleted';
  end if;
  if old.state <> 'proposed' then
    raise exception 'proposal % was decided and is not changed any more', old.id;
  end if;
  if (new.id, new.transaction_id, new.reason, new.proposed_by, new.proposed_at)
    is distinct from (old.id, old.transaction_id, old.reason, old.proposed_by, old.proposed_at)
  then
    raise exception 'proposal % is only ever decided; decline it and make another', old.id;
  end if;
  return new;
end
$$;
create trigger proposal_is_never_changed before update or delete on reversal_proposals
  for each row execute function refuse_change_of_proposal();
create trigger proposals_are_never_emptied before truncate on reversal_proposals
  for each statement execute function refuse_change_of_record();
