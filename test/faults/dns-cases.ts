import { setTimeout as delay } from "node:timers/promises";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";

const LATE_MS = 3_000;
const LASTS_MS = 15_000;

/** Faults of the name server for houses. */
export const DNS_CASES: readonly FaultCase[] = [
  {
    name: "DNS that responds 3 s late",
    targetSeconds: TARGET_SECONDS.redisEmptied,
    from: "end",
    async run({ houseServer, services }) {
      services.names.setDelay(LATE_MS);
      houseServer.endConnections();
      await delay(LASTS_MS);
      services.names.setDelay(0);
      return { fromMs: Date.now() };
    },
  },
];
