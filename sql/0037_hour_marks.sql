-- Sums of the first forecasts of an hour, all of which have ended: the hour is made anew from them and from what came after,
-- and not from all of it each time, which cost more the longer an hour went on.
create table hour_marks (
  table_id integer not null references tables,
  model text not null,
  feature text not null,
  hour timestamptz not null,
  cutoff_seq bigint not null,
  rounds_seq bigint not null,
  sums jsonb not null,
  reference_sums jsonb not null,
  primary key (table_id, model, feature, hour)
);
comment on table hour_marks is
  'sums of an hour''s forecasts up to a cutoff, all of them ended: each follows from the facts, and one that is missing costs a longer read';
comment on column hour_marks.cutoff_seq is 'the forecasts of the hour with this cutoff or an earlier one are in the sums, and no others';
comment on column hour_marks.rounds_seq is
  'of the next color: on-time rounds of the hour up to this seq are counted in the sums; 0 for windows, which count none';
comment on table accuracy_hours is
  'integer sums of the scores of forecasts issued in one UTC hour: while it goes on from a mark and the facts after it, for good (final) without the mark; the highest rev counts';
comment on table reference_marks is
  'what the references remember after the on-time rounds up to a seq, so that an hour is summed from the rounds since its mark; each can be rebuilt from the rounds';

-- a mark speaks of scores that stay as they are: where one is revised, its hour is made from the facts alone
create function forget_hour_mark() returns trigger
language plpgsql as $$
begin
  delete from hour_marks
  where table_id = new.table_id
    and model = new.model
    and feature = new.feature
    and hour = new.issue_hour;
  return null;
end $$;
create trigger revised_score_takes_its_hours_mark
  after insert on scores
  for each row
  when (new.rev > 1)
  execute function forget_hour_mark();
