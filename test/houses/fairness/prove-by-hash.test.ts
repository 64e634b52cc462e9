import { describe, expect, it } from "vitest";
import type { Claim, Point } from "../../../src/houses/fairness/claims.ts";
import { hundredthsOf } from "../../../src/houses/fairness/outcome.ts";
import { createProver } from "../../../src/houses/fairness/prove.ts";
import { fairnessSettings } from "../../../src/houses/fairness/settings.ts";
import { walkBackSliced, walkUntil } from "../../../src/houses/fairness/walk.ts";
import { madeChain } from "./made-chain.ts";

const blaze = madeChain("a1", "salt", "blaze");
const FAIRNESS = fairnessSettings.parse(blaze.settings);

/** A hash of no chain, with its multiplier. */
function invented(digits = "bc"): Claim {
  const hash = digits.repeat(32);
  return { number: null, hash, hundredths: hundredthsOf(blaze.chain, hash) };
}

/** A new prover that counts the steps walked. */
function world(fairness = FAIRNESS) {
  const steps = { walked: 0, longest: 0 };
  const prover = createProver({
    walkBack: walkBackSliced,
    walkUntil: async (...args) => {
      const walk = await walkUntil(...args);
      steps.walked += walk.steps;
      steps.longest = Math.max(steps.longest, walk.steps);
      return walk;
    },
  });
  const prove = async (claims: readonly Claim[], points: readonly Point[] = [], isJoined = false) => {
    const { verdicts, anchor } = await prover.prove("t", fairness, { roundIds: "opaque", points, claims, isJoined });
    return {
      oks: verdicts.map(({ ok }) => ok),
      places: verdicts.map((v) => (v.ok ? v.point?.number : null)),
      verdicts,
      anchor,
    };
  };
  return { steps, prove };
}

describe("a proof of rounds with opaque ids", () => {
  it("walks once to the published end, and counts the place of each from there, whatever their order", async () => {
    const { prove, steps } = world();
    const { oks, places, anchor } = await prove([blaze.claim(4_001), blaze.claim(4_003), blaze.claim(4_000)]);
    expect(oks).toEqual([true, true, true]);
    expect(places).toEqual([4_001n, 4_003n, 4_000n]);
    expect(anchor).toEqual(blaze.point(4_003));
    expect(steps.walked).toBeLessThan(4_100);
  });

  it("then walks only to the newest proven round, over rounds that were not seen", async () => {
    const { prove, steps } = world();
    const { oks, anchor } = await prove(blaze.claims(4_520, 4_501), [blaze.point(4_400)]);
    expect(oks).not.toContain(false);
    expect(anchor?.number).toBe(4_520n);
    expect(steps.walked).toBe(19 + 101);
  });

  it("links older rounds by walking back from what is proven", async () => {
    const { prove } = world();
    const { places, anchor } = await prove(
      [blaze.claim(700), blaze.claim(650)],
      [blaze.point(3_000), blaze.point(900)],
    );
    expect(places).toEqual([700n, 650n]);
    expect(anchor?.number).toBe(3_000n);
  });

  it("joins rounds to proven ones whose place is unknown", async () => {
    const { prove } = world();
    const near: Point = { number: null, hash: blaze.claim(4_000).hash, of: null };
    const { oks, places, anchor } = await prove([blaze.claim(4_001), blaze.claim(3_999)], [near], true);
    expect([oks, places, anchor]).toEqual([[true, true], [null, null], null]);
  });

  it("fails for a multiplier that is not the hash's, and for a hash that leads nowhere, alone", async () => {
    const { prove } = world();
    const wrong = { ...blaze.claim(4_002), hundredths: blaze.claim(4_002).hundredths + 1 };
    const { oks, verdicts, anchor } = await prove([invented(), wrong, blaze.claim(4_001), blaze.claim(4_000)]);
    expect(oks).toEqual([false, false, true, true]);
    expect(verdicts[0]).toMatchObject({ reason: expect.stringMatching(/^the hash leads back to no proven round/) });
    expect(verdicts[1]).toMatchObject({ reason: expect.stringMatching(/^the hash gives \d+\.\d\dx, the house sent/) });
    expect(anchor?.number).toBe(4_001n);
  });

  it("an invented round next to proven ones costs one bounded walk, and none when it is repeated", async () => {
    const { prove, steps } = world();
    const near: Point = { number: null, hash: blaze.claim(4_000).hash, of: null };
    expect((await prove([invented(), blaze.claim(4_001)], [blaze.point(4_000), near], true)).oks).toEqual([
      false,
      true,
    ]);
    const first = steps.walked;
    expect(steps.longest).toBeLessThanOrEqual(200_000);
    await prove([invented(), blaze.claim(4_002)], [blaze.point(4_001)], true);
    expect(steps.walked - first).toBeLessThan(5_000);
  });

  it("a response full of invented rounds next to proven ones costs a bounded walk, however many there are", async () => {
    let walked = 0;
    const prover = createProver({
      walkBack: walkBackSliced,
      // as if long ones were walked: what is counted here would take minutes
      walkUntil: async (hash, most, stops, options) => {
        const came = await walkUntil(hash, Math.min(most, 10), stops, options);
        walked += came.met ? came.steps : most;
        return came.met ? came : { ...came, steps: most };
      },
    });
    const lies = Array.from({ length: 500 }, (_, n) => {
      const hash = String(n).padStart(64, "0");
      return { number: null, hash, hundredths: hundredthsOf(blaze.chain, hash) };
    });
    const points = [blaze.point(4_000)];
    const claims = [blaze.claim(4_001), ...lies];
    const { verdicts } = await prover.prove("t", FAIRNESS, { roundIds: "opaque", points, claims, isJoined: true });
    expect(verdicts.map(({ ok }) => ok)).toEqual(claims.map((_, n) => n === 0));
    expect(walked).toBeLessThan(150 * 200_000 + 500 * 2_000 + 200_000);
  });

  it("a house whose hashes lead nowhere costs one long walk, not one per response", async () => {
    const other = madeChain("d4", "salt", "blaze");
    const { prove, steps } = world();
    for (let newest = 1_020; newest < 1_060; newest += 1) {
      const claims = other
        .claims(newest, newest - 9)
        .map((claim) => ({ ...claim, hundredths: hundredthsOf(blaze.chain, claim.hash) }));
      expect((await prove(claims)).oks).not.toContain(true);
    }
    expect(steps.walked).toBeLessThan(5_000 + 2_000 + 40 * 50);
  });

  it("is not fooled by a chain of the right rule under another end, nor by a place past the chain's length", async () => {
    const short = fairnessSettings.parse({ ...blaze.settings, length: 3_000 });
    expect((await world(short).prove([blaze.claim(2_999)])).oks).toEqual([true]);
    const { verdicts } = await world(short).prove([blaze.claim(3_500)], [blaze.point(2_999)]);
    expect(verdicts[0]).toMatchObject({ ok: false, expected: "at most 3000 rounds", found: "3500" });
  });

  it("fails for the published end itself, which is not a round", async () => {
    const { oks, verdicts } = await world().prove([blaze.claim(1), blaze.claim(0)]);
    expect(oks).toEqual([true, false]);
    expect(verdicts[1]).toMatchObject({ reason: expect.stringMatching(/^the hash is the published end/) });
  });

  it("ends when it is aborted", async () => {
    const evidence = { roundIds: "opaque" as const, points: [], claims: [blaze.claim(4_000)] };
    const signal = AbortSignal.abort(new Error("stopped"));
    await expect(createProver().prove("t", FAIRNESS, evidence, signal)).rejects.toThrow("stopped");
  });
});

