import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { replay } from "../../src/pass/compute/replay.ts";
import type { ReadResponse } from "../../src/pass/compute/response.ts";
import type { PassState } from "../../src/pass/compute/state.ts";
import { begin, readWaiting, step, type Run } from "./drive.ts";
import {
  histories,
  OTHER_BANDS,
  PROPERTY_RUNS,
  responsesOf,
  timeAt,
  unchangedAt,
  type Given,
  type History,
  type Step,
} from "./histories.ts";

const RUNS = { numRuns: 40 * PROPERTY_RUNS, interruptAfterTimeLimit: 5_000 * PROPERTY_RUNS };

/** Values when they differ, to be explained: `expect` takes long to find that large ones are equal. */
function differing<Value>(found: Value, expected: Value): [Value, Value][] {
  return isDeepStrictEqual(found, expected) ? [] : [[found, expected]];
}

/** What must not depend on when payloads are read or forecasts settled. */
function record({ shelf }: Run) {
  const { rounds, conflicts, quarantine, head, snapshot } = shelf;
  const { historyHash, lastSeq, lastOrdinal, newestNumber, newestRoundId, sameCount, sameHundredths, respondedAt } =
    head;
  return {
    rounds,
    conflicts,
    quarantine,
    snapshot,
    head: { historyHash, lastSeq, lastOrdinal, newestNumber, newestRoundId, sameCount, sameHundredths, respondedAt },
  };
}

/** The payloads' contents by the time at which they were received. */
function readsOf(given: readonly Given[]): Map<string, ReadResponse> {
  return new Map(given.flatMap(({ response: { receivedAt, read } }) => (read === null ? [] : [[receivedAt, read]])));
}

/** After the end of every history. */
const END_MS = Date.UTC(2026, 10, 22);

/** An import with another result of a known round, which shows that nothing lies in a gap of unknown size. */
const GAP_SHOWN_WITHOUT_NEW_ROUNDS: History = {
  roundIds: "opaque",
  steps: [
    polled([100]),
    polled([187]),
    { ...polled([100, 100], "hidden"), listed: 1, order: "twisted" },
    polled([200]),
    { kind: "contradict", by: "import", waitMs: 200, back: 1 },
  ],
};

function polled(hundredths: number[], last: "listed" | "hidden" = "listed"): Step & { kind: "poll" } {
  const played = hundredths.map((one, at) => ({
    hundredths: one,
    fate: at > 0 && at === hundredths.length - 1 ? last : ("listed" as const),
  }));
  return { kind: "poll", waitMs: 200, played, listed: 0, order: "rising" };
}

const range = fc.tuple(fc.nat({ max: 60 }), fc.integer({ min: 1, max: 12 }));

