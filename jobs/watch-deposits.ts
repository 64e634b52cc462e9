import { z } from "zod";
import { job } from "../src/queue/job.ts";
import { usdtOf } from "../src/config/usdt.ts";

/**
 * Finds USDT that the chain transferred to our addresses, and credits deposits that are deep enough.
 *
 * Only blocks are read, never the filters of a node, which nodes lose. The last block that was read is in PostgreSQL, so
 * days without a worker miss nothing. No key that could move funds is on this machine.
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
  timeoutMs: 60_000, // a long backlog takes several runs
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next run is the retry

  async run({ chain }, { sql, settings, log, signal }) {
    const usdt = usdtOf(settings);
    if (usdt === null || String(usdt.chain.id) !== chain) return { skipped: 1 };
    // loaded only here: the chain client takes a third of a second to load
    const [{ openEndpoints }, { watchDeposits }] = await Promise.all([
      import("../src/topups/usdt/endpoints/endpoint.ts"),
      import("../src/topups/usdt/watch.ts"),
    ]);
    return watchDeposits({ sql, usdt, endpoints: openEndpoints(usdt.chain, usdt.rpcUrls, signal), log, signal });
  },
});
