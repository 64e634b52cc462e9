import type { Sql } from "../db/client.ts";
import { adapterOf } from "../houses/adapters/index.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import type { House } from "../houses/house.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { storeHistoryPage, type ArrivedPage, type PageOutcome } from "./backfill.ts";
import { hasRange, nextByNumber, nextByPage, nextByPlace, type Next } from "./gap-next.ts";
import { findHighestMissing, findHouseWait, type Gap } from "./gap-attempt-store.ts";

/** Pages per run. */
const MOST_PAGES = 20;
/** Longer pauses between two pages end the run; the next one continues. */
const LONGEST_PAUSE_MS = 2_000;
const PAUSED_WAIT_MS = 60_000;

/** The position in a house's history: below a round, or at a page number. */
export interface HistoryPlace {
  beforeId: string;
  page: number;
}

/** The result of a request for a page of history; `absent` if the round of a page does not exist. */
export type AskedPage =
  | { kind: "page"; page: ArrivedPage }
  | { kind: "absent" }
  | { kind: "failed"; reason: string; retryAfterMs: number | null };

/** The requests to a house, implemented by the job, which has a clock and a network. */
export interface HistoryClient {
  ask(at: HistoryPlace): Promise<AskedPage>;
  /** Takes one request from the house's budget; returns the milliseconds to wait if none is left. */
  spend(): Promise<number>;
  /** Sends no request to the house for `pauseMs`. */
  pause(): Promise<void>;
  pauseMs: number;
  /** Whether the run's time for requests is over. */
  isOver(): boolean;
}

/** The result of a run through a house's history; `at` is where to continue, null for the gap's end. */
export type HistoryEnd =
  | { kind: "filled" }
  /** The house is paused, suspended or out of budget: not a failure. */
  | { kind: "wait"; waitMs: number; at: HistoryPlace }
  | { kind: "failed"; reason: string; retryAfterMs: number | null; at: HistoryPlace | null }
  /** The run has reached its limit of requests; `inCircles` if it found nothing. */
  | { kind: "later"; at: HistoryPlace; inCircles: boolean };

/**
 * Requests a house's history page by page, backwards from where the gap was left, until the gap is filled, the house
 * has no more, or the run has reached its limit. Each page and its rounds are stored before the next request.
 */
export async function readHistory(
  sql: Sql,
  { house, settings, gap, prover }: { house: House; settings: TableSettings; gap: Gap; prover: Prover },
  client: HistoryClient,
  signal: AbortSignal,
): Promise<{ pages: number; rounds: number; end: HistoryEnd }> {
  const adapter = adapterOf(settings);
  const counts = { pages: 0, rounds: 0 };
  const placeOf = (beforeId: string) => {
    return { beforeId, page: gap.cursorPage + (adapter.paging === "number" ? counts.pages : 0) };
  };
  const failed = (reason: string, at: HistoryPlace | null = null, retryAfterMs: number | null = null) => {
    return { ...counts, end: { kind: "failed", reason, at, retryAfterMs } as const };
  };
  let before = await nextBefore(sql, gap, gap.cursorRoundId ?? gap.beforeRoundId);
  while (before !== null) {
    const at = placeOf(before);
    const houseMs = (await findHouseWait(sql, gap)) ?? PAUSED_WAIT_MS;
    const waitMs = houseMs > 0 ? houseMs : await client.spend();
    if (waitMs > 0) return { ...counts, end: { kind: "wait", waitMs, at } };
    const asked = await client.ask(at);
    if (asked.kind === "failed") return failed(asked.reason, at, asked.retryAfterMs);
    const outcome =
      asked.kind === "absent" ? null : await storeHistoryPage(sql, house, gap, prover, asked.page, signal);
    counts.pages += 1;
    counts.rounds += outcome?.rounds ?? 0;
    const hasNoRound = outcome === null || (adapter.rounds === "page" && outcome.oldestRoundId === null);
    // a missing or unreadable page of a round proves nothing about earlier rounds
    const next: Next = hasNoRound
      ? { kind: "more", before: String(BigInt(before) - 1n) }
      : nextOf(gap, outcome, at, adapter.paging);
    if (next.kind === "filled") return { ...counts, end: next };
    if (next.kind === "ended") return failed(next.reason);
    before = await nextBefore(sql, gap, next.before);
    if (before === null) break;
    if (counts.pages >= MOST_PAGES || client.pauseMs > LONGEST_PAUSE_MS || client.isOver()) {
      // numbered pages, or pages of one round each, have their own end
      const inCircles = counts.rounds === 0 && adapter.paging === "id" && adapter.rounds === "list";
      return { ...counts, end: { kind: "later", at: placeOf(before), inCircles } };
    }
    await client.pause();
  }
  if ((await findMissing(sql, gap)) === null) return { ...counts, end: { kind: "filled" } };
  return failed("the house's history does not list all of them, or some cannot be read");
}

function nextOf(gap: Gap, outcome: PageOutcome, at: HistoryPlace, paging: "id" | "number"): Next {
  if (outcome.refusedReason !== null) return { kind: "ended", reason: "a page of the house's history cannot be read" };
  if (paging === "number") return nextByPage(gap, outcome, at);
  return hasRange(gap) ? nextByNumber(outcome, at.beforeId) : nextByPlace(outcome, at.beforeId);
}

/**
 * The id from which to continue: if ids are consecutive, right above the next missing number; null if none is missing.
 */
async function nextBefore(sql: Sql, gap: Gap, before: string): Promise<string | null> {
  if (!hasRange(gap)) return before;
  const below = BigInt(before) - 1n;
  // a gap that a reset of the newest number trimmed ends below the round after it
  const range = { from: gap.fromNumber, to: below < gap.toNumber ? below : gap.toNumber };
  const highest = range.to < range.from ? null : await findHighestMissing(sql, gap.tableId, range);
  return highest === null ? null : String(highest + 1n);
}

/** The highest number of a gap that is missing; null if none is, or if the gap has no numbers. */
async function findMissing(sql: Sql, gap: Gap): Promise<bigint | null> {
  if (!hasRange(gap)) return null;
  return findHighestMissing(sql, gap.tableId, { from: gap.fromNumber, to: gap.toNumber });
}
