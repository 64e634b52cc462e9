import { z } from "zod";
import { job } from "../src/queue/job.ts";
import { createClient } from "../src/topups/binance-pay/client.ts";
import { wantsCertificates } from "../src/topups/binance-pay/notice-store.ts";
import { listDueOrders } from "../src/topups/binance-pay/order-store.ts";
import { processOrder, refreshCertificates } from "../src/topups/binance-pay/settle.ts";
import { binancePayOf } from "../src/config/binance-pay.ts";

const CERTIFICATES = "certificates";
/** Orders of one look; the next one, seconds later, continues. */
const MOST_AT_ONCE = 200;

/**
 * Look after orders at the payment app: make those that holders asked for, ask what became of those that are open, and
 * credit what was paid.
 *
 * Whose turn it is stands in PostgreSQL: at once after a notice, every five minutes without one. So a notice that was lost
 * costs five minutes and nothing else.
 */
export default job({
  name: "settle-topups",
  payload: z.object({ of: z.string().regex(/^(?:\d{1,18}|certificates)$/) }),
  key: ({ of }) => of,
  schedule: null, // the sweep knows whose turn it is
  sweep: async ({ sql, settings }) => {
    if (binancePayOf(settings) === null) return [];
    const [due, wants] = await Promise.all([listDueOrders(sql, MOST_AT_ONCE), wantsCertificates(sql)]);
    return [...(wants ? [{ of: CERTIFICATES }] : []), ...due.map((id) => ({ of: String(id) }))];
  },
  concurrency: 4,
  timeoutMs: 60_000, // three calls of ten seconds, and some patience with the database
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next sweep is the retry

  async run({ of }, { sql, settings, log, signal }) {
    const app = binancePayOf(settings);
    if (app === null) return { skipped: 1 };
    const site = settings.PUBLIC_URL?.replace(/\/+$/, "") ?? null;
    const parts = { sql, client: createClient(app, signal), site, log };
    return of === CERTIFICATES ? refreshCertificates(parts) : processOrder(parts, BigInt(of));
  },
});
