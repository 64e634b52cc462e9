import { describe, expect, test } from "vitest";
import type { HashedRound, HashedScore } from "../../../src/record/hashes.ts";
import { checkRecord, type Facts, honestFacts, madeRound, makeRecord, TABLE } from "./made-record.ts";

const OPTIONS = ["--table", TABLE];

async function check(change: (facts: Facts) => void, facts = honestFacts()) {
  change(facts);
  return checkRecord(makeRecord(facts), { options: OPTIONS });
}

/** The first score of a forecast by its number. */
function scoreOf({ scores }: Facts, seq: number): HashedScore {
  const found = scores.find(({ forecastId }) => forecastId === `f1-${seq}`);
  if (found === undefined) throw new Error(`expected a score of forecast ${seq}`);
  return found;
}

const roundOf = ({ rounds }: Facts, seq: number) => rounds[seq - 1] ?? rounds[0]!;

/** Voids the scores of the forecasts that a round ends, which a fault of that round requires. */
function voidAt(facts: Facts, seq: number, reason: HashedScore["reason"]) {
  const round = roundOf(facts, seq);
  for (const score of facts.scores) {
    const forecast = facts.forecasts.find(({ forecastId }) => forecastId === score.forecastId);
    const cutoff = Number(forecast?.cutoffRoundId);
    if (forecast === undefined || cutoff >= seq || cutoff + forecast.horizon < seq) continue;
    Object.assign(score, { reason, outcome: null, settledSeq: round.seq, targetRequestedAt: round.requestedAt });
  }
  facts.scores.sort((a, b) => Number(a.settledSeq - b.settledSeq));
}

/** Leaves out a number before a round, which voids the forecasts that it ends. */
function leaveOut(facts: Facts, seq: number) {
  voidAt(facts, seq, "gap");
  const shift = (id: string, least: number) => (Number(id) < least ? id : String(Number(id) + 1));
  for (const round of facts.rounds) round.roundId = shift(round.roundId, seq);
  for (const forecast of facts.forecasts) {
    forecast.targetRoundId = shift(forecast.targetRoundId ?? "", seq + 1);
    forecast.cutoffRoundId = shift(forecast.cutoffRoundId, seq);
  }
  roundOf(facts, seq).afterGap = true;
}

/** Adds a late round, which moves no other one. */
function addLate({ rounds }: Facts, round: Partial<HashedRound>) {
  const late = { ...madeRound(12, 12, "high"), seq: 13n, roundId: "0", late: true, absentAt: null };
  rounds.push({ ...late, ...round });
}

/** Adds a void after a score. */
function revise(facts: Facts, seq: number, changes: Partial<HashedScore> = {}) {
  const score = scoreOf(facts, seq);
  const at = facts.scores.findLastIndex(({ settledSeq }) => settledSeq === score.settledSeq);
  facts.scores.splice(at + 1, 0, { ...score, rev: 2, reason: "conflict", outcome: null, ...changes });
}

describe("a record whose chains, log and accuracy agree", () => {
  test("passes if its outcomes follow from the rounds", async (context) => {
    const found = await check(() => {});
    if (found === null) return context.skip("python3 is not installed");
    expect(found).toMatchObject({ code: 0, stderr: "" });
    expect(found.stdout).toContain(
      "; 3 statements and 2 accuracy rows up to round 8 follow from the exports, compared up to round 12 of 12",
    );
  });

  test.each<{ claim: string; change: (facts: Facts) => void }>([
    { claim: "a void of a round before which a number is missing", change: (facts) => leaveOut(facts, 6) },
    {
      claim: "a void of a round that was requested when the forecast was issued",
      change(facts) {
        for (const forecast of facts.forecasts)
          if (forecast.cutoffRoundId === "5") forecast.issuedAt = roundOf(facts, 6).requestedAt ?? "";
        for (const seq of facts.forecasts.filter(({ cutoffRoundId }) => cutoffRoundId === "5").map((one) => one.seq))
          Object.assign(scoreOf(facts, Number(seq)), {
            reason: "late",
            outcome: null,
            settledSeq: 6n,
            targetRequestedAt: roundOf(facts, 6).requestedAt,
          });
        facts.scores.sort((a, b) => Number(a.settledSeq - b.settledSeq));
      },
    },
    { claim: "a conflict, which exports do not show", change: (facts) => voidAt(facts, 6, "conflict") },
    { claim: "a void after a score", change: (facts) => revise(facts, 4) },
    {
      claim: "a late round, which is in no span",
      change: (facts) => addLate(facts, { requestedAt: null }),
    },
  ])("passes with $claim", async ({ change }) => {
    const found = await check(change);
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
  });
});

