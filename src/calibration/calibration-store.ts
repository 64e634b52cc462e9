import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import type { Queryable, Transaction } from "../db/client.ts";
import type { CarryJson, Snapshot, SumsByFeature } from "./backtest/replay.ts";

/** How a calibration was created. */
export type CalibrationKind = "rolling" | "manual" | "promoted";

/** A calibration to store: everything that its record hash covers except its version. */
export interface NewCalibration extends Omit<Snapshot, "sums" | "carry"> {
  tableId: number;
  kind: CalibrationKind;
  model: string;
  fromSeq: bigint;
  otherBands: boolean;
  liveStateHash: string | null;
  weights: Record<string, number>;
  sums: SumsByFeature;
  carry: CarryJson;
  compared: unknown;
  /** For a promotion: the promoted record, who decided it and why. */
  promotion: { from: string; by: string; reason: string } | null;
}

/** The fields that a record hash covers. */
export type RecordFacts = Omit<NewCalibration, "state" | "sums" | "carry"> & {
  version: number;
  sums: unknown;
  carry: unknown;
};

/**
 * Hash of a record, hex: sha256 over the JCS of its facts, with the state as its hash and integers as texts.
 */
export function recordHash(facts: RecordFacts): string {
  const {
    tableId,
    version,
    beginSeq,
    fromSeq,
    toSeq,
    rounds,
    stateHash,
    revisionId,
    revisedSeq,
    seenSeq,
    lateRounds,
    ...rest
  } = facts;
  const text = canonicalize({
    table_id: tableId,
    version,
    kind: rest.kind,
    model: rest.model,
    begin_seq: String(beginSeq),
    from_seq: String(fromSeq),
    to_seq: String(toSeq),
    rounds: String(rounds),
    state_hash: stateHash,
    live_state_hash: rest.liveStateHash,
    other_bands: rest.otherBands,
    weights: rest.weights,
    sums: rest.sums,
    carry: rest.carry,
    compared: rest.compared,
    promotion: rest.promotion,
    // absent if there are none, as in records from before revisions existed
    ...(revisionId === 0n ? {} : { revision_id: String(revisionId), revised_seq: String(revisedSeq) }),
    ...(seenSeq === null ? {} : { seen_seq: String(seenSeq), late_rounds: String(lateRounds) }),
  });
  return createHash("sha256")
    .update(text ?? "", "utf8")
    .digest("hex");
}

/** Stores a calibration under the next version of its table and model. */
export async function insertCalibration(
  tx: Transaction,
  calibration: NewCalibration,
): Promise<{ id: string; version: number; asOf: string }> {
  const { tableId, model, promotion } = calibration;
  // two runs of a table may end concurrently, and each must see the other's version
  await tx`select pg_advisory_xact_lock(hashtext('calibrations'), ${tableId})`;
  const [newest] = await tx<{ version: number }[]>`
    select coalesce(max(version), 0) + 1 as version
    from calibrations
    where table_id = ${tableId}
      and model = ${model}`;
  const version = newest?.version ?? 1;
  const [row] = await tx<{ id: string; asOf: string }[]>`
    insert into calibrations (
      table_id, model, version, kind, begin_seq, from_seq, to_seq, rounds, state, state_hash, live_state_hash,
      other_bands, weights, sums, carry, compared, promoted_from, decided_by, reason, record_hash, revision_id,
      revised_seq, seen_seq, late_rounds
    )
    values (
      ${tableId}, ${model}, ${version}, ${calibration.kind}, ${calibration.beginSeq}, ${calibration.fromSeq},
      ${calibration.toSeq}, ${calibration.rounds}, ${calibration.state}, ${calibration.stateHash},
      ${calibration.liveStateHash}, ${calibration.otherBands}, ${tx.json(calibration.weights)},
      ${tx.json(calibration.sums)}, ${tx.json(calibration.carry)}, ${asJson(tx, calibration.compared)},
      ${promotion?.from ?? null}, ${promotion?.by ?? null}, ${promotion?.reason ?? null},
      ${recordHash({ ...calibration, version })}, ${calibration.revisionId}, ${calibration.revisedSeq},
      ${calibration.seenSeq}, ${calibration.lateRounds}
    )
    returning id::text as id, utc_text(created_at) as "asOf"`;
  if (row === undefined) throw new Error("expected the stored calibration, found none");
  return { ...row, version };
}