describe("eras of a house that began a new chain", () => {
  const next = madeChain("e5", "new salt", "blaze");
  const raw = madeChain("f6", "raw salt", "bustabit-raw");
  const eras = fairnessSettings.parse([blaze.settings, next.settings, raw.settings]);

  it("are distinguished by the end that a hash leads to, even with opaque ids", async () => {
    const { prove } = world(eras);
    const { oks, places, anchor } = await prove(
      [raw.claim(2), next.claim(3), next.claim(2), blaze.claim(4_990)],
      [blaze.point(4_980)],
    );
    expect(oks).toEqual([true, true, true, true]);
    expect(places).toEqual([2n, 3n, 2n, 4_990n]);
    expect(anchor).toEqual(raw.point(2));
  });

  it("prove nothing for each other: the multiplier must be that of the era the hash leads to", async () => {
    const { prove } = world(eras);
    const moved = { ...next.claim(3), hundredths: hundredthsOf(blaze.chain, next.claim(3).hash) };
    expect((await prove([moved, next.claim(2)])).oks).toEqual([false, true]);
  });

  it("by different steps each remember what led nowhere", async () => {
    const { prove, steps } = world(eras);
    const others = [madeChain("d4", "salt", "blaze"), madeChain("d5", "raw salt", "bustabit-raw")];
    for (let newest = 1_010; newest < 1_030; newest += 1) {
      const claims = others.flatMap((other) => other.claims(newest, newest - 4));
      expect((await prove(claims)).oks).not.toContain(true);
    }
    // of each step: to the chain's whole length once, 2,000 at first, and a few each time
    expect(steps.walked).toBeLessThan(2 * (5_000 + 2_000 + 20 * 50));
  });

  it("a new one that was not declared is refused, and proven once it is", async () => {
    const claims = next.claims(12, 8);
    expect((await world().prove(claims, [blaze.point(4_990)])).oks).not.toContain(true);
    expect((await world(eras).prove(claims, [blaze.point(4_990)])).oks).not.toContain(false);
  });
});
