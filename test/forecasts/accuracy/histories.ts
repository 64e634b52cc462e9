import fc from "fast-check";
import type {
  RevisionFacts,
  RoundFacts,
  ScoreFacts,
  SetFacts,
  Settlement,
} from "../../../src/forecasts/accuracy/facts.ts";

/** What a table went through, in the order in which it was stored. */
export type Event =
  | { kind: "round"; round: RoundFacts; set: SetFacts | null; scores: ScoreFacts | null }
  | { kind: "revision"; revision: RevisionFacts };

/** A hidden state of a generator: one number after the other from 0 to 1. */
type Random = () => number;

/** Lengths of the windows that a feature code of a table has, in rounds. */
const HORIZONS = [1, 3, 9];

export interface HistoryOptions {
  rounds: number;
  colors: number;
  /** Rounds in an hour. */
  roundsPerHour: number;
  firstHour: number;
  seed: number;
}

/**
 * A table with everything that can happen to it: sets that are not issued, late rounds, backfilled ones, voids of all
 * kinds, pauses of days, changes of the model, and revisions of what was settled before, some of them twice.
 */
export function makeHistory({ rounds, colors, roundsPerHour, firstHour, seed }: HistoryOptions): Event[] {
  const random = randomOf(seed);
  const events: Event[] = [];
  const open: (Settlement & { end: bigint; forecastKey: string })[] = [];
  const settled: { cutoffSeq: bigint; feature: number; score: { reason: number; outcome: number | null } }[] = [];
  const ends = Array.from({ length: 3 * colors }, () => 0n);
  let ordinal = 0n;
  let revision = 0n;
  let model = "k7@1";
  let at = firstHour;
  for (let n = 1; n <= rounds; n++) {
    const seq = BigInt(n);
    at += 1 / roundsPerHour + (random() < 0.01 ? random() * 60 : 0) + (random() < 0.003 ? random() * 3000 : 0);
    const hour = Math.floor(at);
    if (random() < 0.01) model = `k7@${1 + Math.floor(random() * 3)}`;
    const isLate = random() < 0.05;
    if (!isLate) ordinal += 1n;
    const round = { seq, ordinal: isLate ? null : ordinal, hour };
    const ending = open.filter(({ end }) => (isLate ? random() < 0.1 : end <= ordinal));
    for (const one of ending) open.splice(open.indexOf(one), 1);
    const settlements = ending.map(({ cutoffSeq, feature }) => {
      const reason = isLate ? 2 : random() < 0.15 ? 1 + Math.floor(random() * 5) : 0;
      const values = feature === 0 ? colors : 2;
      const outcome = reason === 0 ? Math.floor(random() * values) : null;
      settled.push({ cutoffSeq, feature, score: { reason, outcome } });
      return { cutoffSeq, feature, reason, outcome };
    });
    const set = isLate || random() < 0.2 ? null : makeSet({ seq, ordinal, hour, model, colors, ends, random });
    for (const [place, feature] of set?.features.entries() ?? []) {
      const end = ordinal + BigInt(set!.horizons[place]!);
      open.push({ cutoffSeq: seq, feature, reason: 0, outcome: null, end, forecastKey: `${seq} ${feature}` });
    }
    const scores = settlements.length === 0 ? null : { settledSeq: seq, settlements };
    events.push({ kind: "round", round, set, scores });
    while (settled.length > 0 && random() < 0.1) {
      const own = settled[Math.floor(random() ** 2 * settled.length)]!;
      const before = own.score;
      own.score =
        random() < 0.7
          ? { reason: 1 + Math.floor(random() * 5), outcome: null }
          : { reason: 0, outcome: own.feature === 0 ? 0 : 1 };
      revision += 1n;
      const { cutoffSeq, feature } = own;
      events.push({ kind: "revision", revision: { revision, cutoffSeq, feature, before, after: own.score } });
    }
  }
  return events;
}

export interface LateOptions {
  onTime: number;
  late: number;
  hour: number;
  /** Windows that end as void because of a gap. */
  voidWindows?: number;
}

/** The rounds in one window of {@link makeLateHistory}. */
const LATE_HORIZON = 2;

