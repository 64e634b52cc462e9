import type { Sql } from "../db/client.ts";
import { UsageError } from "../errors.ts";
import { readIsoTime } from "../iso-time.ts";
import { createModel, type Model } from "../forecasts/model/model.ts";
import { parameterSetOf } from "../forecasts/model/model-name.ts";
import type { Parameters } from "../forecasts/model/parameters.ts";
import { modelOf } from "../forecasts/model/table-model.ts";
import {
  findEnds,
  findRound,
  findRoundAt,
  hasLateRounds,
  readOrder,
  readSettings,
  type ReplayOrder,
  type ReplayRange,
  type RoundPlace,
} from "./backtest/range-store.ts";
import { createManualRun, type ManualRun, type RunOrder } from "./runs/manual-run-store.ts";
import { findParameters } from "./runs/parameter-set-store.ts";

/** The range to replay; both ends are round ids or times of receipt, inclusive. */
export interface ManualRequest {
  tableId: number;
  table: string;
  from: string | undefined;
  to: string | undefined;
  /** The requested name, which may have the hash of one model; `parameters` are those of its set with what was changed. */
  model?: string | undefined;
  parameters: Parameters;
  thresholds: readonly number[] | null;
  outFile: string | null;
  /** Present if a worker shall run it. */
  order?: RunOrder;
  replayOrder?: ReplayOrder | undefined;
  /** Names of these inputs in error messages. */
  words?: typeof WORDS;
}

const WORDS = { from: "--from", to: "--to", order: "--order", model: "--model" };

/** A day or a time of UTC; no house has such round ids. */
const MOMENT = /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?Z?$/;

/**
 * Stores a manual run and returns its id. Without `replayOrder` the order is by id if ids are consecutive, else the order
 * taken. Both are equal for a range without late rounds if the newest number was never reset: then the order taken is
 * stored unless the other is requested, since only such a run can be promoted.
 *
 * @throws UsageError if the table does not have the range, the order or the model
 */
export async function requestManualRun(sql: Sql, request: ManualRequest): Promise<string> {
  const { tableId, parameters, thresholds, outFile, order } = request;
  const range = await rangeOf(sql, request);
  const settings = await readSettings(sql, tableId);
  await requireModel(sql, request, settings);
  const { name: model } = modelOfRun({ ...settings, thresholds, parameters });
  return createManualRun(sql, { tableId, model, parameters, thresholds, range, outFile, order });
}

/** Refuses the name of a model that has other bands or another edge than the table has now. */
async function requireModel(
  sql: Sql,
  { table, model, words = WORDS }: ManualRequest,
  { bands, edge }: Pick<ManualRun, "bands" | "edge">,
): Promise<void> {
  if (model === undefined || parameterSetOf(model) === model) return;
  const parameters = await findParameters(sql, model);
  const found = parameters === null ? "none" : modelOf(bands, edge, parameters).name;
  if (found === model) return;
  throw new UsageError(
    `${words.model}: expected ${model}, found ${found} for the bands and edge of ${table}; request ${parameterSetOf(model)} instead`,
  );
}

async function rangeOf(sql: Sql, request: ManualRequest): Promise<ReplayRange> {
  const { tableId, table, replayOrder, words = WORDS } = request;
  const { newestSeq, isConsecutive, wasReset } = await readOrder(sql, tableId);
  if (replayOrder === "round" && !isConsecutive)
    throw new UsageError(`${words.order}: the round ids of ${table} are not consecutive numbers; use taken`);
  const order = replayOrder ?? (isConsecutive ? "round" : "taken");
  const ends = await findEnds(sql, tableId, order, { wasReset });
  if (ends === null) throw new UsageError(`${table} has no rounds to replay yet; import some, or wait for its first`);
  const from = await placeOf(sql, request, "from", order, ends);
  const to = await placeOf(sql, request, "to", order, ends);
  const [fromAt, toAt] = order === "taken" ? [from.seq, to.seq] : [BigInt(from.roundId), BigInt(to.roundId)];
  if (fromAt > toAt) {
    const after = order === "taken" ? "was stored after" : "is after";
    throw new UsageError(`${words.from}: round ${from.roundId} of ${table} ${after} round ${to.roundId}`);
  }
  const range = { fromSeq: fromAt, toSeq: toAt, seenSeq: order === "taken" ? null : newestSeq };
  if (replayOrder !== undefined || order === "taken" || wasReset) return range;
  return (await hasLateRounds(sql, tableId, range)) ? range : { fromSeq: from.seq, toSeq: to.seq, seenSeq: null };
}

async function placeOf(
  sql: Sql,
  request: ManualRequest,
  end: "from" | "to",
  order: ReplayOrder,
  ends: { first: RoundPlace; last: RoundPlace },
): Promise<RoundPlace> {
  const { tableId, table, words = WORDS } = request;
  const roundId = request[end];
  const option = words[end];
  if (roundId === undefined) return end === "from" ? ends.first : ends.last;
  if (MOMENT.test(roundId)) return placeAt(sql, request, { end, option, text: roundId });
  const place = await findRound(sql, tableId, roundId);
  const whole = `its ${order === "taken" ? "on-time rounds" : "rounds"} go from ${ends.first.roundId} to ${ends.last.roundId}`;
  if (place === null) throw new UsageError(`${option}: there is no round ${roundId} in ${table}; ${whole}`);
  if (place.late && order === "taken")
    throw new UsageError(
      `${option}: round ${roundId} of ${table} was late, and only a replay by round id includes late rounds; ${whole}`,
    );
  return place;
}

async function placeAt(
  sql: Sql,
  { tableId, table }: ManualRequest,
  { end, option, text }: { end: "from" | "to"; option: string; text: string },
): Promise<RoundPlace> {
  const moment = readIsoTime(text);
  if (moment === null) throw new UsageError(`${option}: expected a time such as 2026-11-21T04:00, found ${text}`);
  const at = new Date(moment.ms).toISOString();
  const place = await findRoundAt(sql, tableId, { at, end });
  if (place !== null) return place;
  const where = end === "from" ? "at or after" : "at or before";
  throw new UsageError(`${option}: ${table} has no on-time round that was received ${where} ${at}`);
}

/** The model of a run: the table's bands, or other thresholds. */
export function modelOfRun({
  bands,
  thresholds,
  edge,
  parameters,
}: Pick<ManualRun, "bands" | "edge"> & Pick<ManualRequest, "parameters" | "thresholds">): Model {
  return thresholds === null ? modelOf(bands, edge, parameters) : createModel({ thresholds, edge, parameters });
}
