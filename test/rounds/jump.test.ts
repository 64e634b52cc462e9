import { describe, expect, it } from "vitest";
import { roundsSince } from "../../src/rounds/jump.ts";

const at = (second: number) => new Date(Date.UTC(2026, 10, 21) + second * 1_000).toISOString();

/** Known rounds, one each ten seconds. */
const known = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    seq: BigInt(n + 1),
    hundredths: 187,
    late: false,
    verified: null,
    proofHash: null,
    receivedAt: at(10 * n),
  }));

describe("rounds that may have been played since the newest one", () => {
  it("follow from the pace of the table and the time since, with room to spare", () => {
    const head = { lastRoundAt: at(1_000), newestOccurredAt: null };
    const hour = Number(roundsSince(head, known(101), at(1_000 + 3_600)));
    expect(hour).toBeGreaterThan(3 * 360);
    expect(hour).toBeLessThan(6 * 360);
  });

  it("are a hundred or so right after a round", () => {
    const head = { lastRoundAt: at(1_000), newestOccurredAt: null };
    expect(Number(roundsSince(head, known(101), at(1_002)))).toBeLessThan(110);
  });

  it("count from when the newest one was played, which an import may bring much later", () => {
    const head = { lastRoundAt: at(86_400), newestOccurredAt: at(0) };
    expect(Number(roundsSince(head, known(101), at(86_401)))).toBeGreaterThan(8_640);
  });

  it("assume one round per second if too few are known to measure a pace", () => {
    const head = { lastRoundAt: at(20), newestOccurredAt: null };
    expect(roundsSince(head, known(3), at(120))).toBe(500n);
  });
});
