import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import type { Queryable, Sql, Transaction } from "../../db/client.ts";
import { togetherBy } from "../../db/together.ts";
import type { CarryJson, Snapshot, SumsByFeature } from "./replay.ts";
import type { Band } from "../model/table-model.ts";

/** A table's state is replayed after so many rounds, or after so long where it learned anything at all. */
const ROLLING_ROUNDS = 1000;
const ROLLING_MINUTES = 15;

/** A run that was silent for longer is taken over: its worker is gone. */
const SILENT_SECONDS = 60;

/** Houses that are looked at by one statement. */
const HOUSES_AT_ONCE = 100;

const requestTogether = togetherBy<Sql, string, { run: string }[]>(requestRunsOf, { items: HOUSES_AT_ONCE });

/**
 * Asks for a rolling run of every table of a house that is due: it has learned 1,000 rounds, or anything at all for 15
 * minutes, since its newest calibration. At most one rolling run of a table is open. Returns the new runs. Houses that
 * ask at once are looked at together.
 */
export function requestRollingRuns(sql: Sql, house: string): Promise<{ run: string }[]> {
  return requestTogether(sql, house);
}

async function requestRunsOf(sql: Sql, houses: readonly string[]): Promise<{ run: string }[][]> {
  const rows = await sql<{ house: string; run: string }[]>`
    with requested as (
      insert into calibration_runs (table_id, kind, model)
      select s.table_id, 'rolling', s.model
      from tables t
      join model_states s on s.table_id = t.id and s.model = t.model
      left join lateral (${newestCalibration(sql)}) newest on true
      where t.house_id = any(${[...houses]}::text[])
        and ${isDue(sql)}
      order by s.table_id
      limit 1000
      on conflict do nothing
      returning id, table_id
    )
    select t.house_id as house, requested.id::text as run
    from requested
    join tables t on t.id = requested.table_id
    order by requested.id`;
  const byHouse = Map.groupBy(rows, ({ house }) => house);
  // of equal houses one has the runs
  return houses.map((house, at) =>
    houses.indexOf(house) === at ? (byHouse.get(house) ?? []).map(({ run }) => ({ run })) : [],
  );
}

/** Houses with a table whose rolling run is due and not asked for. */
export async function listHousesToCalibrate(sql: Queryable): Promise<{ house: string }[]> {
  return sql<{ house: string }[]>`
    select distinct t.house_id as house
    from tables t
    join model_states s on s.table_id = t.id and s.model = t.model
    left join lateral (${newestCalibration(sql)}) newest on true
    where ${isDue(sql)}
    limit 1000`;
}

/** The newest calibration that the state `s` went through: a run by hand is none unless it was promoted. */
function newestCalibration(sql: Queryable) {
  return sql`
    select c.to_seq, c.created_at
    from calibrations c
    where c.table_id = s.table_id
      and c.model = s.model
      and c.kind <> 'manual'
    order by c.version desc
    limit 1`;
}

/** Has the state `s` of the table `t` learned enough, or waited long enough, since its `newest` calibration? */
function isDue(sql: Queryable) {
  return sql`
    s.learned_seq > coalesce(newest.to_seq, 0)
      and (
        s.learned_seq - coalesce(newest.to_seq, 0) >= ${ROLLING_ROUNDS}
        or coalesce(newest.created_at, t.created_at) < clock_timestamp() - ${ROLLING_MINUTES} * interval '1 minute'
      )
      and not exists (
        select
        from calibration_runs r
        where r.table_id = s.table_id
          and r.model = s.model
          and r.kind = 'rolling'
          and r.status in ('queued', 'running')
      )`;
}

/** Rolling runs that nobody works on: queued, or silent for a minute. */
export async function listWaitingRuns(sql: Queryable): Promise<{ run: string }[]> {
  return sql<{ run: string }[]>`
    select id::text as run
    from calibration_runs
    where kind = 'rolling'
      and status in ('queued', 'running')
      and (status = 'queued' or heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second')
    order by requested_at
    limit 1000`;
}

