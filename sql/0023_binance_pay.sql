-- Binance Pay: orders at the payment app, their status, and the keys that it signs notifications with.

create table payment_app_orders (
  topup_id bigint primary key references topups,
  trade_no text not null
    constraint trade_no_is_used_once unique
    constraint trade_no_is_letters_and_digits check (trade_no ~ '^[A-Za-z0-9]{1,32}$'),
  amount_micros bigint not null constraint order_is_above_zero check (amount_micros > 0),
  state text not null default 'new'
    constraint order_state_is_known check (state in ('new', 'open', 'paid', 'strange', 'closed')),
  attempts integer not null default 0,
  prepay_id text
    constraint prepay_id_is_of_one_order unique
    constraint prepay_id_is_letters_and_digits check (prepay_id ~ '^[A-Za-z0-9]{1,64}$'),
  checkout_url text constraint checkout_url_is_bounded check (length(checkout_url) <= 2000),
  qr_content text constraint qr_content_is_bounded check (length(qr_content) <= 2000),
  expires_at timestamptz,
  provider_status text constraint provider_status_is_short check (length(provider_status) <= 40),
  ask_at timestamptz,
  asked_at timestamptz,
  refund_reported_at timestamptz,
  last_error text constraint order_error_is_short check (length(last_error) <= 300),
  created_at timestamptz not null default clock_timestamp(),
  constraint order_that_is_shown_was_made check (
    state = 'new'
    or (state = 'closed' and prepay_id is null)
    or (prepay_id is not null and checkout_url is not null and expires_at is not null)
  ),
  constraint order_that_waits_is_asked_for check (state not in ('new', 'open', 'strange') or ask_at is not null)
);
comment on table payment_app_orders is
  'new = to be created at the payment app, open = can be paid, paid = credited, strange = paid otherwise than ordered, closed = not paid';
comment on column payment_app_orders.trade_no is 'our id of it at the payment app; another with each attempt to create it, so that a lost response leaves no order that could be paid';
comment on column payment_app_orders.ask_at is 'when its status is requested next; a notification of the payment app sets this to now';
comment on column payment_app_orders.refund_reported_at is 'when the payment app first reported that it refunded the credited payment';
create index payment_app_orders_refunded on payment_app_orders (refund_reported_at) where refund_reported_at is not null;
create index payment_app_orders_by_turn on payment_app_orders (ask_at) where ask_at is not null;
create index payment_app_orders_not_made on payment_app_orders (asked_at) where prepay_id is null;

create table payment_app_nonces (
  nonce text primary key,
  seen_at timestamptz not null default clock_timestamp()
);
comment on table payment_app_nonces is 'notifications that were accepted: each counts once; deleted when their timestamp is too old to be accepted again';
create index payment_app_nonces_by_time on payment_app_nonces (seen_at);

create table payment_app_unknown_orders (
  prepay_id text primary key constraint unknown_prepay_id_is_letters_and_digits check (prepay_id ~ '^[A-Za-z0-9]{1,64}$'),
  seen_at timestamptz not null default clock_timestamp()
);
comment on table payment_app_unknown_orders is
  'orders that the payment app reported as paid and that are not stored here, such as those made after a backup that was restored';

create table payment_app_certificates (
  serial text primary key constraint certificate_serial_is_short check (length(serial) <= 128),
  public_key text not null constraint public_key_is_bounded check (length(public_key) <= 10000),
  fetched_at timestamptz not null default clock_timestamp()
);
comment on table payment_app_certificates is 'public keys that the payment app signs its notifications with, from its API';

create table payment_app_state (
  id boolean primary key default true constraint payment_app_state_is_one_row check (id),
  certificates_at timestamptz,
  certificates_tried_at timestamptz,
  certificates_failing_since timestamptz,
  certificates_wanted_at timestamptz
);
comment on table payment_app_state is 'when the keys were last fetched, last tried, first tried without success since then, and last named by a notification without being known';
insert into payment_app_state default values;
