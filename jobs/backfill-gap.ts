import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { ThrottledError } from "../src/errors.ts";
import { adapterOf } from "../src/houses/adapters/index.ts";
import { takeRequest } from "../src/houses/polling/budget-store.ts";
import { holdHouse } from "../src/houses/polling/lease-store.ts";
import { houseRequest, settingsOf, storedPath, type House } from "../src/houses/house.ts";
import type { TableSettings } from "../src/houses/settings/settings.ts";
import { loadHouse } from "../src/houses/store.ts";
import { findTime } from "../src/pass/stores/payload-store.ts";
import { fromDatabase } from "../src/pass/compute/times.ts";
import { job, type Counts, type JobContext } from "../src/queue/job.ts";
import { computeGap, endGap, lacksDatabase, recountMissing } from "../src/backfill/backfill.ts";
import { readHistory, type AskedPage, type HistoryClient, type HistoryPlace } from "../src/backfill/gap-history.ts";
import { hasRange } from "../src/backfill/gap-next.ts";
import {
  LARGEST_GAP,
  MOST_ATTEMPTS,
  pauseBetweenPages,
  tooLargeReason,
  waitAfterAttempts,
} from "../src/backfill/gap-plan.ts";
import { putGapBack, takeGap, type Gap } from "../src/backfill/gap-attempt-store.ts";
import { findNextGap, listGapsToFill } from "../src/rounds/gaps/gaps-store.ts";

const TIMEOUT_MS = 60_000;
/** A run asks for no page after this time: the last one must still be stored. */
const ASKING_MS = 40_000;
/** A run that is killed keeps its gap no longer than it could have worked on it. */
const LEASE_MS = TIMEOUT_MS + 2_000;
/**
 * Errors of a run count as this many attempts at most, with 20 minutes between them: they must not use up those of the house,
 * since after a mend its rounds are requested.
 */
const MOST_OWN_FAULTS = MOST_ATTEMPTS - 2;
/** Rounds asked for in a page. */
const PAGE = 100;
/** A time for requests that are never sent. */
const EPOCH = "1970-01-01T00:00:00Z";

/**
 * Fills a gap: computes its rounds if a later hash proves them, else requests them from the house, page by page. If neither
 * is possible, the gap is given up with the reason.
 *
 * One gap of a house at a time. All rounds are stored as late: they are shown, but no model learns from them and no forecast
 * is settled by them. The position is stored with the gap, so that another run can continue. A run that fails
 * releases the gap, which then waits longer each time.
 */
const backfillGap = job({
  name: "backfill-gap",
  payload: z.object({ gap: z.string().regex(/^\d{1,18}$/) }),
  key: ({ gap }) => gap,
  schedule: null,
  sweep: ({ sql }) => listGapsToFill(sql),
  concurrency: 4,
  timeoutMs: TIMEOUT_MS,
  retry: { attempts: 1, firstMs: 0, maxMs: 0 }, // attempts are counted with the gap, and the sweep is the retry

  async run({ gap: id }, context) {
    const { sql, published, enqueue } = context;
    const gap = await takeGap(sql, BigInt(id), LEASE_MS);
    if (gap === null) return { skipped: 1 };
    const counts = await tryToFill(context, gap);
    published([gap.tableId]);
    const next = await findNextGap(sql, gap.house);
    if (next !== null) await enqueue(backfillGap, { gap: next });
    return counts;
  },
});

export default backfillGap;

async function tryToFill(context: JobContext, gap: Gap): Promise<Counts> {
  const { sql, variables, signal, ending } = context;
  const { attempts, cursorRoundId: cursor, cursorPage: page } = gap;
  try {
    const house = await loadHouse(sql, variables, gap.house);
    const settings = house === null ? null : settingsOf(house, gap);
    if (house === null || settings === null)
      return await giveUp(context, gap, "its table is not in the houses file any more");
    return await fill(context, gap, house, settings);
  } catch (error) {
    // a throttled run has put it back; without a database its lease expires
    if (error instanceof ThrottledError || (lacksDatabase(error) && !signal.aborted)) throw error;
    const failed = ending.aborted ? attempts : Math.max(attempts, Math.min(attempts + 1, MOST_OWN_FAULTS));
    const waitMs = ending.aborted ? 0 : waitAfterAttempts(failed);
    await putGapBack(sql, gap, { waitMs, attempts: failed, cursor, page });
    throw error;
  }
}

async function fill(context: JobContext, gap: Gap, house: House, settings: TableSettings): Promise<Counts> {
  const { sql, signal } = context;
  const missing = hasRange(gap) ? await recountMissing(sql, gap) : null;
  if (missing === 0n) {
    await endGap(sql, gap, { state: "filled" });
    return { filled: 1 };
  }
  if ((missing ?? gap.filled) > LARGEST_GAP) return giveUp(context, gap, tooLargeReason(missing ?? gap.filled));
  const canAsk = historyAsk(settings, { beforeId: gap.beforeRoundId, page: 0 }, EPOCH) !== null;
  if (settings.fairness !== undefined && hasRange(gap)) {
    const computed = await computeGap(sql, gap, settings.fairness, signal);
    if (computed.complete) {
      await endGap(sql, gap, { state: "filled" });
      return { computed: computed.rounds, filled: 1 };
    }
    if (!canAsk) return failAttempt(context, gap, "no later round is proven, so that none can be computed from it");
  }
  if (canAsk) return askHouse(context, gap, house, settings);
  return giveUp(
    context,
    gap,
    hasRange(gap)
      ? "the house has no history path"
      : "ids do not give the number of missing rounds, and the house has no history path",
  );
}

