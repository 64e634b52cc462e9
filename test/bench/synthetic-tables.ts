/**
 * Synthetic tables whose true odds are known before every round; each has its parameters in its name.
 *
 * Bands are below 2, below 10 and above. A table is defined by the probabilities of reaching 1.10, 2 and 10; one uniform
 * random number decides each round.
 */
import { colorOf } from "../forecasts/true-games.ts";
import { seededRandom } from "./seeded-random.ts";

/** A round as it is received. */
export type SyntheticRound = {
  color: number;
  reachedX0: boolean;
  /** Rounds before it were lost. */
  afterGap: boolean;
  /** True odds by color; null if the round is a repetition by a stuck feed. */
  odds: readonly number[] | null;
};

/** A scenario: its name and the rounds in order. */
export type SyntheticTable = { name: string; rounds: (count: number, seed: number) => Iterable<SyntheticRound> };

/** Probabilities of reaching 1.10, 2 and 10. */
type Reach = readonly [x0: number, two: number, ten: number];

/** What the odds of a round may depend on. */
type Now = { index: number; count: number; previous: number; gap: number; random: () => number };

const atEdge = (edge: number): Reach => [(1 - edge) / 1.1, (1 - edge) / 2, (1 - edge) / 10];
const withTop = ([x0, two]: Reach, top: number): Reach => [x0, two, top];

export const SYNTHETIC_TABLES: readonly SyntheticTable[] = [
  { name: "same odds, edge 1 %", rounds: from(() => atEdge(0.01)) },
  { name: "same odds, edge 3 %", rounds: from(() => atEdge(0.03)) },
  { name: "same odds, edge 5 %", rounds: from(() => atEdge(0.05)) },
  { name: "same odds, not c/x: pink half as likely", rounds: from(() => withTop(atEdge(0.03), 0.0485)) },
  // instant crashes are below 1.10 and do not affect the odds above
  { name: "same odds, no instant crash, edge 3 % from 1.10 on", rounds: from(() => atEdge(0.03)) },
  {
    name: "edge 3 %, 8 % from the middle on",
    rounds: from(({ index, count }) => atEdge(index < count / 2 ? 0.03 : 0.08)),
  },
  {
    name: "new edge from 1 to 9 % every 20,000 rounds",
    rounds: from(redrawn(20_000, (random) => atEdge(0.01 + 0.08 * random()))),
  },
  {
    name: "pink 9.7 and 6 % in turn, every 25,000 rounds",
    rounds: from(({ index }) => withTop(atEdge(0.03), Math.floor(index / 25_000) % 2 === 0 ? 0.097 : 0.06)),
  },
  {
    name: "edge drifts 1 to 9 % and back, one wave in all",
    rounds: from(({ index, count }) => atEdge(0.05 - 0.04 * Math.cos((2 * Math.PI * index) / count))),
  },
  { name: "odds walk at random, 0.005 per round in log-odds", rounds: from(walking(0.005)) },
  { name: "Markov: 1.1 × the odds of the color before", rounds: from(({ previous }) => sticky(previous, 1.1)) },
  { name: "weak Markov: 1.03 × the odds of the color before", rounds: from(({ previous }) => sticky(previous, 1.03)) },
  {
    name: "Markov 1.1 ×, 3 % lost, 1 in 2,000 begins a burst of 20",
    rounds: losing(
      from(({ previous }) => sticky(previous, 1.1)),
      () => 0.03,
      1 / 2000,
    ),
  },
  {
    name: "edge 1 to 9 % in a day of 1,500 rounds",
    rounds: from(({ index }) => atEdge(0.05 - 0.04 * Math.cos((2 * Math.PI * index) / 1500))),
  },
  {
    name: "pity timer: pink 7.5 %, after 10 rounds 0.5 points more per round",
    rounds: from(({ gap }) => withTop(atEdge(0.03), Math.min(0.4, 0.075 + 0.005 * Math.max(0, gap - 10)))),
  },
  {
    name: "same odds, pink lost three times as often (3 % against 1 %)",
    rounds: losing(
      from(() => atEdge(0.03)),
      (color) => (color === 2 ? 0.03 : 0.01),
      0,
    ),
  },
  {
    name: "stuck feed: ten times the same round 300 times (true rounds only)",
    rounds: stuck(
      from(() => atEdge(0.03)),
      10,
      300,
    ),
  },
];

