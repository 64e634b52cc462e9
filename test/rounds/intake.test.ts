import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { CheckedItem, IntakeRound } from "../../src/rounds/round.ts";
import { bad, good, linkOf, memoryTable } from "./world.ts";

/** 1.01, 1.02 …: no two alike, so that nothing looks stuck. */
const value = (number: number) => 101 + (number % 7000);
const page = (...numbers: number[]) => numbers.map((number) => good(number, value(number)));
const ids = (rounds: readonly IntakeRound[]) => rounds.map(({ roundId }) => roundId);
const opaque = (changed = {}) => memoryTable({ roundIds: "opaque", ...changed });
const list = (...names: string[]) => names.map((name) => good(name, 101 + name.charCodeAt(0)));
const timed = (name: string, time: string) =>
  good(name, 100 + name.charCodeAt(0), { occurredAt: `2026-11-21T${time}:00Z` });
const same = (...numbers: number[]) => numbers.map((number) => good(number, 100));

describe("rounds whose ids count up", () => {
  it("a table begins with the oldest round of its first response, and nothing before it is missing", () => {
    const table = memoryTable();
    const { rounds, gaps } = table.take(page(814, 813, 812));
    expect(ids(rounds)).toEqual(["812", "813", "814"]);
    expect(rounds.map(({ seq, late, afterGap }) => [seq, late, afterGap])).toEqual([
      [1n, false, false],
      [2n, false, false],
      [3n, false, false],
    ]);
    expect(gaps).toEqual([]);
  });

  it("the order of the list does not matter, only the numbers do", () => {
    const [first, last] = [memoryTable(), memoryTable()];
    first.take(page(3, 2, 1));
    last.take(page(1, 2, 3));
    expect(first.rounds).toEqual(last.rounds);
  });

  it("a repeat of a round changes nothing", () => {
    const table = memoryTable();
    table.take(page(2, 1));
    const again = table.take(page(2, 1, 2));
    expect([again.rounds, again.conflicts]).toEqual([[], []]);
  });

  it("missing numbers are one exact gap, and the round after it is marked", () => {
    const table = memoryTable();
    table.take(page(811));
    const { rounds, gaps } = table.take(page(816, 815, 811));
    expect(gaps).toEqual([{ range: { from: 812n, to: 814n }, afterRoundId: "811", beforeRoundId: "815" }]);
    expect(rounds.map(({ roundId, afterGap }) => [roundId, afterGap])).toEqual([
      ["815", true],
      ["816", false],
    ]);
  });

  it("a number below the newest on-time one is late: stored, and not the newest", () => {
    const table = memoryTable();
    table.take(page(10, 9, 7));
    const { rounds, onTime, state } = table.take(page(10, 8), { absentAt: "2026-11-21T04:00:00Z" });
    expect(rounds.map(({ roundId, late, afterGap, absentAt }) => [roundId, late, afterGap, absentAt])).toEqual([
      ["8", true, false, null],
    ]);
    expect([onTime, state.newestNumber]).toEqual([0, 10n]);
  });

  it("only on-time rounds know when they were absent, and not one that was there before, unreadable", () => {
    const table = memoryTable();
    table.take([bad("2"), good(1, 150)]);
    const { rounds } = table.take(page(3, 2, 1), { absentAt: "2026-11-21T04:00:00Z" });
    expect(rounds.map(({ roundId, absentAt }) => [roundId, absentAt])).toEqual([
      ["2", null],
      ["3", "2026-11-21T04:00:00Z"],
    ]);
  });

  it("another result for a known round is a conflict, and the first is kept", () => {
    const table = memoryTable();
    table.take([good(812, 187)]);
    const { rounds, conflicts } = table.take([good(813, 300), good(812, 204)]);
    expect(ids(rounds)).toEqual(["813"]);
    expect(conflicts).toMatchObject([{ roundId: "812", kept: 187, other: 204 }]);
  });

  it("of two results for a round in one response the first is kept", () => {
    const table = memoryTable();
    const { rounds, conflicts } = table.take([good(1, 187), good(1, 204), good(1, 187)]);
    expect(rounds.map(({ hundredths }) => hundredths)).toEqual([187]);
    expect(conflicts).toMatchObject([{ kept: 187, other: 204 }]);
  });

  it.each(["x", "007", "-3", "1.5", "9".repeat(19)])("the id %s, which is not a number, is quarantined", (id) => {
    const { rounds, refused } = memoryTable().take([good(5, 187), good(id, 204)]);
    expect(ids(rounds)).toEqual(["5"]);
    expect(refused).toMatchObject([{ code: "bad_id", roundId: id }]);
  });

  it("an id far from the others of a first response is quarantined", () => {
    const table = memoryTable();
    expect(table.take([good(9_001_007, 187), ...page(3, 2, 1)]).refused).toMatchObject([{ code: "far_ahead" }]);
    expect(ids(table.take(page(4, 3)).rounds)).toEqual(["4"]);
  });

  describe("of which one is further ahead than time and pace explain", () => {
    const wrong = 9_001_007;

    it("keep that one apart while the old sequence continues, however often it is listed", () => {
      const table = memoryTable();
      table.take(page(1_006, 1_005));
      expect(table.take([good(wrong, 187), ...page(1_006)]).refused).toMatchObject([{ code: "far_ahead" }]);
      for (let number = 1_007; number < 1_010; number++) {
        const { rounds, refused } = table.take([good(number, 204), good(wrong, 187), ...page(number - 1)]);
        expect([ids(rounds), rounds[0]?.late, refused.length]).toEqual([[String(number)], false, 1]);
      }
    });

    it("believe it when a second response continues from it alone", () => {
      const table = memoryTable();
      table.take(page(1_006));
      expect(table.take(page(wrong, 1_006)).rounds).toEqual([]);
      expect(table.take(page(wrong, 1_006)).rounds).toEqual([]);
      const { rounds, gaps } = table.take(page(wrong + 1, wrong, 1_006));
      expect(rounds.map(({ roundId, late }) => [Number(roundId), late])).toEqual([
        [wrong, false],
        [wrong + 1, false],
      ]);
      expect(gaps[0]?.range).toEqual({ from: 1_007n, to: BigInt(wrong - 1) });
    });

    it("do not accept it if the old sequence continued in between", () => {
      const table = memoryTable();
      table.take(page(1_006));
      table.take(page(wrong));
      table.take(page(1_007));
      expect(table.take(page(wrong + 1)).rounds).toEqual([]);
    });

    it("believe it when a person released it", () => {
      const table = memoryTable();
      table.take(page(1_006));
      table.take(page(wrong));
      table.heldBack.set(String(wrong), { stuck: false, aheadAt: "2", released: true });
      expect(ids(table.take(page(wrong)).rounds)).toEqual([String(wrong)]);
    });
  });

  it("a jump that time and pace explain is a gap", () => {
    const table = memoryTable();
    table.take(page(1_000_000));
    const { gaps } = table.take(page(2_200_001), { reach: () => 2_000_000n });
    expect(gaps[0]?.range).toEqual({ from: 1_000_001n, to: 2_200_000n });
  });
});