/** Requests older rounds from the house, and stores with the gap where the next run continues. */
async function askHouse(context: JobContext, gap: Gap, house: House, settings: TableSettings): Promise<Counts> {
  const { sql, signal, published, passes } = context;
  const perMinute = house.settings.requests_per_minute;
  const pauseMs = pauseBetweenPages(house.settings.poll_every_ms);
  const startedAt = performance.now();
  const client: HistoryClient = {
    ask: (at) => askPage(context, house, settings, at),
    spend: async () => (perMinute === undefined ? 0 : takeRequest(sql, house.id, perMinute)),
    pause: () => delay(pauseMs, undefined, { signal }),
    pauseMs,
    isOver: () => performance.now() - startedAt > ASKING_MS,
  };
  const { end, ...counts } = await readHistory(sql, { house, settings, gap, prover: passes.prover }, client, signal);
  switch (end.kind) {
    case "filled":
      await endGap(sql, gap, { state: "filled" });
      return { ...counts, filled: 1 };
    case "wait":
      await putGapBack(sql, gap, { waitMs: end.waitMs, attempts: gap.attempts, ...cursorOf(end.at) });
      return { ...counts, waiting: 1 };
    case "failed":
      if (end.retryAfterMs !== null) await holdHouse(sql, gap.house, end.retryAfterMs);
      return { ...counts, ...(await failAttempt(context, gap, end.reason, end.at)) };
    case "later":
      if (end.inCircles) {
        // a failed attempt: a house that repeats itself must not be asked forever
        const reason = "the house's history lists only rounds that are stored";
        return { ...counts, ...(await failAttempt(context, gap, reason, end.at)) };
      }
      await putGapBack(sql, gap, {
        waitMs: 0,
        heldMs: pauseMs, // the house's other gaps wait as well
        attempts: gap.attempts,
        ...cursorOf(end.at),
      });
      published([gap.tableId]);
      throw new ThrottledError(`the gap ${gap.id} of ${gap.house} is continued after a pause`, pauseMs);
  }
}

function cursorOf(at: HistoryPlace | null): { cursor: string | null; page: number } {
  return { cursor: at?.beforeId ?? null, page: at?.page ?? 0 };
}

function historyAsk(settings: TableSettings, at: HistoryPlace, now: string) {
  return adapterOf(settings).history(settings.feed, { ...at, limit: PAGE, now });
}

/** One request to the house, timed by the database's clock and a monotonic one since. */
async function askPage(
  { sql, http, settings: process, signal }: JobContext,
  house: House,
  settings: TableSettings,
  at: HistoryPlace,
): Promise<AskedPage> {
  const { now, takenAt: clockReadAt } = await findTime(sql);
  const clock = fromDatabase(now);
  const ask = historyAsk(settings, at, clock);
  if (ask === null) return { kind: "failed", reason: "the house has no history path", retryAfterMs: null };
  const request = houseRequest(house, ask, { allowPrivateHouses: process.ALLOW_PRIVATE_HOUSES });
  const requestedMs = performance.now() - clockReadAt;
  const response = await http.fetch(request, signal);
  signal.throwIfAborted();
  const receivedMs = performance.now() - clockReadAt;
  if (response.kind === "response") {
    return { kind: "page", page: { clock, requestedMs, receivedMs, path: storedPath(house, ask), response } };
  }
  if (response.kind === "absent") return response;
  if (response.kind === "unchanged") {
    const reason = "the house responded 304 to a request for its history without conditions";
    return { kind: "failed", reason, retryAfterMs: null };
  }
  const status = response.status === null ? response.reason : `status ${response.status}`;
  const reason = `the house's history could not be asked (${status})`;
  return { kind: "failed", reason, retryAfterMs: response.retryAfterMs };
}

/** Waits longer after each failed attempt, and gives up after the last. */
async function failAttempt(
  context: JobContext,
  gap: Gap,
  reason: string,
  at: HistoryPlace | null = null,
): Promise<Counts> {
  const attempts = gap.attempts + 1;
  if (attempts >= MOST_ATTEMPTS) return giveUp(context, gap, reason);
  await putGapBack(context.sql, gap, { waitMs: waitAfterAttempts(attempts), attempts, ...cursorOf(at) });
  return { failed: 1 };
}

async function giveUp({ sql }: JobContext, gap: Gap, reason: string): Promise<Counts> {
  await endGap(sql, gap, { state: "given_up", reason });
  return { given_up: 1 };
}
