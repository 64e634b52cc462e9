import { setTimeout as delay } from "node:timers/promises";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";

const LATE_MS = 3_000;
const LASTS_MS = 15_000;

/** The name server that houses are looked up with. */
export const DNS_CASES: readonly FaultCase[] = [
  {
    name: "DNS that answers 3 s late",
    targetSeconds: TARGET_SECONDS.redisEmptied,
    from: "end",
    async run({ served, services }) {
      services.names.setDelay(LATE_MS);
      served.endConnections();
      await delay(LASTS_MS);
      services.names.setDelay(0);
      return { fromMs: Date.now() };
    },
  },
];
