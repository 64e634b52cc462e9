-- What staff decided about stored rounds. Rounds themselves never change: the first result is what was learned, forecast
-- upon and shown.
create table round_revision (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  seq bigint not null,
  round_id text not null,
  from_hundredths bigint,
  to_hundredths bigint
    constraint revised_multiplier_is_at_least_one check (to_hundredths >= 100),
  to_color text,
  reason text not null
    constraint revision_says_why check (length(reason) between 1 and 500),
  decided_by text not null,
  decided_at timestamptz not null default clock_timestamp(),
  conflict_id bigint references conflicts,
  scores_voided_at timestamptz,
  prev_hash text not null,
  hash text not null,
  foreign key (table_id, seq) references rounds,
  constraint conflict_is_decided_once unique (conflict_id),
  constraint revision_changes_or_decides check (from_hundredths is distinct from to_hundredths or conflict_id is not null),
  constraint revised_multiplier_has_its_color check ((to_hundredths is null) = (to_color is null))
);
comment on table round_revision is
  'decisions of staff on rounds, append-only; the newest of a round counts in manual runs only, and forecasts on the round are void';
comment on column round_revision.from_hundredths is
  'the result before: the round as stored, or as the revision before changed it; null: void';
comment on column round_revision.to_hundredths is 'the result from now on; null: the round is void, as if it had not been received';
comment on column round_revision.scores_voided_at is 'when the forecasts that it touches were voided';
comment on column round_revision.hash is
  'sha256(prev_hash + line break + JCS of the decision), a chain per table: a changed, removed or inserted row shows';
create index round_revision_of_round on round_revision (table_id, round_id, id);
create index round_revision_not_voided on round_revision (table_id) where scores_voided_at is null;

create function keep_revisions() returns trigger
language plpgsql
set search_path = public, pg_temp as $$
begin
  -- scores_voided_at is set later, once
  if tg_op = 'UPDATE' and old.scores_voided_at is null and new.scores_voided_at is not null
    and to_jsonb(old) - 'scores_voided_at' = to_jsonb(new) - 'scores_voided_at' then
    return new;
  end if;
  raise exception 'a revision stays as it was made; add another for round % of table %', old.round_id, old.table_id
    using errcode = 'RH003';
end $$;
create trigger round_revision_is_append_only
  before update or delete on round_revision
  for each row execute function keep_revisions();

create view disputed_rounds as
select table_id, round_id, first_seen_at as seen_at, scores_voided_at
from conflicts
union all
select table_id, round_id, decided_at, scores_voided_at
from round_revision;
comment on view disputed_rounds is
  'rounds received with another result and rounds that staff revised: no forecast on them counts, whatever was decided';

create table number_resets (
  id bigint generated always as identity primary key,
  table_id integer not null references tables,
  after_seq bigint not null,
  from_number bigint not null,
  to_number bigint not null
    constraint reset_goes_back check (to_number between 0 and from_number - 1),
  above integer not null,
  reason text not null
    constraint reset_says_why check (length(reason) between 1 and 500),
  decided_by text not null,
  decided_at timestamptz not null default clock_timestamp()
);
comment on table number_resets is
  'decisions of staff that the newest number of a table was wrong, append-only; its rounds stay as they are';
comment on column number_resets.after_seq is 'the newest round then: those after it are on time when they are above to_number';
comment on column number_resets.above is
  'stored rounds with a higher number, without those above an earlier reset: no number above counts as missing';
create index number_resets_of_table on number_resets (table_id, after_seq);
create function number_resets_of(of_table integer) returns jsonb
language sql stable
return (
  select coalesce(
    jsonb_agg(jsonb_build_object('afterSeq', after_seq, 'number', to_number::text, 'above', above) order by id), '[]')
  from number_resets
  where table_id = of_table
);
comment on function number_resets_of is 'the resets of a table in their order, as NumberReset of house-audit.ts';
create trigger number_resets_are_append_only
  before update or delete on number_resets
  for each row execute function refuse_change_of_record();
create trigger number_resets_are_not_truncated
  before truncate on number_resets
  for each statement execute function refuse_change_of_record();
