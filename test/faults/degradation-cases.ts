import { pauseRollUp } from "../simulate/roll-up.ts";
import { slowDisk } from "../simulate/slow-disk.ts";
import { waitUntil } from "../simulate/wait-until.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import { NotPossible } from "./locks.ts";

const SLOW_FOR_MS = 10_000;
const BACK_MS = -60_000;

/** A slow or full disk, a clock that steps back, and a roll-up that was paused for days. */
export const DEGRADATION_CASES: readonly FaultCase[] = [
  {
    name: "a slow disk: commits take 0.4 s for 10 s",
    targetSeconds: TARGET_SECONDS.postgresBack,
    from: "end",
    async run({ sql }) {
      await slowDisk(sql, SLOW_FOR_MS);
      return { fromMs: Date.now() };
    },
  },
  {
    name: "the disk of PostgreSQL's log is full for 6 s",
    targetSeconds: null,
    from: "end",
    async run({ servers }) {
      if (!servers.hasDisk) throw new NotPossible("disks cannot be filled on this machine");
      await servers.fillDisk(1 << 20, 6_000, { isLogToo: true });
      return { fromMs: Date.now() };
    },
  },
  {
    name: "a worker whose clock steps 60 s back",
    targetSeconds: null,
    from: "end",
    async run({ sql, workers, polls, houses }) {
      const [worker] = workers;
      const beganMs = Date.now();
      worker?.setClock(BACK_MS);
      try {
        await waitUntil("a clock that is 60 s behind was not reported", 90_000, async () => {
          return (
            (await sql`select from workers where pid = ${worker?.pid() ?? 0} and clock_problem is not null`).length > 0
          );
        });
      } finally {
        worker?.setClock(0);
      }
      const noticedMs = Date.now();
      const silence = polls.longestSilence(beganMs, noticedMs, houses);
      const noticed = ((noticedMs - beganMs) / 1_000).toFixed(0);
      return {
        fromMs: noticedMs,
        observed: `reported after ${noticed} s; until then silent for ${silence.toFixed(1)} s at most`,
      };
    },
  },
  {
    name: "four days without a roll-up of usage",
    targetSeconds: null,
    from: "end",
    async run({ sql }) {
      const { raised, summed } = await pauseRollUp(sql);
      const observed = `alert after ${raised.toFixed(0)} s, closed ${summed.toFixed(0)} s after the queue was resumed`;
      return { fromMs: Date.now(), observed };
    },
  },
];
