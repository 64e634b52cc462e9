import { z } from "zod";
import { hasHoldersToNotify, notifyHolders } from "../src/purchases/reminder-store.ts";
import { hasQuotasToNotify, notifyQuotas } from "../src/usage/quota-mail-store.ts";
import { hasBank } from "../src/topups/bank/method.ts";
import { job } from "../src/queue/job.ts";

/**
 * Notify holders by mail: a plan ends in three days (in ten if bank transfers are offered), a plan has ended (only if no other follows), and 80 % or 100 % of a
 * limit is used. Each is sent once.
 *
 * What is still to be sent follows from what is stored, so the sweep finds again what was lost.
 */
export default job({
  name: "remind-holders",
  payload: z.object({}),
  key: () => "all",
  schedule: null,
  sweep: async ({ sql, settings }) =>
    (await hasHoldersToNotify(sql, { hasBank: hasBank(settings) })) || (await hasQuotasToNotify(sql)) ? [{}] : [],
  concurrency: 1,
  timeoutMs: 60_000,
  retry: { attempts: 3, firstMs: 10_000, maxMs: 60_000 },

  async run(_, { sql, settings, signal }) {
    const options = { site: settings.PUBLIC_URL ?? null, signal };
    return {
      ...(await notifyHolders(sql, { ...options, hasBank: hasBank(settings) })),
      quotas: await notifyQuotas(sql, options),
    };
  },
});
