import { z } from "zod";
import { adapterOf } from "../src/houses/adapters/index.ts";
import { askTables } from "../src/houses/ask.ts";
import { takeRequest } from "../src/houses/budget-store.ts";
import { BEHIND, takeLease } from "../src/houses/lease-store.ts";
import { releaseLease } from "../src/houses/end-lease-store.ts";
import { saveAnswers } from "../src/houses/poll-store.ts";
import { listPollSchedules, loadHouse } from "../src/houses/store.ts";
import { job } from "../src/queue/job.ts";
import normalizeRounds from "./normalize-rounds.ts";

/**
 * Ask one house what is new and keep its answers exactly as they came.
 *
 * Nothing is interpreted here: a parser bug must never cost us an answer that cannot be fetched again. A poll is saved
 * whole or not at all, and only by whoever still holds the house's lease. Times are the database's: the time of the
 * lease plus what a monotonic clock says since.
 */
export default job({
  name: "poll-house",
  payload: z.object({ house: z.string(), shard: z.int().min(0) }),
  key: ({ house, shard }) => `${house}/${shard}`,
  schedule: ({ sql }) => listPollSchedules(sql),
  sweep: null,
  concurrency: 70, // fewer leave a thousand houses late on two cores, more outrun what is taken in
  timeoutMs: 70_000, // above the longest timeout_ms a house may have; the poll ends itself within that
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next turn is the retry
  pool: "polling",

  async run({ house: id, shard }, { sql, http, settings, variables, log, signal, follow, enqueue }) {
    const house = await loadHouse(sql, variables, id);
    if (house === null) return { skipped: 1 };
    const byPage = house.settings.tables.some((table) => adapterOf(table).rounds === "page");
    const lease = await takeLease(sql, { house: id, shard, timeoutMs: house.settings.timeout_ms, byPage });
    if (lease === null) return { skipped: 1 };
    if (lease === BEHIND) return { behind: 1 };
    const elapsedMs = () => performance.now() - lease.takenAt;
    const perMinute = house.settings.requests_per_minute;
    const budget = perMinute === undefined ? {} : { mayAsk: async () => (await takeRequest(sql, id, perMinute)) === 0 };
    const options = { allowPrivateHouses: settings.ALLOW_PRIVATE_HOUSES, elapsedMs, ...budget };
    const asked = await askTables(http, house, lease, options, signal);
    if (signal.aborted) {
      await releaseLease(sql, lease);
      signal.throwIfAborted();
    }
    const saved = await saveAnswers(sql, lease, asked, Math.random());
    if (saved === null) {
      log.warn({ house: id, shard }, "the lease went to another worker before this poll was saved; nothing was kept");
      return { lost: 1 };
    }
    follow(saved.payloadIds);
    if (saved.circuit !== lease.circuit.state) {
      log.warn({ house: id, shard, circuit: saved.circuit, waitMs: saved.waitMs }, `the circuit of ${id} changed`);
    }
    if (saved.payloads > 0) await enqueue(normalizeRounds, { house: id });
    const { requests, payloads, unchanged, failed } = saved;
    return { requests, payloads, unchanged, failed };
  },
});
