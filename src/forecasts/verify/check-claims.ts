import type { Transaction } from "../../db/client.ts";
import type { Wrong } from "./check-round.ts";
import { isWindow, NEXT_COLOR } from "../model/features.ts";
import { windowFeatures } from "../issue/issue-windows.ts";
import { emptyState, type State } from "../model/k7.ts";
import type { Model } from "../model/model.ts";
import { listRoundsToLearn, type SeqRound } from "../model/model-store.ts";
import { decodeState, modelOfState } from "../model/state.ts";
import { learnRounds, modelOf, nextColorOf } from "../model/table-model.ts";
import { listPromotions, type StoredForecast } from "./verify-forecasts-store.ts";
import type { VerifiedTable } from "./verify-store.ts";
import { windowBaselinePpm, windowsOf, WINDOW_TARGETS } from "../model/windows.ts";

/** The model of a table as it was after one round, on its way through all of them. */
export interface Replay {
  table: VerifiedTable;
  model: Model;
  state: State;
  /** Rounds read and not learned yet, and the seq after which the next are read. */
  ahead: SeqRound[];
  readSeq: bigint;
  /** Promotions still to come. */
  promotions: { toSeq: bigint; at: string; model: Model; state: State }[];
}

const ROUNDS_PER_READ = 5000;

/**
 * The model of a table before its first round.
 *
 * @throws Error if the state that says with which bands and edge the table began, or a promoted one, is damaged
 */
export async function beginReplay(tx: Transaction, table: VerifiedTable): Promise<Replay> {
  const model = table.state === null ? modelOf(table.bands, table.edge) : modelOfState(table.state);
  const promotions = (await listPromotions(tx, table.id)).map(({ toSeq, at, state }) => {
    const promoted = modelOfState(state);
    return { toSeq, at, model: promoted, state: decodeState(promoted, state) };
  });
  return { table, model, state: emptyState(model), ahead: [], readSeq: 0n, promotions };
}

/**
 * What was expected and found where a forecast does not say what the model had learned by its cutoff; null where it
 * does. Forecasts must come in the order of the chain: the replay goes on with each.
 */
export async function checkClaim(tx: Transaction, replay: Replay, forecast: StoredForecast): Promise<Wrong | null> {
  await replayTo(tx, replay, forecast);
  const { model, state, table } = replay;
  if (forecast.model !== model.name) return { expected: `model ${model.name}`, found: forecast.model };
  const said = claimOf(model, state, table, forecast);
  if (said === null) return { expected: `next_color or a window of the table's colors`, found: forecast.feature };
  const [expected, found] = [textOf(said), textOf(forecast)];
  return expected === found ? null : { expected, found };
}

interface Claim {
  horizon: number;
  pPpm: readonly number[];
  basePpm: readonly number[];
}

/** What the model says of a feature; null where it says nothing. */
function claimOf(model: Model, state: State, { bands }: VerifiedTable, { feature }: StoredForecast): Claim | null {
  if (feature === NEXT_COLOR) return { horizon: 1, ...nextColorOf(model, state) };
  const window = isWindow(feature) ? windowFeatures(bands).find((one) => one.feature === feature) : undefined;
  if (window === undefined) return null;
  const { colorIndex, target } = window;
  const stated = windowsOf(model, state, colorIndex)[WINDOW_TARGETS.findIndex((one) => one === target)];
  if (stated == null) return null;
  const base = windowBaselinePpm(model, state, colorIndex, stated.rounds);
  return { horizon: stated.rounds, pPpm: [stated.pPpm], basePpm: [base] };
}

function textOf({ horizon, pPpm, basePpm }: Claim): string {
  return `p_ppm ${pPpm.join("|")} and base_ppm ${basePpm.join("|")} over ${horizon}`;
}

/** Learns the rounds up to the cutoff, or goes on from what was promoted on the way. */
async function replayTo(tx: Transaction, replay: Replay, { cutoffSeq, issuedAt }: StoredForecast): Promise<void> {
  const { table, promotions } = replay;
  for (;;) {
    const [next] = promotions;
    if (next === undefined || next.toSeq > cutoffSeq || (next.toSeq === cutoffSeq && next.at > issuedAt)) break;
    promotions.shift();
    Object.assign(replay, { model: next.model, state: next.state, ahead: [], readSeq: next.toSeq });
  }
  for (;;) {
    const end = replay.ahead.findIndex(({ seq }) => seq > cutoffSeq);
    learnRounds(
      replay.model,
      replay.state,
      table.bands,
      replay.ahead.splice(0, end === -1 ? replay.ahead.length : end),
    );
    if (end !== -1 || replay.readSeq >= table.lastSeq) return;
    const span = { tableId: table.id, afterSeq: replay.readSeq, upToSeq: table.lastSeq };
    replay.ahead = await listRoundsToLearn(tx, [span], ROUNDS_PER_READ);
    replay.readSeq =
      replay.ahead.length < ROUNDS_PER_READ ? table.lastSeq : (replay.ahead.at(-1)?.seq ?? table.lastSeq);
  }
}
