-- Metrics count what is open at each scrape: without these each would read all that ever was.
create index quarantine_open on quarantine (table_id) where state = 'open';
create index conflicts_undecided on conflicts (table_id) where decided_at is null;
create index runs_finished on calibration_runs (finished_at) where finished_at is not null;

-- An alert about a day's usage had the day in its kind, and so was never looked at again once the day was over.
update alerts
set
  kind = 'usage',
  subject = substr(kind, length('usage of ') + 1) || ' ' || subject
where kind like 'usage of %';
