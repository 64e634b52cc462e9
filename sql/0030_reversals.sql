-- A mistake in the ledger is put right by a transaction that moves back what another moved: one person proposes it, another approves it.
create table reversal_proposals (
  id bigint generated always as identity primary key,
  transaction_id bigint not null references ledger_transactions,
  reason text not null
    constraint reversal_says_why check (length(trim(reason)) between 3 and 500),
  proposed_by text not null references operators,
  proposed_at timestamptz not null default clock_timestamp(),
  state text not null default 'proposed'
    constraint proposal_state_is_known check (state in ('proposed', 'approved', 'declined')),
  decided_by text references operators,
  decided_at timestamptz,
  decided_why text,
  reversal_id bigint references ledger_transactions
    constraint reversal_is_of_one_proposal unique,
  constraint reversal_is_approved_by_another check (state <> 'approved' or decided_by <> proposed_by),
  constraint decided_proposal_says_by_whom check (
    (state = 'proposed') = (decided_by is null)
    and (state = 'proposed') = (decided_at is null)
    and (state = 'proposed') = (decided_why is null)
  ),
  constraint approved_proposal_names_its_reversal check ((state = 'approved') = (reversal_id is not null))
);
comment on table reversal_proposals is 'who asked that a transaction be taken back and why, and who else agreed or not; decided ones stay as they are';
create unique index transaction_has_one_proposal on reversal_proposals (transaction_id) where state <> 'declined';

create function refuse_change_of_proposal() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    raise exception 'a proposal to reverse is never deleted';
  end if;
  if old.state <> 'proposed' then
    raise exception 'proposal % was decided and is not changed any more', old.id;
  end if;
  if (new.id, new.transaction_id, new.reason, new.proposed_by, new.proposed_at)
    is distinct from (old.id, old.transaction_id, old.reason, old.proposed_by, old.proposed_at)
  then
    raise exception 'proposal % is only ever decided; decline it and make another', old.id;
  end if;
  return new;
end
$$;
create trigger proposal_is_never_changed before update or delete on reversal_proposals
  for each row execute function refuse_change_of_proposal();
create trigger proposals_are_never_emptied before truncate on reversal_proposals
  for each statement execute function refuse_change_of_record();
