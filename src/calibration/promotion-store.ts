import type { Queryable, Transaction } from "../db/client.ts";
import { chancesNow } from "../pass/compute/issue.ts";
import { snapshotOf } from "../pass/compute/learn.ts";
import type { PassState } from "../pass/compute/state.ts";
import { saveSnapshot } from "../pass/stores/write-forecasts-store.ts";
import type { Color } from "../rounds/colors.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import { saveModels } from "../forecasts/model/models-store.ts";
import { decodeState, modelOfState } from "../forecasts/model/state.ts";
import { insertCalibration, type NewCalibration } from "./calibration-store.ts";

/** The state of a table before a promotion. */
export interface PromotedTable {
  bands: readonly Color[];
  model: string;
  /** The newest on-time round; 0 before the first. */
  newestSeq: bigint;
}

/** Reads the table without a lock. */
export async function readTable(sql: Queryable, tableId: number): Promise<PromotedTable> {
  const [row] = await sql<PromotedTable[]>`
    select p.bands, h.model, coalesce(h.newest_seq, 0) as "newestSeq"
    from table_heads h
    join palettes p on p.id = h.palette
    where h.table_id = ${tableId}`;
  if (row === undefined) throw new Error(`expected a table with id ${tableId}, found none`);
  return row;
}

/** The promotion that created a table's live state, and who decided it. */
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
    order by calibrations.id desc
    limit 1`;
  return row ?? null;
}

/**
 * Makes a calibration that has learned the newest on-time round the live state: stores its record, the snapshot from which
 * passes continue, and the model in the head. Open windows are settled as issued. Open rolling runs would check the old
 * state and are cancelled. A change of model opens a notice. Requires the lock of the head.
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