/** A run as taken: its table, and the checkpoints it may go on from. */
export interface TakenRun {
  id: string;
  tableId: number;
  table: string;
  model: string;
  bands: Band[];
  /** What the house declares, null where it declares nothing. */
  edge: number | null;
  /** The newest records of the live state, newest first; none for a table's first run. */
  checkpoints: Snapshot[];
  /** The live state at this moment, which the replay must meet. */
  live: { learnedSeq: bigint; stateHash: string; state: Buffer } | null;
}

/** Damaged records that a rolling run passes over before it begins with the first round. */
const CHECKPOINTS = 5;

/** Claims a rolling run, or null where it is done, cancelled or worked on elsewhere. */
export async function takeRun(sql: Sql, run: string): Promise<TakenRun | null> {
  const rows = await sql`
    update calibration_runs
    set
      status = 'running',
      heartbeat_at = clock_timestamp()
    where id = ${run}
      and kind = 'rolling'
      and status in ('queued', 'running')
      and (status = 'queued' or heartbeat_at < clock_timestamp() - ${SILENT_SECONDS} * interval '1 second')
    returning id`;
  if (rows.length === 0) return null;
  const [taken] = await sql<
    (Omit<TakenRun, "checkpoints" | "live"> & {
      learnedSeq: bigint | null;
      liveState: Buffer | null;
      liveHash: string | null;
    })[]
  >`
    select
      r.id::text as id,
      t.id as "tableId",
      t.house_id || '/' || t.game || '/' || t.market as "table",
      r.model,
      t.colors as bands,
      (t.settings ->> 'house_edge')::float8 as edge,
      s.learned_seq as "learnedSeq",
      s.state as "liveState",
      s.state_hash as "liveHash"
    from calibration_runs r
    join tables t on t.id = r.table_id
    left join model_states s on s.table_id = r.table_id and s.model = r.model
    where r.id = ${run}`;
  if (taken === undefined) return null;
  const { learnedSeq, liveState, liveHash, ...rest } = taken;
  // read after the live state: a promotion in between is newer than it, and the run is then no longer ours
  const checkpoints = await sql<Snapshot[]>`
    select
      begin_seq as "beginSeq", to_seq as "toSeq", rounds, state, state_hash as "stateHash", sums, carry,
      revision_id as "revisionId", revised_seq as "revisedSeq"
    from calibrations
    where table_id = ${rest.tableId}
      and model = ${rest.model}
      and kind <> 'manual'
    order by version desc
    limit ${CHECKPOINTS}`;
  return {
    ...rest,
    checkpoints,
    live:
      learnedSeq === null || liveState === null || liveHash === null
        ? null
        : { learnedSeq, state: liveState, stateHash: liveHash },
  };
}

/** Says that a run is still worked on. */
export async function beatRun(sql: Sql, run: string): Promise<void> {
  await sql`
    update calibration_runs
    set heartbeat_at = clock_timestamp()
    where id = ${run}`;
}

/** Gives a run back to whoever takes it next. */
export async function releaseRun(sql: Sql, run: string): Promise<void> {
  await sql`
    update calibration_runs
    set status = 'queued'
    where id = ${run}
      and status = 'running'`;
}

/** Ends a run that had nothing to replay, saying why. */
export async function endRun(sql: Sql, run: string, reason: string): Promise<void> {
  await sql`
    update calibration_runs
    set
      status = 'done',
      reason = ${reason},
      finished_at = clock_timestamp()
    where id = ${run}`;
}

/** How a calibration came about. */
export type CalibrationKind = "rolling" | "manual" | "promoted";

/** A calibration ready to be stored: all that its record hash covers but its version. */
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
  /** Of a promotion: the record that was promoted, who decided it and why. */
  promotion: { from: string; by: string; reason: string } | null;
}

/** What a record hash covers. */
export type RecordFacts = Omit<NewCalibration, "state" | "sums" | "carry"> & {
  version: number;
  sums: unknown;
  carry: unknown;
};

/**
 * Hash of a record, hex: sha256 over the JCS of its facts, its state by hash and whole numbers as texts. One changed byte
 * in any of them shows.
 */