/**
 * A table of three colors whose ids are opaque: a forecast of the next color after each on-time round, `window:blue:50`
 * over every two, and after them rounds that the operator withheld and listed later.
 */
export function makeLateHistory({ onTime, late, hour, voidWindows = 0 }: LateOptions): Event[] {
  const events: Event[] = [];
  const open = new Map<number, bigint>();
  let windows = 0;
  for (let seq = 1n; seq <= onTime; seq++) {
    const settlements: Settlement[] = [];
    const next = open.get(0);
    if (next !== undefined) settlements.push({ cutoffSeq: next, feature: 0, reason: 0, outcome: Number(seq % 3n) });
    const window = open.get(1);
    const hasEnded = window !== undefined && window + BigInt(LATE_HORIZON) === seq;
    if (hasEnded) {
      const isVoid = (windows += 1) <= voidWindows;
      const outcome = isVoid ? null : Number(seq % 4n === 1n);
      settlements.push({ cutoffSeq: window, feature: 1, reason: Number(isVoid), outcome });
    }
    const features = window === undefined || hasEnded ? [0, 1] : [0];
    for (const feature of features) open.set(feature, seq);
    const values = [500_000, 400_000, 100_000, 600_000].slice(0, 2 + features.length);
    const set: SetFacts = {
      cutoffSeq: seq,
      cutoffOrdinal: seq,
      model: "k7@1",
      hour,
      features,
      horizons: [1, LATE_HORIZON].slice(0, features.length),
      pPpm: values,
      basePpm: values,
      referencePpm: [...values, ...values, ...values],
      ends: [(open.get(1) ?? 0n) + BigInt(LATE_HORIZON), 0n, 0n, 0n, 0n, 0n, 0n, 0n, 0n],
      isSealed: false,
    };
    const scores = settlements.length === 0 ? null : { settledSeq: seq, settlements };
    events.push({ kind: "round", round: { seq, ordinal: seq, hour }, set, scores });
  }
  for (let n = 1; n <= late; n++) {
    events.push({ kind: "round", round: { seq: BigInt(onTime + n), ordinal: null, hour }, set: null, scores: null });
  }
  return events;
}

function makeSet({
  seq,
  ordinal,
  hour,
  model,
  colors,
  ends,
  random,
}: {
  seq: bigint;
  ordinal: bigint;
  hour: number;
  model: string;
  colors: number;
  ends: bigint[];
  random: Random;
}): SetFacts {
  const features = [0];
  const horizons = [1];
  for (const [place, end] of ends.entries()) {
    if (end > ordinal || random() < 0.1) continue;
    const horizon = HORIZONS[place % HORIZONS.length]! + Math.floor(random() * 2);
    ends[place] = ordinal + BigInt(horizon);
    features.push(place + 1);
    horizons.push(horizon);
  }
  const values = () => [...shares(colors, random), ...features.slice(1).map(() => 1 + Math.floor(random() * 999_998))];
  return {
    cutoffSeq: seq,
    cutoffOrdinal: ordinal,
    model,
    hour: hour - (random() < 0.02 ? 1 : 0),
    features,
    horizons,
    pPpm: values(),
    basePpm: values(),
    referencePpm: [...values(), ...values(), ...values()],
    ends: [...ends],
    isSealed: random() < 0.5,
  };
}

/** Chances of colors in ppm. */
function shares(colors: number, random: Random): number[] {
  const rest = Array.from({ length: colors - 1 }, () => 1 + Math.floor((random() * 900_000) / colors));
  return [1_000_000 - rest.reduce((a, b) => a + b, 0), ...rest];
}

/** Mulberry32. */
function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Histories of up to so many rounds. */
export function anyHistory(rounds: number, firstHour: number): fc.Arbitrary<HistoryOptions> {
  return fc.record({
    rounds: fc.integer({ min: 1, max: rounds }),
    colors: fc.integer({ min: 2, max: 4 }),
    roundsPerHour: fc.constantFrom(0.3, 2, 20, 200),
    firstHour: fc.constant(firstHour),
    seed: fc.integer(),
  });
}
