import { expect, it } from "vitest";
import { pairRounds, type Side } from "../../src/calibration/paired-loss.ts";
import { emptyState } from "../../src/forecasts/model/k7.ts";
import { modelOf } from "../../src/forecasts/model/table-model.ts";

const model = modelOf(
  [
    { name: "blue", below: 200 },
    { name: "pink", below: null },
  ],
  0.01,
);
const sideOf = (...rounds: number[]): Side => ({ model, state: emptyState(model), rounds: Uint8Array.from(rounds) });

it("pairs the losses of two models only on the same rounds with the same colors", () => {
  expect(pairRounds(sideOf(0, 1, 1), sideOf(0, 1, 1))).toMatchObject({ n: 3n, d: 0n, d2: 0n });
  expect(() => pairRounds(sideOf(0, 1, 1), sideOf(0, 0, 1))).toThrow(
    "expected one color of a round for both models, found 1 and 0",
  );
  expect(() => pairRounds(sideOf(0, 1, 1), sideOf(0, 1))).toThrow("expected 3 rounds for both models, found 2");
});