describe("rounds with opaque ids", () => {
  it("are read newest first without other evidence", () => {
    const table = opaque();
    table.take(list("c", "b", "a"));
    table.take(list("e", "d", "c", "b"));
    expect(ids(table.rounds)).toEqual(["a", "b", "c", "d", "e"]);
    expect(table.rounds.some(({ late, afterGap }) => late || afterGap)).toBe(false);
  });

  it("are read newest last if the feed is configured so", () => {
    const table = opaque({ feedOrder: "newest_last" });
    table.take(list("a", "b", "c"));
    table.take(list("b", "c", "d"));
    expect(ids(table.rounds)).toEqual(["a", "b", "c", "d"]);
  });

  it("are read newest last if their times rise", () => {
    const table = opaque();
    table.take([timed("a", "04:01"), timed("b", "04:02"), timed("c", "04:03")]);
    expect(ids(table.rounds)).toEqual(["a", "b", "c"]);
  });

  it("are taken newest last once new rounds are at the end of the list", () => {
    const table = opaque();
    table.take(list("a"));
    table.take(list("a", "b"));
    table.take(list("a", "b", "c", "d"));
    expect(ids(table.rounds)).toEqual(["a", "b", "c", "d"]);
    expect(table.rounds.some(({ late }) => late)).toBe(false);
  });

  it("a first response that was read in the wrong direction does not make later rounds late", () => {
    const table = opaque();
    table.take(list("a", "b", "c"));
    table.take(list("b", "c", "d", "e"));
    table.take(list("d", "e", "f"));
    expect(ids(table.rounds).slice(3)).toEqual(["d", "e", "f"]);
    expect(table.rounds.some(({ late }) => late)).toBe(false);
  });

  it("a round listed as older than one we have is late", () => {
    const table = opaque();
    table.take(list("c", "a"));
    const { rounds } = table.take(list("d", "c", "b", "a"));
    expect(rounds.map(({ roundId, late }) => [roundId, late])).toEqual([
      ["b", true],
      ["d", false],
    ]);
  });

  it("a response without a stored round follows a gap of unknown size", () => {
    const table = opaque();
    table.take(list("b", "a"));
    const { rounds, gaps } = table.take(list("y", "x"));
    expect(gaps).toEqual([{ range: null, afterRoundId: "b", beforeRoundId: "x" }]);
    expect(rounds.map(({ afterGap }) => afterGap)).toEqual([true, false]);
  });

  it("a response without our newest round whose times are before it is an old page: late, and no gap", () => {
    const table = opaque();
    table.take([good("z", 150, { occurredAt: "2026-11-21T04:00:00Z" })]);
    const { rounds, gaps } = table.take([good("b", 151, { occurredAt: "2026-11-21T03:00:00Z" })]);
    expect(rounds.map(({ late }) => late)).toEqual([true]);
    expect(gaps).toEqual([]);
  });

  it("an on-time round right after a late one follows a gap, also in a list with an on-time round", () => {
    const table = opaque();
    table.take(list("b", "a"));
    table.take(list("d", "c"), { manner: "reread" });
    const { gaps, rounds } = table.take(list("f", "e", "d", "c", "b", "a"));
    expect(gaps).toEqual([{ range: null, afterRoundId: "b", beforeRoundId: "e" }]);
    expect(rounds.map(({ roundId, late, afterGap }) => [roundId, late, afterGap])).toEqual([
      ["e", false, true],
      ["f", false, false],
    ]);
  });

  it("a gap begins after the newest on-time round, also if a late one is listed right before it", () => {
    const table = opaque();
    table.take([timed("b", "04:00")]);
    const { gaps, rounds } = table.take([timed("e", "04:02"), bad(), timed("d", "03:59"), timed("c", "04:01")]);
    expect(rounds.map(({ roundId, late }) => [roundId, late])).toEqual([
      ["c", false],
      ["d", true],
      ["e", false],
    ]);
    expect(gaps).toEqual([
      { range: null, afterRoundId: "b", beforeRoundId: "c" },
      { range: null, afterRoundId: "c", beforeRoundId: "e" },
    ]);
  });

  it("a clock that steps back makes no round late that is listed after our newest", () => {
    const table = opaque();
    const ours = [timed("c", "04:00"), timed("b", "03:59"), timed("a", "03:58")];
    table.take(ours);
    const { rounds } = table.take([timed("d", "03:00"), ...ours]);
    expect(rounds.map(({ roundId, late }) => [roundId, late])).toEqual([["d", false]]);
  });

  it("an unreadable item between two rounds is a gap, until it can be read", () => {
    const table = opaque();
    table.take(list("a"));
    const hidden = table.take([...list("c"), bad("b"), ...list("a")]);
    expect(hidden.gaps).toEqual([{ range: null, afterRoundId: "a", beforeRoundId: "c" }]);
    expect(hidden.sequence).toEqual(["a", null, "c"]);
    const healed = table.take(list("c", "b", "a"));
    expect(healed.rounds.map(({ roundId, late }) => [roundId, late])).toEqual([["b", true]]);
    expect(healed.sequence).toEqual(["a", "b", "c"]);
  });

  it("an unreadable copy of a stored round hides nothing and still connects the responses", () => {
    const table = opaque();
    table.take(list("b", "a"));
    const { gaps, rounds } = table.take([...list("c"), bad("b")]);
    expect([gaps, ids(rounds)]).toEqual([[], ["c"]]);
  });
});

