import { z } from "zod";
import { listComparisonSchedules, loadHouseToRead } from "../src/houses/store.ts";
import { afterCommit, countPasses } from "../src/pass/after-commit.ts";
import { comparePayload } from "../src/pass/compare.ts";
import { listHousesToNormalize, listUnreadTables } from "../src/pass/stores/payload-store.ts";
import { isOfOneTable, processUnread } from "../src/pass/unread-payloads.ts";
import { job } from "../src/queue/job.ts";
import backfillGap from "./backfill-gap.ts";

/**
 * Takes in payloads that are stored unread, by the same pass as a poll: those of which a pass failed, that took too long to
 * read, or that came while reading was paused. Each table's payloads are read in the order in which they were asked for, and
 * none stays unread: what cannot be read is refused with the reason, kept, and can be read again. A table that fails for
 * another reason, such as a lock, stops no other.
 *
 * Once a minute per house one payload that was read is read again and compared with what is stored.
 */
export default job({
  name: "normalize-rounds",
  payload: z.object({ house: z.string(), compare: z.boolean().optional() }),
  key: ({ house, compare = false }) => (compare ? `${house} compare` : house),
  schedule: ({ sql }) => listComparisonSchedules(sql),
  sweep: ({ sql }) => listHousesToNormalize(sql),
  concurrency: 10, // each holds payloads in memory
  timeoutMs: 60_000, // the first walk to the end of a chain of ten million rounds takes five seconds
  retry: { attempts: 5, firstMs: 500, maxMs: 30_000 },

  async run({ house: id, compare = false }, { sql, passes, variables, log, signal, follow, enqueue, published }) {
    const house = await loadHouseToRead(sql, variables, id);
    if (house === null) return { skipped: 1 };
    if (compare) return comparePayload(sql, passes, { house, log, signal });
    const counts = { payloads: 0, refused: 0, ...countPasses([]) };
    const fill = async (gap: string) => enqueue(backfillGap, { gap });
    const readTable = async (tableId: number) => {
      for await (const result of processUnread({ sql, passes, house, signal }, tableId)) {
        follow(result.rows.marks.map(({ receivedAt }) => receivedAt));
        await afterCommit(id, [result], { sql, published, fill });
        const done = countPasses([result]);
        counts.payloads += result.rows.marks.length;
        counts.refused += result.rows.marks.filter(({ state }) => state === "refused").length;
        for (const [name, count] of Object.entries(done)) counts[name as keyof typeof done] += count;
      }
    };
    const failures: unknown[] = [];
    for (const tableId of await listUnreadTables(sql, id)) {
      try {
        await readTable(tableId);
      } catch (error) {
        if (signal.aborted || !isOfOneTable(error)) throw error;
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return counts;
  },
});
