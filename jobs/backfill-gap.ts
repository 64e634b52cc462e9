import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { ThrottledError } from "../src/errors.ts";
import { adapters } from "../src/houses/adapters/index.ts";
import { createProver } from "../src/houses/fairness/prove.ts";
import { houseRequest, settingsOf, type House } from "../src/houses/house.ts";
import type { TableSettings } from "../src/houses/settings.ts";
import { loadHouse } from "../src/houses/store.ts";
import { job, type Counts, type JobContext } from "../src/queue/job.ts";
import { computeGap, endGap, storeHistoryPage, type ArrivedPage, type PageOutcome } from "../src/rounds/backfill.ts";
import {
  LARGEST_GAP,
  MOST_ATTEMPTS,
  pauseBetweenPages,
  tooLargeReason,
  waitAfterAttempts,
} from "../src/rounds/gap-plan.ts";
import {
  findHighestMissing,
  findHouseWait,
  findNextGap,
  holdHouse,
  listGapsToFill,
  putGapBack,
  readClock,
  takeGap,
  type Gap,
} from "../src/rounds/gaps-store.ts";

const TIMEOUT_MS = 60_000;
/** A run that is killed keeps its gap no longer than it could have worked on it. */
const LEASE_MS = TIMEOUT_MS + 2_000;
/** Pages asked for in one run, and rounds asked for in each. */
const MOST_PAGES = 20;
const PAGE = 100;
/** Longer pauses between two pages are waited out outside of the run. */
const LONGEST_PAUSE_MS = 2_000;
const PAUSED_WAIT_MS = 60_000;

const prover = createProver();

/**
 * Fill a gap: compute its rounds where a later hash proves them, else ask the house politely, page by page, and say why
 * where neither can be done.
 *
 * One gap of a house at a time. Everything it finds is stored as late: shown, never learned from, resolving nothing.
 * How far it came is kept with the gap, so that a run may end at any moment and another go on.
 */
const backfillGap = job({
  name: "backfill-gap",
  payload: z.object({ gap: z.string().regex(/^\d{1,18}$/) }),
  key: ({ gap }) => gap,
  schedule: null,
  sweep: ({ sql }) => listGapsToFill(sql),
  concurrency: 4,
  timeoutMs: TIMEOUT_MS,
  retry: { attempts: 3, firstMs: 1_000, maxMs: 30_000 }, // of our own trouble; the house's is counted with the gap

  async run({ gap: id }, context) {
    const { sql, variables, published, enqueue } = context;
    const gap = await takeGap(sql, BigInt(id), LEASE_MS);
    if (gap === null) return { skipped: 1 };
    const house = await loadHouse(sql, variables, gap.house);
    const settings = house === null ? null : settingsOf(house, gap);
    const counts =
      house === null || settings === null
        ? await giveUp(context, gap, "its table is not in the houses file any more")
        : await fill(context, gap, house, settings);
    published();
    const next = await findNextGap(sql, gap.house);
    if (next !== null) await enqueue(backfillGap, { gap: next });
    return counts;
  },
});

export default backfillGap;

async function fill(context: JobContext, gap: Gap, house: House, settings: TableSettings): Promise<Counts> {
  const { sql, signal } = context;
  const { missing } = gap;
  if (missing !== null && missing <= 0n) {
    await endGap(sql, gap, { state: "filled" });
    return { filled: 1 };
  }
  if ((missing ?? gap.filled) > LARGEST_GAP) return giveUp(context, gap, tooLargeReason(missing ?? gap.filled));
  const canAsk =
    adapters[settings.adapter].history(settings.feed, { beforeId: gap.beforeRoundId, limit: PAGE }) !== null;
  if (settings.fairness !== undefined && hasRange(gap)) {
    const computed = await computeGap(sql, gap, settings.fairness, signal);
    if (computed.complete) return { computed: computed.rounds, filled: 1 };
    if (!canAsk) return failAttempt(context, gap, "no later round is proven, so that none can be computed from it");
  }
  if (canAsk) return askHouse(context, gap, house, settings);
  return giveUp(
    context,
    gap,
    hasRange(gap)
      ? "the house has no history path"
      : "ids do not tell how many are missing, and the house has no history path",
  );
}

function hasRange(gap: Gap): gap is Gap & { fromNumber: bigint; toNumber: bigint } {
  return gap.fromNumber !== null && gap.toNumber !== null;
}

