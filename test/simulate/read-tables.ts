import type { Sql } from "../../src/db/client.ts";
import type { TrueTable, Truth } from "./truth.ts";

/** A round as it is stored. */
export interface StoredRound {
  id: number;
  hundredths: number;
  late: boolean;
  seq: number;
  occurredAtMs: number | null;
}

/** The stored rounds of a table by seq, and its forecast sets. */
export interface Stored {
  rounds: StoredRound[];
  sets: { cutoff: number; issuedAtMs: number; committedAtMs: number }[];
}

/** Reads the stored rounds and forecast sets of every table of the truth, in one snapshot. */
export async function readTables(sql: Sql, truth: Truth): Promise<Map<TrueTable, Stored>> {
  return sql.begin("isolation level repeatable read read only", async (tx) => {
    const ids = await tx<{ id: number; house: string; game: string }[]>`
      select id, house_id as house, game
      from tables`;
    const rounds = await tx<(StoredRound & { table: number })[]>`
      select
        table_id as table,
        round_id::float8 as id,
        hundredths::float8 as hundredths,
        late,
        seq::float8 as seq,
        round(extract(epoch from occurred_at) * 1000)::float8 as "occurredAtMs"
      from rounds
      order by table_id, rounds.seq`;
    const sets = await tx<(Stored["sets"][number] & { table: number })[]>`
      select
        table_id as table,
        cutoff_round_id::float8 as cutoff,
        extract(epoch from issued_at)::float8 * 1000 as "issuedAtMs",
        extract(epoch from pg_xact_commit_timestamp(xmin))::float8 * 1000 as "committedAtMs"
      from forecast_sets`;
    const [roundsOf, setsOf] = [Map.groupBy(rounds, ({ table }) => table), Map.groupBy(sets, ({ table }) => table)];
    const found = new Map<TrueTable, Stored>();
    for (const { id, house, game } of ids) {
      if (!truth.houseFaults.has(house)) continue; // an extra house, whose true rounds are unknown
      const table = truth.tables.find((one) => one.house === house && one.game === game);
      if (table === undefined) throw new Error(`the stored table ${house}/${game} does not exist in the simulation`);
      found.set(table, { rounds: roundsOf.get(id) ?? [], sets: setsOf.get(id) ?? [] });
    }
    return found;
  });
}
