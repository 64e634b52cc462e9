create table mails (
  id bigint generated always as identity primary key,
  kind text not null,
  recipient text not null
    constraint recipient_looks_like_an_address check (recipient ~ '^[^@\s]+@[^@\s]+$' and length(recipient) <= 254),
  subject text not null
    constraint subject_is_one_line check (subject !~ '[\r\n]' and length(subject) between 1 and 200),
  body text,
  dedup_key text
    constraint mail_is_written_once unique,
  message_id text not null unique,
  created_at timestamptz not null default clock_timestamp(),
  next_try_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0,
  sent_at timestamptz,
  given_up_at timestamptz,
  last_error text,
  constraint mail_ends_in_one_way check (sent_at is null or given_up_at is null),
  constraint waiting_mail_has_its_text check (body is not null or sent_at is not null or given_up_at is not null)
);
comment on table mails is 'mails to people: written in the transaction of what they tell of, sent by send-mail afterwards';
comment on column mails.body is 'plain text; gone once it is sent or given up, since it may hold a link that opens something';
comment on column mails.message_id is 'the same at every try, so that whoever gets one twice can tell';
create index mails_that_wait on mails (next_try_at) where sent_at is null and given_up_at is null;
create index mails_by_time on mails (created_at);