test("the witnesses that the log names are printed, with and without a table", async () => {
  const record = makeRecord({ ...honestFacts(), witnesses: ["w.example+01234567+\u001bA"] });
  for (const options of [OPTIONS, []]) {
    const found = await checkRecord(record, { options });
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
    expect(found?.stdout ?? "+\\x1bA").toContain("+\\x1bA");
    expect(found?.stdout ?? "; witnesses ").toContain("; the log names the witnesses w.example+01234567+");
  }
});

describe("rounds that only a reset of the newest number explains", () => {
  test.each<{ claim: string; change: (facts: Facts) => void }>([
    {
      claim: "a gap although no number is missing",
      change(facts) {
        roundOf(facts, 6).afterGap = true;
        voidAt(facts, 6, "gap");
      },
    },
    {
      claim: "a number below the newest one",
      change(facts) {
        roundOf(facts, 12).roundId = "4000";
        roundOf(facts, 12).afterGap = true;
        voidAt(facts, 12, "gap");
        const after = { ...madeRound(12, 12, "high"), seq: 13n, roundId: "13", afterGap: false };
        facts.rounds.push(after);
      },
    },
  ])("are counted in a warning: $claim", async ({ change }) => {
    const found = await check(change);
    if (found === null) return;
    expect(found).toMatchObject({ code: 0, stderr: "" });
    expect(found.stdout).toMatch(
      /^ok: .*\nwarning: 1 rounds of alpha\/crash\/global have .*: only a reset of its newest number explains that/,
    );
  });

  test("are none in a table with a gap", async () => {
    const found = await check((facts) => leaveOut(facts, 6));
    expect(found?.stdout ?? "").not.toContain("warning");
  });
});

