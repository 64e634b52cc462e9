import { setTimeout as delay } from "node:timers/promises";
import { codeOf, UsageError } from "../errors.ts";

/**
 * A file that changes a table waits for whoever uses it, and everybody who comes later waits behind the file: readers too.
 * So it waits no longer than an API's caller would, makes room for those who queued, and tries again.
 */
export const WAIT_FOR_TABLE_MS = 2_000;
const MAKE_ROOM_MS = 1_000;
const GIVE_UP_AFTER_MS = 600_000;

/** A lock that was not had in time, and two who wait for each other. */
const IN_USE = new Set(["55P03", "40P01"]);

/**
 * Does something again where a table was in use, for ten minutes; what it did before is to be left out the next time.
 * @throws UsageError where a table is in use for longer; any other error as it is
 */
export async function whileInUse<Result>(work: () => Promise<Result>, say: (line: string) => void): Promise<Result> {
  const until = performance.now() + GIVE_UP_AFTER_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!IN_USE.has(codeOf(error))) throw error;
      if (performance.now() > until) {
        throw new UsageError(
          `a table that is to be changed has been in use for ${GIVE_UP_AFTER_MS / 60_000} minutes; end the long transactions that pg_stat_activity lists, and migrate again`,
        );
      }
      say("a table that is to be changed is in use: making room for those who wait, and trying again");
      await delay(MAKE_ROOM_MS);
    }
  }
}
