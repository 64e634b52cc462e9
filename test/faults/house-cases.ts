import { setTimeout as delay } from "node:timers/promises";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import type { FaultCase } from "./case.ts";
import { RESPONSE_FAULTS, type ResponseFault } from "./house-proxy.ts";
import { PROXIED_HOUSE } from "./testbed.ts";

const LASTS_MS = 6_000;
/** A house in trouble may cost others nothing but the time that its own polls take of a process. */
const MOST_SILENCE_SECONDS = 5;
/** On a machine that is busy with others: so many times what was usual just before. */
const BUSY = 3;
/** How long it is watched what is usual. */
const NORMAL_MS = 2_000;
/** What a process may hold: an answer of ten megabytes, ten times a second, must not stay in it. */
const MOST_MEGABYTES = 600;

/** Houses that answer badly for a while: the others do not notice, and memory stays where it was. */
export const HOUSE_CASES: readonly FaultCase[] = RESPONSE_FAULTS.map((fault) => ({
  name: `a house that answers ${WORDS()[fault]}`,
  targetSeconds: null,
  from: "end",
  async run({ houseProxy, houses, polls, workers }) {
    const others = houses.filter((house) => house !== PROXIED_HOUSE);
    const sinceMs = Date.now();
    await delay(NORMAL_MS);
    const beganMs = Date.now();
    const allowed = Math.max(MOST_SILENCE_SECONDS, BUSY * polls.longestSilence(sinceMs, beganMs, others));
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
        `while ${PROXIED_HOUSE} was in trouble, another house was not polled for ${silence.toFixed(1)} s`,
      );
    }
    if (most > MOST_MEGABYTES)
      throw new InvariantViolation(`a worker grew to ${most.toFixed(0)} MB while ${PROXIED_HOUSE} was in trouble`);
    return { fromMs, seen: `others silent for ${silence.toFixed(1)} s at most, ${most.toFixed(0)} MB at most` };
  },
}));

function WORDS(): Record<ResponseFault, string> {
  return {
    "429": "429",
    HTML: "HTML",
    "10 MB": "10 MB that are no JSON",
    "slow-loris": "a byte at a time",
    nothing: "nothing at all",
    "not TLS": "bytes that are no HTTP",
    reset: "by cutting the connection",
  };
}
