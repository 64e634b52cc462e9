import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as keys from "../../src/callers/key.ts";
import { listExamples, runExample } from "../support/examples.ts";

const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".split("");
const { checkKey, hashKey, mintKey } = keys;

describe("a key", () => {
  it("is rh_live_, 32 random characters and 6 that check them", () => {
    const key = mintKey(randomBytes);
    expect(key).toMatch(/^rh_live_[0-9A-Za-z]{38}$/);
    expect(checkKey(key)).toBe(true);
  });

  it.each(listExamples("src/callers/key.ts").map((example) => [example.title, example] as const))(
    "the examples of %s hold",
    (_, example) => {
      for (const { actual, ...claim } of runExample(example, keys))
        expect({ ...claim, expected: actual }).toEqual(claim);
    },
  );

  it("has its check padded with zeros, as another CRC-32 has it", () => {
    // zlib.crc32(b"rh_live_00000000000000000000000000000212") in Python is 7232711
    expect(checkKey("rh_live_0000000000000000000000000000021200ULYd")).toBe(true);
  });

  it("with any one character changed is refused without asking anybody", () => {
    const key = mintKey(randomBytes);
    fc.assert(
      fc.property(fc.nat(37), fc.constantFrom(...LETTERS), (at, letter) => {
        const changed = key.slice(0, 8 + at) + letter + key.slice(9 + at);
        expect(checkKey(changed)).toBe(changed === key);
      }),
    );
  });

  it.each(["", "rh_live_", "rh_test_0123456789ABCDEFGHIJKLMNOPQRSTUV09MR4J", "a, b", "rh_live_é".padEnd(46, "x")])(
    "is not %j",
    (text) => expect(checkKey(text)).toBe(false),
  );

  it("twice in a header, as Node joins it, is refused", () => {
    const key = mintKey(randomBytes);
    expect(checkKey(`${key}, ${key}`)).toBe(false);
    expect(checkKey(` ${key}`)).toBe(false);
    expect(checkKey(`${key}\n`)).toBe(false);
  });

  it("has every character equally often: bytes that would favour some are not used", () => {
    const counts = new Map<string, number>();
    const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);
    let next = 0;
    const inTurn = (count: number) => Uint8Array.from({ length: count }, () => everyByte[next++ % 256] ?? 0);
    for (let n = 0; n < 31; n++) {
      for (const letter of mintKey(inTurn).slice(8, 40)) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    }
    // 31 keys take 992 letters: each of the 62 came 16 times
    expect([...counts.values()]).toEqual(Array.from({ length: 62 }, () => 16));
  });

  it("is stored as its SHA-256", () => {
    expect(hashKey("abc").toString("hex")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  });
});