describe("a record whose chains, log and accuracy agree on a false score", () => {
  test.each<{ claim: string; text: RegExp; change: (facts: Facts) => void }>([
    {
      claim: "the likeliest color as outcome of every forecast",
      text: /expected outcome (mid|high) of f1-\d, as its rounds give, found low/,
      change({ scores, forecasts }) {
        const colors = new Set(
          forecasts.filter(({ feature }) => feature === "next_color").map((one) => one.forecastId),
        );
        for (const score of scores) if (colors.has(score.forecastId)) score.outcome = "low";
      },
    },
    {
      claim: "a window that was hit after its last round",
      text: /expected outcome \d of f1-\d+, as its rounds give/,
      change({ scores }) {
        for (const score of scores) if (score.outcome === "0") score.outcome = "1";
      },
    },
    {
      claim: "a score of a forecast that was issued after its round was requested",
      text: /expected status void_late of f1-4, as its rounds give, found scored/,
      change(facts) {
        const forecast = facts.forecasts[3]!;
        forecast.issuedAt = roundOf(facts, Number(forecast.cutoffRoundId) + 1).requestedAt ?? "";
      },
    },
    {
      claim: "a void for a gap that the rounds do not have",
      text: /expected status scored of f1-4, as its rounds give, found void_gap/,
      change: (facts) => Object.assign(scoreOf(facts, 4), { reason: "gap", outcome: null }),
    },
    {
      claim: "a void for a late round that was requested in time",
      text: /expected status scored of f1-4, as its rounds give, found void_late/,
      change: (facts) => Object.assign(scoreOf(facts, 4), { reason: "late", outcome: null }),
    },
    {
      claim: "another time of the request than that of the round",
      text: /expected target_requested_at .* of f1-4/,
      change: (facts) => Object.assign(scoreOf(facts, 4), { targetRequestedAt: roundOf(facts, 9).requestedAt }),
    },
    {
      claim: "a forecast without a score",
      text: /expected a score of f1-4, .*, found none/,
      change: (facts) => facts.scores.splice(facts.scores.indexOf(scoreOf(facts, 4)), 1),
    },
    {
      claim: "a second score of a forecast",
      text: /expected an open forecast, found a second score of f1-4|expected .* open .* f1-4/,
      change: (facts) => facts.scores.splice(facts.scores.indexOf(scoreOf(facts, 4)), 0, { ...scoreOf(facts, 4) }),
    },
    {
      claim: "a window that ends later than its horizon",
      text: /expected a score of f1-2, which ended with round 3, found none/,
      change(facts) {
        const score = scoreOf(facts, 2);
        Object.assign(score, { settledSeq: 5n, targetRequestedAt: roundOf(facts, 5).requestedAt });
        facts.scores.sort((a, b) => Number(a.settledSeq - b.settledSeq));
      },
    },
    {
      claim: "a second outcome after a score",
      text: /expected a void after a score of f1-4/,
      change: (facts) => revise(facts, 4, { reason: "", outcome: "high" }),
    },
    {
      claim: "a revision that settles with another round",
      text: /expected settled_seq \d+ of f1-4/,
      change: (facts) => revise(facts, 4, { settledSeq: 12n }),
    },
    {
      claim: "forecasts with a cutoff that no round has",
      text: /expected forecasts up to \d+ after rounds of alpha/,
      change(facts) {
        facts.forecasts[15]!.cutoffRoundId = "none";
        const left = new Set(facts.forecasts.slice(0, 15).map(({ forecastId }) => forecastId));
        facts.scores = facts.scores.filter(({ forecastId }) => left.has(forecastId));
      },
    },
    {
      claim: "a forecast with another history than its cutoff",
      text: /expected history_hash .* of f1-4/,
      change: ({ forecasts }) => Object.assign(forecasts[3]!, { historyHash: "1".repeat(64) }),
    },
    {
      claim: "another target than the next round, for voids by choice",
      text: /expected target_round_id/,
      change: ({ forecasts }) => Object.assign(forecasts[3]!, { targetRoundId: "99" }),
    },
    {
      claim: "no target for a chosen forecast",
      text: /expected target_round_id 3 of f1-3, as other forecasts have one, found none/,
      change: ({ forecasts }) => Object.assign(forecasts[2]!, { targetRoundId: null }),
    },
    {
      claim: "a polled round that is late although its number is above the newest one",
      text: /expected an on-time round 13, which is above the newest number 12, found a late one/,
      change: (facts) => addLate(facts, { roundId: "13" }),
    },
    {
      claim: "a round whose id is not a number, for a void by choice",
      text: /expected a number as round_id of round 6 of/,
      change(facts) {
        voidAt(facts, 6, "gap");
        for (const forecast of facts.forecasts) if (forecast.cutoffRoundId === "6") forecast.cutoffRoundId = "x";
        roundOf(facts, 6).roundId = "x";
      },
    },
    {
      claim: "probabilities whose sum is above one",
      text: /expected probabilities of f1-4 with the sum 1000000, found/,
      change: ({ forecasts }) => Object.assign(forecasts[3]!, { pPpm: [600_000, 600_000, 600_000] }),
    },
    {
      claim: "one color too many, without which hits and log loss are compared",
      text: /expected 3 colors of .*, found 4/,
      change(facts) {
        addLate(facts, { requestedAt: null, hundredths: 900_000, color: "top" });
      },
    },
    {
      claim: "a color outside of its multipliers",
      text: /expected colors that do not overlap/,
      change: (facts) => Object.assign(roundOf(facts, 12), { hundredths: 250 }),
    },
  ])("is wrong with $claim", async ({ change, text }) => {
    const found = await check(change);
    if (found === null) return;
    expect(found).toMatchObject({ code: 1, stdout: "" });
    expect(found.stderr).toMatch(/^WRONG: /);
    expect(found.stderr).toMatch(text);
  });
});

describe("accuracy statements", () => {
  test("about a table without one of its colors are compared in each place that the color may have", async () => {
    const passed = await check(() => {}, honestFacts(12, ["low", "high"]));
    if (passed === null) return;
    expect(passed).toMatchObject({ code: 0 });
    const change = (facts: Facts) => {
      facts.accuracy = ({ rows }) =>
        Object.assign(rows.find(({ feature }) => feature === "next_color") ?? {}, { hits: "1" });
    };
    expect(await check(change, honestFacts(12, ["low", "high"]))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/hits and log loss of next_color/) as string,
    });
  });

  test.each<[string, Record<string, string>]>([
    ["settled rounds", { settled_seq: "13" }],
    ["cutoffs", { cutoff_seq: "13" }],
    ["revisions", { score_revision_hash: "1".repeat(64) }],
  ])("that claim %s after a later statement of the table are wrong", async (_, changes) => {
    const found = await check((facts) => (facts.accuracy = (statement) => Object.assign(statement, changes)));
    expect(found ?? { code: 1, stderr: "accuracy statement" }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("accuracy statement") as string,
    });
  });

  test("state again only rows that changed, and each row counts as it was stated last", async () => {
    const restate = (upTo: number, features: readonly string[]) =>
      check((facts) => Object.assign(facts, { statedAt: [4, 9, 12], laterAccuracy: { upTo, features } }));
    const passed = await restate(10, ["next_color"]); // no window was issued or ended at round 10
    if (passed === null) return;
    expect(passed).toMatchObject({ code: 0, stderr: "" });
    expect(passed.stdout).toContain("2 accuracy rows up to round 10 follow");
    expect(await restate(11, ["next_color", "window:high:50"])).toMatchObject({ code: 0 });
    expect(await restate(11, ["next_color"])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/scores and voids of window:high:50/) as string,
    });
  });

  test("that cover more than the exports hold are not compared yet", async () => {
    const facts = honestFacts();
    facts.statedAt = [4, 12];
    const [rounds, forecasts, scores] = [facts.rounds.slice(0, 9), facts.forecasts, facts.scores];
    const whole = makeRecord(facts);
    const kept = makeRecord({
      ...facts,
      rounds,
      forecasts: forecasts.filter(({ cutoffRoundId }) => Number(cutoffRoundId) <= 9),
      scores: scores.filter(({ settledSeq }) => settledSeq <= 9),
      statedAt: [],
    });
    const body = (path: string) => (path.startsWith("/log/export/") ? kept : whole).body(path);
    const found = await checkRecord({ ...whole, body }, { options: OPTIONS });
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
    if (found !== null) expect(found.stdout).toContain("no accuracy statement yet");
  });
});

