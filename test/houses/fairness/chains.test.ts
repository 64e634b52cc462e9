import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { chainAt, chainsOf } from "../../../src/houses/fairness/chains.ts";
import { fairnessProblem, fairnessSettings } from "../../../src/houses/fairness/settings.ts";
import { previousHash, walkBack, walkBackSliced, walkUntil } from "../../../src/houses/fairness/walk.ts";
import { chainFrom, knownPlaces, PUBLIC_CHAINS } from "./chains-fixture.ts";

const END = "ab".repeat(32);
const OWN = { scheme: "bustabit", salt: "salt", terminating_hash: END };

/** Every problem of settings, as path: message. */
function problems(settings: unknown): string[] {
  const read = fairnessSettings.safeParse(settings);
  return read.success ? [] : read.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`);
}

describe("known chains", () => {
  it.each(PUBLIC_CHAINS)("$key has the published values", (known) => {
    const chain = chainFrom({ chain: known.key });
    expect(chain).toMatchObject({ rule: known.outcome, step: known.chain_step, salt: known.salt });
    expect(chain.divisor).toBe(known.instant_divisor ?? null);
    // the end of BC.Game's chain was never found: it is based on its oldest known round
    const [oldest = 0, hash = ""] = known.vectors.at(-1) ?? [];
    const end = known.commitment ?? { id: oldest - 1, hash: previousHash(hash) };
    expect(chain.end).toEqual({ number: BigInt(end.id), hash: end.hash });
  });

  it.each(PUBLIC_CHAINS)(
    "$key leads from its lowest known hash to its end, and through its sample rounds",
    async (known) => {
      const chain = chainFrom({ chain: known.key });
      const places = knownPlaces(known, chain);
      const end = places.at(-1);
      const above = places.findLast(({ id }) => id >= (end?.id ?? 0) + 100_000);
      if (above === undefined || end === undefined) throw new Error("expected two places");
      expect(await walkBackSliced(above.hash, above.id - end.id, { step: chain.step })).toBe(end.hash);
      const neighbors = known.vectors.filter(([id], at) => known.vectors[at + 1]?.[0] === id - 1);
      expect(neighbors.length).toBeGreaterThan(0);
      for (const [id, hash] of neighbors) {
        expect(previousHash(hash, chain.step)).toBe(known.vectors.find(([other]) => other === id - 1)?.[1]);
      }
    },
  );
});

describe("the step over raw bytes", () => {
  const hash = PUBLIC_CHAINS.find(({ key }) => key === "bustabit-classic")?.known.hash ?? "";

  it("hashes the 32 bytes, one by one, together and in slices", async () => {
    const before = createHash("sha256").update(Buffer.from(hash, "hex")).digest("hex");
    expect(previousHash(hash, "sha256_raw")).toBe(before);
    expect(previousHash(hash, "sha256_hex")).not.toBe(before);
    const seen: string[] = [];
    const end = walkBack(hash, 12_000, (passed) => seen.push(passed), "sha256_raw");
    expect([seen[0], seen.at(-1), seen.length]).toEqual([before, end, 12_000]);
    expect(await walkBackSliced(hash, 12_000, { step: "sha256_raw" })).toBe(end);
  });

  it("is walked until a hash that is looked for, and no further than it may be", async () => {
    const step = "sha256_raw" as const;
    const met = walkBack(hash, 11_000, undefined, step);
    expect(await walkUntil(hash, 20_000, new Set([met]), { step })).toEqual({ hash: met, steps: 11_000, met: true });
    const stopped = await walkUntil(hash, 500, new Set([met]), { step });
    expect(stopped).toEqual({ hash: walkBack(hash, 500, undefined, step), steps: 500, met: false });
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(walkUntil(hash, 20_000, new Set(), { step, signal })).rejects.toThrow("enough");
  });
});

describe("fairness settings", () => {
  it("are a known chain, a scheme with its own values, or all of it", () => {
    expect(chainFrom({ chain: "blaze" })).toMatchObject({ rule: "A", divisor: 15, name: "blaze" });
    expect(chainFrom(OWN)).toMatchObject({
      rule: "B",
      step: "sha256_hex",
      salt: "salt",
      end: { number: 0n, hash: END },
    });
    expect(chainFrom({ scheme: "stake", client_seed: "seed", terminating_hash: END })).toMatchObject({ salt: "seed" });
    const custom = { scheme: "custom", rule: "A", divisor: 33, step: "sha256_raw", salt: "0xsalt", terminating_id: 7 };
    expect(chainFrom({ ...custom, terminating_hash: END })).toMatchObject({
      rule: "A",
      divisor: 33,
      step: "sha256_raw",
      salt: "0xsalt",
      end: { number: 7n, hash: END },
    });
  });

  it.each([
    [{ ...OWN, terminating_hash: undefined }, /^terminating_hash: expected the published hash/],
    [{ ...OWN, terminating_hash: "AB" }, /^terminating_hash: expected 64 lower case hexadecimal digits/],
    [{ ...OWN, salt: undefined }, /^salt: expected either `salt` or `client_seed`/],
    [{ ...OWN, client_seed: "other" }, /^salt: expected either `salt` or `client_seed`/],
    [{ ...OWN, divisor: 25 }, /^divisor: the scheme bustabit has its own; use `scheme: custom`/],
    [{ ...OWN, scheme: "custom", rule: "A", step: "sha256_hex" }, /^divisor: expected with rule A/],
    [{ ...OWN, scheme: "custom", rule: "B", step: "sha256_hex", divisor: 3 }, /^divisor: expected with rule A/],
    [{ ...OWN, scheme: "custom" }, /^rule: expected A, B, B9 or S/],
    [{ ...OWN, scheme: "roulette" }, /^scheme: /],
    [{ ...OWN, from: 9, to: 8 }, /^to: expected a round from 9 on/],
    [{ chain: "blaze", salt: "x" }, /^salt: the chain blaze has its own; remove the field/],
    [{ chain: "blazer" }, /^chain: .*"blaze"/],
    [{}, /^chain: expected either the name of a known `chain`, or a `scheme`/],
    [[{ chain: "blaze" }, { chain: "blaze", divisor: 1.5 }], /^1\.divisor: /],
    ["blaze", /expected object/],
    [[], /^: /],
  ])("%j is refused with what is wrong", (settings, message) => {
    expect(problems(settings)[0]).toMatch(message);
  });

  it("need hashes, and eras in order if rounds are numbered", () => {
    const problem = (settings: unknown, roundIds: "consecutive" | "opaque", hasHash = true) =>
      fairnessProblem(fairnessSettings.parse(settings), { roundIds, hasHash });
    const eras = [{ chain: "bustabit-v2" }, { chain: "bustabit-classic" }];
    expect(problem(eras, "consecutive")).toBeNull();
    expect(problem(eras, "consecutive", false)).toMatch(/^a proof needs the hash of each round/);
    expect(problem(eras.toReversed(), "consecutive")).toMatch(/^eras overlap or are not in order: expected number 2/);
    expect(
      problem(
        [
          { ...OWN, to: 50 },
          { ...OWN, terminating_id: 40 },
        ],
        "consecutive",
      ),
    ).toMatch(/begin after round 50/);
    const roobet = [{ chain: "roobet-1" }, { chain: "roobet-2" }];
    expect(problem(roobet, "opaque")).toBeNull();
    expect(problem(roobet, "consecutive")).toMatch(/^eras overlap/);
    expect(problem({ ...OWN, from: 5 }, "opaque")).toMatch(
      /^with `round_ids: opaque` the hashes of an era identify it/,
    );
  });

  it("give each round the era it is of, and none between two of them", () => {
    const chains = chainsOf(
      fairnessSettings.parse([
        { chain: "bustabit-v2" },
        { chain: "bustabit-classic" },
        { ...OWN, terminating_id: 20_000_000 },
      ]),
    );
    const names = [0n, 1n, 10_000_000n, 10_000_001n, 12_279_450n, 12_279_451n, 20_000_000n, 20_000_001n, 10n ** 12n];
    expect(names.map((number) => chainAt(chains, number)?.name ?? null)).toEqual([
      null,
      "bustabit-v2",
      "bustabit-v2",
      null,
      null,
      "bustabit-classic",
      "bustabit-classic",
      "bustabit",
      "bustabit",
    ]);
  });

  it("name a chain by all that its proofs rest on, and by nothing else", () => {
    const id = (changed: Record<string, unknown> = {}) => chainFrom({ ...OWN, ...changed }).id;
    expect(id({ from: 5, to: 9, length: 7 })).toBe(id());
    const others = [
      { salt: "other" },
      { terminating_id: 1 },
      { terminating_hash: "cd".repeat(32) },
      { scheme: "blaze" },
    ];
    expect(new Set([id(), ...others.map(id)]).size).toBe(5);
  });
});
