import type { World } from "./world.ts";

/** Something that goes wrong, by name. */
export interface FaultCase {
  name: string;
  /** What is asked of the recovery, in seconds; null where only that nothing is lost is asked. */
  askedSeconds: number | null;
  /** Part of the short form. */
  isShort?: true;
  /** Houses that are waited for, where not all are. */
  houses?: (world: World) => readonly string[];
  /**
   * Makes it happen, and gives the moment from which recovery counts (epoch milliseconds) and what else was seen.
   * @throws Broken where what must hold meanwhile does not
   */
  run(world: World): Promise<{ fromMs: number; seen?: string }>;
}

/** What is asked of recovery: a worker that was killed, Redis that was emptied, PostgreSQL that is back. */
export const ASKED = { workerKilled: 20, redisEmptied: 10, postgresBack: 5 } as const;
