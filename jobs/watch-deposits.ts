import { z } from "zod";
import { job } from "../src/queue/job.ts";
import { usdtOf } from "../src/config/usdt.ts";

/**
 * Look at the chain for USDT that came to our addresses, and credit what is deep enough.
 *
 * Only blocks are read, never filters of a node, which nodes lose; and how far is kept in PostgreSQL, so that a worker that was
 * away for days misses nothing. No key is here that could move any of it.
 */
export default job({
  name: "watch-deposits",
  payload: z.object({ chain: z.string().regex(/^\d{1,18}$/) }),
  key: ({ chain }) => chain,
  schedule: ({ settings }) => {
    const usdt = usdtOf(settings);
    return Promise.resolve(
      usdt === null ? [] : [{ payload: { chain: String(usdt.chain.id) }, everyMs: 10_000, offsetMs: 0 }],
    );
  },
  sweep: null,
  concurrency: 1,
  timeoutMs: 60_000, // a long way to catch up is gone in several looks
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next turn is the retry

  async run({ chain }, { sql, settings, log, signal }) {
    const usdt = usdtOf(settings);
    if (usdt === null || String(usdt.chain.id) !== chain) return { skipped: 1 };
    // loaded where they are needed alone: what speaks with chains takes a third of a second
    const [{ openEndpoints }, { watchDeposits }] = await Promise.all([
      import("../src/topups/usdt/endpoint.ts"),
      import("../src/topups/usdt/watch.ts"),
    ]);
    return watchDeposits({ sql, usdt, endpoints: openEndpoints(usdt.chain, usdt.rpcUrls, signal), log, signal });
  },
});
