-- Which of these rounds of a table are there? A statement that is prepared once was planned while the partition was empty
-- and goes on reading the whole of it for each batch, until PostgreSQL first counts its rows: a minute later, and not at
-- all inside a transaction that fills it. So where many rounds are asked for, each time is planned anew for the one
-- partition, which takes a quarter of a millisecond, and by the index that finds each round by itself.
create function known_rounds(of_table integer, round_ids text[])
returns table (
  round_id text,
  seq bigint,
  hundredths bigint,
  late boolean,
  verified boolean,
  proof_hash text,
  payload_id bigint
)
language plpgsql
stable
set enable_seqscan = off
as $$
begin
  return query execute
    'select r.round_id, r.seq, r.hundredths, r.late, r.verified, r.proof_hash, r.payload_id
    from unnest($2) as asked (round_id)
    cross join lateral (
      select *
      from rounds
      where table_id = $1
        and rounds.round_id = asked.round_id
      limit 1
    ) r'
  using of_table, round_ids;
end
$$;
comment on function known_rounds is 'those of many rounds of a table that are there, however little is known of its size';
