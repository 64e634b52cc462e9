import fc from "fast-check";
import { expect, it } from "vitest";
import { knownAmong, knownFrom, listKnown, withRounds } from "../../src/pass/compute/known-rounds.ts";
import { KNOWN_ROUNDS } from "../../src/pass/compute/state.ts";
import type { KnownRound } from "../../src/rounds/round.ts";
import { checkedItem } from "../support/passes.ts";

type Known = [string, KnownRound];

/** Rounds in order, with ids that contain one another. */
const someRounds = fc.array(
  fc.record({
    hundredths: fc.integer({ min: 100, max: 10_000_000_000 }),
    late: fc.boolean(),
    verified: fc.constantFrom(null, true, false),
    proofHash: fc.constantFrom(null, "ab".repeat(32)),
    receivedAt: fc.constantFrom("2026-11-21T04:00:12.1234560Z", "2026-11-21T04:00:13.0000000Z"),
  }),
  { maxLength: 2 * KNOWN_ROUNDS, size: "max" },
);
/** Numbers of rounds, known or not. */
const numbers = fc.array(fc.nat(3 * KNOWN_ROUNDS), { maxLength: 10 });
const numbered = (fields: readonly Omit<KnownRound, "seq">[]): Known[] =>
  fields.map((one, at) => [`${at}`, { seq: BigInt(at + 1), ...one }]);

type Looked = Parameters<typeof knownAmong>[0];

/** A table with these rounds: opaque ids; numbers; numbers, after staff reset its newest one to a lower one. */
const KINDS = ["opaque", "consecutive", "reset"] as const;

function tableWith(rounds: readonly Known[], kind: (typeof KINDS)[number] = "opaque"): Looked {
  const highest = BigInt(Math.max(0, rounds.length - 1));
  const newest = { opaque: null, consecutive: highest, reset: highest / 2n }[kind];
  return {
    known: knownFrom(rounds),
    table: {
      roundIds: kind === "opaque" ? "opaque" : "consecutive",
      resets: kind === "reset" ? [{ afterSeq: 1, number: String(newest), above: 0 }] : [],
    },
    head: { newestNumber: newest },
    reading: { tally: { newest } },
  };
}

it("keeps the newest rounds with all their fields, newest first, however many are added together", () => {
  fc.assert(
    fc.property(someRounds, fc.nat(2 * KNOWN_ROUNDS), (fields, cut) => {
      const rounds = numbered(fields);
      const newest = rounds.slice(-KNOWN_ROUNDS).toReversed();
      expect(listKnown(knownFrom(rounds.toReversed()))).toEqual(newest);
      expect(listKnown(withRounds(knownFrom(rounds.slice(0, cut)), rounds.slice(cut)))).toEqual(newest);
    }),
    { numRuns: 50 },
  );
});

it("finds rounds by their whole ids only, few or many of them", () => {
  fc.assert(
    fc.property(someRounds, numbers, fc.constantFrom(...KINDS), (fields, wanted, kind) => {
      const rounds = numbered(fields);
      const items = ["", ...wanted.map(String)].map((roundId) => checkedItem({ roundId }));
      const found = knownAmong(tableWith(rounds, kind), items, undefined);
      const newest = rounds.slice(-KNOWN_ROUNDS);
      expect(found).toEqual(new Map(newest.filter(([roundId]) => wanted.includes(Number(roundId)))));
    }),
    { numRuns: 200 },
  );
});

it("finds the same rounds of a text again, whatever was looked up before, in it and in another one", () => {
  const responses = fc.array(numbers, { minLength: 2, maxLength: 5 });
  fc.assert(
    fc.property(someRounds, responses, (fields, lookedUp) => {
      const rounds = numbered(fields);
      const [all, some] = [rounds.slice(-KNOWN_ROUNDS), rounds.slice(0, 5)];
      const texts = [all, all, some].map((own) => ({ own, table: tableWith(own) }));
      for (const wanted of [...lookedUp, ...lookedUp.map((ids) => ids.toReversed())])
        for (const { own, table } of texts) {
          const found = knownAmong(
            table,
            wanted.map((id) => checkedItem({ roundId: `${id}` })),
            undefined,
          );
          expect(found).toEqual(new Map(own.filter(([roundId]) => wanted.includes(Number(roundId)))));
        }
    }),
    { numRuns: 100 },
  );
});
