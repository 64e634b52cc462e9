import { InvariantViolation } from "../simulate/invariant-violation.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import type { Testbed } from "./testbed.ts";

const WATCH_SECONDS = 40;

/** Connections on which no byte arrives any more while new ones work, as behind a firewall that dropped its state. */
export const SILENT_CONNECTION_CASES: readonly FaultCase[] = [
  silentCase("one PostgreSQL connection of each worker goes silent", ({ servers, workers }) => {
    const counts = workers.map((worker) => servers.silenceOneOf("postgres", worker.pid() ?? 0));
    if (counts.includes(0)) throw new InvariantViolation("a worker has no connection to PostgreSQL to silence");
    return counts.length;
  }),
  silentCase("all PostgreSQL connections go silent", ({ servers }) => servers.silence("postgres")),
  silentCase("all Redis connections go silent", ({ servers }) => servers.silence("redis")),
  silentCase(
    "all connections to PostgreSQL and Redis go silent",
    ({ servers }) => servers.silence("postgres") + servers.silence("redis"),
  ),
];

function silentCase(name: string, silence: (testbed: Testbed) => number): FaultCase {
  return {
    name,
    targetSeconds: TARGET_SECONDS.stillPresent,
    from: "beginning",
    watchSeconds: WATCH_SECONDS,
    async run(testbed) {
      const fromMs = Date.now();
      const count = silence(testbed);
      return { fromMs, observed: `${count} connections`, end: () => testbed.servers.closeSilenced() };
    },
  };
}
