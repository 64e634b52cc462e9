import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { addFacts, type HourDeltas, type HourSums } from "../../../src/forecasts/accuracy/add-facts.ts";
import type { Facts } from "../../../src/forecasts/accuracy/facts.ts";
import {
  addDeltas,
  dayOf,
  emptyRows,
  foldedBefore,
  moveHour,
  PERIODS,
  periodStart,
  rowKeys,
} from "../../../src/forecasts/accuracy/periods.ts";
import { earlierCutoffs, portionOf, type Progress } from "../../../src/forecasts/accuracy/portion.ts";
import { addSums, decodeSums, encodeSums, type SumVector } from "../../../src/forecasts/accuracy/sum-vector.ts";
import { anyHistory, type Event, makeHistory } from "./histories.ts";

const FIRST_HOUR = 490_000;

/** The rows of events by kind. */
function factsOf(events: readonly Event[]): Omit<Facts, "earlierSets"> & { lastSeq: bigint } {
  const rounds = events.flatMap((event) => (event.kind === "round" ? [event] : []));
  return {
    sets: rounds.flatMap(({ set }) => set ?? []),
    scores: rounds.flatMap(({ scores }) => scores ?? []),
    revisions: events.flatMap((event) => (event.kind === "revision" ? [event.revision] : [])),
    rounds: rounds.map(({ round }) => round),
    lastSeq: rounds.at(-1)?.round.seq ?? 0n,
  };
}

function plain(rows: ReadonlyMap<string, { sums: SumVector }>): Record<string, string> {
  const texts = [...rows]
    .filter(([, { sums }]) => sums.size > 0)
    .map(([key, { sums }]) => [key, encodeSums(sums).toString("hex")]);
  return Object.fromEntries(texts.toSorted(([a], [b]) => (a! < b! ? -1 : 1)));
}

/** Days and periods by their definition: sums of folded hours. */
function derived(hours: Iterable<HourSums>, current: number) {
  const days = new Map<string, { sums: SumVector }>();
  const periods = new Map<string, { sums: SumVector }>();
  const add = (into: Map<string, { sums: SumVector }>, key: string, sums: SumVector) => {
    if (!into.has(key)) into.set(key, { sums: new Map() });
    addSums(into.get(key)!.sums, sums);
  };
  for (const { model, feature, hour, sums } of hours) {
    if (hour >= foldedBefore(current)) continue;
    add(days, rowKeys.day({ model, feature, day: dayOf(hour) }), sums);
    for (const period of PERIODS) {
      const start = periodStart(period, current);
      if (start === null || hour >= start) add(periods, rowKeys.period({ model, feature, period }), sums);
    }
  }
  return { days, periods };
}

describe("adding facts in portions", () => {
  it("gives the rows that all facts together give, in whatever portions and at whatever times they are added", () => {
    fc.assert(
      fc.property(
        anyHistory(150, FIRST_HOUR),
        fc.array(
          fc.record({
            events: fc.integer({ min: 0, max: 40 }),
            hours: fc.nat({ max: 40 }),
            limit: fc.integer({ min: 1, max: 30 }),
          }),
          { maxLength: 12 },
        ),
        (options, steps) => {
          const events = makeHistory(options);
          const rows = emptyRows();
          let progress: Progress = { setSeq: 0n, settledSeq: 0n, revision: 0n, roundSeq: 0n };
          let hour = FIRST_HOUR;
          let stored = 0;
          for (const step of [...steps, { events: events.length, hours: 3000, limit: 7 }]) {
            stored += step.events;
            const { lastSeq, ...facts } = factsOf(events.slice(0, stored));
            const next = hour + step.hours;
            for (let isLimited = true; isLimited;) {
              const read = {
                sets: facts.sets.filter(({ cutoffSeq }) => cutoffSeq > progress.setSeq).slice(0, step.limit),
                scores: facts.scores.filter(({ settledSeq }) => settledSeq > progress.settledSeq).slice(0, step.limit),
                revisions: facts.revisions.filter(({ revision }) => revision > progress.revision).slice(0, step.limit),
                rounds: facts.rounds.filter(({ seq }) => seq > progress.roundSeq).slice(0, step.limit),
                lastSeq,
              };
              const portion = portionOf(progress, read, step.limit);
              const earlier = earlierCutoffs(progress, portion);
              const deltas: HourDeltas = new Map();
              addFacts(deltas, {
                ...portion,
                earlierSets: facts.sets.filter(({ cutoffSeq }) => earlier.has(cutoffSeq)),
              });
              addDeltas(rows, hour, deltas);
              moveHour(rows, hour, next);
              hour = next;
              progress = portion.progress;
              isLimited = portion.isLimited;
            }
          }
          const all: HourDeltas = new Map();
          addFacts(all, { ...factsOf(events), earlierSets: [] });
          expect(plain(rows.hours)).toEqual(plain(all));
          const { days, periods } = derived(all.values(), hour);
          expect(plain(rows.days)).toEqual(plain(days));
          expect(plain(rows.periods)).toEqual(plain(periods));
        },
      ),
      { numRuns: 100 },
    );
  });

  it("stores sums so that they are read back exactly and equal sums are equal bytes", () => {
    const values = fc.oneof(fc.bigInt({ min: -(2n ** 80n), max: 2n ** 80n }), fc.bigInt({ min: -300n, max: 300n }));
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat({ max: 30_000 }), values)), (entries) => {
        const sums: SumVector = new Map(entries.filter(([, value]) => value !== 0n));
        const bytes = encodeSums(sums);
        expect(decodeSums(bytes)).toEqual(sums);
        expect(encodeSums(new Map([...sums].toReversed()))).toEqual(bytes);
      }),
    );
  });

  it("refuses bytes that are cut off or of another format", () => {
    const bytes = encodeSums(
      new Map([
        [3, 5n],
        [9000, 2n ** 70n],
      ]),
    );
    for (let length = 0; length < bytes.length; length++) {
      if (length === 1 || length === 4) continue; // its own whole vector
      expect(() => decodeSums(bytes.subarray(0, length)), String(length)).toThrow(
        /^expected the sums of an accuracy row/,
      );
    }
    expect(() => decodeSums(Buffer.from("0103020a03", "hex"))).toThrow(/found format 1; recompute the row/);
  });
});
