import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import { checkCounts } from "../simulate/final-checks.ts";
import { checkInvariants, listMissing } from "../simulate/invariants.ts";
import type { Testbed } from "./testbed.ts";

const TIMEOUT_MS = 90_000;

/**
 * Checks what must hold after every case: nothing is duplicated, reordered or issued late; every round that was played
 * until `untilMs` is stored, every forecast with a known outcome is scored once, and every served call is counted.
 * @throws InvariantViolation at the first that does not hold; missing rounds and scores have 90 s to arrive
 */
export async function checkNothingLost({ sql, truth, caller }: Testbed, untilMs: number): Promise<void> {
  await checkInvariants(sql, truth);
  await waitUntilEmpty("missing rounds", async () =>
    (await listMissing(sql, truth, untilMs)).map(({ message }) => message),
  );
  await waitUntilEmpty("forecasts with a missing or duplicate score", () => listUnscored(sql));
  await checkInvariants(sql, truth);
  await checkCounts(sql, [caller]);
}

/** Lists forecasts whose last on-time round is stored and that are neither scored nor void, and those scored twice. */
async function listUnscored(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    with ended as (
      select f.table_id, f.seq
      from forecasts f
      join table_heads h on h.table_id = f.table_id
      where f.cutoff_ordinal + f.horizon <= h.last_ordinal
    ),
    settled as (
      select table_id, forecast_seq as seq, count(*) as times
      from scores
      where rev = 1
      group by table_id, forecast_seq
    )
    select concat(coalesce(e.table_id, s.table_id), '/', coalesce(e.seq, s.seq), ' settled ', coalesce(s.times, 0), ' times') as name
    from ended e
    full join settled s using (table_id, seq)
    where s.times > 1
      or s.times is null
    limit 5`;
  return rows.map(({ name }) => name);
}

async function waitUntilEmpty(what: string, list: () => Promise<string[]>): Promise<void> {
  let left: string[] = [];
  for (const until = Date.now() + TIMEOUT_MS; Date.now() < until; await delay(250)) {
    left = await list();
    if (left.length === 0) return;
  }
  throw new InvariantViolation(`${what}: ${left.slice(0, 5).join(", ")}`);
}
