import { describe, expect, it } from "vitest";
import { addFacts, type HourDeltas } from "../../../src/forecasts/accuracy/add-facts.ts";
import type { Facts, SetFacts } from "../../../src/forecasts/accuracy/facts.ts";
import { featureSums } from "../../../src/forecasts/accuracy/published.ts";
import { addSums, type SumVector } from "../../../src/forecasts/accuracy/sum-vector.ts";
import { scoreOutcome } from "../../../src/forecasts/score/scoring.ts";
import { makeHistory } from "./histories.ts";

const COLORS = 3;
const NO_FACTS: Facts = { sets: [], scores: [], revisions: [], rounds: [], earlierSets: [] };

/** A set after the on-time round of this seq with next_color alone. */
function nextColorSet(seq: bigint, changed: Partial<SetFacts> = {}): SetFacts {
  return {
    cutoffSeq: seq,
    cutoffOrdinal: seq,
    model: "k7@1",
    hour: 100,
    features: [0],
    horizons: [1],
    pPpm: [600_000, 400_000],
    basePpm: [500_000, 500_000],
    referencePpm: [1, 999_999, 500_000, 500_000, 400_000, 600_000],
    ends: [0n, 0n, 0n, 0n, 0n, 0n],
    isSealed: false,
    ...changed,
  };
}

function sumsOf(facts: Partial<Facts>, feature = 0, hour = 100) {
  const deltas: HourDeltas = new Map();
  addFacts(deltas, { ...NO_FACTS, ...facts });
  return featureSums(feature, deltas.get(`${hour} ${feature} k7@1`)?.sums ?? new Map());
}

