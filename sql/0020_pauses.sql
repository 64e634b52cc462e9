alter table queue_controls
  add column until timestamptz,
  add constraint pause_ends_after_it_began check (until > paused_at);
comment on column queue_controls.until is 'when the reconciler lets the queue go on by itself; null: when somebody does';

alter table workers
  add column rss_bytes bigint,
  add column heap_bytes bigint;
comment on column workers.rss_bytes is 'memory of the process when it last reported; heap_bytes is what of it JavaScript uses';

-- How a circuit has been: a row when a house was given up, and when it was back. Probes in between are no news.
create table circuit_changes (
  id bigint generated always as identity primary key,
  house_id text not null references houses on delete cascade,
  shard integer not null,
  at timestamptz not null default clock_timestamp(),
  state text not null
    constraint circuit_change_is_known check (state in ('open', 'closed')),
  -- how long it was open; null where it opened
  lasted interval,
  reason text
);
comment on table circuit_changes is 'when the circuit of a house opened and closed; the newest 30 days';
create index circuit_changes_of_house on circuit_changes (house_id, at desc);

create function note_circuit_change() returns trigger
language plpgsql as $$
begin
  delete from circuit_changes
  where house_id = new.house_id
    and at < clock_timestamp() - interval '30 days';
  insert into circuit_changes (house_id, shard, state, lasted, reason)
  values (
    new.house_id,
    new.shard,
    case new.circuit when 'closed' then 'closed' else 'open' end,
    case new.circuit when 'closed' then clock_timestamp() - old.opened_at end,
    case new.circuit when 'closed' then null else new.last_error end
  );
  return null;
end $$;
create trigger circuit_changes_are_noted
  after update of circuit on poll_leases
  for each row when ((old.circuit = 'closed') <> (new.circuit = 'closed'))
  execute function note_circuit_change();

-- Rounds polled on time, summed in cells of five minutes: what a day looked like at a glance, without reading its rounds.
create table round_cells (
  hour timestamptz not null
    constraint cells_begin_with_an_hour check (hour = date_trunc('hour', hour, 'UTC')),
  table_id integer not null references tables on delete cascade,
  rounds integer[] not null
    constraint an_hour_has_twelve_cells check (cardinality(rounds) between 1 and 12),
  primary key (hour, table_id)
);
comment on table round_cells is
  'rounds that polls brought on time, by table and hour: one number for each five minutes that are over';