describe("a feed that repeats one result", () => {
  it("is accepted five times, and quarantined from the sixth on", () => {
    const table = memoryTable();
    table.take(same(1, 2, 3, 4, 5));
    const { rounds, refused, stuck } = table.take(same(6, 7));
    expect(rounds).toEqual([]);
    expect(refused.map(({ code, roundId }) => [code, roundId])).toEqual([
      ["stuck_feed", "6"],
      ["stuck_feed", "7"],
    ]);
    expect(stuck).toEqual({ kind: "begun", hundredths: 100, roundId: "6" });
  });

  it("another result ends it; the repeats stay apart and are missing", () => {
    const table = memoryTable();
    table.take(same(1, 2, 3, 4, 5, 6, 7));
    const ended = table.take([...same(6, 7), good(8, 250)]);
    expect([ids(ended.rounds), ended.stuck]).toEqual([["8"], { kind: "over" }]);
    expect(ended.gaps).toMatchObject([{ range: { from: 6n, to: 7n } }]);
    const later = table.take([...same(6, 7), good(8, 250)]);
    expect([later.rounds, later.refused.length]).toEqual([[], 2]);
  });

  it("repeats that an operator released are stored late", () => {
    const table = memoryTable();
    table.take([...same(1, 2, 3, 4, 5, 6), good(7, 250)]);
    table.heldBack.set("6", { stuck: true, aheadAt: null, released: true });
    expect(table.take([...same(6), good(7, 250)]).rounds).toMatchObject([{ roundId: "6", late: true }]);
  });

  it("proven rounds may be as alike as they like", () => {
    const table = memoryTable();
    const proven = [1, 2, 3, 4, 5, 6, 7, 8].map((number) =>
      good(number, 100, { verified: true, hash: "0".repeat(64) }),
    );
    expect(table.take(proven).refused).toEqual([]);
  });
});

