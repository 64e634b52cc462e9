import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ANCHORS, LAST_GAME, SALT, TERMINATING_HASH } from "../../../src/demo/bustabit-v2.ts";
import { crashHundredths } from "../../../src/houses/fairness/bustabit.ts";
import { previousHash, walkBack, walkBackSliced } from "../../../src/houses/fairness/walk.ts";

/** Games of the chain with their published or independently computed multipliers; the last is the highest of all. */
const VECTORS: [id: number, hash: string, multiplier: number][] = [
  [5_728_987, "3ba12a9bc2deba608d678a2a449ca7874c4df22588eb593e5150b6f3caf9f81d", 7.29],
  [5_728_986, "b1c6e429420e42006ac0c739551b36b223f8c1b34847140186d4422effbd9fe3", 9.95],
  [5_728_985, "a63d2f069bc17ff4551eef5ca084a88927c5dc11b560ec5ffa2450a2168b2ede", 10.96],
  [5_728_984, "e2e6f2eaae83a832ceb2a881399bc56886245ade5e6cb1b0e481ea270fffcc6d", 1.13],
  [5_728_983, "321839d63e72d040deac1e5a3863747186929f64c6f9a6a336ba3b95de17950d", 1.16],
  [2_729_956, "79f6bbae758befa1e06f0ecb3722458144610de4bb72fd548b9709120618e54f", 1.31],
  [1_398_378, "5d07719b61b0abb6f1c3b17b1d69c838278f87f9b5e75077026e5fedf96c2eb2", 2055.9],
  [1_394_728, "b2acd37fbdb5509926ab5d7329704c840f8467266c90019682f3b260a029bdba", 1.26],
  [3, "6e548074a57b39330de68ab00a2b42377a2d822fb1a7774d502e8bf17b1ec617", 1.04],
  [2, "9f60c0b9439f8bdd27adb2053876d9fa36b7e3ca051a0d95114668992f9c1845", 7.42],
  [1, "9f57575fd54cd441e962448537e155ace9555df10cd27fa817bbcaf48a59ebcf", 15.49],
  [20_882, "24c9b51c72d2e7766124ca1c0f0b72212b24262664a7a4f0da8e4cb500a84254", 13_239_239.65],
];
const GAME_1 = "9f57575fd54cd441e962448537e155ace9555df10cd27fa817bbcaf48a59ebcf";

/** The rule as the operator's verifier writes it, with doubles. */
function verifierMultiplier(hash: string): number {
  const mac = createHmac("sha256", SALT).update(Buffer.from(hash, "hex")).digest("hex");
  const r = Number.parseInt(mac.slice(0, 13), 16) / 2 ** 52;
  return Math.max(1, Math.floor(99 / (1 - r)) / 100);
}

describe("the multiplier of a bustabit game", () => {
  it.each(VECTORS)("game %i with hash %s is %f", (_, hash, multiplier) => {
    expect(crashHundredths(hash, SALT)).toBe(Math.round(multiplier * 100));
    expect(verifierMultiplier(hash)).toBe(multiplier);
  });

  it("is the same in whole numbers as in the verifier's doubles over 20,000 games", () => {
    const differing: string[] = [];
    walkBack(ANCHORS[0]?.hash ?? "", 20_000, (hash) => {
      if (crashHundredths(hash, SALT) / 100 !== verifierMultiplier(hash)) differing.push(hash);
    });
    expect(differing).toEqual([]);
  });

  it("is never below 1.00, and is 1.00 about once in fifty games", () => {
    const counted = { below: 0, instant: 0 };
    walkBack(ANCHORS[0]?.hash ?? "", 20_000, (hash) => {
      const hundredths = crashHundredths(hash, SALT);
      if (hundredths < 100) counted.below += 1;
      if (hundredths === 100) counted.instant += 1;
    });
    expect(counted.below).toBe(0);
    expect(counted.instant / 20_000).toBeCloseTo(1 - 0.99 / 1.01, 2);
  });

  it.each(["", "9f57", GAME_1.toUpperCase(), `${GAME_1}00`, `0x${GAME_1.slice(2)}`, "g".repeat(64)])(
    "is refused for %j, which is no hash",
    (hash) => {
      expect(() => crashHundredths(hash, SALT)).toThrow(RangeError);
      expect(() => previousHash(hash)).toThrow(RangeError);
      expect(() => walkBack(hash, 1)).toThrow(RangeError);
    },
  );
});

describe("the way back along the chain", () => {
  it("hashes the 64 characters, not the 32 bytes", () => {
    expect(previousHash(GAME_1)).toBe(createHash("sha256").update(GAME_1, "latin1").digest("hex"));
    expect(previousHash(GAME_1)).toBe(TERMINATING_HASH);
  });

  it("leads through the known games", () => {
    for (const [newer, older] of [[VECTORS[0], VECTORS[1]] as const, [VECTORS[8], VECTORS[10]] as const]) {
      const [newerId = 0, newerHash = ""] = newer ?? [];
      const [olderId = 0, olderHash = ""] = older ?? [];
      expect(walkBack(newerHash, newerId - olderId)).toBe(olderHash);
    }
  });

  it("shows each hash once, counted from the game before", () => {
    const seen: [number, string][] = [];
    walkBack(VECTORS[8]?.[1] ?? "", 3, (hash, step) => seen.push([step, hash]));
    expect(seen).toEqual([
      [1, VECTORS[9]?.[1]],
      [2, GAME_1],
      [3, TERMINATING_HASH],
    ]);
  });

  it("goes nowhere in 0 steps, and refuses steps that are not a count", async () => {
    expect(walkBack(GAME_1, 0)).toBe(GAME_1);
    expect(await walkBackSliced(GAME_1, 0)).toBe(GAME_1);
    for (const steps of [-1, 1.5, Number.NaN, Infinity]) {
      expect(() => walkBack(GAME_1, steps)).toThrow(RangeError);
      await expect(walkBackSliced(GAME_1, steps)).rejects.toThrow(RangeError);
    }
  });

  it("is the same in slices, and other work runs between them", async () => {
    const direct: string[] = [];
    const sliced: string[] = [];
    let ticks = 0;
    let walking = true;
    const count = (): void => {
      ticks += 1;
      if (walking) setImmediate(count);
    };
    setImmediate(count);
    const end = await walkBackSliced(GAME_1, 50_000, {
      visit: (hash, step) => {
        if (step % 1_000 === 0) sliced.push(hash);
      },
    });
    walking = false;
    expect(
      walkBack(GAME_1, 50_000, (hash, step) => {
        if (step % 1_000 === 0) direct.push(hash);
      }),
    ).toBe(end);
    expect(sliced).toEqual(direct);
    expect(ticks).toBeGreaterThanOrEqual(4);
  });

  it("ends at its limit", async () => {
    const stop = new AbortController();
    let steps = 0;
    const walk = walkBackSliced(GAME_1, 1_000_000, {
      signal: stop.signal,
      visit: (_, step) => {
        steps = step;
        if (step === 15_000) stop.abort(new Error("enough"));
      },
    });
    await expect(walk).rejects.toThrow("enough");
    expect(steps).toBe(20_000);
  });

  it("from the newest known game meets every anchor and ends at the published commitment", async () => {
    expect(ANCHORS[0]?.id).toBe(LAST_GAME);
    for (const [place, { id, hash }] of ANCHORS.entries()) {
      const below = ANCHORS[place + 1] ?? { id: 0, hash: TERMINATING_HASH };
      expect(await walkBackSliced(hash, id - below.id), `from game ${id} to ${below.id}`).toBe(below.hash);
    }
  });
});
