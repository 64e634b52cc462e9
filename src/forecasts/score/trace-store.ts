import type { Sql } from "../../db/client.ts";
import { togetherBy } from "../../db/together.ts";

/** A round of a table. */
interface RoundOf {
  tableId: number;
  seq: bigint;
}

/** Runs whose rounds are looked up by one statement. */
const RUNS_AT_ONCE = 50;

const listTogether = togetherBy<Sql, readonly RoundOf[], bigint[]>(listOfRuns, { items: RUNS_AT_ONCE });

/**
 * Ids of the answers that brought these rounds; of those that no house sent there is none. Runs that ask at once are
 * answered together.
 */
export async function listPayloadsOfRounds(sql: Sql, rounds: readonly RoundOf[]): Promise<bigint[]> {
  return rounds.length === 0 ? [] : listTogether(sql, rounds);
}

async function listOfRuns(sql: Sql, runs: readonly (readonly RoundOf[])[]): Promise<bigint[][]> {
  const asked = runs.flatMap((rounds, place) => distinct(rounds).map((round) => ({ ...round, place })));
  const rows = await sql<{ place: number; id: bigint }[]>`
    select distinct asked.place, r.payload_id as id
    from unnest(
      ${asked.map(({ place }) => place)}::integer[],
      ${asked.map(({ tableId }) => tableId)}::integer[],
      ${asked.map(({ seq }) => String(seq))}::bigint[]
    ) as asked (place, table_id, seq)
    join rounds r on r.table_id = asked.table_id and r.seq = asked.seq
    where r.payload_id is not null
    order by asked.place, id`;
  const byPlace = Map.groupBy(rows, ({ place }) => place);
  return runs.map((_, place) => (byPlace.get(place) ?? []).map(({ id }) => id));
}

function distinct(rounds: readonly RoundOf[]): RoundOf[] {
  return [...new Map(rounds.map((round) => [`${round.tableId} ${round.seq}`, round])).values()];
}
