import { encodeSums, type SumVector } from "../../src/forecasts/accuracy/sum-vector.ts";
import type { Sql } from "../../src/db/client.ts";

/** Sums that are published for a feature (by code) of a table over a period, by key of a sum vector. */
interface GivenSums {
  feature?: number;
  period: string;
  sums: SumVector;
}

/** Writes published sums of a table's live model; `hour` (ISO 8601) is where the period ends. */
export async function writeSums(sql: Sql, tableId: number, hour: string, given: GivenSums): Promise<void> {
  const { feature = 0, period, sums } = given;
  // in one transaction: an API that read the new version with the old sums would keep them
  await sql.begin(async (tx) => {
    await tx`
      insert into accuracy_marks (table_id, round_seq, hour)
      values (${tableId}, 1, ${hour})
      on conflict (table_id) do update
      set hour = excluded.hour, version = accuracy_marks.version + 1, updated_at = clock_timestamp()`;
    await tx`
      insert into accuracy_models (table_id, model, palette, first_hour)
      select ${tableId}, model, palette, ${hour}::timestamptz - interval '1 day' from table_heads where table_id = ${tableId}
      on conflict do nothing`;
    await tx`delete from accuracy_hours where table_id = ${tableId}`;
    // an hour in which nothing was added: without one the table is at rest, and its periods end now
    await tx`
      insert into accuracy_hours (table_id, hour, feature, model, sums)
      select table_id, ${hour}, ${feature}, model, ${Buffer.from(encodeSums(new Map()))}
      from table_heads where table_id = ${tableId}`;
    await tx`
      insert into accuracy_periods (table_id, feature, model, period, sums)
      select table_id, ${feature}, model, ${period}, ${Buffer.from(encodeSums(sums))} from table_heads where table_id = ${tableId}
      on conflict (table_id, feature, model, period) do update
      set sums = excluded.sums`;
  });
}
