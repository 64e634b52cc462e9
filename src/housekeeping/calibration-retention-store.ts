import type { Sql, Transaction } from "../db/client.ts";
import { inBatches, type Tidied } from "./batch-store.ts";
import { BATCH, CALIBRATIONS_KEPT, DIFFERENCES_KEPT_DAYS } from "./limits.ts";

/** Tables looked at in one statement: what they gain in an hour is less than a batch. */
const TABLES = 100;

/**
 * Thins out the rolling calibrations of each table and model, with the runs that made them. Returns how many were deleted.
 *
 * Kept are: the newest, from which replays continue and of which `verify` replays the last; the first, which states the
 * start of its model; the last of each day for a month and of each month permanently; those that differed from the live
 * state for 90 days; and every one that was promoted or compared. Manual records and promotions are never deleted. `verify`
 * needs no deleted record: it checks the hashes of those that are there, and without the one before the newest it would
 * replay from the first round.
 */
export async function thinCalibrations(sql: Sql, signal: AbortSignal): Promise<Tidied> {
  const crowded = await sql<{ tableId: number }[]>`
    select distinct table_id as "tableId"
    from calibrations
    where kind = 'rolling'
    group by table_id, model
    having count(*) > ${CALIBRATIONS_KEPT.newest}
    order by table_id`;
  const thinned: Tidied = { rows: 0, state: "done" };
  for (let at = 0; at < crowded.length; at += TABLES) {
    const tableIds = crowded.slice(at, at + TABLES).map(({ tableId }) => tableId);
    const { rows, state } = await inBatches(sql, signal, (tx) => thinBatch(tx, tableIds));
    thinned.rows += rows;
    if (state !== "done") thinned.state = state;
  }
  return thinned;
}

async function thinBatch(tx: Transaction, tableIds: readonly number[]): Promise<number> {
  const over = await tx<{ id: string }[]>`
    select id::text
    from (
      select
        id,
        created_at,
        state_hash is distinct from live_state_hash and live_state_hash is not null as differs,
        row_number() over (partition by table_id, model order by version desc) as from_newest,
        row_number() over (partition by table_id, model order by version) as from_first,
        row_number() over (
          partition by table_id, model, date_trunc('day', created_at, 'UTC') order by version desc
        ) as of_day,
        row_number() over (
          partition by table_id, model, date_trunc('month', created_at, 'UTC') order by version desc
        ) as of_month
      from calibrations
      where table_id = any(${[...tableIds]}::integer[])
        and kind = 'rolling'
    ) c
    where from_newest > ${CALIBRATIONS_KEPT.newest}
      and from_first > 1
      and of_month > 1
      and (of_day > 1 or created_at < clock_timestamp() - ${CALIBRATIONS_KEPT.days} * interval '1 day')
      and (not differs or created_at < clock_timestamp() - ${DIFFERENCES_KEPT_DAYS} * interval '1 day')
      and not exists (select from calibrations p where p.promoted_from = c.id)
      and not exists (select from calibration_comparisons p where c.id in (p.a_id, p.b_id))
    order by id
    limit ${BATCH}`;
  const ids = over.map(({ id }) => id);
  if (ids.length === 0) return 0;
  await tx`
    delete from calibration_runs
    where kind = 'rolling'
      and calibration_id = any(${ids}::bigint[])`;
  const { count } = await tx`
    delete from calibrations
    where id = any(${ids}::bigint[])`;
  return count;
}