/** A jsonb parameter, or null. */
export function asJson(sql: Queryable, value: unknown) {
  return value === null ? null : sql.json(value as Parameters<typeof sql.json>[0]);
}

/** A calibration without its state. */
export interface CalibrationRow extends RecordFacts {
  id: string;
  table: string;
  fromRoundId: string | null;
  toRoundId: string | null;
  recordHash: string;
  createdAt: string;
}

/** A calibration with its state. */
export type WholeCalibration = CalibrationRow & { state: Buffer };

/** Calibrations of one table if `tableId` is given, else of all, newest first. */
export async function listCalibrations(
  sql: Queryable,
  { tableId, limit }: { tableId?: number | undefined; limit: number },
): Promise<CalibrationRow[]> {
  return sql<CalibrationRow[]>`
    select ${columnsOf(sql)}
    from calibrations c
    join tables t on t.id = c.table_id
    ${tableId === undefined ? sql`` : sql`where c.table_id = ${tableId}`}
    order by c.id desc
    limit ${limit}`;
}

/** The calibration with an id, with its state; null if there is none. */
export async function findCalibration(sql: Queryable, id: string): Promise<WholeCalibration | null> {
  const [row] = await sql<WholeCalibration[]>`
    select ${columnsOf(sql)}, c.state
    from calibrations c
    join tables t on t.id = c.table_id
    where c.id = ${id}`;
  return row ?? null;
}

/** The calibrations of a table after an id, oldest first, at most `limit`. */
export async function listCalibrationsAfter(
  sql: Queryable,
  tableId: number,
  { afterId, limit }: { afterId: string; limit: number },
): Promise<WholeCalibration[]> {
  return sql<WholeCalibration[]>`
    select ${columnsOf(sql)}, c.state
    from calibrations c
    join tables t on t.id = c.table_id
    where c.table_id = ${tableId}
      and c.id > ${afterId}
    order by c.id
    limit ${limit}`;
}

/**
 * The record from which a record of the live state was made: the promoted one, or the one that ends where it begins; null
 * if its replay began with an empty state.
 */
export async function findBase(sql: Queryable, record: WholeCalibration): Promise<WholeCalibration | null> {
  if (record.promotion !== null) return findCalibration(sql, record.promotion.from);
  const [row] = await sql<WholeCalibration[]>`
    select ${columnsOf(sql)}, c.state
    from calibrations c
    join tables t on t.id = c.table_id
    where c.table_id = ${record.tableId}
      and c.model = ${record.model}
      and c.kind <> 'manual'
      and c.version < ${record.version}
      and c.begin_seq = ${record.beginSeq}
      and c.to_seq = ${record.fromSeq - 1n}
    order by c.version desc
    limit 1`;
  return row ?? null;
}

function columnsOf(sql: Queryable) {
  return sql`
    c.id::text as id,
    c.table_id as "tableId",
    t.house_id || '/' || t.game || '/' || t.market as "table",
    c.model, c.version, c.kind,
    c.begin_seq as "beginSeq",
    c.revision_id as "revisionId",
    c.revised_seq as "revisedSeq",
    c.seen_seq as "seenSeq",
    c.late_rounds as "lateRounds",
    c.from_seq as "fromSeq",
    c.to_seq as "toSeq",
    case
      when c.seen_seq is null then (select round_id from rounds r where r.table_id = c.table_id and r.seq = c.begin_seq)
      else c.begin_seq::text
    end as "fromRoundId",
    case
      when c.seen_seq is null then (select round_id from rounds r where r.table_id = c.table_id and r.seq = c.to_seq)
      else c.to_seq::text
    end as "toRoundId",
    c.rounds,
    c.state_hash as "stateHash",
    c.live_state_hash as "liveStateHash",
    c.other_bands as "otherBands",
    c.weights, c.sums, c.carry, c.compared,
    case when c.kind = 'promoted' then
      jsonb_build_object('from', c.promoted_from::text, 'by', c.decided_by, 'reason', c.reason)
    end as promotion,
    c.record_hash as "recordHash",
    utc_text(c.created_at) as "createdAt"`;
}
