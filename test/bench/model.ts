/**
 * The throughput of a table's model on one core: learning a round, the next color and nine windows.
 *
 * The baseline is a straightforward implementation of the formulas; both must give the same ppm. Memory is measured after
 * ten thousand rounds and after each tenfold.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { emptyState, learn } from "../../src/forecasts/model/k7.ts";
import { createModel } from "../../src/forecasts/model/model.ts";
import { nextColorPpm } from "../../src/forecasts/model/ppm.ts";
import { nextColorOf } from "../../src/forecasts/model/table-model.ts";
import { windowsOf } from "../../src/forecasts/model/windows.ts";
import { colorOf, trueGames } from "../forecasts/true-games.ts";
import type { Bench } from "./bench-result.ts";
import { plainLearn, plainProbabilities, plainTable, plainWindows } from "./pipeline/straightforward-k7.ts";

const COLORS = [0, 1, 2];
const SAME_ROUNDS = 1000;
const TARGET_PER_SECOND = 100_000;
const FLAT_MEGABYTES = 16;

export default {
  name: "model",
  about: "rounds per second through learn, next color and nine windows, against a straightforward implementation",
  run({ isShort, say }) {
    const games = trueGames(isShort ? 20_000 : 250_000, 250_000);
    checkAgreement(games);
    const plainGames = games.slice(0, isShort ? 2_000 : 20_000);
    const baseline = perSecond(plainGames.length, () => runPlain(plainGames));
    say(`straightforward implementation: ${Math.round(baseline)} rounds/s`);
    // the first rounds are slower: code is compiled while it runs
    const oursAtFirst = perSecond(plainGames.length, () => runOurs(plainGames, plainGames.length));
    const results: { rounds: number; rounds_per_second: number; heap_mb: number }[] = [];
    for (const rounds of isShort ? [10_000, 100_000] : [10_000, 100_000, 1_000_000, 10_000_000]) {
      const speed = perSecond(rounds, () => runOurs(games, rounds));
      results.push({ rounds, rounds_per_second: Math.round(speed), heap_mb: heapMegabytes() });
      say(`${rounds} rounds: ${Math.round(speed)} rounds/s`);
    }
    const ours = results.at(-1)!.rounds_per_second;
    const growth = results.at(-1)!.heap_mb - results[0]!.heap_mb;
    const failures = isShort
      ? []
      : [
          ...(ours < TARGET_PER_SECOND ? [`${TARGET_PER_SECOND} rounds/s, got ${ours}`] : []),
          ...(growth > FLAT_MEGABYTES ? [`flat memory, grew by ${growth.toFixed(1)} MB`] : []),
        ];
    return {
      baseline,
      ours,
      unit: "rounds/s",
      results,
      notes: [
        `both gave the same ppm on ${SAME_ROUNDS} rounds; the first ${plainGames.length} rounds of a process run at ${Math.round(oursAtFirst)} rounds/s`,
      ],
      failures,
    };
  },
} satisfies Bench;

function bustabit() {
  const model = createModel({ thresholds: [200, 1000], edge: 0.01 });
  return { model, state: emptyState(model) };
}

/** Runs one table through `rounds` rounds; repeats the games if there are fewer. */
function runOurs(games: readonly number[], rounds: number): void {
  const { model, state } = bustabit();
  for (let i = 0; i < rounds; i++) {
    const hundredths = games[i % games.length]!;
    nextColorOf(model, state);
    for (const color of COLORS) windowsOf(model, state, color);
    learn(model, state, colorOf(hundredths), hundredths >= model.x0Hundredths);
  }
}

function runPlain(games: readonly number[]): void {
  const table = plainTable([200, 1000], 0.01);
  for (const hundredths of games) {
    nextColorPpm(Float64Array.from(plainProbabilities(table)));
    for (const color of COLORS) plainWindows(table, color);
    plainLearn(table, colorOf(hundredths), hundredths);
  }
}

/** @throws Error if the two implementations differ by a single ppm, since their speeds are then not comparable */
function checkAgreement(games: readonly number[]): void {
  const { model, state } = bustabit();
  const table = plainTable([200, 1000], 0.01);
  games.slice(0, SAME_ROUNDS).forEach((hundredths, i) => {
    const ours = [nextColorOf(model, state).pPpm, ...COLORS.map((color) => windowsOf(model, state, color))];
    const plain = [
      nextColorPpm(Float64Array.from(plainProbabilities(table))),
      ...COLORS.map((color) => plainWindows(table, color)),
    ];
    if (JSON.stringify(ours) !== JSON.stringify(plain))
      throw new Error(
        `expected the same before game ${i + 1}, got ${JSON.stringify(ours)} and ${JSON.stringify(plain)}`,
      );
    learn(model, state, colorOf(hundredths), hundredths >= model.x0Hundredths);
    plainLearn(table, colorOf(hundredths), hundredths);
  });
}

function perSecond(rounds: number, run: () => void): number {
  const from = performance.now();
  run();
  return (rounds * 1000) / (performance.now() - from);
}

/** The size of the heap after a garbage collection. */
function heapMegabytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return Math.round(process.memoryUsage().heapUsed / 1e5) / 10;
}
