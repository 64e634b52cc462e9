-- The outbox of mails.

create table mails (
  id bigint generated always as identity primary key,
  kind text not null
    constraint mail_kind_is_a_word check (kind ~ '^[a-z][a-z0-9-]{0,59}$'),
  recipient text not null
    constraint recipient_looks_like_an_address check (
      recipient ~ '^[^@\s]+@[^@\s]+$' and recipient !~ '[[:cntrl:],;:<>()"\\]' and length(recipient) <= 254
    ),
  subject text not null
    constraint subject_is_one_line check (subject !~ '[[:cntrl:]]' and length(subject) between 1 and 200),
  body text
    constraint mail_has_words_within_bounds check (length(body) between 1 and 100000),
  sealed bytea
    constraint sealed_link_is_short check (length(sealed) between 1 and 2000),
  dedup_key text
    constraint mail_is_written_once unique,
  message_id uuid not null default gen_random_uuid() unique,
  created_at timestamptz not null default clock_timestamp(),
  asked_at timestamptz not null default clock_timestamp(),
  next_try_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0
    constraint mail_is_tried_a_number_of_times check (attempts >= 0),
  sent_at timestamptz,
  given_up_at timestamptz,
  is_refused boolean not null default false,
  last_error text,
  printed_at timestamptz,
  constraint mail_ends_in_one_way check (sent_at is null or given_up_at is null),
  constraint mail_has_its_text_until_it_is_sent check ((body is null) = (sent_at is not null)),
  constraint sealed_link_goes_with_its_text check (sealed is null or body is not null),
  constraint given_up_mail_says_why check (given_up_at is null or last_error is not null),
  constraint refused_mail_is_given_up check (not is_refused or given_up_at is not null)
);
comment on table mails is 'mails to people: written in the transaction of their cause, sent by send-mail afterwards';
comment on column mails.body is 'plain text; deleted once it is sent; a mail that was given up keeps it for 32 days, so that staff can send it again';
comment on column mails.sealed is
  'the link that the body has a placeholder for, if it grants access: encrypted with AUTH_SECRET, so that no one who reads this table can open it';
comment on column mails.message_id is 'the same in every attempt, so that a receiver can recognize a duplicate';
comment on column mails.asked_at is 'when it was written, or last requested to be sent again: retries are limited from here';
comment on column mails.next_try_at is 'not before then; while a worker sends it, when another worker may take over';
comment on column mails.is_refused is 'given up because the mail server rejected it permanently, not because of a timeout';
comment on column mails.printed_at is 'when it was printed by a start that serves only its own machine and has no mail server';
create index mails_that_wait on mails (next_try_at, id) where sent_at is null and given_up_at is null;
create index mails_given_up on mails (id) where given_up_at is not null;
create index mails_by_time on mails (created_at);

create table mail_failures (
  is_only boolean primary key default true
    constraint there_is_one_mail_server check (is_only),
  since timestamptz not null default clock_timestamp(),
  tries integer not null default 1,
  next_try_at timestamptz not null,
  reason text not null
);
comment on table mail_failures is 'one row while the mail server accepts no mail at all: no mail is tried before next_try_at';
