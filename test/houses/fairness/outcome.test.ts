import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  hundredthsOf,
  hundredthsOfA,
  hundredthsOfB,
  hundredthsOfB9,
  hundredthsOfS,
  isOutcome,
} from "../../../src/houses/fairness/outcome.ts";
import { chainFrom, PUBLIC_CHAINS } from "./chains-fixture.ts";

const E = 2 ** 52;
const STAKE = { rule: "S" as const, divisor: null, salt: PUBLIC_CHAINS.find(({ key }) => key === "stake")?.salt ?? "" };

/** First 52 bits, with many close to 0, to 2^52 and to where the multiplier is a whole number of hundredths. */
const first52 = fc.oneof(
  fc.bigInt(0n, 2n ** 52n - 1n),
  fc.bigInt(0n, 1_000n),
  fc.bigInt(1n, 1_000_000n).map((below) => 2n ** 52n - below),
  fc
    .tuple(fc.bigInt(100n, 100_000n), fc.bigInt(-2n, 2n))
    .map(([cents, off]) => 2n ** 52n - (99n * 2n ** 52n) / cents + off)
    .filter((r) => r >= 0n && r < 2n ** 52n),
);

/** An HMAC that begins with these 52 bits, its last byte such that the whole is divisible by `divisor` or not. */
function macOf(h: bigint, divisor: number, isDivisible: boolean): Buffer {
  const whole = h << 204n;
  const rest = whole % BigInt(divisor);
  const added = rest === 0n ? 0n : BigInt(divisor) - rest;
  return Buffer.from((whole + added + (isDivisible ? 0n : 1n)).toString(16).padStart(64, "0"), "hex");
}

describe("the multiplier of a round", () => {
  it.each(
    PUBLIC_CHAINS.flatMap(({ key, vectors }) => vectors.map(([id, hash, value]) => [key, id, hash, value] as const)),
  )("%s %i with hash %s is %f", (key, _, hash, value) => {
    const chain = chainFrom({ chain: key });
    const shown = value === 0 ? 100 : chain.rule === "S" ? Math.floor(value * 100) : Math.round(value * 100);
    expect(hundredthsOf(chain, hash)).toBe(shown);
    expect(isOutcome(chain, hash, shown)).toBe(true);
    expect(isOutcome(chain, hash, shown + 1)).toBe(false);
  });

  it("of Stake's published test value is that value floored", () => {
    const hash = "3e473405bd819ed4171854194bae75a2b117739fc1ab2e1c4cd263e1904dae6f";
    const i = createHmac("sha256", hash).update(STAKE.salt).digest().readUInt32BE();
    expect((2 ** 32 / (i + 1)) * 0.99).toBe(1.3193661251992947);
    expect(hundredthsOf(STAKE, hash)).toBe(131);
  });

  it("needs the salt as text, and is another one with the keys or the steps mixed up", () => {
    for (const { key, vectors } of PUBLIC_CHAINS) {
      const chain = chainFrom({ chain: key });
      const wrong = { A: "B", B: "A", B9: "S", S: "A" } as const;
      const other = { ...chain, rule: wrong[chain.rule], divisor: 25 };
      expect(vectors.every(([, hash]) => hundredthsOf(other, hash) === hundredthsOf(chain, hash))).toBe(false);
    }
  });

  it.each(["A", "B", "B9", "S"] as const)("by rule %s is refused for what is no hash", (rule) => {
    for (const hash of ["", "9f57", "g".repeat(64), "A".repeat(64)]) {
      expect(() => hundredthsOf({ rule, divisor: 15, salt: "salt" }, hash)).toThrow(RangeError);
    }
  });
});