describe("rounds that the log does not state", () => {
  const MINUTE_MS = 60_000;
  /** Rounds that were received at these minutes. */
  const receivedAt = (
    minutes: readonly number[],
    statedAt: number[],
    source: HashedRound["source"] = "poll",
  ): Facts => {
    const facts = honestFacts(minutes.length);
    const start = Date.now() - 3 * 24 * 60 * MINUTE_MS;
    for (const [at, minute] of minutes.entries()) {
      const text = new Date(start + minute * MINUTE_MS).toISOString().replace("Z", "0000Z");
      const requestedAt = new Date(start + minute * MINUTE_MS - 1_000).toISOString().replace("Z", "0000Z");
      Object.assign(facts.rounds[at] ?? {}, { receivedAt: text, requestedAt, absentAt: requestedAt, source });
    }
    for (const forecast of facts.forecasts)
      forecast.issuedAt = roundOf(facts, Number(forecast.cutoffRoundId)).receivedAt;
    for (const score of facts.scores) score.targetRequestedAt = roundOf(facts, Number(score.settledSeq)).requestedAt;
    return { ...facts, statedAt };
  };

  test.each<{ claim: string; statedAt: number[]; text: string }>([
    { claim: "a table without statements", statedAt: [], text: "expected a statement about round 1 of" },
    { claim: "rounds after the newest statement", statedAt: [2], text: "expected a statement about round 3 of" },
  ])("are wrong if others were received more than an hour later, as $claim", async ({ statedAt, text }) => {
    const found = await check(() => {}, receivedAt([0, 1, 2, 50, 63, 69], statedAt));
    if (found === null) return;
    expect(found).toMatchObject({ code: 1, stderr: expect.stringContaining(text) as string });
    expect(found.stderr).toContain("no process has stated it, the log is paused or its worker is off");
    expect(await check(() => {}, receivedAt([0, 1, 2, 50, 58, 60], statedAt))).toMatchObject({ code: 0 });
  });

  test.each<{ claim: string; facts: Facts }>([
    { claim: "the worker is off", facts: receivedAt([0, 1, 2, 3, 4, 5], [4]) },
    { claim: "the worker started again a minute ago", facts: receivedAt([0, 1, 2, 1_500, 1_501, 1_502], [2]) },
  ])("are not wrong if $claim", async ({ facts }) => {
    const found = await check(() => {}, facts);
    expect(found ?? { code: 0 }).toMatchObject({ code: 0 });
  });

  test("are not wrong if no poll, but a long import follows while the worker is off", async () => {
    const facts = receivedAt([0, 1, 2, 1_500, 1_510, 1_520], [2]);
    for (const round of facts.rounds.slice(3))
      Object.assign(round, { source: "import", requestedAt: null, late: true });
    facts.forecasts = facts.forecasts.filter(({ cutoffRoundId, horizon }) => Number(cutoffRoundId) + horizon <= 3);
    const left = new Set(facts.forecasts.map(({ forecastId }) => forecastId));
    facts.scores = facts.scores.filter(({ forecastId }) => left.has(forecastId));
    const found = await check(() => {}, facts);
    expect(found ?? { code: 0, stderr: "" }).toMatchObject({ code: 0, stderr: "" });
  });

  test("make the longest time between two statements, which is printed", async () => {
    const found = await check((facts) => (facts.statedAt = [2, 3, 11, 12]));
    if (found === null) return;
    // rounds 4 to 11 were received in seven times 15 seconds
    expect(found.stdout).toContain(
      "the first statement covers 2 rounds, and the longest time without one after it was 0:01:45, up to round 11",
    );
  });
});