export function recordHash(facts: RecordFacts): string {
  const { tableId, version, beginSeq, fromSeq, toSeq, rounds, stateHash, revisionId, revisedSeq, ...rest } = facts;
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
    // left out where there are none: so were they before there could be any
    ...(revisionId === 0n ? {} : { revision_id: String(revisionId), revised_seq: String(revisedSeq) }),
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
  // two runs of a table may end at once, and each must see the other's version
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
      revised_seq
    )
    values (
      ${tableId}, ${model}, ${version}, ${calibration.kind}, ${calibration.beginSeq}, ${calibration.fromSeq},
      ${calibration.toSeq}, ${calibration.rounds}, ${calibration.state}, ${calibration.stateHash},
      ${calibration.liveStateHash}, ${calibration.otherBands}, ${tx.json(calibration.weights)},
      ${tx.json(calibration.sums)}, ${tx.json(calibration.carry)}, ${asJson(tx, calibration.compared)},
      ${promotion?.from ?? null}, ${promotion?.by ?? null}, ${promotion?.reason ?? null},
      ${recordHash({ ...calibration, version })}, ${calibration.revisionId}, ${calibration.revisedSeq}
    )
    returning id::text as id, utc_text(created_at) as "asOf"`;
  if (row === undefined) throw new Error("expected the stored calibration, got nothing");
  return { ...row, version };
}

/** A jsonb parameter, or null. */
export function asJson(sql: Queryable, value: unknown) {
  return value === null ? null : sql.json(value as Parameters<typeof sql.json>[0]);
}

/**
 * Stores a calibration of a rolling run under the table's next version and returns that, or null where the run is no
 * longer ours. One that came to the live state (`isMet` not null) ends the run; where it met it, it is shown beside the
 * table's forecasts.
 */
export async function saveRollingCalibration(
  sql: Sql,
  run: string,
  calibration: NewCalibration,
  isMet: boolean | null,
): Promise<number | null> {
  return sql.begin(async (tx) => {
    const ours = await tx`
      update calibration_runs
      set heartbeat_at = clock_timestamp()
      where id = ${run}
        and status = 'running'
      returning id`;
    if (ours.length === 0) return null;
    const { id, version, asOf } = await insertCalibration(tx, calibration);
    if (isMet !== null) await finishRun(tx, run, id);
    if (isMet === true) await showCalibration(tx, calibration, { version, asOf });
    return version;
  });
}

/** Ends a run with the calibration it made. */
export async function finishRun(tx: Transaction, run: string, calibrationId: string): Promise<void> {
  await tx`
    update calibration_runs
    set
      status = 'done',
      finished_at = clock_timestamp(),
      calibration_id = ${calibrationId}
    where id = ${run}`;
}

/** Shows a calibration of the live state beside the table's forecasts. */
export async function showCalibration(
  tx: Transaction,
  { tableId, rounds }: { tableId: number; rounds: bigint },
  { version, asOf }: { version: number; asOf: string },
): Promise<void> {
  const shown: PublishedCalibration = { version, rounds: Number(rounds), as_of: asOf };
  await tx`
    update published_now
    set
      calibration = ${tx.json(shown)},
      updated_at = clock_timestamp()
    where table_id = ${tableId}`;
}

/** What `published_now.calibration` holds. */
export type PublishedCalibration = { version: number; rounds: number; as_of: string };

/** A calibration as listed and shown. */
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

/** Calibrations, newest first: of one table where `tableId` is given, else of all. */
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

/** The calibration with an id, with its state; null where there is none. */
export async function findCalibration(sql: Queryable, id: string): Promise<WholeCalibration | null> {
  const [row] = await sql<WholeCalibration[]>`
    select ${columnsOf(sql)}, c.state
    from calibrations c
    join tables t on t.id = c.table_id
    where c.id = ${id}`;
  return row ?? null;
}

/** The calibrations of a table after one id, in the order in which they were made, at most `limit`. */
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
 * The record that another of the live state was made from: the one that was promoted, or the one that ends where it
 * begins; null where its replay began with nothing.
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
    c.from_seq as "fromSeq",
    c.to_seq as "toSeq",
    (select round_id from rounds r where r.table_id = c.table_id and r.seq = c.begin_seq) as "fromRoundId",
    (select round_id from rounds r where r.table_id = c.table_id and r.seq = c.to_seq) as "toRoundId",
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