describe("rule A in integers", () => {
  const cases = fc.tuple(first52, fc.constantFrom(15, 25, 101, 2, 1_048_576));

  it("is 1.00 if the whole HMAC is divisible, else the curve's value", () => {
    fc.assert(
      fc.property(cases, ([h, divisor]) => {
        expect(hundredthsOfA(macOf(h, divisor, true), divisor)).toBe(100);
        const exact = (100n * 2n ** 52n - h) / (2n ** 52n - h);
        expect(hundredthsOfA(macOf(h, divisor, false), divisor)).toBe(Number(exact));
      }),
    );
  });

  it("is the houses' own formula with doubles, except if a double cannot hold it", () => {
    fc.assert(
      fc.property(first52, (h) => {
        const floating = Math.floor((100 * E - Number(h)) / (E - Number(h)));
        const ours = hundredthsOfA(macOf(h, 101, false), 101);
        // (100·2^52 - h) is rounded to a multiple of 64: half of that over (2^52 - h) is how far the double may be off
        expect(Math.abs(ours - floating)).toBeLessThanOrEqual(isNearWhole(99n, h, 64n) ? 1 + 64 / (E - Number(h)) : 0);
      }),
    );
  });

  it("refuses a divisor that would not be exact", () => {
    for (const divisor of [0, 1, 1.5, 2 ** 21])
      expect(() => hundredthsOfA(Buffer.alloc(32), divisor)).toThrow(RangeError);
  });
});

describe("rules B and B9 in integers", () => {
  it("B is the verifier's formula with doubles, except at a whole number", () => {
    fc.assert(
      fc.property(first52, (r) => {
        const floating = Math.max(100, Math.floor(99 / (1 - Number(r) / E)));
        const ours = hundredthsOfB(r);
        expect(Math.abs(ours - floating)).toBeLessThanOrEqual(isNearWhole(99n, r, 1n) ? 1 + ours * 2 ** -52 : 0);
      }),
    );
  });

  it("B9 rounds to the digits that toPrecision(9) gives, a half up", () => {
    fc.assert(
      fc.property(first52, (r) => {
        const x = (Number(r) / E).toPrecision(9);
        if (Number(x) === 1) {
          expect(hundredthsOfB9(r)).toBe(Infinity);
          return;
        }
        const [digits = "", exponent = "0"] = x.split("e");
        const places = (digits.split(".")[1] ?? "").length - Number(exponent);
        const scale = 10n ** BigInt(places);
        const value = (99n * scale) / (scale - BigInt(digits.replace(".", "")));
        expect(hundredthsOfB9(r)).toBe(Math.max(100, Number(value)));
      }),
    );
  });

  it("B9 is the announced formula with doubles, but near a whole number of cents", () => {
    fc.assert(
      fc.property(first52, (r) => {
        const x = Number.parseFloat((Number(r) / E).toPrecision(9));
        if (x === 1) return;
        const quotient = 99 / (1 - x);
        const off = quotient * quotient * 2 ** -58 + quotient * 2 ** -52;
        const isNear = Math.abs(quotient - Math.round(quotient)) <= off;
        const ours = hundredthsOfB9(r);
        expect(Math.abs(ours - Math.max(100, Math.floor(quotient)))).toBeLessThanOrEqual(isNear ? 1 + off : 0);
      }),
    );
  });

  it("at the ends of their domain are 1.00 and far up", () => {
    expect([hundredthsOfB(0n), hundredthsOfB9(0n), hundredthsOfB9(1n)]).toEqual([100, 100, 100]);
    expect(hundredthsOfB(2n ** 52n - 1n)).toBe(99 * E);
    expect(hundredthsOfB9(2n ** 52n - 1n)).toBe(Infinity);
    expect(hundredthsOfA(macOf(0n, 101, false), 101)).toBe(100);
    expect(hundredthsOfA(macOf(2n ** 52n - 1n, 101, false), 101)).toBe(Number(99n * 2n ** 52n + 1n));
  });

  it("B9 differs from B at the same rounds as BC.Game's published values", () => {
    // game 5,823,879: 20310.60 and not 20310.62
    const r = rWithHundredths(2_031_062);
    expect(hundredthsOfB(r)).toBe(2_031_062);
    expect(hundredthsOfB9(r)).not.toBe(2_031_062);
  });
});

