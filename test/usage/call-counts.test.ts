import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallCounts, type CallMinute, type EndedCall } from "../../src/usage/call-counts.ts";

const MINUTE = 60_000;

function call(of: Partial<EndedCall> = {}): EndedCall {
  return { accountId: 1n, keyId: 1n, endpoint: "games", outcome: "ok", ...of };
}

const sum = (minutes: readonly CallMinute[]) => minutes.reduce((total, { n }) => total + n, 0);

describe("counting calls by minute", () => {
  it("adds up calls of one kind and minute, and keeps the time of the last", () => {
    const counts = new CallCounts();
    for (const at of [MINUTE, MINUTE + 5, 2 * MINUTE - 1, 2 * MINUTE]) counts.note(call(), at);
    expect(counts.take()).toEqual([
      { ...call(), minuteMs: MINUTE, n: 3, lastAtMs: 2 * MINUTE - 1 },
      { ...call(), minuteMs: 2 * MINUTE, n: 1, lastAtMs: 2 * MINUTE },
    ]);
    expect(counts.take()).toEqual([]);
  });

  it("loses and repeats none when some batches cannot be stored", () => {
    const kinds = fc.record({
      keyId: fc.bigInt({ min: 1n, max: 3n }),
      endpoint: fc.constantFrom("games", "rounds"),
      outcome: fc.constantFrom("ok", "rate_limited"),
      at: fc.integer({ min: 0, max: 3 * MINUTE }),
      isStored: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(kinds, { maxLength: 60 }), (ended) => {
        const counts = new CallCounts();
        let stored = 0;
        for (const { at, isStored, ...kind } of ended) {
          counts.note(call(kind), at);
          const taken = counts.take();
          if (isStored) stored += sum(taken);
          else counts.putBack(taken);
        }
        expect(stored + sum(counts.take())).toBe(ended.length);
      }),
    );
  });

  it("is bounded: 100 kinds of an account in a minute, also across batches, and 20,000 that wait", () => {
    const counts = new CallCounts();
    for (let key = 1n; key <= 150n; key += 1n) counts.note(call({ keyId: key }), MINUTE);
    expect(counts.take()).toHaveLength(100);
    counts.note(call({ keyId: 100n }), MINUTE);
    counts.note(call({ keyId: 150n }), MINUTE);
    expect(counts.take().map(({ keyId }) => keyId)).toEqual([100n]);
    counts.note(call({ keyId: 150n }), 2 * MINUTE);
    expect(counts.take()).toHaveLength(1);
    for (let account = 1n; account <= 20_001n; account += 1n)
      counts.note(call({ accountId: account, keyId: account }), 3 * MINUTE);
    expect(counts.take()).toHaveLength(20_000);
  });
});
