-- Binance Pay: orders that the payment app is asked to make, what it tells of them, and the keys that it signs with.
create table payment_app_orders (
  topup_id bigint primary key references topups,
  trade_no text not null
    constraint trade_no_is_used_once unique
    constraint trade_no_is_letters_and_digits check (trade_no ~ '^[A-Za-z0-9]{1,32}$'),
  currency text not null default 'USDT' constraint payment_app_takes_usdt check (currency = 'USDT'),
  amount_micros bigint not null constraint order_is_above_zero check (amount_micros > 0),
  state text not null default 'new'
    constraint order_state_is_known check (state in ('new', 'open', 'paid', 'strange', 'closed')),
  attempts integer not null default 0,
  prepay_id text constraint prepay_id_is_of_one_order unique,
  checkout_url text,
  qr_content text,
  expires_at timestamptz,
  provider_status text,
  ask_at timestamptz,
  asked_at timestamptz,
  last_error text,
  created_at timestamptz not null default clock_timestamp(),
  constraint order_that_is_shown_was_made check (
    state = 'new'
    or (state = 'closed' and prepay_id is null)
    or (prepay_id is not null and checkout_url is not null and expires_at is not null)
  ),
  constraint order_that_waits_is_asked_for check (state not in ('new', 'open', 'strange') or ask_at is not null)
);
comment on table payment_app_orders is
  'new = to be made by the payment app, open = its holder may pay, paid = credited, strange = paid otherwise than ordered, closed = not paid';
comment on column payment_app_orders.trade_no is 'our name for it at the payment app; another with each attempt to make it, so that an answer that was lost leaves nothing anybody could pay';
comment on column payment_app_orders.ask_at is 'when it is looked after next: a notice of the payment app makes that now';
create index payment_app_orders_by_turn on payment_app_orders (ask_at) where ask_at is not null;
create index payment_app_orders_not_made on payment_app_orders (asked_at) where prepay_id is null;

create table payment_app_nonces (
  nonce text primary key,
  seen_at timestamptz not null default clock_timestamp()
);
comment on table payment_app_nonces is 'notices that were taken: each counts once; forgotten when their time is too old to be believed';
create index payment_app_nonces_by_time on payment_app_nonces (seen_at);

create table payment_app_certificates (
  serial text primary key,
  public_key text not null,
  fetched_at timestamptz not null default clock_timestamp()
);
comment on table payment_app_certificates is 'public keys that the payment app signs its notices with, as its API gives them';

create table payment_app_state (
  id boolean primary key default true constraint payment_app_state_is_one_row check (id),
  certificates_at timestamptz,
  certificates_tried_at timestamptz,
  certificates_wanted_at timestamptz
);
comment on table payment_app_state is 'when the keys were fetched last, tried last, and last named by a notice without being known';
insert into payment_app_state default values;