describe("rule S", () => {
  const word = fc.oneof(
    fc.nat({ max: 2 ** 31 - 1 }),
    fc.integer({ min: 0, max: 1_000 }),
    fc.integer({ min: 1, max: 1_000 }).map((below) => 2 ** 32 - below),
    fc.integer({ min: 100, max: 1_000_000 }).map((cents) => Math.floor((99 * 2 ** 32) / cents) - 1),
  );

  it("is the exact quotient floored, though computed with doubles", () => {
    fc.assert(
      fc.property(word, (i) => {
        const exact = (99n * 2n ** 32n) / BigInt(i + 1);
        expect(hundredthsOfS(i)).toBe(exact < 100n ? 100 : Number(exact));
      }),
    );
  });

  it("is accepted as the single-precision number that Stake makes of it, and no cent further", () => {
    let moved = 0;
    for (let n = 0; n < 30_000; n += 1) {
      const hash = createHmac("sha256", "n").update(String(n)).digest("hex");
      const i = createHmac("sha256", hash).update(STAKE.salt).digest().readUInt32BE();
      const sent = Math.max(
        100,
        Math.floor(Number(new Float32Array([(2 ** 32 / (i + 1)) * 0.99])[0]?.toPrecision(8)) * 100),
      );
      if (sent !== hundredthsOf(STAKE, hash)) moved += 1;
      if (!isOutcome(STAKE, hash, sent) || (sent < 100_000 && isOutcome(STAKE, hash, sent + 2))) throw new Error(hash);
    }
    expect(moved).toBeLessThan(30);
  });
});

describe("a true round that the house's own arithmetic moved by a cent", () => {
  const salt = "salt";

  it.each([
    ["bf6d52d5e2a7b3dfb716e11c2eee0df444b8d2422a169beb878934cef96c94a3", 2.059999863048366, 206],
    ["3ea5192b71a0b4f3b8fe869e81a9d0eaa8c42b270d0334361f6d515635195db2", 8.359999345988086, 836],
  ])("of rule S is accepted if a short decimal of a single changed it: %s", (hash, exact, sent) => {
    const outcome = { rule: "S" as const, divisor: null, salt };
    const i = createHmac("sha256", hash).update(salt).digest().readUInt32BE();
    expect((2 ** 32 / (i + 1)) * 0.99).toBe(exact);
    expect(Math.fround(exact)).toBe(Math.fround(sent / 100));
    expect([sent - 2, sent - 1, sent, sent + 1].map((cents) => isOutcome(outcome, hash, cents))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it("of rule B9 is accepted if doubles miss a whole quotient", () => {
    const outcome = { rule: "B9" as const, divisor: null, salt };
    const hash = "06601fe3276cfc1b2e8c38a3fb4f057ab3083a2dcb35724f6cd121806a5f5e6a";
    const r = Number(createHmac("sha256", salt).update(hash, "hex").digest().readBigUInt64BE() >> 12n);
    expect(Math.floor(99 / (1 - Number((r / E).toPrecision(9))))).toBe(799);
    expect(hundredthsOf(outcome, hash)).toBe(800);
    expect([798, 799, 800, 801].map((cents) => isOutcome(outcome, hash, cents))).toEqual([false, true, true, false]);
  });
});

/** Is numerator·2^52 / (2^52 - r) so close to a whole number that `units` of rounding may carry it over? */
function isNearWhole(numerator: bigint, r: bigint, units: bigint): boolean {
  const below = 2n ** 52n - r;
  const rest = (numerator * 2n ** 52n) % below;
  const quotient = (numerator * 2n ** 52n) / below;
  const margin = (below * quotient) / 2n ** 52n + units;
  return rest <= margin || below - rest <= margin;
}

/** Some 52 bits whose multiplier under rule B is this. */
function rWithHundredths(hundredths: number): bigint {
  const cents = BigInt(hundredths);
  return 2n ** 52n - (99n * 2n ** 52n) / cents;
}