describe("the same responses", () => {
  it("give the same rounds when reading is paused for a while", () => {
    fc.assert(
      fc.property(
        histories(),
        fc.array(range, { maxLength: 3 }),
        fc.integer({ min: 1, max: 5 }),
        (history, pauses, atOnce) => {
          const given = responsesOf(history).filter(({ response }) => response.from === "poll");
          const reads = readsOf(given);
          const straight = begin(history.roundIds);
          for (const one of given) step(straight, one, { mayIssue: false });
          const delayed = begin(history.roundIds);
          for (const [at, one] of given.entries()) {
            const isPaused = pauses.some(([from, count]) => at >= from && at < from + count);
            if (!isPaused) readWaiting(delayed, reads, one.issuedAt, { mayIssue: false, atOnce });
            const { response } = one;
            const stored = isPaused && response.from === "poll" ? { ...response, read: null } : response;
            step(delayed, { ...one, response: stored }, { mayIssue: false });
          }
          readWaiting(delayed, reads, given.at(-1)?.issuedAt ?? timeAt(0), { mayIssue: false, atOnce });
          expect(record(delayed)).toEqual(record(straight));
          const { memory, references, reading, heldBack, unknownGaps } = straight.state;
          expect(delayed.state).toMatchObject({ memory, references, reading, heldBack, unknownGaps });
        },
      ),
      RUNS,
    );
  });

  it("give the same rounds when an import is split into pages", () => {
    fc.assert(
      fc.property(histories(40), fc.nat({ max: 3 }), (history, cut) => {
        const given = responsesOf(history);
        const [whole, parts] = [begin(history.roundIds), begin(history.roundIds)];
        for (const one of given) {
          step(whole, one);
          const { response } = one;
          if (response.from !== "import" || !response.read.ok) {
            step(parts, one);
            continue;
          }
          const { read } = response;
          for (const items of [read.items.slice(0, cut), read.items.slice(cut)])
            step(parts, { ...one, response: { ...response, read: { ...read, items } } });
        }
        expect(record({ ...parts }).rounds).toEqual(record(whole).rounds);
        expect(parts.shelf.sets).toEqual(whole.shelf.sets);
        expect(parts.shelf.scoreSets).toEqual(whole.shelf.scoreSets);
      }),
      RUNS,
    );
  });

  it("settle every forecast alike when settling is paused for a while", () => {
    fc.assert(
      fc.property(histories(), fc.array(range, { maxLength: 3 }), (history, pauses) => {
        // without second results, which void what is not settled yet and revise what is
        const given = responsesOf({ ...history, steps: history.steps.filter(({ kind }) => kind !== "contradict") });
        const straight = begin(history.roundIds);
        for (const one of given) step(straight, one);
        const paused = begin(history.roundIds);
        for (const [at, one] of given.entries()) {
          const maySettle = !pauses.some(([from, count]) => at >= from && at < from + count);
          step(paused, one, { maySettle });
        }
        // what ended meanwhile is settled by the next pass
        const last = { response: unchangedAt(END_MS), issuedAt: timeAt(END_MS + 60) };
        for (const run of [straight, paused]) step(run, last);
        expect(paused.shelf.rounds).toEqual(straight.shelf.rounds);
        expect(nextColors(paused)).toEqual(nextColors(straight));
        checkScores(paused, true);
      }),
      RUNS,
    );
  });
});

/** What was forecast of each next round, and how it was settled. */
function nextColors({ shelf }: Run) {
  const settled = new Map(
    shelf.scoreSets.flatMap(({ forecastSeqs, reasons, outcomes, settledSeq }) =>
      forecastSeqs.map((seq, at) => [seq, { reason: reasons[at], outcome: outcomes[at], settledSeq }]),
    ),
  );
  const ended = shelf.sets.filter(({ firstSeq }) => settled.has(firstSeq));
  return ended
    .map(({ cutoffSeq, pPpm, firstSeq }) => ({
      cutoffSeq,
      pPpm: pPpm.slice(0, shelf.table.bands.length),
      ...settled.get(firstSeq),
    }))
    .slice(0, -20);
}

describe("a state", () => {
  it("that is replayed from what is stored equals the one the passes have", () => {
    fc.assert(
      fc.property(histories(), fc.nat({ max: 80 }), fc.boolean(), (history, bandsAt, changesBands) => {
        const run = begin(history.roundIds);
        let older: PassState = run.state;
        for (const [at, one] of responsesOf(history).entries()) {
          if (changesBands && at === bandsAt) {
            run.shelf.changeBands(OTHER_BANDS);
            run.state = replay(run.shelf.stored());
          }
          step(run, one, { maySettle: at % 7 !== 3 });
          const stored = run.shelf.stored();
          for (const [found, expected] of differing(replay(stored), run.state)) expect(found).toEqual(expected);
          if (at % 5 === 0) older = run.state;
          else
            for (const [found, expected] of differing(replay(stored, older), run.state))
              expect(found).toEqual(expected);
        }
      }),
      RUNS,
    );
  });

  it("that is lost at any moment changes nothing of the rows after it", () => {
    fc.assert(
      fc.property(histories(), fc.array(fc.nat({ max: 80 }), { maxLength: 5 }), (history, crashes) => {
        const [straight, crashed] = [begin(history.roundIds), begin(history.roundIds)];
        for (const [at, one] of responsesOf(history).entries()) {
          const { rows } = step(straight, one);
          if (crashes.includes(at)) crashed.state = replay(crashed.shelf.stored());
          for (const [found, expected] of differing(step(crashed, one).rows, rows)) expect(found).toEqual(expected);
        }
      }),
      RUNS,
    );
  });

  it("keeps its version only when nothing of it changes but the time of the last response", () => {
    fc.assert(
      fc.property(histories(), (history) => {
        const run = begin(history.roundIds);
        for (const one of responsesOf(history)) {
          const before = run.state;
          const { rows, state } = step(run, one);
          if (rows.isQuiet)
            for (const [found, expected] of differing(unasked(state), unasked(before))) expect(found).toEqual(expected);
          else expect(state.version).toBe(before.version + 1n);
        }
      }),
      { ...RUNS, examples: [[GAP_SHOWN_WITHOUT_NEW_ROUNDS]] },
    );
  });

  it("is never changed by a pass, nor is its response", () => {
    fc.assert(
      fc.property(histories(60), (history) => {
        const run = begin(history.roundIds);
        for (const one of responsesOf(history)) {
          const before = run.state;
          const [state, response] = [structuredClone(before), structuredClone(one.response)];
          const rows = structuredClone(step(run, one).rows);
          for (const [found, expected] of differing(before, state)) expect(found).toEqual(expected);
          for (const [found, expected] of differing(one.response, response)) expect(found).toEqual(expected);
          // the same pass again, after it was written, gives the same
          const again = begin(history.roundIds);
          again.state = before;
          again.shelf.version = before.version;
          for (const [found, expected] of differing(structuredClone(step(again, one).rows), rows))
            expect(found).toEqual(expected);
        }
      }),
      { ...RUNS, numRuns: 10 * PROPERTY_RUNS },
    );
  });
});

