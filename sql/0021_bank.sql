-- Bank transfers: the lines of statements, and what two people decided about each.

create table bank_imports (
  id bigint generated always as identity primary key,
  bank text not null,
  body text not null constraint bank_import_is_bounded check (length(body) <= 1048576),
  file_name text constraint bank_file_name_is_short check (length(file_name) between 1 and 200),
  sha256 text not null constraint bank_import_hash_is_hex check (sha256 ~ '^[0-9a-f]{64}$'),
  entered_by text not null references operators,
  entered_at timestamptz not null default clock_timestamp(),
  taken_at timestamptz
);
comment on table bank_imports is 'statements as they were uploaded or pasted, before and after their lines were imported';
comment on column bank_imports.file_name is 'the name of the uploaded file; null if the statement was pasted';
comment on column bank_imports.taken_at is 'when its lines were imported';
create index bank_imports_by_hash on bank_imports (bank, sha256);

create table bank_lines (
  id bigint generated always as identity primary key,
  bank text not null constraint bank_is_a_short_name check (bank ~ '^[a-z0-9][a-z0-9 ._-]{0,39}$'),
  bank_ref text not null constraint bank_ref_is_short check (bank_ref ~ '^[^[:cntrl:]]{1,100}$'),
  value_date date not null,
  currency text not null constraint bank_currency_is_a_code check (currency ~ '^[A-Z]{3}$'),
  amount_minor bigint not null
    constraint bank_amount_is_believable check (amount_minor between 1 and 1000000000000),
  sender text not null constraint bank_sender_is_short check (length(sender) <= 140),
  remittance text not null constraint bank_remittance_is_bounded check (length(remittance) <= 1000),
  state text not null default 'new'
    constraint bank_line_state_is_known
    check (state in ('new', 'matched', 'credited', 'suspense', 'rejected', 'returned', 'reversed')),
  import_id bigint references bank_imports,
  entered_by text not null references operators,
  entered_at timestamptz not null default clock_timestamp(),
  rate_e8 bigint constraint bank_rate_is_above_zero check (rate_e8 > 0),
  suspense_micros bigint constraint suspense_is_above_zero check (suspense_micros > 0),
  suspense_transaction_id bigint unique references ledger_transactions,
  held_by text references operators,
  credit_transaction_id bigint unique references ledger_transactions,
  return_transaction_id bigint unique references ledger_transactions,
  reason text,
  constraint bank_line_is_entered_once unique (bank, bank_ref),
  constraint bank_line_keeps_who_entered_it unique (id, entered_by),
  constraint bank_line_keeps_who_held_it unique (id, held_by),
  constraint dollars_are_dollars check (currency <> 'USD' or rate_e8 = 100000000 or rate_e8 is null),
  constraint suspense_is_posted_whole check (
    (suspense_transaction_id is null) = (suspense_micros is null)
    and (suspense_transaction_id is null) = (held_by is null)
    and (suspense_micros is null or rate_e8 is not null)
  ),
  constraint held_line_is_in_suspense check (
    state not in ('suspense', 'rejected', 'returned', 'reversed') or (suspense_transaction_id is not null and reason is not null)
  ),
  constraint credited_line_was_posted check ((state = 'credited') = (credit_transaction_id is not null)),
  constraint returned_line_was_posted check ((state = 'returned') = (return_transaction_id is not null))
);
comment on table bank_lines is 'incoming lines of bank statements; each is credited, held in suspense or returned by the bank';
comment on column bank_lines.bank is 'lower case, so that one bank has one name and a line of it is entered once';
comment on column bank_lines.amount_minor is 'in the smallest unit of its currency';
comment on column bank_lines.rate_e8 is 'USD for one unit of the currency, in 1e-8; fixed once the line is in suspense';
comment on column bank_lines.held_by is 'who put it into suspense, or made the match that was rejected: unless it is in USD, they set its rate';
create index bank_lines_by_money on bank_lines (value_date, amount_minor);
create index bank_lines_by_state on bank_lines (state, id);

create table bank_matches (
  id bigint generated always as identity primary key,
  line_id bigint not null,
  entered_by text not null,
  held_by text,
  topup_id bigint not null,
  account_id bigint not null,
  topup_state text not null constraint topup_goes_back_to_a_state check (topup_state in ('expected', 'cancelled', 'expired')),
  rate_e8 bigint not null constraint match_rate_is_above_zero check (rate_e8 > 0),
  micros bigint not null constraint match_is_above_zero check (micros > 0),
  note text not null default '',
  matched_by text not null references operators,
  matched_at timestamptz not null default clock_timestamp(),
  approved_by text references operators,
  approved_at timestamptz,
  one_person boolean not null default false,
  ended_by text references operators,
  ended_at timestamptz,
  ended_why text,
  foreign key (line_id, entered_by) references bank_lines (id, entered_by),
  foreign key (line_id, held_by) references bank_lines (id, held_by),
  foreign key (topup_id, account_id) references topups (id, account_id),
  constraint match_is_approved_by_another check (
    approved_by is null
    or one_person
    or (approved_by <> matched_by and approved_by <> entered_by and approved_by is distinct from held_by)
  ),
  constraint match_ends_in_one_way check (approved_by is null or ended_by is null),
  constraint match_says_when check (
    (approved_by is null) = (approved_at is null)
    and (ended_by is null) = (ended_at is null)
    and (ended_by is null) = (ended_why is null)
  )
);
comment on column bank_matches.held_by is 'who set the rate in suspense; null for a line in USD, whose rate is 1';
comment on column bank_matches.topup_state is 'state of the top-up before; restored if the match is taken back';
comment on table bank_matches is 'who assigned a line to a top-up and who approved it; a match that was taken back or rejected does not change';
create unique index bank_line_has_one_match on bank_matches (line_id) where ended_at is null;
create unique index topup_has_one_match on bank_matches (topup_id) where ended_at is null;

