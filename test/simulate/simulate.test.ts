import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { InvariantViolation } from "./invariant-violation.ts";
import { checkResponse, readRefusal } from "./check-responses.ts";
import { drawFaults, FAULTS } from "./faults.ts";
import { findLeak, growthOf, isMeasured } from "./memory.ts";
import { PLANTED } from "./planted.ts";
import {
  drawHouseFaults,
  drawTruth,
  reportedResults,
  generateRounds,
  reportedEndMs,
  HOUSE_FAULTS,
  faultsOfHouse,
  type Truth,
} from "./truth.ts";

const NOW = 1_795_000_000_000;
const HOUR_MS = 3_600_000;

function play(seed: number, lastsMs: number): Truth {
  const truth = drawTruth(seed, { nowMs: NOW, houses: 2, tablesPerHouse: 2 });
  drawHouseFaults(truth, NOW, lastsMs);
  for (const table of truth.tables) generateRounds(truth, table, NOW + lastsMs);
  return truth;
}

describe("a simulated day", () => {
  it("depends on its seed alone, however often its rounds are generated", () => {
    const truth = drawTruth(7, { nowMs: NOW, houses: 2, tablesPerHouse: 2 });
    drawHouseFaults(truth, NOW, 60_000);
    for (let at = NOW; at <= NOW + 60_000; at += 137)
      for (const table of truth.tables) generateRounds(truth, table, at);
    expect(truth).toEqual(play(7, 60_000));
    expect(truth.tables).not.toEqual(play(8, 60_000).tables);
    expect(drawFaults(7, HOUR_MS, 20_000)).toEqual(drawFaults(7, HOUR_MS, 20_000));
  });

  it("includes every fault of servers and houses if it is long enough", () => {
    expect(new Set(drawFaults(3, 20_000 * 2 * FAULTS.length, 20_000).map(({ kind }) => kind))).toEqual(new Set(FAULTS));
    const kinds = new Set(faultsOfHouse(play(3, 400_000), "h0").map(({ kind }) => kind));
    expect(kinds).toEqual(new Set(HOUSE_FAULTS));
  });

  it("reports wrong times while the clock of a house is wrong, and correct ones otherwise", () => {
    const truth = play(5, 400_000);
    const [table] = truth.tables;
    const wrong = (table?.rounds ?? []).filter(
      (round) => table !== undefined && reportedEndMs(truth, table, round) !== Math.round(round.endsAtMs),
    );
    const spans = faultsOfHouse(truth, "h0").filter(({ kind }) => kind === "clock");
    expect(wrong.length).toBeGreaterThan(0);
    expect(wrong.every(({ endsAtMs: at }) => spans.some(({ fromMs, toMs }) => fromMs <= at && at < toMs))).toBe(true);
  });
});

describe("a response", () => {
  const truth = play(7, 60_000);
  const list = (change: (ids: number[]) => number[] = (ids) => ids) =>
    JSON.stringify({
      ok: true,
      plan: "Pro",
      tables: truth.tables.map(({ house, game, rounds }) => ({
        house,
        game,
        market: "all",
        rounds: change(rounds.slice(-5).map(({ id }) => id))
          .toReversed()
          .flatMap((id) => {
            const round = rounds.find((one) => one.id === id);
            return round === undefined ? [] : [{ round_id: String(id), multiplier: round.hundredths / 100 }];
          }),
      })),
    });
  const check = (text: string, plan = "Pro", shown = new Map<string, number>()) =>
    checkResponse(truth, { path: "rounds?limit=20", text, plan, by: "api-0", shown, shownBefore: new Map(shown) });

  it("passes if it shows the results of the houses to the right caller", () => {
    expect(() => check(list())).not.toThrow();
  });

  it.each([
    ["of another plan", () => check(list(), "Max"), /served a caller with the plan Max as one with Pro/],
    ["with a round twice", () => check(list((ids) => [...ids, ids.at(-1) ?? 0])), /out of order or twice/],
    [
      "with a result that no house reported",
      () => check(list().replace(/"multiplier":[\d.]+/, '"multiplier":123456.78')),
      /shows 123456.78 for round/,
    ],
    [
      "with an older newest round than before",
      () => {
        const shown = new Map<string, number>();
        check(list(), "Pro", shown);
        check(
          list((ids) => ids.slice(0, -1)),
          "Pro",
          shown,
        );
      },
      /as the newest, after it had shown/,
    ],
    ["that is not JSON", () => readRefusal("games", 500, "oops"), /a body that is not JSON: oops/],
    [
      "with an internal error",
      () =>
        readRefusal(
          "games",
          500,
          '{"ok":false,"error":{"code":"internal_error","message":"a fault","docs_url":"/docs"},"request_id":"r"}',
        ),
      /returned 500 internal_error/,
    ],
  ])("%s is refused", (_, given, message) => {
    expect(given).toThrow(InvariantViolation);
    expect(given).toThrow(message);
  });

  it('is compared with every result that a house with the fault "lie" reports', () => {
    const day = play(7, 400_000); // long enough for every house fault
    const lied = day.tables.flatMap((table) => table.rounds.map((round) => reportedResults(day, table, round).length));
    expect(new Set(lied)).toEqual(new Set([1, 2]));
  });
});

describe("memory", () => {
  const samples = (bytes: (part: number) => number) =>
    Array.from({ length: 100 }, (_, n) => ({ name: "api-0", part: n / 100, bytes: bytes(n / 100) }));

  it("does not leak if it grows during the warm-up and varies afterwards", () => {
    const flat = growthOf(samples((part) => (part < 0.1 ? 50e6 : part * 100 === 95 ? 900e6 : 200e6)));
    expect(flat).toEqual([{ name: "api-0", beforeMb: 200, afterMb: 200 }]);
    expect(findLeak(flat)).toBeUndefined();
  });

  it("leaks if it grows by more than 30 %", () => {
    expect(findLeak(growthOf(samples((part) => 200e6 * (1 + part))))?.name).toBe("api-0");
  });

  it("measures no memory that is held for ten minutes in the middle of an hour", () => {
    const minutes = [0, 11, 12, 44, 45, 59];
    const measured = minutes.filter((minute) => isMeasured(minute * 60_000, 600_000, 3_600_000));
    expect(measured).toEqual([0, 11, 45, 59]);
  });
});

describe("a planted build", () => {
  it.each(Object.entries(PLANTED))("%s changes text that occurs once in its file", (_, { edits, control = [] }) => {
    for (const { file, from } of [...edits, ...control]) {
      const text = readFileSync(join(import.meta.dirname, "../..", file), "utf8");
      expect(text.split(from), `${from} in ${file}`).toHaveLength(2);
    }
  });
});