/** Pages back from the gap's end until the gap is filled, the house has no more, or this run has asked enough. */
async function askHouse(context: JobContext, gap: Gap, house: House, settings: TableSettings): Promise<Counts> {
  const { sql, signal } = context;
  const pauseMs = pauseBetweenPages(house.settings.poll_every_ms);
  const counts = { pages: 0, rounds: 0 };
  let before = await nextBefore(context, gap, gap.cursorRoundId ?? gap.beforeRoundId);
  while (before !== null) {
    const waitMs = await findHouseWait(sql, gap.tableId);
    if (waitMs !== 0) {
      // a house that is paused, or to be left alone, costs the gap no attempt
      await putGapBack(sql, gap.id, { waitMs: waitMs ?? PAUSED_WAIT_MS, attempts: gap.attempts, cursor: before });
      return { ...counts, waiting: 1 };
    }
    const page = await askPage(context, house, settings, before);
    if (!page.ok) {
      if (page.retryAfterMs !== null) await holdHouse(sql, gap.tableId, page.retryAfterMs);
      return { ...counts, ...(await failAttempt(context, gap, page.reason, before)) };
    }
    const outcome = await storeHistoryPage(sql, house, gap, prover, page.arrived, signal);
    counts.pages += 1;
    counts.rounds += outcome.rounds;
    if (outcome.refusedReason !== null) {
      return { ...counts, ...(await failAttempt(context, gap, "a page of the house's history cannot be read")) };
    }
    const next: Next = hasRange(gap) ? nextByNumber(outcome, before) : nextByPlace(outcome, before);
    if (next.kind === "filled") {
      await endGap(sql, gap, { state: "filled" });
      return { ...counts, filled: 1 };
    }
    if (next.kind === "ended") return { ...counts, ...(await failAttempt(context, gap, next.reason)) };
    before = await nextBefore(context, gap, next.before);
    if (before === null) break;
    if (counts.pages >= MOST_PAGES || pauseMs > LONGEST_PAUSE_MS) {
      // a run that found nothing counts as an attempt: a house that turns in circles must not be asked for ever
      const attempts = gap.attempts + (counts.rounds === 0 ? 1 : 0);
      await putGapBack(sql, gap.id, { waitMs: 0, attempts, cursor: before });
      context.published();
      throw new ThrottledError(`the gap ${gap.id} of ${gap.house} is gone on with after a pause`, pauseMs);
    }
    await delay(pauseMs, undefined, { signal });
  }
  if ((await findMissing(context, gap)) === null) return { ...counts, filled: 1 };
  return {
    ...counts,
    ...(await failAttempt(context, gap, "the house's history does not list all of them, or not readably")),
  };
}

type Next = { kind: "more"; before: string } | { kind: "filled" } | { kind: "ended"; reason: string };

/** Where ids count up: below the lowest number of the page, since everything above it was listed or will not be. */
function nextByNumber({ oldestRoundId }: PageOutcome, before: string): Next {
  const lowest = oldestRoundId === null ? null : BigInt(oldestRoundId);
  if (lowest === null || lowest >= BigInt(before)) {
    return { kind: "ended", reason: `the house's history ends at ${before}` };
  }
  return { kind: "more", before: String(lowest) };
}

function nextByPlace({ oldestRoundId, reachesOurs, isHidden }: PageOutcome, before: string): Next {
  if (isHidden) return { kind: "ended", reason: "the house lists an item there that cannot be read" };
  if (reachesOurs) return { kind: "filled" };
  if (oldestRoundId === null || oldestRoundId === before) {
    return { kind: "ended", reason: `the house's history ends at ${before}, before it reaches our rounds` };
  }
  return { kind: "more", before: oldestRoundId };
}

/** The id to ask on from: where ids count up, right above the next missing number; null where none is missing. */
async function nextBefore({ sql }: JobContext, gap: Gap, before: string): Promise<string | null> {
  if (!hasRange(gap)) return before;
  const range = { from: gap.fromNumber, to: BigInt(before) - 1n };
  const highest = range.to < range.from ? null : await findHighestMissing(sql, gap.tableId, range);
  return highest === null ? null : String(highest + 1n);
}

async function findMissing({ sql }: JobContext, gap: Gap): Promise<bigint | null> {
  if (!hasRange(gap)) return null;
  return findHighestMissing(sql, gap.tableId, { from: gap.fromNumber, to: gap.toNumber });
}

/** One request to the house, timed by the database's clock and a monotonic one since. */
async function askPage(
  { sql, http, settings: process, signal }: JobContext,
  house: House,
  settings: TableSettings,
  beforeId: string,
): Promise<{ ok: true; arrived: ArrivedPage } | { ok: false; reason: string; retryAfterMs: number | null }> {
  const ask = adapters[settings.adapter].history(settings.feed, { beforeId, limit: PAGE });
  if (ask === null) return { ok: false, reason: "the house has no history path", retryAfterMs: null };
  const clock = await readClock(sql);
  const clockReadAt = performance.now();
  const request = houseRequest(house, ask, { allowPrivateHouses: process.ALLOW_PRIVATE_HOUSES });
  const requestedMs = performance.now() - clockReadAt;
  const answer = await http.fetch(request, signal);
  signal.throwIfAborted();
  const receivedMs = performance.now() - clockReadAt;
  if (answer.kind === "answer") {
    return { ok: true, arrived: { clock, requestedMs, receivedMs, path: ask.path, answer } };
  }
  if (answer.kind === "unchanged") {
    return {
      ok: false,
      reason: "the house answered its history with 304 though nothing was known",
      retryAfterMs: null,
    };
  }
  const status = answer.status === null ? answer.reason : `status ${answer.status}`;
  return { ok: false, reason: `the house's history could not be asked (${status})`, retryAfterMs: answer.retryAfterMs };
}

/** Waits longer after each failed attempt, and gives up after the last. */
async function failAttempt(
  context: JobContext,
  gap: Gap,
  reason: string,
  cursor: string | null = null,
): Promise<Counts> {
  const attempts = gap.attempts + 1;
  if (attempts >= MOST_ATTEMPTS) return giveUp(context, gap, reason);
  await putGapBack(context.sql, gap.id, { waitMs: waitAfterAttempts(attempts), attempts, cursor });
  return { failed: 1 };
}

async function giveUp({ sql }: JobContext, gap: Gap, reason: string): Promise<Counts> {
  await endGap(sql, gap, { state: "given_up", reason });
  return { given_up: 1 };
}
