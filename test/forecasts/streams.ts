import { readFileSync } from "node:fs";
import { AFTER_GAP, REACHED_X0 } from "../../src/calibration/backtest/backtest.ts";
import { emptyState, forgetContext, learn, type State } from "../../src/forecasts/model/k7.ts";
import type { Model } from "../../src/forecasts/model/model.ts";

/** A round as the model sees it. */
export type Outcome = { hundredths: number; afterGap: boolean };

/** A CSV of test/fixtures as records; no field there holds a comma. */
export function readFixture(name: string): Record<string, string>[] {
  const text = readFileSync(new URL(`../fixtures/${name}`, import.meta.url), "utf8");
  const [header, ...lines] = text.trim().split("\n");
  const columns = header!.split(",");
  return lines.map((line) => Object.fromEntries(line.split(",").map((value, i) => [columns[i]!, value])));
}

/**
 * A reproducible table at 3 % edge: a 32-bit linear congruential generator x (1664525, 1013904223, from 12345), the
 * round in hundredths ⌊97·2³² / (2³² − x)⌋ and at least 100, every 137th round after missing ones.
 */
export function generatedRounds(count: number): Outcome[] {
  let x = 12345n;
  return Array.from({ length: count }, (_, i) => {
    x = (x * 1664525n + 1013904223n) % 2n ** 32n;
    const hundredths = Math.max(100, Number((97n * 2n ** 32n) / (2n ** 32n - x)));
    return { hundredths, afterGap: (i + 1) % 137 === 0 };
  });
}

/** Index of the band a round falls in. */
function bandOf(model: Model, hundredths: number): number {
  return model.thresholds.filter((threshold) => hundredths >= threshold).length;
}

/** Make what was missing before the round unknown; a forecast for the round belongs between this and `takeIn`. */
export function approach(model: Model, state: State, round: Outcome): void {
  if (round.afterGap) forgetContext(model, state);
}

/** Learn the round. */
export function takeIn(model: Model, state: State, { hundredths }: Outcome): void {
  learn(model, state, bandOf(model, hundredths), hundredths >= model.x0Hundredths);
}

/** The state after exactly these rounds. */
export function stateAfter(model: Model, rounds: readonly Outcome[], state: State = emptyState(model)): State {
  for (const round of rounds) {
    approach(model, state, round);
    takeIn(model, state, round);
  }
  return state;
}

/** Rounds as a replay takes them, one byte each. */
export function packedRounds(model: Model, rounds: readonly Outcome[]): Uint8Array {
  return Uint8Array.from(
    rounds,
    ({ hundredths, afterGap }) =>
      bandOf(model, hundredths) | (hundredths >= model.x0Hundredths ? REACHED_X0 : 0) | (afterGap ? AFTER_GAP : 0),
  );
}
