import { setTimeout as delay } from "node:timers/promises";
import { ASKED, type FaultCase } from "./case.ts";

const LATE_MS = 3_000;
const LASTS_MS = 15_000;

/** The name server that houses are looked up with. */
export const NAME_CASES: readonly FaultCase[] = [
  {
    name: "DNS that answers 3 s late",
    askedSeconds: ASKED.redisEmptied,
    from: "end",
    async run({ served, surroundings }) {
      surroundings.names.setDelay(LATE_MS);
      served.endConnections();
      await delay(LASTS_MS);
      surroundings.names.setDelay(0);
      return { fromMs: Date.now() };
    },
  },
];
