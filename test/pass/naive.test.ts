import fc from "fast-check";
import { expect, it } from "vitest";
import { begin, step, type Run } from "./drive.ts";
import { BANDS, histories, PAUSE_MS, PROPERTY_RUNS, responsesOf, type Given } from "./histories.ts";
import { cutoffs, settleOne, type NaiveRound } from "./naive.ts";

const BOUNDS = BANDS.flatMap(({ below }) => below ?? []);

/** Runs a history, and lists its rounds and second results with the pass that brought them. */
function runAll(roundIds: "consecutive" | "opaque", given: readonly Given[]) {
  const run = begin(roundIds);
  const rounds: NaiveRound[] = [];
  const contradicted = new Map<string, number>();
  for (const [pass, one] of given.entries()) {
    const { rows } = step(run, one);
    rounds.push(...rows.rounds.map((round) => ({ ...round, pass, issuedAt: one.issuedAt })));
    for (const { roundId } of rows.conflicts) if (!contradicted.has(roundId)) contradicted.set(roundId, pass);
  }
  return { run, rounds, contradicted };
}

/** Scores by forecast as the passes wrote them. */
function scoresOf({ shelf }: Run) {
  return new Map(
    shelf.scoreSets.flatMap(({ settledSeq, forecastSeqs, reasons, outcomes }) =>
      forecastSeqs.map((seq, at) => [seq, { settledSeq, reason: reasons[at], outcome: outcomes[at] }] as const),
    ),
  );
}

it("gives the sets and scores that the plain rules give", () => {
  fc.assert(
    fc.property(histories(), ({ roundIds, steps }) => {
      const { run, rounds, contradicted } = runAll(roundIds, responsesOf({ roundIds, steps }));
      const { sets } = run.shelf;
      expect(sets.map(({ cutoffSeq }) => cutoffSeq)).toEqual(cutoffs(rounds, PAUSE_MS));
      const found = scoresOf(run);
      const ends = new Map<number, bigint>();
      for (const { firstSeq, cutoffSeq, cutoffOrdinal, issuedAt, features, horizons } of sets) {
        // a window of every feature that has none open
        const free = [...Array(3 * BANDS.length).keys()].map((at) => at + 1);
        expect(features).toEqual([0, ...free.filter((feature) => (ends.get(feature) ?? 0n) <= cutoffSeq)]);
        for (const [at, feature] of features.entries()) {
          const seq = firstSeq + BigInt(at);
          const forecast = { seq, cutoffOrdinal, issuedAt, feature, horizon: horizons[at] ?? 0 };
          const options = { bounds: BOUNDS, isConsecutive: roundIds === "consecutive" };
          const score = settleOne(forecast, rounds, contradicted, options);
          expect(found.get(seq) ?? null).toEqual(score);
          ends.set(feature, score?.settledSeq ?? BigInt(Number.MAX_SAFE_INTEGER));
        }
      }
    }),
    { numRuns: 60 * PROPERTY_RUNS, interruptAfterTimeLimit: 5_000 * PROPERTY_RUNS },
  );
});
