-- What persons decided of rounds that were taken in. Rounds themselves never change: what came first is what was learned,
-- forecast upon and shown.
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
  'decisions by persons on rounds, append-only; the newest of a round counts, in runs by hand alone, and forecasts on the round are void';
comment on column round_revision.from_hundredths is 'what stood before: the round as stored, or what the revision before made of it; null: void';
comment on column round_revision.to_hundredths is 'what stands from now on; null: the round is void, as if it had not been received';
comment on column round_revision.scores_voided_at is 'when score-accuracy voided the forecasts that it touches';
comment on column round_revision.hash is
  'sha256(prev_hash + line break + JCS of what it says), a chain for each table: a changed, removed or inserted one shows';
alter table tables
  add column revision_hash text not null default repeat('0', 64);
comment on column tables.revision_hash is 'hash of the table''s newest revision; 64 zeros before the first';
create index round_revision_of_round on round_revision (table_id, round_id, id);
create index round_revision_not_voided on round_revision (table_id) where scores_voided_at is null;

create function keep_revisions() returns trigger
language plpgsql as $$
begin
  -- the one thing that is noted later, once
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
  'rounds that came with another result and rounds that a person revised: no forecast on them counts, whatever was decided';

-- as in 0006, with revisions beside conflicts
create or replace function window_span(
  of_table integer, after_seq bigint, first_round_id text, horizon integer, issued timestamptz, color text,
  knows_conflicts boolean
) returns table (
  status text,
  -- the round that ended it; null while it is open
  settled_seq bigint,
  seen integer,
  hit boolean,
  -- the earliest request of a round seen
  requested_at timestamptz
)
language sql stable parallel safe as $$
  select
    coalesce(max(until.fault), case when count(*) = window_span.horizon then 'complete' else 'open' end),
    case when count(until.fault) > 0 or count(*) = window_span.horizon then max(until.seq) end,
    count(*)::integer,
    coalesce(bool_or(until.color = window_span.color), false),
    min(until.requested_at)
  from (
    select
      judged.*,
      count(judged.fault) over (order by judged.seq rows between unbounded preceding and 1 preceding) as faults_before
    from (
      select
        r.seq,
        r.color,
        r.requested_at,
        case
          when r.after_gap then 'void_gap'
          when window_span.first_round_id is not null
            -- a damaged id is no reason to fail: no round has it, and the forecast's hash shows it
            and r.round_number is distinct from
              case when window_span.first_round_id ~ '^[0-9]{1,18}$' then window_span.first_round_id::bigint end
                + row_number() over (order by r.seq) - 1 then 'void_gap'
          when r.requested_at is null or r.requested_at <= window_span.issued then 'void_late'
          when window_span.knows_conflicts
            and exists (select from disputed_rounds d where d.table_id = r.table_id and d.round_id = r.round_id)
            then 'void_quarantine'
        end as fault
      from (
        select *
        from rounds
        where rounds.table_id = window_span.of_table
          and rounds.seq > window_span.after_seq
          and not rounds.late
        order by rounds.seq
        limit window_span.horizon
      ) r
    ) judged
  ) until
  where until.faults_before = 0
$$;

-- which revisions a replay saw: those up to an id, of rounds up to a seq; 0 for none
alter table calibrations
  add column revision_id bigint not null default 0,
  add column revised_seq bigint not null default 0;
comment on column calibrations.revision_id is
  'revisions up to this id count for rounds up to revised_seq: those that the run by hand saw from which this state came';
alter table calibration_runs
  add column revision_id bigint not null default 0;
comment on column calibration_runs.revision_id is 'the newest revision of the table when a run by hand was asked for';

-- answers that were read again after an adapter was mended
alter table payloads
  add column reread_at timestamptz;
alter table payloads_kept
  add column reread_at timestamptz,
  add column items integer,
  add column new_rounds integer,
  add column quarantined integer;
create index payloads_by_id on payloads (id);
create index payloads_refused on payloads (table_id, received_at desc, id desc) where state = 'refused';
create index payloads_kept_of_table on payloads_kept (table_id, received_at desc, id desc);
create index rounds_late_of_payload on rounds (table_id, payload_id) where late;

alter table quarantine
  add column decided_by text,
  add column decision_reason text,
  add column decided_at timestamptz;
create index quarantine_by_time on quarantine (last_seen_at desc, id desc);
create index quarantine_open_by_time on quarantine (last_seen_at desc, id desc) where state = 'open';
create index quarantine_of_payload on quarantine (payload_id);

create index conflicts_of_payload on conflicts (payload_id);
create index conflicts_open on conflicts (id desc) where decided_at is null;

alter table gaps
  add column closed_by text,
  add constraint closed_by_hand_says_why check (closed_by is null or (state = 'given_up' and reason is not null));
comment on column gaps.closed_by is 'who gave it up by hand: nothing asks for its rounds until it is opened again';
create index gaps_of_table on gaps (table_id, id);

alter table notices
  add column opened_by text,
  add column closed_by text;
