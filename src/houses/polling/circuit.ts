/**
 * When a failing house is requested again: the circuit that all workers share, stored in PostgreSQL.
 *
 *   closed ──5 failures in a row, or half of the last 20──▶ open ──wait over──▶ half_open ──good──▶ closed
 *                                                            ▲                     │
 *                                                            └───────failed────────┘ (waits longer)
 *
 * A response that is as unreadable as the one before counts as failed. If the format of a house has changed, the reader of
 * its responses opens its circuit, and the first readable response closes it (see format-store.ts).
 */
type CircuitState = "closed" | "open" | "half_open";

/** The stored state of a house between two polls. */
export interface Circuit {
  state: CircuitState;
  failuresInRow: number;
  /** The last 20 polls, newest last: 1 good, 0 failed. */
  recent: string;
  /** How often it opened since it was last closed. */
  openedTimes: number;
  /** Consecutive responses that asked us to slow down. */
  throttledInRow: number;
}

/** The result of one poll for the circuit; `retryAfterMs` is what the house asked for. */
export interface PollOutcome {
  kind: "good" | "failed" | "throttled";
  retryAfterMs: number | null;
}

const FAILURES_IN_ROW_TO_OPEN = 5;
const RECENT = 20;
/** Half of fewer than ten polls is too small a sample. */
const RECENT_NEEDED = 10;
const FIRST_PROBE_MS = 2_000;
const LAST_PROBE_MS = 300_000;
const FIRST_THROTTLE_MS = 1_000;
const LAST_THROTTLE_MS = 900_000;

/** A house without history: it may be polled. */
export const NEW_CIRCUIT: Circuit = {
  state: "closed",
  failuresInRow: 0,
  recent: "",
  openedTimes: 0,
  throttledInRow: 0,
};

/**
 * Returns the circuit after one more poll, and the milliseconds until the shard may be polled; 0 = at its next poll.
 *
 * A 429 is no failure: the circuit stays as it is and the wait is the Retry-After, or doubles from 1 s to 15 min. `jitter`
 * is a random number in [0, 1): it spreads the waits of a house's shards, and of other clients that were refused at the
 * same moment, by a quarter either way, never below what was asked for.
 */
export function afterPoll(
  circuit: Circuit,
  outcome: PollOutcome,
  jitter: number,
): { circuit: Circuit; waitMs: number } {
  const askedMs = outcome.retryAfterMs ?? 0;
  if (outcome.kind === "throttled") {
    const ownMs =
      outcome.retryAfterMs === null ? growing(FIRST_THROTTLE_MS, circuit.throttledInRow, LAST_THROTTLE_MS, jitter) : 0;
    const waitMs = Math.max(askedMs, ownMs);
    return { circuit: { ...circuit, throttledInRow: circuit.throttledInRow + 1 }, waitMs };
  }
  if (outcome.kind === "good") {
    // a recovered house starts clean: its old failures would open the circuit again at the first new one
    const recent = circuit.state === "closed" ? remember(circuit.recent, "1") : "1";
    return { circuit: { ...NEW_CIRCUIT, recent }, waitMs: askedMs };
  }
  const failed: Circuit = {
    ...circuit,
    failuresInRow: circuit.failuresInRow + 1,
    recent: remember(circuit.recent, "0"),
    throttledInRow: 0,
  };
  if (circuit.state === "closed" && !failsTooOften(failed)) return { circuit: failed, waitMs: askedMs };
  const waitMs = growing(FIRST_PROBE_MS, circuit.openedTimes, LAST_PROBE_MS, jitter);
  return {
    circuit: { ...failed, state: "open", openedTimes: circuit.openedTimes + 1 },
    waitMs: Math.max(askedMs, waitMs),
  };
}

function failsTooOften({ failuresInRow, recent }: Circuit): boolean {
  const failures = recent.length - recent.replaceAll("0", "").length;
  return failuresInRow >= FAILURES_IN_ROW_TO_OPEN || (recent.length >= RECENT_NEEDED && failures * 2 >= recent.length);
}

function remember(recent: string, outcome: "0" | "1"): string {
  return (recent + outcome).slice(-RECENT);
}

function growing(firstMs: number, times: number, lastMs: number, jitter: number): number {
  const plainMs = Math.min(firstMs * 2 ** Math.min(times, 30), lastMs);
  return Math.min(Math.round(plainMs * (0.75 + jitter / 2)), lastMs);
}