describe("pages of history", () => {
  it("bring late rounds only; what is newer than ours is left to the next poll", () => {
    const table = memoryTable();
    table.take(page(10, 7));
    const { rounds, gaps } = table.take(page(11, 9, 8, 7), { manner: "history" });
    expect(rounds.map(({ roundId, late }) => [roundId, late])).toEqual([
      ["8", true],
      ["9", true],
    ]);
    expect(gaps).toEqual([]);
    expect(table.take(page(11, 10)).rounds).toMatchObject([{ roundId: "11", late: false, afterGap: false }]);
  });
});

describe("however responses overlap, repeat or change their order", () => {
  /** Windows on a true sequence of rounds with holes, in any order, each listed either way round, some twice. */
  const windows = fc.record({
    missing: fc.uniqueArray(fc.integer({ min: 2, max: 58 }), { maxLength: 12 }),
    responses: fc.array(
      fc.record({
        from: fc.integer({ min: 1, max: 60 }),
        length: fc.integer({ min: 1, max: 12 }),
        up: fc.boolean(),
        twice: fc.boolean(),
      }),
      { minLength: 1, maxLength: 25 },
    ),
  });

  it("the same rounds are stored, without a hole in seq, chained, and exactly the missing numbers are gaps", () => {
    fc.assert(
      fc.property(windows, ({ missing, responses }) => {
        const table = memoryTable();
        const shown = new Set<number>();
        const gaps: { from: bigint; to: bigint }[] = [];
        for (const { from, length, up, twice } of responses) {
          const numbers = Array.from({ length }, (_, n) => from + n).filter((n) => !missing.includes(n));
          for (const n of numbers) shown.add(n);
          const items = page(...(up ? numbers : numbers.toReversed()));
          const taken = table.take(twice ? [...items, ...items] : items);
          gaps.push(...taken.gaps.flatMap(({ range }) => (range === null ? [] : [range])));
          expect([taken.refused, taken.conflicts]).toEqual([[], []]);
        }
        const stored = table.rounds.map(({ roundId }) => Number(roundId));
        expect(stored.toSorted((a, b) => a - b)).toEqual([...shown].toSorted((a, b) => a - b));
        let hash = "0".repeat(64);
        for (const [place, round] of table.rounds.entries()) {
          expect(round.seq).toBe(BigInt(place + 1));
          hash = linkOf(hash, round);
          expect(round.historyHash).toBe(hash);
        }
        const onTime = table.rounds.filter(({ late }) => !late).map(({ roundId }) => Number(roundId));
        expect(onTime).toEqual(onTime.toSorted((a, b) => a - b));
        const [first, newest] = [onTime[0] ?? 0, onTime.at(-1) ?? 0];
        const unseen = Array.from({ length: Math.max(0, newest - first) }, (_, n) => first + n).filter(
          (n) => !shown.has(n),
        );
        const open = gaps.flatMap(({ from, to }) =>
          Array.from({ length: Number(to - from) + 1 }, (_, n) => Number(from) + n),
        );
        expect(new Set(open).size).toBe(open.length);
        expect(open.filter((n) => !shown.has(n)).toSorted((a, b) => a - b)).toEqual(unseen);
      }),
      { numRuns: 500 },
    );
  });

  it("with opaque ids, every round is stored once and none that was listed after ours is late", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ forward: fc.integer({ min: 0, max: 6 }), length: fc.integer({ min: 7, max: 15 }) }), {
          minLength: 1,
          maxLength: 20,
        }),
        fc.boolean(),
        (steps, newestFirst) => {
          const table = memoryTable({ roundIds: "opaque", feedOrder: newestFirst ? "newest_first" : "newest_last" });
          let newest = 20;
          const shown = new Set<string>();
          for (const { forward, length } of steps) {
            newest += forward;
            const names = Array.from({ length }, (_, n) => `r${newest - n}`);
            for (const name of names) shown.add(name);
            const items = names.map((name) => good(name, 101 + Number(name.slice(1))));
            table.take(newestFirst ? items : items.toReversed());
          }
          expect(new Set(ids(table.rounds))).toEqual(shown);
          expect(table.rounds.length).toBe(shown.size);
          const onTime = table.rounds.filter(({ late }) => !late).map(({ roundId }) => Number(roundId.slice(1)));
          expect(onTime).toEqual(onTime.toSorted((a, b) => a - b));
          expect(onTime.at(-1)).toBe(newest);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("no item is lost: each is a round, a repeat, a conflict or quarantined", () => {
    const anyItem = fc.oneof(
      fc
        .record({ id: fc.integer({ min: 1, max: 30 }), hundredths: fc.integer({ min: 100, max: 104 }) })
        .map(({ id, hundredths }) => good(id, hundredths)),
      fc.constantFrom("x", "01", "99999999999999").map((id) => good(id, 150)),
      fc.option(fc.integer({ min: 1, max: 30 }).map(String)).map(bad),
    );
    fc.assert(
      fc.property(fc.array(fc.array(anyItem, { maxLength: 12 }), { maxLength: 12 }), (responses: CheckedItem[][]) => {
        const table = memoryTable();
        for (const items of responses) {
          const { conflicts, refused } = table.take(items);
          for (const { raw } of items.filter(({ ok }) => !ok)) expect(refused.map((one) => one.raw)).toContain(raw);
          for (const { roundId, hundredths } of items.flatMap((item) => (item.ok ? item.round : []))) {
            const isStored = table.rounds.some((one) => one.roundId === roundId && one.hundredths === hundredths);
            const isConflict = conflicts.some((one) => one.roundId === roundId && one.other === hundredths);
            expect(isStored || isConflict || refused.some((one) => one.roundId === roundId)).toBe(true);
          }
          expect(refused.every(({ reason }) => reason !== "")).toBe(true);
        }
      }),
      { numRuns: 500 },
    );
  });
});