function unasked(state: PassState): object {
  return { ...state, head: { ...state.head, respondedAt: null }, notedAt: null };
}

describe("numbers of a table", () => {
  it("never go back, and every forecast is settled once, by its end at the latest", () => {
    fc.assert(
      fc.property(histories(), (history) => {
        const run = begin(history.roundIds);
        for (const one of responsesOf(history)) {
          const { head, version } = run.state;
          step(run, one);
          const after = run.state.head;
          expect(run.state.version >= version).toBe(true);
          expect(after.lastSeq >= head.lastSeq && after.lastOrdinal >= head.lastOrdinal).toBe(true);
          expect(after.forecastSeq >= head.forecastSeq).toBe(true);
        }
        checkScores(run, false);
        checkNumbers(run);
      }),
      RUNS,
    );
  });
});

function checkNumbers({ shelf: { rounds, sets, head } }: Run): void {
  expect(rounds.map(({ seq }) => seq)).toEqual(rounds.map((_, at) => BigInt(at + 1)));
  const onTime = rounds.filter(({ late }) => !late);
  expect(onTime.map(({ ordinal }) => ordinal)).toEqual(onTime.map((_, at) => BigInt(at + 1)));
  let next = 1n;
  for (const { firstSeq, features } of sets) {
    expect(firstSeq).toBe(next);
    next += BigInt(features.length);
  }
  expect(head.forecastSeq).toBe(next - 1n);
}

/** Each forecast is open or settled once; no two windows of a feature are open over the same round. */
function checkScores({ shelf, state }: Run, isWhole: boolean): void {
  const settled = new Map<bigint, { at: bigint | null; reason: number }>();
  for (const { forecastSeqs, settledOrdinal, reasons } of shelf.scoreSets) {
    for (const [at, seq] of forecastSeqs.entries()) {
      if (settled.has(seq)) expect.fail(`forecast ${seq} is settled twice`);
      settled.set(seq, { at: settledOrdinal, reason: reasons[at] ?? 0 });
    }
  }
  const open = new Set(state.open.map(({ seq }) => seq));
  const newestEnd = new Map<number, bigint>();
  for (const { firstSeq, features, horizons, cutoffOrdinal } of shelf.sets) {
    for (const [at, feature] of features.entries()) {
      const seq = firstSeq + BigInt(at);
      if (open.has(seq) === settled.has(seq)) expect.fail(`forecast ${seq} is open and settled, or neither`);
      const planned = cutoffOrdinal + BigInt(horizons[at] ?? 0);
      const score = settled.get(seq);
      if (score !== undefined) {
        if (score.reason === 0) expect(score.at).toBe(planned);
        expect((score.at ?? 0n) <= planned + (score.reason === 3 ? 1n : 0n)).toBe(true);
        expect((score.at ?? 0n) > cutoffOrdinal).toBe(true);
      } else if (!isWhole) expect(planned > state.head.lastOrdinal).toBe(true);
      if (feature === 0) continue;
      expect((newestEnd.get(feature) ?? 0n) <= cutoffOrdinal).toBe(true);
      newestEnd.set(feature, score?.at ?? planned);
    }
  }
}
