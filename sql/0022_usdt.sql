-- USDT on a chain: an address per account, transfers to it, and how far each endpoint was read.

create table deposit_addresses (
  account_id bigint primary key references accounts,
  address_index integer not null
    constraint address_index_is_used_once unique
    constraint address_index_is_not_hardened check (address_index between 0 and 2147483647),
  address text not null
    constraint address_is_of_one_account unique
    constraint address_is_evm check (address ~ '^0x[0-9a-fA-F]{40}$'),
  xpub_fingerprint text not null,
  created_at timestamptz not null default clock_timestamp()
);
comment on table deposit_addresses is 'where the holder of an account sends USDT to, permanently: child address_index of the public key with that fingerprint';
create unique index deposit_addresses_by_small_letters on deposit_addresses (lower(address));
create trigger deposit_address_is_never_changed before update or delete on deposit_addresses
  for each row execute function refuse_change_of_record();
create trigger deposit_addresses_are_never_emptied before truncate on deposit_addresses
  for each statement execute function refuse_change_of_record();

create table chain_endpoints (
  chain_id bigint not null,
  token text not null,
  place smallint not null constraint endpoint_is_first_or_second check (place in (1, 2)),
  host text not null,
  range_blocks integer not null default 1000 constraint range_has_a_block check (range_blocks >= 1),
  settled_to bigint constraint settled_block_is_one check (settled_to >= -1),
  held_blocks bigint[] not null default '{}',
  head bigint,
  head_at timestamptz,
  finalized bigint,
  verified_at timestamptz,
  verified_url text,
  looked_at timestamptz not null default clock_timestamp(),
  responded_at timestamptz,
  failing_since timestamptz,
  is_read boolean not null default false,
  last_error text constraint endpoint_error_is_short check (length(last_error) <= 300),
  primary key (chain_id, token, place),
  constraint read_endpoint_has_a_head check (settled_to is null or (head is not null and head_at is not null)),
  constraint failure_says_why check ((failing_since is null) = (last_error is null))
);
comment on table chain_endpoints is 'the endpoints that a chain is read through, each independently, and how far';
comment on column chain_endpoints.range_blocks is 'blocks per request: fewer if the endpoint refuses more';
comment on column chain_endpoints.settled_to is 'every block up to it was read when it was too deep to be replaced, and each transfer in it was stored, except in held_blocks; the blocks after it are read again';
comment on column chain_endpoints.held_blocks is 'settled blocks with a transfer whose receipt is missing or does not match: each poll reads them again until every transfer in them is stored';
comment on column chain_endpoints.is_read is 'whether the last poll read every block up to the newest, except held ones: deposits are decided on only then';
comment on column chain_endpoints.head_at is 'timestamp of the newest block';
comment on column chain_endpoints.verified_url is 'SHA-256 of the URL at which chain and token were verified; URLs contain keys';

create table chain_deposits (
  id bigint generated always as identity primary key,
  chain_id bigint not null,
  tx_hash text not null constraint tx_hash_is_hex check (tx_hash ~ '^0x[0-9a-f]{64}$'),
  position integer not null constraint position_is_not_negative check (position >= 0),
  account_id bigint not null references deposit_addresses,
  token text not null,
  sender text not null constraint deposit_sender_is_hex check (sender ~ '^0x[0-9a-f]{40}$'),
  units numeric(78, 0) not null constraint deposit_is_above_zero check (units > 0),
  micros bigint not null constraint deposit_micros_are_not_negative check (micros >= 0),
  rest_units numeric(78, 0) not null,
  block_number bigint not null,
  block_hash text not null constraint deposit_block_hash_is_hex check (block_hash ~ '^0x[0-9a-f]{64}$'),
  log_index integer not null constraint deposit_log_index_is_not_negative check (log_index >= 0),
  state text not null default 'pending'
    constraint deposit_state_is_known check (state in ('pending', 'below_min', 'credited', 'orphaned')),
  seen_at timestamptz not null default clock_timestamp(),
  changed_at timestamptz not null default clock_timestamp(),
  checked_at timestamptz,
  disputed_since timestamptz,
  dispute text constraint dispute_is_short check (length(dispute) <= 1000),
  topup_id bigint references topups,
  constraint deposit_is_known_by_its_place_in_the_transaction unique (chain_id, tx_hash, position),
  constraint credited_deposit_has_its_topup check ((state = 'credited') = (topup_id is not null)),
  constraint dispute_says_what check ((disputed_since is null) = (dispute is null))
);
comment on table chain_deposits is 'transfers of the token to our addresses: pending until deep enough, orphaned once every endpoint shows that it is not on the chain, below_min until several reach the minimum';
comment on column chain_deposits.position is 'its position among the logs of its transaction; log_index is its position in the block, which changes with the block';
comment on column chain_deposits.rest_units is 'what is left of units below one micro-unit; not credited';
comment on column chain_deposits.dispute is 'why it is not credited though it is deep enough: endpoints differ, or return no receipt';
create index deposits_to_check on chain_deposits (chain_id, token) where state = 'pending';
create index deposits_of_account on chain_deposits (account_id, id desc);
create index deposits_of_topup on chain_deposits (topup_id) where topup_id is not null;
create index deposits_by_state on chain_deposits (state, id desc);
create index small_deposits on chain_deposits (chain_id, token, account_id) include (micros) where state = 'below_min';

create function refuse_change_of_credited_deposit() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  if tg_op = 'DELETE' or old.state = 'credited' then
    raise exception 'deposit % of chain % is credited and cannot change', old.tx_hash, old.chain_id;
  end if;
  -- its account may change until then: in another block a transaction may do something else
  if (new.chain_id, new.tx_hash, new.position, new.token)
    is distinct from (old.chain_id, old.tx_hash, old.position, old.token)
  then
    raise exception 'what a deposit is known by does not change';
  end if;
  return new;
end
$$;
create trigger credited_deposit_is_never_changed before update or delete on chain_deposits
  for each row execute function refuse_change_of_credited_deposit();
create trigger chain_deposits_are_never_emptied before truncate on chain_deposits
  for each statement execute function refuse_change_of_record();

-- A credited deposit never changes, so what its watch finds has its own table.
create table credited_deposits (
  deposit_id bigint primary key references chain_deposits,
  credited_at timestamptz not null default clock_timestamp(),
  checked_at timestamptz,
  missing_since timestamptz
);
comment on table credited_deposits is 'credited deposits that are looked up again until their block is final on every endpoint, or for a day';
comment on column credited_deposits.missing_since is 'since when no endpoint has it on the chain: a reorganization took it away after the credit';
create index credited_deposits_by_check on credited_deposits (checked_at nulls first);
create index credited_deposits_missing on credited_deposits (missing_since) where missing_since is not null;

create table chain_left_out (
  chain_id bigint not null,
  token text not null,
  block_number bigint not null,
  account_id bigint not null references deposit_addresses,
  seen_at timestamptz not null default clock_timestamp(),
  primary key (chain_id, token, block_number, account_id)
);
comment on table chain_left_out is 'blocks with more transfers to the address of an account than an endpoint can list: its deposits in them are checked manually';