/** Real games as a table; the oracle knows the formula of the house, with an edge of 1 %. */
export function* trueTable(games: readonly number[]): Generator<SyntheticRound> {
  const odds = oddsOf(atEdge(0.01));
  for (const hundredths of games)
    yield { color: colorOf(hundredths), reachedX0: hundredths >= 110, afterGap: false, odds };
}

function oddsOf([, two, ten]: Reach): number[] {
  return [1 - two, two - ten, ten];
}

function from(reachNow: (now: Now) => Reach) {
  return function* (count: number, seed: number): Generator<SyntheticRound> {
    const random = seededRandom(seed);
    const now: Now = { index: 0, count, previous: 0, gap: 0, random: seededRandom(seed + 1) };
    for (; now.index < count; now.index++) {
      const reach = reachNow(now);
      const u = random();
      const color = u < reach[2] ? 2 : u < reach[1] ? 1 : 0;
      yield { color, reachedX0: u < reach[0], afterGap: false, odds: oddsOf(reach) };
      now.previous = color;
      now.gap = color === 2 ? 0 : now.gap + 1;
    }
  };
}

/** Draws new odds every `every` rounds. */
function redrawn(every: number, draw: (random: () => number) => Reach): (now: Now) => Reach {
  let reach = atEdge(0.03);
  return ({ index, random }) => (index % every === 0 ? (reach = draw(random)) : reach);
}

/** A random walk of both thresholds in log-odds, by `step` per round, with a mean reversion of a thousandth. */
function walking(step: number): (now: Now) => Reach {
  let [two, ten] = [0, 0];
  const usual = [Math.log(0.485 / 0.515), Math.log(0.097 / 0.485 / (1 - 0.097 / 0.485))] as const;
  return ({ index, random }) => {
    if (index === 0) [two, ten] = usual;
    const walk = (at: number, home: number) => at + step * (2 * random() - 1) * Math.sqrt(3) + (home - at) / 1000;
    two = walk(two, usual[0]);
    ten = walk(ten, usual[1]);
    const reachesTwo = 1 / (1 + Math.exp(-two));
    return [Math.max(reachesTwo, 0.97 / 1.1), reachesTwo, reachesTwo / (1 + Math.exp(-ten))];
  };
}

/** Multiplies the odds of the previous color; the others share the rest. */
function sticky(previous: number, factor: number): Reach {
  const weights = oddsOf(atEdge(0.03)).map((p, k) => (k === previous ? p * factor : p));
  const total = weights.reduce((a, b) => a + b, 0);
  return [0.97 / 1.1, (weights[1]! + weights[2]!) / total, weights[2]! / total];
}

/** Loses rounds: single ones by color, or bursts of 20. */
function losing(
  inner: SyntheticTable["rounds"],
  lossOf: (color: number) => number,
  burst: number,
): SyntheticTable["rounds"] {
  return function* (count, seed) {
    const random = seededRandom(seed + 2);
    let afterGap = false;
    let lostFor = 0;
    for (const round of inner(count, seed)) {
      if (lostFor === 0 && random() < burst) lostFor = 20;
      if (lostFor > 0 || random() < lossOf(round.color)) {
        lostFor = Math.max(0, lostFor - 1);
        afterGap = true;
        continue;
      }
      yield { ...round, afterGap };
      afterGap = false;
    }
  };
}

/** Repeats the newest round `times` times at `places` places. */
function stuck(inner: SyntheticTable["rounds"], places: number, times: number): SyntheticTable["rounds"] {
  return function* (count, seed) {
    let index = 0;
    for (const round of inner(count, seed)) {
      yield round;
      index += 1;
      if (index % Math.floor(count / places) !== 0) continue;
      for (let i = 0; i < times; i++) yield { ...round, odds: null };
    }
  };
}
