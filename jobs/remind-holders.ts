import { z } from "zod";
import { hasHoldersToTell, tellHolders } from "../src/purchases/reminder-store.ts";
import { job } from "../src/queue/job.ts";

/**
 * Tell whoever has a plan that it ends in three days, and that it has ended: once each, and only where nothing follows.
 *
 * What is still to be told is a fact of the plans that were bought, so a message that is lost is made again by the sweep.
 */
export default job({
  name: "remind-holders",
  payload: z.object({}),
  key: () => "all",
  schedule: null,
  sweep: async ({ sql }) => ((await hasHoldersToTell(sql)) ? [{}] : []),
  concurrency: 1,
  timeoutMs: 60_000,
  retry: { attempts: 3, firstMs: 10_000, maxMs: 60_000 },

  run: (_, { sql, settings, signal }) =>
    tellHolders(sql, { site: settings.PUBLIC_URL?.replace(/\/$/, "") ?? null, signal }),
});
