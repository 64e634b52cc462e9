import { describe, expect, it } from "vitest";
import { SALT, TERMINATING_HASH } from "../../../src/demo/bustabit-v2.ts";
import { createTrueChain } from "../../../src/demo/true-chain.ts";
import { crashHundredths } from "../../../src/houses/fairness/bustabit.ts";
import type { Claim } from "../../../src/houses/fairness/claims.ts";
import { createProver } from "../../../src/houses/fairness/prove.ts";
import { walkBackSliced, walkUntil } from "../../../src/houses/fairness/walk.ts";

const FAIRNESS = { scheme: "bustabit" as const, salt: SALT, terminating_hash: TERMINATING_HASH, terminating_id: 0 };
const games = createTrueChain(new AbortController().signal);

/** True games as a house lists them, newest first. */
async function truth(newest: number, oldest: number): Promise<Claim[]> {
  const listed = await games({ newest, oldest });
  return listed.map(({ id, hash, hundredths }) => ({ number: BigInt(id), hash, hundredths }));
}

/** A hash of no chain, with its multiplier. */
function invented(number: number, digit = "a"): Claim {
  const hash = digit.repeat(64);
  return { number: BigInt(number), hash, hundredths: crashHundredths(hash, SALT) };
}

const oks = (verdicts: readonly { ok: boolean }[]) => verdicts.map(({ ok }) => ok);

describe("a proof of rounds", () => {
  it("holds for true games, walked once to the published end, whatever their order", async () => {
    const claims = await truth(1_005, 1_001);
    const { verdicts, anchor } = await createProver().prove("t", FAIRNESS, {
      roundIds: "consecutive",
      points: [],
      claims: claims.toReversed(),
    });
    expect(oks(verdicts)).toEqual([true, true, true, true, true]);
    expect(anchor).toMatchObject({ number: 1_005n, hash: claims[0]?.hash });
  });

  it("fails for a multiplier that is not the hash's", async () => {
    const claims = await truth(1_003, 1_001);
    const changed = claims.map((claim) =>
      claim.number === 1_002n ? { ...claim, hundredths: claim.hundredths + 1 } : claim,
    );
    const { verdicts } = await createProver().prove("t", FAIRNESS, {
      roundIds: "consecutive",
      points: [],
      claims: changed,
    });
    expect(oks(verdicts)).toEqual([true, false, true]);
    expect(verdicts[1]).toMatchObject({ reason: expect.stringMatching(/^the hash gives \d+\.\d\dx, the house sent/) });
  });

  it("fails for a hash that the later rounds do not lead back to, and for that one alone", async () => {
    const claims = [...(await truth(1_003, 1_003)), invented(1_002), ...(await truth(1_001, 1_001))];
    const { verdicts, anchor } = await createProver().prove("t", FAIRNESS, {
      roundIds: "consecutive",
      points: [],
      claims,
    });
    expect(oks(verdicts)).toEqual([true, false, true]);
    expect(anchor?.number).toBe(1_003n);
  });

  it("fails for a newest hash that leads nowhere, without harm to those below it", async () => {
    const claims = [invented(1_004), ...(await truth(1_003, 1_001))];
    const { verdicts, anchor } = await createProver().prove("t", FAIRNESS, {
      roundIds: "consecutive",
      points: [],
      claims,
    });
    expect(oks(verdicts)).toEqual([false, true, true, true]);
    expect(verdicts[0]).toMatchObject({ reason: "the hash does not lead back to the published end of the chain" });
    expect(anchor?.number).toBe(1_003n);
  });

  it("fails for true games under another salt, and for a true hash under a wrong number", async () => {
    const [claim] = await truth(1_001, 1_001);
    if (claim === undefined) throw new Error("the chain has no game 1001");
    const salted = await createProver().prove(
      "t",
      { ...FAIRNESS, salt: "other" },
      { roundIds: "consecutive", points: [], claims: [claim] },
    );
    const moved = await createProver().prove("t", FAIRNESS, {
      roundIds: "consecutive",
      points: [],
      claims: [{ ...claim, number: 1_002n }],
    });
    expect([oks(salted.verdicts), oks(moved.verdicts)]).toEqual([[false], [false]]);
    expect([salted.anchor, moved.anchor]).toEqual([null, null]);
  });

  it("rests on the newest proven round, and links older ones to the next proven one above", async () => {
    const [anchor, near] = [...(await truth(2_000, 2_000)), ...(await truth(1_500, 1_500))].map((one) => ({
      ...one,
      of: null,
    }));
    if (anchor === undefined || near === undefined) throw new Error("the chain lacks its games");
    const claims = [
      ...(await truth(2_002, 2_001)),
      ...(await truth(1_499, 1_498)),
      invented(1_497),
      ...(await truth(10, 10)),
    ];
    // with an end that cannot be reached: only the points can carry the proof
    const endless = { ...FAIRNESS, terminating_hash: "f".repeat(64) };
    const { verdicts, anchor: newest } = await createProver().prove("t", endless, {
      roundIds: "consecutive",
      points: [near, anchor],
      claims,
    });
    expect(oks(verdicts)).toEqual([true, true, true, true, false, true]);
    expect(newest?.number).toBe(2_002n);
  });

  it("is refused for a round at or before the published end, and for one absurdly far after it", async () => {
    const claims = [invented(0), invented(10), invented(99_000_000_000)];
    const { verdicts } = await createProver().prove(
      "t",
      { ...FAIRNESS, terminating_id: 10 },
      { roundIds: "consecutive", points: [], claims },
    );
    expect(oks(verdicts)).toEqual([false, false, false]);
  });

  it("a walk that ended in nothing is not walked again when the feed moves on", async () => {
    let walked = 0;
    const prover = createProver({
      walkUntil,
      walkBack: (hash, steps, options) => {
        walked += steps;
        return walkBackSliced(hash, steps, options);
      },
    });
    const wrong = { ...FAIRNESS, terminating_hash: "f".repeat(64) };
    for (let newest = 10_020; newest < 10_060; newest += 1) {
      const { verdicts } = await prover.prove("t", wrong, {
        roundIds: "consecutive",
        points: [],
        claims: await truth(newest, newest - 9),
      });
      expect(oks(verdicts)).not.toContain(true);
    }
    expect(walked).toBeLessThan(10_020 + 40 * 100);
  });

  it("a response full of invented hashes costs a bounded walk, however many there are", async () => {
    let walked = 0;
    const prover = createProver({
      walkUntil,
      // as if it walked: what is counted here would take minutes
      walkBack: (hash, steps) => {
        walked += steps;
        return Promise.resolve(hash);
      },
    });
    const claims = Array.from({ length: 200 }, (_, n) => {
      const hash = String(n).padStart(64, "0");
      return { number: 5_000_000n + BigInt(n), hash, hundredths: crashHundredths(hash, SALT) };
    });
    const { verdicts } = await prover.prove("t", FAIRNESS, { roundIds: "consecutive", points: [], claims });
    expect(verdicts.some(({ ok }) => ok)).toBe(false);
    expect(walked).toBeLessThan(40_000_000);
    expect(verdicts[0]).toMatchObject({ reason: expect.stringMatching(/was not checked$/) });
  });

  it("ends when it is aborted", async () => {
    const stop = AbortSignal.abort(new Error("stopped"));
    const claims = await truth(5_000, 5_000);
    await expect(
      createProver().prove("t", FAIRNESS, { roundIds: "consecutive", points: [], claims }, stop),
    ).rejects.toThrow("stopped");
  });
});
