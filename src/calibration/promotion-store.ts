import type { Queryable, Transaction } from "../db/client.ts";
import { lockState } from "../pass/add.ts";
import { chancesNow } from "../pass/issue.ts";
import { snapshotOf } from "../pass/learn.ts";
import type { PassState } from "../pass/state.ts";
import { saveSnapshot } from "../pass/write-store.ts";
import type { Color } from "../rounds/colors.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import { saveModels } from "../forecasts/model/models-store.ts";
import { decodeState, modelOfState } from "../forecasts/model/state.ts";
import { insertCalibration, type NewCalibration } from "./calibration-store.ts";

/** A table as a promotion finds it. */
export interface PromotedTable {
  bands: readonly Color[];
  model: string;
  /** The newest on-time round; 0 before the first. */
  newestSeq: bigint;
}

/** The table now; nothing is held. */
export async function readTable(sql: Queryable, tableId: number): Promise<PromotedTable> {
  const [row] = await sql<PromotedTable[]>`
    select p.bands, h.model, coalesce(h.newest_seq, 0) as "newestSeq"
    from table_heads h
    join palettes p on p.id = h.palette
    where h.table_id = ${tableId}`;
  if (row === undefined) throw new Error(`expected a table with id ${tableId}, found none`);
  return row;
}

/** The promotion that made a table's live state, and who decided it. */
export interface NewestPromotion {
  id: string;
  from: string;
  by: string;
  reason: string;
  at: string;
}

/** The newest promotion of a table; null before the first. */
export async function findNewestPromotion(sql: Queryable, tableId: number): Promise<NewestPromotion | null> {
  const [row] = await sql<NewestPromotion[]>`
    select
      id::text as id, promoted_from::text as "from", decided_by as by, reason,
      utc_text(created_at) as at
    from calibrations
    where table_id = ${tableId}
      and kind = 'promoted'
    order by id desc
    limit 1`;
  return row ?? null;
}

/** The live state of a table under the lock of its head: no pass is made until the transaction ends. */
export function lockTable(tx: Transaction, tableId: number): Promise<PassState> {
  return lockState(tx, tableId);
}

/**
 * Makes a calibration, rolled forward to the table's newest on-time round, its live state: the record of it, a snapshot that
 * passes continue from, the model in the head. Windows that are open are settled as they were issued. Rolling runs that are under
 * way would prove the old state and are cancelled. If the model is another one, a notice opens. Needs the lock of the head.
 */
export async function switchTo(
  tx: Transaction,
  calibration: NewCalibration,
  live: PassState,
): Promise<{ id: string; version: number; asOf: string }> {
  const { tableId, model: name, state } = calibration;
  await tx`
    update calibration_runs
    set
      status = 'cancelled',
      reason = 'a promotion made another state live',
      finished_at = clock_timestamp()
    where table_id = ${tableId}
      and kind = 'rolling'
      and status in ('queued', 'running')`;
  const stored = await insertCalibration(tx, calibration);
  const model = modelOfState(state);
  const k7 = decodeState(model, state);
  await saveModels(tx, [model]);
  const head = { ...live.head, model: name };
  const { references, reading } = live;
  await saveSnapshot(tx, tableId, snapshotOf(model, head, { k7, references, reading }));
  const nowPpm = chancesNow({ table: live.table, model, k7 }, live.open, { head, issued: null });
  await tx`
    update table_heads
    set
      version = version + 1,
      changed_at = clock_timestamp(),
      model = ${name},
      now_ppm = ${nowPpm}::integer[]
    where table_id = ${tableId}`;
  await refreshNoticesWithin(tx, [tableId]);
  return stored;
}
