import { z } from "zod";
import { adapterOf } from "../src/houses/adapters/index.ts";
import { requestTables } from "../src/houses/polling/request-tables.ts";
import { takeRequest } from "../src/houses/polling/budget-store.ts";
import { releaseLease } from "../src/houses/polling/lease-store.ts";
import { listPollSchedules, loadHouse } from "../src/houses/store.ts";
import { afterCommit, countPasses } from "../src/pass/after-commit.ts";
import { raiseDamageAlerts } from "../src/pass/damage.ts";
import { endUnsavedPoll, LeaseLostError, savePoll, type SavedPoll } from "../src/pass/poll.ts";
import { prepareStates } from "../src/pass/prepare-states.ts";
import type { PollBudget } from "../src/houses/polling/poll-room.ts";
import { traced } from "../src/telemetry.ts";
import { job, type Counts, type JobContext } from "../src/queue/job.ts";
import backfillGap from "./backfill-gap.ts";
import normalizeRounds from "./normalize-rounds.ts";

/**
 * Polls one house and processes its responses: one pass per table, from the response to its rounds, scores and the next
 * forecasts, all in one transaction with the unchanged payload.
 *
 * A poll is saved only if this process still holds the lease of the house. Times are those of the database: the time of
 * the lease plus the elapsed time of a monotonic clock.
 */
export default job({
  name: "poll-house",
  payload: z.object({ house: z.string(), shard: z.int().min(0) }),
  key: ({ house, shard }) => `${house}/${shard}`,
  schedule: ({ sql }) => listPollSchedules(sql),
  sweep: null,
  concurrency: 1_000, // polls mostly wait for houses; the room and the writer limit their memory and their writes
  timeoutMs: 70_000, // longer than the longest timeout_ms of a house, within which the poll ends
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next poll is the retry
  pool: "polling",

  async run(payload, context) {
    const done = await context.passes.room.enter(payload.house, (budget) => poll(payload, context, budget));
    return done ?? { full: 1 };
  },
});

async function poll(
  { house: id, shard }: { house: string; shard: number },
  { sql, passes, http, settings, variables, log, signal, follow, enqueue, published }: JobContext,
  bytes: PollBudget,
): Promise<Counts> {
  const house = await loadHouse(passes.pipeline, variables, id);
  if (house === null) return { skipped: 1 };
  const byPage = house.settings.tables.some((table) => adapterOf(table).rounds === "page");
  const timeoutMs = house.settings.timeout_ms;
  const lease = await passes.takeLease({ house: id, shard, timeoutMs, byPage });
  if (lease === null) return { skipped: 1 };
  await prepareStates(passes, lease);
  const elapsedMs = () => performance.now() - lease.takenAt;
  const perMinute = house.settings.requests_per_minute;
  const limit =
    perMinute === undefined ? {} : { mayRequest: async () => (await takeRequest(sql, id, perMinute)) === 0 };
  const options = { allowPrivateHouses: settings.ALLOW_PRIVATE_HOUSES, elapsedMs, budget: bytes, ...limit };
  const asked = await traced("house.request", { house: id }, () => requestTables(http, house, lease, options, signal));
  if (signal.aborted) {
    await releaseLease(sql, lease);
    signal.throwIfAborted();
  }
  const polled = { house, lease, asked, jitter: Math.random() };
  let saved: SavedPoll;
  try {
    saved = await traced("pass", { house: id, shard }, async (note) => {
      const done = await savePoll(passes, polled, signal);
      note({ ...countPasses(done.results) });
      return done;
    });
  } catch (error) {
    if (!(error instanceof LeaseLostError)) {
      if (!signal.aborted) await endUnsavedPoll(passes, polled, error);
      throw error;
    }
    log.warn({ house: id, shard }, "the lease went to another worker before this poll was saved; nothing was kept");
    return { lost: 1 };
  }
  await raiseDamageAlerts(
    sql,
    log,
    passes,
    asked.map(({ tableId }) => tableId),
  );
  const { results, circuit, waitMs } = saved;
  const payloads = results.flatMap(({ rows }) => rows.payloads);
  follow(payloads.map(({ receivedAt }) => receivedAt));
  if (circuit !== lease.circuit.state) log.warn({ house: id, shard, circuit, waitMs }, `the circuit of ${id} changed`);
  const fill = async (gap: bigint) => enqueue(backfillGap, { gap: String(gap) });
  await afterCommit(id, results, { sql, log, published, fill });
  if (payloads.some(({ state }) => state === "unread")) await enqueue(normalizeRounds, { house: id });
  return { ...countRequests(asked, payloads.length), ...countPasses(results) };
}

function countRequests(asked: Awaited<ReturnType<typeof requestTables>>, payloads: number): Counts {
  const isFailed = ({ response }: (typeof asked)[number]) => response.kind === "failed";
  const sent = asked.filter(({ isShared }) => isShared !== true);
  return {
    requests: sent.length,
    payloads,
    unchanged: asked.filter((one) => !isFailed(one)).length - payloads,
    failed: sent.filter(isFailed).length,
  };
}
