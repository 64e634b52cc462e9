import { z } from "zod";
import { runComparison } from "../src/calibration/requested-comparison.ts";
import { listWaitingComparisons } from "../src/calibration/comparison-store.ts";
import { job } from "../src/queue/job.ts";

/**
 * Put two calibrations of a table next to each other on the rounds that both cover, because a person asked for it.
 *
 * Both are replayed from where they began, so it proves them too; that takes far longer than a page may take, and the
 * result stays true, since records never change.
 */
export default job({
  name: "compare-calibrations",
  payload: z.object({ a: z.string().regex(/^\d{1,18}$/), b: z.string().regex(/^\d{1,18}$/) }),
  key: ({ a, b }) => `${a}-${b}`,
  schedule: null,
  sweep: ({ sql }) => listWaitingComparisons(sql),
  concurrency: 1,
  timeoutMs: 3_600_000, // it leaves no place to continue from
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // a person sees why it failed and asks again
  pool: "long",

  async run({ a, b }, { sql, signal }) {
    return (await runComparison(sql, [a, b], signal)) ? { compared: 1 } : { skipped: 1 };
  },
});
