import { readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { findRepeats, listSharing } from "../../src/import/repeats.ts";
import { openStagedRounds, type StagedRound, type StagedRounds } from "../../src/import/staged-rounds.ts";
import { makeQuickFolder } from "../support/quick-folder.ts";

const folder = await makeQuickFolder("roundhouse-staged-");
afterAll(() => rm(folder, { recursive: true }));

const anyText = fc.string({ unit: "grapheme", minLength: 1 }).filter((text) => !text.includes("\0"));
const anyRound = fc.record({
  roundId: anyText,
  hundredths: fc.integer({ min: 100, max: 100_000_000_000 }),
  rawValue: anyText,
  occurredAt: fc.option(fc.constant("2026-11-20T04:00:12.123456Z")),
  hash: fc.option(fc.constant("ab".repeat(32))),
});
const anyFile = fc.array(fc.tuple(anyRound, fc.constantFrom(1, 1, 1, 2, 50)), { minLength: 1, maxLength: 60 });

/** A round of line 7. */
const round = (changed: Partial<StagedRound>): StagedRound => ({
  line: 7,
  roundId: "1",
  hundredths: 150,
  rawValue: "1.5",
  occurredAt: null,
  hash: null,
  ...changed,
});

async function stage<Result>(
  rounds: readonly StagedRound[],
  use: (staged: StagedRounds) => Result | Promise<Result>,
): Promise<Result> {
  const staged = await openStagedRounds(folder);
  try {
    for (const one of rounds) staged.add(one.line, one);
    return await use(staged);
  } finally {
    staged.close();
  }
}

const { signal } = new AbortController();

describe("staged rounds", () => {
  it("are listed as they were added, whatever their texts, in any order of their lines", async () => {
    await fc.assert(
      fc.asyncProperty(anyFile, fc.infiniteStream(fc.nat()), async (file, draws) => {
        let line = 1;
        const rounds = file.map(([one, step]): StagedRound => ({ ...one, line: (line += step) }));
        const draw = () => draws.next().value ?? 0;
        await stage(rounds, (staged) => {
          for (const asked of [rounds, rounds.toReversed(), rounds.slice(draw() % rounds.length)]) {
            expect(staged.list(Int32Array.from(asked, (one) => one.line))).toEqual(asked);
          }
          const some = Array.from({ length: 5 }, () => rounds[draw() % rounds.length]!);
          expect(staged.list(Int32Array.from(some, (one) => one.line))).toEqual(some);
        });
      }),
    );
  });

  it("may be more than are written in one piece, and are added after others were listed", async () => {
    const rounds = Array.from({ length: 20_000 }, (_, n) => round({ line: n + 2, roundId: `größer ${n}` }));
    await stage(rounds.slice(0, 15_000), (staged) => {
      expect(staged.list(Int32Array.of(15_001, 2))).toEqual([rounds[14_999], rounds[0]]);
      for (const one of rounds.slice(15_000)) staged.add(one.line, one);
      expect(staged.list(Int32Array.from(rounds, ({ line }) => line))).toEqual(rounds);
    });
  });

  it("leave nothing in their folder, even while they are used", async () => {
    await stage([round({})], async (staged) => {
      expect(staged.list(Int32Array.of(7))).toEqual([round({})]);
      expect(await readdir(folder)).toEqual([]);
    });
  });

  it("refuse a text that would become two fields", async () => {
    await stage([round({ rawValue: "1\0.5" })], (staged) => {
      expect(() => staged.list(Int32Array.of(7))).toThrow("expected 6 fields per staged round, found 7");
    });
  });

  it("are asked for by their lines alone", async () => {
    await stage([round({}), round({ line: 90 })], (staged) => {
      expect(staged.list(new Int32Array())).toEqual([]);
      expect(() => staged.list(Int32Array.of(7, 8))).toThrow("line 8 has no staged round");
      expect(() => staged.list(Int32Array.of(50, 7))).toThrow("line 50 has no staged round");
      expect(() => staged.list(Int32Array.of(91))).toThrow("line 91 has no staged round");
    });
  });

  it("need a folder that can be written to", async () => {
    const file = path.join(await makeQuickFolder("roundhouse-staged-"), "file");
    await writeFile(file, "");
    await expect(openStagedRounds(path.join(file, "data"))).rejects.toThrow(
      /^DATA_DIR must be a folder that can be written/,
    );
    await rm(path.dirname(file), { recursive: true });
  });
});

describe("repeats", () => {
  const rounds = ["a", "b", "a", "c", "b", "a"].map((roundId, n) =>
    round({ line: n * 3 + 2, roundId, hash: roundId === "c" ? null : `hash of ${roundId}` }),
  );
  const lines = Int32Array.from(rounds, ({ line }) => line).toReversed();

  it("are the lines after the first with an id, in the order of the file", async () => {
    const found = await stage(rounds, ({ list }) => findRepeats({ list, lines, signal }));
    expect(found).toEqual({ ids: new Set(["a", "b"]), later: [8, 14, 17] });
  });

  it("are looked for among the given lines alone, and rows without a key share none", async () => {
    const shared = await stage([...rounds, round({ line: 40, hash: null })], async ({ list }) => {
      const found: number[] = [];
      const asked = { list, lines: Int32Array.of(...lines.filter((line) => line !== 5), 40), signal };
      for await (const { line } of listSharing(asked, ({ hash }) => hash)) found.push(line);
      return found;
    });
    expect(shared).toEqual([2, 8, 17]);
  });

  it("are not looked for after an interruption", async () => {
    const stopped = AbortSignal.abort(new Error("interrupted"));
    await stage(rounds, async ({ list }) => {
      await expect(findRepeats({ list, lines, signal: stopped })).rejects.toThrow("interrupted");
    });
  });
});
