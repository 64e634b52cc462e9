import fc from "fast-check";
import { expect, it } from "vitest";
import { holdRounds, mergeRounds, newestRounds, NO_ROUNDS, type RoundText } from "../../src/published/held-rounds.ts";

const rounds = fc.uniqueArray(
  fc.record({ order: fc.bigInt({ min: 0n, max: 999_999_999_999_999_999n }), seq: fc.integer({ min: 1, max: 50 }) }),
  { selector: ({ seq }) => seq, maxLength: 30 },
);
const textOf = ({ order, seq }: { order: bigint; seq: number }): RoundText => ({
  order,
  seq,
  json: JSON.stringify({ round_id: String(order), color: "größer", seq }),
});

/** What the same rounds are as objects in order. */
function listed(all: readonly { order: bigint; seq: number }[], most: number): string {
  const sorted = all.toSorted((a, b) => (a.order === b.order ? b.seq - a.seq : a.order < b.order ? 1 : -1));
  return sorted
    .slice(0, most)
    .map((round) => textOf(round).json)
    .join(",");
}

it("rounds that are held in two goes are those that a sorted list of both has, newest first", () => {
  fc.assert(
    fc.property(rounds, fc.nat(30), fc.integer({ min: 1, max: 20 }), fc.nat(25), (all, cut, most, shown) => {
      const [first, then] = [all.slice(0, cut), all.slice(cut)];
      const held = mergeRounds(
        mergeRounds(NO_ROUNDS, holdRounds(first.map(textOf)), most),
        holdRounds(then.map(textOf)),
        most,
      );
      const kept = [
        ...first.toSorted((a, b) => (a.order === b.order ? b.seq - a.seq : a.order < b.order ? 1 : -1)).slice(0, most),
        ...then,
      ];
      expect(held.length).toBe(Math.min(kept.length, most));
      expect(newestRounds(held, shown)).toBe(listed(kept, Math.min(most, shown)));
    }),
  );
});

it("of no rounds nothing is shown", () => {
  expect(newestRounds(NO_ROUNDS, 20)).toBe("");
  expect(mergeRounds(NO_ROUNDS, NO_ROUNDS, 200).length).toBe(0);
});
