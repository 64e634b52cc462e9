import { z } from "zod";
import { adapterOf } from "../src/houses/adapters/index.ts";
import { requestTables } from "../src/houses/polling/request-tables.ts";
import { takeRequest } from "../src/houses/polling/budget-store.ts";
import { holdHouse, type Lease, LeaseLostError, releaseLease } from "../src/houses/polling/lease-store.ts";
import { logFailedPoll } from "../src/houses/polling/log-failure.ts";
import { paceSchema, pollAt, pollsOf, timeOf, type Pace } from "../src/houses/polling/pace.ts";
import { listMissingRuns } from "../src/houses/polling/polling-store.ts";
import { listPollSchedules, loadHouse } from "../src/houses/store.ts";
import { sleep } from "../src/abort.ts";
import type { Sql } from "../src/db/client.ts";
import { PermanentError, reasonOf } from "../src/errors.ts";
import type { Log } from "../src/log.ts";
import { afterCommit, countPasses } from "../src/pass/after-commit.ts";
import { raiseDamageAlerts } from "../src/pass/damage.ts";
import { endUnsavedPoll, savePoll, type SavedPoll } from "../src/pass/poll.ts";
import { prepareStates } from "../src/pass/prepare-states.ts";
import type { PollBudget } from "../src/houses/polling/poll-room.ts";
import { type RequestedTable, summarizePoll } from "../src/houses/polling/poll-summary.ts";
import { traced } from "../src/telemetry.ts";
import { job, type Counts, type JobContext } from "../src/queue/job.ts";
import backfillGap from "./backfill-gap.ts";
import normalizeRounds from "./normalize-rounds.ts";

/** Without a pace one poll; with one, all polls until the next run of the house. */
const payloadSchema = z.object({
  house: z.string(),
  shard: z.int().min(0),
  pace: paceSchema.optional(),
  /** The first poll that is not made yet, if another process began the run. */
  from: z.int().optional(),
});
type Payload = z.infer<typeof payloadSchema>;

/** A poll that is due. */
interface DuePoll {
  /** When it is due by the pace of its run; null for a single poll. */
  dueAt: Date | null;
  /** Whether it is the last one that this process makes for now. */
  isLast: () => boolean;
}

/**
 * Polls one house and processes its responses: one pass per table, from the response to its rounds, scores and the next
 * forecasts, all in one transaction with the unchanged payload.
 *
 * A poll is saved only if this process still holds the lease of the house. Times are those of the database: the time of
 * the lease plus the elapsed time of a monotonic clock.
 */
const pollHouse = job({
  name: "poll-house",
  payload: payloadSchema,
  key: ({ house, shard }) => `${house}/${shard}`,
  schedule: ({ sql }) => listPollSchedules(sql),
  sweep: ({ sql }) => listMissingRuns(sql),
  concurrency: 10_000, // a run mostly waits; the room and the writer limit the memory and the writes of polls
  timeoutMs: 80_000, // longer than a run with its spread and the longest timeout_ms of a house, within which its last poll ends
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // the next poll is the retry
  lasts: ({ pace }, now) => (pace === undefined ? now : timeOf(pace, pollsOf(pace, now).end)),
  pool: "polling",

  async run(payload, context): Promise<Counts> {
    const { room } = context.passes;
    const once = async (due: DuePoll) =>
      (await room.enter(payload.house, (budget) => poll(payload, context, { ...due, budget }))) ?? { full: 1 };
    if (payload.pace !== undefined) return pollAtPace(payload, payload.pace, context, once);
    return once({ dueAt: null, isLast: () => true });
  },
});
export default pollHouse;

/**
 * Polls at a pace until the next run of the house. A poll that fails does not end the run: the next one is its retry. A poll
 * that is still active when the next one is due delays it, and those that follow are dropped.
 * @throws the last error if no poll succeeded
 */
async function pollAtPace(
  payload: Payload,
  pace: Pace,
  { log, signal, ending, enqueue }: JobContext,
  once: (due: DuePoll) => Promise<Counts>,
): Promise<Counts> {
  const sum: Counts = {};
  let failure: unknown;
  let succeeded = 0;
  const offset = Date.now() - performance.now();
  const now = () => offset + performance.now(); // this machine's clock may be set meanwhile
  const { first, end } = pollsOf(pace, now());
  for (let at = Math.max(first, payload.from ?? first); at < end; at = Math.max(at + 1, pollAt(pace, now()))) {
    if (!(await sleep(Math.max(0, timeOf(pace, at) + Math.random() * pace.spreadMs - now()), [signal, ending]))) {
      signal.throwIfAborted();
      await enqueue(pollHouse, { ...payload, from: at }); // the rest, for another process
      return sum;
    }
    const isLast = () => ending.aborted || Math.max(at, pollAt(pace, now())) >= end - 1;
    try {
      addTo(sum, await once({ dueAt: new Date(timeOf(pace, at)), isLast }));
      succeeded += 1;
    } catch (error) {
      if (signal.aborted || error instanceof PermanentError) throw error;
      failure = error;
      addTo(sum, { failed_polls: 1 });
      logFailedPoll(log, error);
    }
  }
  if (failure !== undefined && succeeded === 0) throw failure;
  return sum;
}