create table bank_returns (
  id bigint generated always as identity primary key,
  line_id bigint not null,
  entered_by text not null,
  reason text not null,
  asked_by text not null references operators,
  asked_at timestamptz not null default clock_timestamp(),
  approved_by text references operators,
  approved_at timestamptz,
  one_person boolean not null default false,
  ended_by text references operators,
  ended_at timestamptz,
  ended_why text,
  foreign key (line_id, entered_by) references bank_lines (id, entered_by),
  constraint return_is_approved_by_another check (
    approved_by is null
    or one_person
    or (approved_by <> asked_by and approved_by <> entered_by)
  ),
  constraint return_ends_in_one_way check (approved_by is null or ended_by is null),
  constraint return_says_when check (
    (approved_by is null) = (approved_at is null)
    and (ended_by is null) = (ended_at is null)
    and (ended_by is null) = (ended_why is null)
  )
);
comment on table bank_returns is 'lines whose money was sent back to its sender, requested by one person and confirmed by another';
create unique index bank_line_has_one_return on bank_returns (line_id) where ended_at is null;

-- Decisions of two people and lines of statements do not change.
create function refuse_change_of_decided() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    raise exception '% is never deleted from', tg_table_name;
  end if;
  if old.approved_by is not null or old.ended_by is not null then
    raise exception 'row % of % was decided and is not changed any more', old.id, tg_table_name;
  end if;
  if to_jsonb(new) - '{approved_by,approved_at,one_person,ended_by,ended_at,ended_why}'::text[]
    is distinct from to_jsonb(old) - '{approved_by,approved_at,one_person,ended_by,ended_at,ended_why}'::text[]
  then
    raise exception 'row % of % is only ever decided; take it back and make another', old.id, tg_table_name;
  end if;
  return new;
end
$$;
create trigger bank_match_is_never_changed before update or delete on bank_matches
  for each row execute function refuse_change_of_decided();
create trigger bank_return_is_never_changed before update or delete on bank_returns
  for each row execute function refuse_change_of_decided();

create function refuse_change_of_line() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'a line of a statement is never deleted';
  end if;
  if old.state in ('credited', 'returned', 'reversed') then
    raise exception 'line % is % and is not changed any more', old.id, old.state;
  end if;
  if new.state = 'credited' and not exists (
    select
    from bank_matches
    where line_id = new.id
      and approved_by is not null
      and held_by is not distinct from case when new.currency <> 'USD' then new.held_by end
  ) then
    raise exception 'line % can be credited only after another person has approved its account', new.id;
  end if;
  if new.state = 'returned' and not exists (
    select from bank_returns where line_id = new.id and approved_by is not null
  ) then
    raise exception 'line % can be returned only after another person has confirmed it', new.id;
  end if;
  if new.state = 'reversed' and not (
    old.state = 'suspense'
    and exists (select from ledger_transactions where reverses = old.suspense_transaction_id)
  ) then
    raise exception 'line % is not in suspense, or what holds it was not reversed', new.id;
  end if;
  if old.state = 'rejected' and new.state not in ('rejected', 'returned') then
    raise exception 'line % was rejected: it never reaches a wallet', old.id;
  end if;
  if (new.bank, new.bank_ref, new.value_date, new.currency, new.amount_minor, new.sender, new.remittance, new.import_id)
    is distinct from
    (old.bank, old.bank_ref, old.value_date, old.currency, old.amount_minor, old.sender, old.remittance, old.import_id)
    or (old.suspense_transaction_id is not null
      and (new.suspense_transaction_id, new.suspense_micros, new.rate_e8, new.held_by)
        is distinct from (old.suspense_transaction_id, old.suspense_micros, old.rate_e8, old.held_by))
  then
    raise exception 'the content of line %, and its value when it was posted, cannot change', old.id;
  end if;
  return new;
end
$$;
create trigger bank_line_is_never_changed before update or delete on bank_lines
  for each row execute function refuse_change_of_line();

-- A line whose credit or suspense was reversed may be entered again under another bank reference: a reversal of that
-- reversal would credit it twice.
create function refuse_second_credit() returns trigger
language plpgsql security definer
set search_path = public, pg_temp
as $$
begin
  if exists (
    select
    from ledger_transactions t
    join bank_lines l on t.reverses = l.credit_transaction_id or t.reverses = l.suspense_transaction_id
    where t.id = new.reverses
  ) then
    raise exception 'transaction % took back money of a bank line, which is final', new.reverses
      using errcode = 'check_violation', constraint = 'bank_line_is_credited_once';
  end if;
  return new;
end
$$;
revoke execute on function refuse_second_credit() from public;
create trigger bank_line_is_credited_once before insert on ledger_transactions
  for each row when (new.reverses is not null) execute function refuse_second_credit();

create trigger bank_lines_are_never_emptied before truncate on bank_lines
  for each statement execute function refuse_change_of_record();
create trigger bank_matches_are_never_emptied before truncate on bank_matches
  for each statement execute function refuse_change_of_record();
create trigger bank_returns_are_never_emptied before truncate on bank_returns
  for each statement execute function refuse_change_of_record();
