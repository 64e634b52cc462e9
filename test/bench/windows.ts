/**
 * The reliability of windows: every color and target on the real bustabit-v2 games 1,000,001 to 1,300,000 from an empty
 * state, each window starting when the previous one has ended; stated against measured probability, with a plot.
 *
 * For comparison: the windows of a forecaster that uses the shares of the last hundred rounds.
 */
import { WINDOW_ROUNDS_MAX, WINDOW_TARGETS } from "../../src/forecasts/model/features.ts";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { figuresOf } from "../../src/forecasts/accuracy/figures/figures.ts";
import { emptyState, learn } from "../../src/forecasts/model/k7.ts";
import { createModel } from "../../src/forecasts/model/model.ts";
import { PPM, ppmOf } from "../../src/forecasts/model/ppm.ts";
import { emptyReferences, learnReferences, referencePpm } from "../../src/forecasts/accuracy/figures/references.ts";
import { scoreWindow } from "../../src/forecasts/score/scoring.ts";
import { emptySums, type Sums } from "../../src/forecasts/accuracy/figures/sums.ts";
import { windowBaselinePpm, windowsOf, type Window } from "../../src/forecasts/model/windows.ts";
import { colorOf, trueGames } from "../forecasts/true-games.ts";
import type { Bench } from "./bench-result.ts";
import { reliabilityPlot } from "./plot.ts";
import { addScore } from "../forecasts/plain-sums.ts";

const COLORS = ["blue", "purple", "pink"] as const;
const GAMES = 300_000;
/** The game from whose hash the earlier ones are computed. */
const ANCHOR = 1_500_000;
const OFF_TARGET = 20;

type Open = { rounds: number; left: number; pPpm: number; basePpm: number; hit: boolean };

/** One sequence of windows: at most one is open, each is scored at its nominal end. */
type Sequence = { sums: Sums; open: Open | null; rounds: number };

export default {
  name: "windows",
  about: "stated against measured probability of all nine windows on 300,000 real games",
  async run({ isShort, directory, say }) {
    const games = isShort ? trueGames(20_000, 1_000_000) : trueGames(500_000, ANCHOR).slice(0, GAMES);
    const { ours, last100 } = play(games);
    const results = [...rowsOf("k7@1", ours), ...rowsOf("last_100", last100)];
    const mine = results.filter(({ forecaster }) => forecaster === "k7@1");
    const plot = path.join(directory, "windows.svg");
    writeFileSync(plot, await reliabilityPlot(results));
    say(`reliability plot: ${path.relative("", plot)}`);
    const off = mine.filter(({ e_value }) => e_value >= OFF_TARGET);
    const worst = (forecaster: string) =>
      Math.max(...results.filter((row) => row.forecaster === forecaster).map(({ z }) => Math.abs(z)));
    return {
      baseline: worst("last_100"),
      ours: worst("k7@1"),
      unit: "standard deviations, the worst |z| of nine",
      results,
      notes: [
        `games ${isShort ? "980001 to 1000000" : "1000001 to 1300000"}; rounds: mean length of a window; z: (hits − stated) / standard deviation`,
        `e_value: evidence against the stated probabilities; ${OFF_TARGET} and more would mean off target`,
      ],
      failures: isShort
        ? []
        : off.map(({ feature, e_value }) => `an e-value under ${OFF_TARGET}, got ${e_value} for ${feature}`),
    };
  },
} satisfies Bench;

function play(games: readonly number[]): { ours: Sequence[][]; last100: Sequence[][] } {
  const model = createModel({ thresholds: [200, 1000], edge: 0.01 });
  const state = emptyState(model);
  const references = emptyReferences(model.colors);
  const ours = sequences();
  const last100 = sequences();
  for (const hundredths of games) {
    for (const color of COLORS.keys()) {
      if (ours[color]!.some(({ open }) => open === null))
        start(ours[color]!, windowsOf(model, state, color), (rounds) => windowBaselinePpm(model, state, color, rounds));
      if (last100[color]!.some(({ open }) => open === null)) {
        const share = referencePpm(references, "last_100")[color]! / PPM;
        start(last100[color]!, constantWindows(share), (rounds) => windowBaselinePpm(model, state, color, rounds));
      }
    }
    const outcome = colorOf(hundredths);
    settle(ours, outcome);
    settle(last100, outcome);
    learn(model, state, outcome, hundredths >= model.x0Hundredths);
    learnReferences(references, outcome);
  }
  return { ours, last100 };
}

function sequences(): Sequence[][] {
  return COLORS.map(() => WINDOW_TARGETS.map(() => ({ sums: emptySums(), open: null, rounds: 0 })));
}

function start(targets: Sequence[], windows: readonly (Window | null)[], baseOf: (rounds: number) => number): void {
  targets.forEach((sequence, i) => {
    const window = windows[i] ?? null;
    if (sequence.open !== null || window === null) return;
    const { rounds, pPpm } = window;
    sequence.open = { rounds, left: rounds, pPpm, basePpm: baseOf(rounds), hit: false };
  });
}

/** Applies a round: scores the windows that end with it, also those that were hit before. */
function settle(all: readonly Sequence[][], outcome: number): void {
  all.forEach((targets, color) => {
    for (const sequence of targets) {
      const { open } = sequence;
      if (open === null) continue;
      open.hit ||= color === outcome;
      open.left -= 1;
      if (open.left > 0) continue;
      addScore(sequence.sums, scoreWindow(open.pPpm, open.basePpm, open.hit));
      sequence.rounds += open.rounds;
      sequence.open = null;
    }
  });
}

/** The windows of a forecaster with a constant probability per round. */
function constantWindows(share: number): (Window | null)[] {
  return WINDOW_TARGETS.map((target) => {
    let survival = 1;
    for (let rounds = 1; rounds <= WINDOW_ROUNDS_MAX; rounds++) {
      survival *= 1 - share;
      if (1 - survival >= target / 100) return { rounds, pPpm: ppmOf(1 - survival) };
    }
    return null;
  });
}

function rowsOf(forecaster: string, sequencesOf: readonly Sequence[][]) {
  return sequencesOf.flatMap((targets, color) =>
    targets.map(({ sums, rounds }, i) => {
      const feature = `window:${COLORS[color]}:${WINDOW_TARGETS[i]}`;
      const figures = figuresOf(feature, sums);
      const [low, high] = figures.interval_95 ?? [0, 1];
      return {
        forecaster,
        feature,
        rounds: rounded(rounds / figures.sample_size, 2),
        n: figures.sample_size,
        stated: rounded(figures.expected_rate ?? 0, 5),
        measured: rounded(figures.hit_rate ?? 0, 5),
        low: rounded(low, 5),
        high: rounded(high, 5),
        z: rounded(figures.z ?? 0, 2),
        e_value: Number((figures.e_value ?? 0).toPrecision(3)),
      };
    }),
  );
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
