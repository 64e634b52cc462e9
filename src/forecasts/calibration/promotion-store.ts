import type { Queryable, Transaction } from "../../db/client.ts";
import { insertCalibration, showCalibration, type NewCalibration } from "./calibration-store.ts";
import { saveStates } from "../model/model-store.ts";
import type { Band } from "../model/table-model.ts";

/** A table as a promotion finds it. */
export interface PromotedTable {
  bands: Band[];
  lastSeq: bigint;
  /** The newest on-time round; 0 before the first. */
  newestSeq: bigint;
  /** The model that is live now. */
  model: string;
}

/** The table now; nothing is held. */
export async function readTable(sql: Queryable, tableId: number): Promise<PromotedTable> {
  const [row] = await sql<PromotedTable[]>`
    select
      t.colors as bands,
      t.last_seq as "lastSeq",
      coalesce(
        (select r.seq from rounds r where r.table_id = t.id and not r.late order by r.seq desc limit 1),
        0
      ) as "newestSeq",
      t.model
    from tables t
    where t.id = ${tableId}`;
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

/** The table under its lock: nothing is taken in, learned or issued until the transaction ends. */
export async function lockTable(tx: Transaction, tableId: number): Promise<PromotedTable> {
  await tx`
    select id
    from tables
    where id = ${tableId}
    for no key update`;
  return readTable(tx, tableId); // a second statement sees what the last holder of the lock committed
}

/**
 * Makes a calibration, rolled forward to the table's newest seq, its live state: the record of it, the state itself, the
 * model that issues from now on. Rolling runs that are under way would prove the old state and are called off. Needs the
 * table's lock.
 */
export async function switchTo(
  tx: Transaction,
  calibration: NewCalibration,
  learnedSeq: bigint,
): Promise<{ id: string; version: number; asOf: string }> {
  const { tableId, model, state, stateHash } = calibration;
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
  await saveStates(tx, [{ tableId, model, learnedSeq, state, stateHash }]);
  await tx`
    update tables
    set model = ${model}
    where id = ${tableId}`;
  await showCalibration(tx, calibration, stored);
  return stored;
}
