import { z } from "zod";
import { job } from "../src/queue/job.ts";
import { createClient } from "../src/topups/binance-pay/client.ts";
import { wantsCertificates } from "../src/topups/binance-pay/notice-store.ts";
import { listDueOrders } from "../src/topups/binance-pay/order-store.ts";
import { processOrder, refreshCertificates } from "../src/topups/binance-pay/settle.ts";
import { binancePayOf } from "../src/config/binance-pay.ts";

const CERTIFICATES = "certificates";
/** Orders per sweep; the next one, seconds later, continues. */
const MOST_PER_SWEEP = 200;

/**
 * Processes orders at the payment app: creates those that account holders requested, reads the state of open ones, and
 * credits what was paid.
 *
 * PostgreSQL states when an order is due: immediately after a notification, otherwise every five minutes. A lost
 * notification costs five minutes and nothing else.
 */
export default job({
  name: "settle-topups",
  payload: z.object({ of: z.string().regex(/^(?:\d{1,18}|certificates)$/) }),
  key: ({ of }) => of,
  schedule: null, // the sweep finds the orders that are due
  sweep: async ({ sql, settings }) => {
    if (binancePayOf(settings) === null) return [];
    const [due, wants] = await Promise.all([listDueOrders(sql, MOST_PER_SWEEP), wantsCertificates(sql)]);
    return [...(wants ? [{ of: CERTIFICATES }] : []), ...due.map((id) => ({ of: String(id) }))];
  },
  concurrency: 4,
  timeoutMs: 60_000, // three calls of ten seconds, and the time of the database
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next sweep is the retry

  async run({ of }, { sql, settings, log, signal }) {
    const app = binancePayOf(settings);
    if (app === null) return { skipped: 1 };
    const site = settings.PUBLIC_URL ?? null;
    const parts = { sql, client: createClient(app, signal), site, log };
    return of === CERTIFICATES ? refreshCertificates(parts) : processOrder(parts, BigInt(of));
  },
});
