import { setTimeout as delay } from "node:timers/promises";
import { codeOf, UsageError } from "../../errors.ts";

/**
 * A migration that changes a table waits for its users, and later users, also readers, wait behind the migration. So it
 * waits no longer than an API caller would, lets the others run, and tries again.
 */
export const WAIT_FOR_TABLE_MS = 2_000;
const MAKE_ROOM_MS = 1_000;
const GIVE_UP_AFTER_MS = 600_000;

/** Lock timeout, and deadlock. */
const IN_USE = new Set(["55P03", "40P01"]);

/** A table was in use for too long. */
export class InUseError extends UsageError {}

/**
 * Repeats work if a table was in use, for ten minutes; work must skip what it has done already.
 * @throws InUseError if a table is in use for longer, or for longer than `giveUpAfterMs`; any other error unchanged
 */
export async function whileInUse<Result>(
  work: () => Promise<Result>,
  say: (line: string) => void,
  giveUpAfterMs = GIVE_UP_AFTER_MS,
): Promise<Result> {
  const until = performance.now() + giveUpAfterMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!IN_USE.has(codeOf(error))) throw error;
      if (performance.now() > until) {
        throw new InUseError(
          `a table that is to be changed has been in use for ${giveUpAfterMs / 60_000} minutes; end the long transactions that pg_stat_activity lists, and migrate again`,
        );
      }
      say("a table that is to be changed is in use: making room for those who wait, and trying again");
      await delay(MAKE_ROOM_MS);
    }
  }
}
