import { setTimeout as delay } from "node:timers/promises";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import type { FaultCase } from "./case.ts";
import { RESPONSE_FAULTS, type ResponseFault } from "./house-proxy.ts";
import { PROXIED_HOUSE } from "./testbed.ts";

const DESCRIPTIONS: Record<ResponseFault, string> = {
  "429": "responds with 429",
  HTML: "responds with HTML",
  "10 MB": "responds with 10 MB that are not JSON",
  "slow-loris": "responds a byte at a time",
  nothing: "does not respond",
  "not TLS": "responds with bytes that are not HTTP",
  reset: "resets the connection",
};
const LASTS_MS = 6_000;
/** A faulty house may delay the polls of others only by the processor time of its own polls. */
const MAX_SILENCE_SECONDS = 5;
/** On a busy machine the limit is this many times the longest silence just before the fault. */
const BUSY_FACTOR = 3;
/** How long the normal silence is measured. */
const NORMAL_MS = 2_000;
/** Memory limit of a worker: responses of 10 MB, ten times a second, must not accumulate. */
const MAX_MEGABYTES = 600;

/** A house that sends faulty responses for a while must not affect other houses or the memory of workers. */
export const HOUSE_CASES: readonly FaultCase[] = RESPONSE_FAULTS.map((fault) => ({
  name: `a house that ${DESCRIPTIONS[fault]}`,
  targetSeconds: null,
  from: "end",
  async run({ houseProxy, houses, polls, workers }) {
    const others = houses.filter((house) => house !== PROXIED_HOUSE);
    const sinceMs = Date.now();
    await delay(NORMAL_MS);
    const beganMs = Date.now();
    const allowed = Math.max(MAX_SILENCE_SECONDS, BUSY_FACTOR * polls.longestSilence(sinceMs, beganMs, others));
    let most = 0;
    houseProxy.setFault(fault);
    try {
      while (Date.now() < beganMs + LASTS_MS) {
        await delay(200);
        most = Math.max(most, ...workers.map((worker) => (worker.residentBytes() ?? 0) / 1e6));
      }
    } finally {
      houseProxy.setFault(null);
    }
    const fromMs = Date.now();
    const silence = polls.longestSilence(beganMs, fromMs, others);
    if (silence > allowed) {
      throw new InvariantViolation(
        `while ${PROXIED_HOUSE} was faulty, another house was not polled for ${silence.toFixed(1)} s`,
      );
    }
    if (most > MAX_MEGABYTES)
      throw new InvariantViolation(`a worker grew to ${most.toFixed(0)} MB while ${PROXIED_HOUSE} was faulty`);
    return { fromMs, observed: `others silent for ${silence.toFixed(1)} s at most, ${most.toFixed(0)} MB at most` };
  },
}));
