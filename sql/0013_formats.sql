-- What is known of the form of a feed's answers: a house that changes it is recognized by answers in a row that cannot be read.
alter table feeds
  add column last_path text,
  add column bad_answers integer not null default 0
    constraint bad_answers_count_from_zero check (bad_answers >= 0),
  add column format_since timestamptz;
comment on column feeds.last_path is
  'what the newest stored answer was asked for: where each round has its own page, equal bodies are two rounds';
comment on column feeds.bad_answers is 'stored answers in a row of which nothing, or nearly nothing, could be read';
comment on column feeds.format_since is
  'since when the house is taken to have changed its format; null again with the first answer that can be read';

alter table gaps
  add column cursor_page integer not null default 0
    constraint gap_pages_count_from_zero check (cursor_page >= 0);
comment on column gaps.cursor_page is
  'pages read so far in this attempt, where the house counts its pages of history from the newest';

-- One row a house that has a budget, apart from houses since every request writes it.
create table request_budgets (
  house_id text primary key references houses on delete cascade,
  spent_until timestamptz not null default '-infinity'
) with (fillfactor = 70);
comment on table request_budgets is
  'requests_per_minute of a house, kept over all processes: each request moves spent_until on by its share of a minute';