function addTo(sum: Counts, counts: Counts): void {
  for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count;
}

async function poll(
  { house: id, shard }: { house: string; shard: number },
  context: JobContext,
  { budget, dueAt, isLast }: DuePoll & { budget: PollBudget },
): Promise<Counts> {
  const { sql, passes, http, settings, variables, log, signal } = context;
  const house = await loadHouse(passes.pipeline, variables, id);
  if (house === null) return { skipped: 1 };
  const byPage = house.settings.tables.some((table) => adapterOf(table).rounds === "page");
  const timeoutMs = house.settings.timeout_ms;
  const lease = await passes.takeLease({ house: id, shard, updatedAt: house.updatedAt, timeoutMs, byPage, dueAt });
  if (lease === null) return { skipped: 1 };
  const elapsedMs = () => performance.now() - lease.takenAt;
  const perMinute = house.settings.requests_per_minute;
  const limit =
    perMinute === undefined ? {} : { mayRequest: async () => (await takeRequest(sql, id, perMinute)) === 0 };
  const options = { allowPrivateHouses: settings.ALLOW_PRIVATE_HOUSES, elapsedMs, budget, ...limit };
  let asked: RequestedTable[];
  try {
    await prepareStates(passes, lease);
    asked = await traced("house.request", { house: id }, () => requestTables(http, house, lease, options, signal));
    signal.throwIfAborted();
  } catch (error) {
    await releaseLease(sql, lease);
    throw error;
  }
  const polled = { house, lease, asked, jitter: Math.random(), isLast };
  let saved: SavedPoll;
  try {
    saved = await traced("pass", { house: id, shard }, async (note) => {
      const done = await savePoll(passes, polled, signal);
      note({ ...countPasses(done.results) });
      return done;
    });
  } catch (error) {
    const { houseWaitMs } = summarizePoll(asked);
    if (houseWaitMs > 0) await holdShards(sql, log, id, houseWaitMs);
    if (!(error instanceof LeaseLostError)) {
      if (!signal.aborted) await endUnsavedPoll(passes, polled, error);
      throw error;
    }
    log.warn(
      { house: id, shard },
      "another worker took the lease, or the houses file was changed; what was not saved of this poll is dropped",
    );
    return { lost: 1 };
  }
  return followUp(context, lease, asked, saved);
}

/** What follows a saved poll, and its counts. */
async function followUp(
  { sql, passes, log, follow, enqueue, published }: JobContext,
  { house: id, shard, circuit: before }: Lease,
  asked: readonly RequestedTable[],
  { results, circuit, waitMs, houseWaitMs, busy }: SavedPoll,
): Promise<Counts> {
  if (houseWaitMs > 0) await holdShards(sql, log, id, houseWaitMs);
  if (busy.length > 0)
    log.warn(
      { house: id, shard, tables: busy },
      `${busy.length} of its tables are locked by another session, such as an import or a repair; their responses are not stored`,
    );
  await raiseDamageAlerts(
    sql,
    log,
    passes,
    asked.map(({ tableId }) => tableId),
  );
  const payloads = results.flatMap(({ rows }) => rows.payloads);
  follow(payloads.map(({ receivedAt }) => receivedAt));
  if (circuit !== before.state) log.warn({ house: id, shard, circuit, waitMs }, `the circuit of ${id} changed`);
  const fill = async (gap: string) => enqueue(backfillGap, { gap });
  await afterCommit(id, results, { sql, published, fill });
  if (payloads.some(({ state }) => state === "unread")) await enqueue(normalizeRounds, { house: id });
  return {
    ...countRequests(asked, payloads.length),
    ...countPasses(results),
    ...(busy.length > 0 && { busy: busy.length }),
  };
}

/** The poll is saved, and its own shard waits: a failure to suspend the others must not fail it. */
async function holdShards(sql: Sql, log: Log, house: string, waitMs: number): Promise<void> {
  try {
    await holdHouse(sql, house, waitMs);
  } catch (error) {
    log.error(
      { err: error, house, waitMs },
      `the other shards of ${house} are not suspended for the time it asked: ${reasonOf(error)}`,
    );
  }
}

function countRequests(asked: readonly RequestedTable[], payloads: number): Counts {
  const isFailed = ({ response }: RequestedTable) => response.kind === "failed";
  const sent = asked.filter(({ isShared }) => isShared !== true);
  return {
    requests: sent.length,
    payloads,
    unchanged: asked.filter((one) => !isFailed(one)).length - payloads,
    failed: sent.filter(isFailed).length,
  };
}
