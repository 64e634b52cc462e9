import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { afterPoll, NEW_CIRCUIT, type Circuit, type PollOutcome } from "../../../src/houses/polling/circuit.ts";

const good: PollOutcome = { kind: "good", retryAfterMs: null };
const failed: PollOutcome = { kind: "failed", retryAfterMs: null };
const throttled: PollOutcome = { kind: "throttled", retryAfterMs: null };
const MIDDLE = 0.5;

function run(outcomes: readonly PollOutcome[], circuit: Circuit = NEW_CIRCUIT) {
  const first = { circuit, waitMs: 0 };
  return outcomes.reduce((before, outcome) => afterPoll(before.circuit, outcome, MIDDLE), first);
}
const times = (count: number, ...outcomes: PollOutcome[]) => Array.from({ length: count }, () => outcomes).flat();
const probe = (circuit: Circuit): Circuit => ({ ...circuit, state: "half_open" });

describe("a circuit", () => {
  test("stays closed through four failures in a row and opens at the fifth, for 2 s", () => {
    expect(run(times(4, failed))).toMatchObject({ circuit: { state: "closed" }, waitMs: 0 });
    expect(run(times(5, failed))).toMatchObject({ circuit: { state: "open", openedTimes: 1 }, waitMs: 2_000 });
  });

  test("opens when half of the last polls failed, once there are ten", () => {
    expect(run(times(4, good, failed)).circuit.state).toBe("closed");
    expect(run(times(5, good, failed)).circuit.state).toBe("open");
  });

  test("forgets what is older than 20 polls", () => {
    const { circuit } = run([...times(3, failed), ...times(17, good), ...times(3, good, failed)]);
    expect(circuit).toMatchObject({ state: "closed", recent: `${"1".repeat(14)}101010` });
  });

  test("closes with the first good probe and starts from zero", () => {
    const { circuit } = run(times(5, failed));
    const closed = { ...NEW_CIRCUIT, recent: "1" };
    expect(afterPoll(probe(circuit), good, MIDDLE)).toEqual({ circuit: closed, waitMs: 0 });
  });

  test("waits twice as long after each failed probe, up to five minutes", () => {
    let { circuit, waitMs } = run(times(5, failed));
    const waits = [waitMs];
    for (let probes = 0; probes < 9; probes += 1) {
      ({ circuit, waitMs } = afterPoll(probe(circuit), failed, MIDDLE));
      waits.push(waitMs);
    }
    expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000]);
  });

  test("spreads its waits by a quarter either way", () => {
    const { circuit } = run(times(4, failed));
    expect(afterPoll(circuit, failed, 0).waitMs).toBe(1_500);
    expect(afterPoll(circuit, failed, 0.999).waitMs).toBe(2_499);
  });

  test("never probes earlier than the house asked for", () => {
    const { circuit } = run(times(4, failed));
    expect(afterPoll(circuit, { kind: "failed", retryAfterMs: 60_000 }, MIDDLE).waitMs).toBe(60_000);
  });

  test("ignores requests to slow down, except for the wait", () => {
    const asked = run(times(30, { kind: "throttled", retryAfterMs: 7_000 }));
    expect(asked).toMatchObject({ circuit: { state: "closed", failuresInRow: 0, recent: "" }, waitMs: 7_000 });
  });

  test("doubles its wait each time it is asked to slow down without a time, up to 15 minutes", () => {
    expect([1, 2, 3, 4].map((count) => run(times(count, throttled)).waitMs)).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(run(times(100, throttled)).waitMs).toBe(900_000);
    expect(run([...times(4, throttled), good, throttled]).waitMs).toBe(1_000);
  });

  test("stays on probe while the probe is asked to slow down", () => {
    const { circuit } = run(times(5, failed));
    expect(afterPoll(probe(circuit), throttled, MIDDLE).circuit.state).toBe("half_open");
  });

  test("whatever happens, waits between 0 and 15 minutes and remembers at most 20 polls", () => {
    const outcome = fc.record({
      kind: fc.constantFrom("good", "failed", "throttled"),
      retryAfterMs: fc.option(fc.integer({ min: 1_000, max: 900_000 })),
    }) satisfies fc.Arbitrary<PollOutcome>;
    fc.assert(
      fc.property(
        fc.array(outcome, { maxLength: 60 }),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        (all, jitter) => {
          let circuit = NEW_CIRCUIT;
          for (const one of all) {
            const before = circuit.state === "open" ? probe(circuit) : circuit;
            const after = afterPoll(before, one, jitter);
            expect(after.waitMs).toBeGreaterThanOrEqual(one.retryAfterMs ?? 0);
            expect(after.waitMs).toBeLessThanOrEqual(900_000);
            expect(after.circuit.recent).toMatch(/^[01]{0,20}$/);
            expect(after.circuit.state !== "open" || after.waitMs >= 1_500).toBe(true);
            circuit = after.circuit;
          }
        },
      ),
    );
  });
});
