import type { Sql } from "../../src/db/client.ts";
import type { RoundReference } from "./invariant-violation.ts";
import { withheldUntil, isLost, houseFaultsAt, type Truth } from "./truth.ts";

/** How many rounds before and after the given one are described. */
const AROUND = 6;

/**
 * Describes a round and its neighbors, one line each: as played, as stored, gaps, forecasts, and the responses of the
 * house at that time.
 */
export async function describeRound(
  sql: Sql,
  truth: Truth,
  { house, game, round: id }: RoundReference,
): Promise<string[]> {
  const table = truth.tables.find((one) => one.house === house && one.game === game);
  const place = table?.rounds.findIndex((round) => round.id >= id) ?? -1;
  if (table === undefined || place === -1) return [];
  const around = table.rounds.slice(Math.max(0, place - AROUND), place + AROUND + 1);
  const lines = around.map((round) => {
    const { id: number, hundredths, endsAtMs } = round;
    const houseFaults = houseFaultsAt(truth, house, endsAtMs);
    const listedFrom = withheldUntil(truth, table, round);
    return [
      `played: ${house}/${game} ${number} ${hundredths} ended ${time(endsAtMs)}`,
      isLost(truth, table, round) && "never listed",
      listedFrom !== null && `not listed until ${time(listedFrom)}`,
      houseFaults.length > 0 && `during the house faults ${houseFaults.join(" and ")}`,
    ]
      .filter(Boolean)
      .join(", ");
  });
  const [from, to] = [around[0]?.id ?? id, around.at(-1)?.id ?? id];
  const rows = await sql<{ line: string }[]>`
    with selected as (
      select id from tables where house_id = ${house} and game = ${game}
    ),
    found as (
      select 1 as part, r.seq as place, concat_ws(' ',
        'stored: seq', r.seq, 'round', r.round_id, r.hundredths, 'from', r.source, 
        'requested', r.requested_at, 'received', r.received_at, 'absent', r.absent_at,
        case when r.late then 'late' end, case when r.after_gap then 'after a gap' end
      ) as line
      from named_rounds r
      join selected on selected.id = r.table_id
      where r.round_id::bigint between ${from} and ${to}
      union all
      select 2, g.id, concat_ws(' ',
        'gap:', g.after_round_id, 'to', g.before_round_id, g.state, g.attempts, 'attempts', 'opened', g.opened_at,
        'closed', g.closed_at, g.reason
      )
      from gaps g
      join selected on selected.id = g.table_id
      where coalesce(g.from_number, 0) <= ${to}
        and coalesce(g.to_number, ${to}) >= ${from}
      union all
      select 3, f.seq, concat_ws(' ',
        'forecast:', f.feature, 'after', f.cutoff_round_id, 'issued', f.issued_at, 'rev', s.rev, s.status, 'settled by seq',
        s.settled_seq, 'scored', s.scored_at
      )
      from forecasts f
      join selected on selected.id = f.table_id
      left join scores s on s.table_id = f.table_id and s.forecast_seq = f.seq
      where f.cutoff_round_id::bigint between ${from} and ${to}
      union all
      select 4, (extract(epoch from p.received_at) * 1000)::bigint, concat_ws(' ',
        'response:', p.kind, 'requested', p.requested_at, 'received', p.received_at, 'status', p.status, p.state,
        p.refused_reason, p.error
      )
      from payloads p
      join selected on selected.id = p.table_id
      where p.received_at in (
        select received_at
        from rounds r
        where r.table_id = selected.id
          and r.round_id::bigint between ${from} and ${to}
      )
    )
    select line
    from found
    order by part, place
    limit 200`;
  return [...lines, ...rows.map(({ line }) => line)];
}

function time(atMs: number): string {
  return new Date(atMs).toISOString().slice(11, 23);
}
