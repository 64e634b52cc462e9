import { createHash } from "node:crypto";
import { forgetContext, learn, type State } from "./k7.ts";
import type { Model } from "./model.ts";
import { scoreNextColor } from "./scoring.ts";
import { addForecast, addScore, emptySums, type Sums } from "./sums.ts";
import { colorIndex, nextColorOf, type Band, type LearnedRound } from "./table-model.ts";

/**
 * Takes rounds through a model as the live path would have: forecast, score, learn, in that order.
 *
 * The state moves exactly as the live one. The sums are those of a backtest (every round is scored, whatever was issued
 * at the time), so they say how well the model fits these rounds and never enter published accuracy.
 */
export function replayRounds(
  model: Model,
  state: State,
  bands: readonly Band[],
  rounds: Iterable<LearnedRound & { seq: bigint }>,
): Sums {
  const sums = emptySums();
  for (const round of rounds) {
    if (round.afterGap) forgetContext(model, state);
    const { pPpm, basePpm } = nextColorOf(model, state);
    const outcome = colorIndex(bands, round.color);
    addForecast(sums, { seq: round.seq, hash: backtestHash(round.seq, pPpm) });
    addScore(sums, scoreNextColor(pPpm, basePpm, outcome));
    learn(model, state, outcome, round.hundredths >= model.x0Hundredths);
  }
  return sums;
}

/** A backtest is in no chain; its first and last are still named by what they said, so that two runs can be compared. */
function backtestHash(seq: bigint, pPpm: readonly number[]): string {
  return createHash("sha256")
    .update(`${seq}|${pPpm.join("|")}`)
    .digest("hex");
}