describe("what is summed", () => {
  it("is the sum over the forecasts of an hour, each scored by the last word on it", () => {
    const events = makeHistory({ rounds: 600, colors: COLORS, roundsPerHour: 100, firstHour: 0, seed: 3 });
    const rounds = events.flatMap((event) => (event.kind === "round" ? [event] : []));
    const sets = rounds.flatMap(({ set }) => set ?? []);
    const scores = rounds.flatMap((round) => round.scores ?? []);
    const revisions = events.flatMap((event) => (event.kind === "revision" ? [event.revision] : []));
    const deltas: HourDeltas = new Map();
    addFacts(deltas, { ...NO_FACTS, sets, scores, revisions });

    const last = new Map<string, { reason: number; outcome: number | null }>();
    for (const { settlements } of scores)
      for (const one of settlements) last.set(`${one.cutoffSeq} ${one.feature}`, one);
    for (const { cutoffSeq, feature, after } of revisions) last.set(`${cutoffSeq} ${feature}`, after);
    let compared = 0;
    for (const { model, feature, hour, sums } of deltas.values()) {
      const expected = { forecasts: 0n, n: 0n, hits: 0n, sumLl: 0n, sumLlBase: 0n, sumBrier: 0n };
      for (const set of sets.filter((one) => one.model === model && one.hour === hour)) {
        const place = set.features.indexOf(feature);
        if (place === -1) continue;
        expected.forecasts += 1n;
        const score = last.get(`${set.cutoffSeq} ${feature}`);
        if (score === undefined || score.reason !== 0 || score.outcome === null) continue;
        const [from, to] = place === 0 ? [0, COLORS] : [COLORS + place - 1, COLORS + place];
        const figures = scoreOutcome(set.pPpm.slice(from, to), set.basePpm.slice(from, to), score.outcome);
        expected.n += 1n;
        expected.hits += figures.hit ? 1n : 0n;
        expected.sumLl += BigInt(figures.ll);
        expected.sumLlBase += BigInt(figures.llBase);
        expected.sumBrier += BigInt(figures.brier);
        compared += 1;
      }
      expect(featureSums(feature, sums).sums).toMatchObject(expected);
    }
    expect(compared).toBeGreaterThan(1000);
  });

  it("counts voids by cause", () => {
    const sets = [1n, 2n, 3n, 4n, 5n, 6n].map((seq) => nextColorSet(seq));
    const scores = [1, 2, 3, 4, 5].map((reason) => ({
      settledSeq: BigInt(reason + 1),
      settlements: [{ cutoffSeq: BigInt(reason), feature: 0, reason, outcome: null }],
    }));
    const one = { voidGap: 1n, voidLate: 1n, voidConflict: 1n, voidImpossible: 1n, voidOperator: 1n };
    expect(sumsOf({ sets, scores }).sums).toMatchObject({ forecasts: 6n, n: 0n, pending: 1n, ...one });
  });

  it("keeps what the best constant in hindsight needs: per color, or per horizon and outcome, n, log loss and its squares", () => {
    const window = nextColorSet(2n, {
      features: [0, 4],
      horizons: [1, 7],
      pPpm: [600_000, 400_000, 800_000],
      basePpm: [500_000, 500_000, 700_000],
      referencePpm: Array.from({ length: 3 }, () => [500_000, 500_000, 500_000]).flat(),
    });
    const facts = {
      sets: [nextColorSet(1n), window],
      scores: [
        { settledSeq: 2n, settlements: [{ cutoffSeq: 1n, feature: 0, reason: 0, outcome: 1 }] },
        { settledSeq: 9n, settlements: [{ cutoffSeq: 2n, feature: 4, reason: 0, outcome: 0 }] },
      ],
    };
    // with one outcome alone the best constant loses nothing, and d is minus the log loss
    expect(sumsOf(facts).sums).toMatchObject({ bestLl: 0n, bestD2: 916_291n ** 2n });
    expect(sumsOf(facts, 4).sums).toMatchObject({ bestLl: 0n });
  });

  it("scores the references by the probabilities that the set has for them", () => {
    const scores = [{ settledSeq: 2n, settlements: [{ cutoffSeq: 1n, feature: 0, reason: 0, outcome: 1 }] }];
    const { references } = sumsOf({ sets: [nextColorSet(1n)], scores });
    for (const [name, pPpm] of [
      ["last_20", [1, 999_999]],
      ["last_100", [500_000, 500_000]],
      ["due", [400_000, 600_000]],
    ] as const) {
      const { hit, pPpm: p, pq, ll, brier } = scoreOutcome(pPpm, [500_000, 500_000], 1);
      expect(references[name], name).toEqual({
        n: 1n,
        hits: BigInt(hit),
        sumP: BigInt(p),
        sumPq: BigInt(pq),
        sumLl: BigInt(ll),
        sumBrier: BigInt(brier),
      });
    }
    const silent = { ...nextColorSet(1n), referencePpm: [null, null, 500_000, 500_000, 400_000, 600_000] };
    expect(sumsOf({ sets: [silent], scores }).references).toMatchObject({ last_20: { n: 0n }, due: { n: 1n } });
  });

  it("counts a round without a forecast in the hour of its receipt, and a late one as received and not forecast", () => {
    const rounds = [
      { seq: 1n, ordinal: 1n, hour: 100 }, // before the first forecast
      { seq: 2n, ordinal: 2n, hour: 100 },
      { seq: 3n, ordinal: null, hour: 100 },
      { seq: 4n, ordinal: 3n, hour: 101 },
    ];
    const facts = { sets: [nextColorSet(1n)], rounds };
    expect(sumsOf(facts)).toMatchObject({ sums: { receivedRounds: 2n, notIssued: 1n, lateRounds: 1n } });
    expect(sumsOf(facts, 0, 101)).toMatchObject({ sums: { receivedRounds: 1n, notIssued: 1n, lateRounds: 0n } });
  });

  it("counts a window that was due with a set and not issued, and none of a feature that never had one", () => {
    const set = nextColorSet(5n, { ends: [9n, 5n, 0n, 6n, 6n, 6n] });
    const counted = [1, 2, 3, 4].map((feature) => sumsOf({ sets: [set] }, feature).sums.notIssued);
    expect(counted).toEqual([0n, 1n, 0n, 0n]);
  });

  it("leaves nothing of a vector that is subtracted again", () => {
    const deltas: HourDeltas = new Map();
    const settlement = { cutoffSeq: 1n, feature: 0, reason: 0, outcome: 1 };
    const after = { reason: 3, outcome: null };
    addFacts(deltas, {
      ...NO_FACTS,
      sets: [nextColorSet(1n)],
      scores: [{ settledSeq: 2n, settlements: [settlement] }],
      revisions: [{ revision: 1n, cutoffSeq: 1n, feature: 0, before: settlement, after }],
    });
    const sums: SumVector = new Map(deltas.get("100 0 k7@1")!.sums);
    expect(featureSums(0, sums).sums).toMatchObject({
      forecasts: 1n,
      n: 0n,
      voidConflict: 1n,
      sumLl: 0n,
      histograms: [],
    });
    addSums(sums, deltas.get("100 0 k7@1")!.sums, -1);
    expect(sums.size).toBe(0);
  });
});
