import type { Sql } from "../db/client.ts";
import { adapterOf } from "../houses/adapters/index.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import type { House } from "../houses/house.ts";
import type { TableSettings } from "../houses/settings/settings.ts";
import { storeHistoryPage, type ArrivedPage, type PageOutcome } from "./backfill.ts";
import { hasRange, nextByNumber, nextByPage, nextByPlace, type Next } from "./gap-next.ts";
import { findHighestMissing, findHouseWait, type Gap } from "./gap-attempt-store.ts";

/** Pages asked for in one run. */
const MOST_PAGES = 20;
/** Longer pauses between two pages are waited out outside of the run. */
const LONGEST_PAUSE_MS = 2_000;
const PAUSED_WAIT_MS = 60_000;

/** If a house's history is asked on: below a round, or at a page where the house counts them. */
export interface HistoryPlace {
  beforeId: string;
  page: number;
}

/** What a request for a page of history brought; `absent` where the round of a page does not exist. */
export type AskedPage =
  | { kind: "page"; page: ArrivedPage }
  | { kind: "absent" }
  | { kind: "failed"; reason: string; retryAfterMs: number | null };

/** How a house is asked, by whoever has a clock and a network. */
export interface HistoryAsker {
  ask(at: HistoryPlace): Promise<AskedPage>;
  /** Takes one request from the house's budget; milliseconds to wait where none is left. */
  spend(): Promise<number>;
  /** Leaves the house alone for `pauseMs`. */
  pause(): Promise<void>;
  pauseMs: number;
}

/** How a run through a house's history ended; `at` is where to continue, null for the gap's end. */
export type HistoryEnd =
  | { kind: "filled" }
  /** The house is paused, to be left alone or out of budget: no one's failure. */
  | { kind: "wait"; waitMs: number; at: HistoryPlace }
  | { kind: "failed"; reason: string; retryAfterMs: number | null; at: HistoryPlace | null }
  /** Enough was asked for one run; `inCircles` where nothing was found by it. */
  | { kind: "later"; at: HistoryPlace; inCircles: boolean };

/**
 * Asks a house for its history, page by page back from where a gap was left, until the gap is filled, the house has no
 * more, or one run has asked enough. Each page is kept and its rounds stored before the next is asked for.
 */
export async function readHistory(
  sql: Sql,
  { house, settings, gap, prover }: { house: House; settings: TableSettings; gap: Gap; prover: Prover },
  asker: HistoryAsker,
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
    const waitMs = houseMs > 0 ? houseMs : await asker.spend();
    if (waitMs > 0) return { ...counts, end: { kind: "wait", waitMs, at } };
    const asked = await asker.ask(at);
    if (asked.kind === "failed") return failed(asked.reason, at, asked.retryAfterMs);
    const outcome =
      asked.kind === "absent" ? null : await storeHistoryPage(sql, house, gap, prover, asked.page, signal);
    counts.pages += 1;
    counts.rounds += outcome?.rounds ?? 0;
    const hasNoRound = outcome === null || (adapter.rounds === "page" && outcome.oldestRoundId === null);
    // a round without a page, or whose page cannot be read, tells nothing of those before it
    const next: Next = hasNoRound
      ? { kind: "more", before: String(BigInt(before) - 1n) }
      : nextOf(gap, outcome, at, adapter.paging);
    if (next.kind === "filled") return { ...counts, end: next };
    if (next.kind === "ended") return failed(next.reason);
    before = await nextBefore(sql, gap, next.before);
    if (before === null) break;
    if (counts.pages >= MOST_PAGES || asker.pauseMs > LONGEST_PAUSE_MS) {
      // pages that are counted, or of one round each, come to an end by themselves
      const inCircles = counts.rounds === 0 && adapter.paging === "id" && adapter.rounds === "list";
      return { ...counts, end: { kind: "later", at: placeOf(before), inCircles } };
    }
    await asker.pause();
  }
  if ((await findMissing(sql, gap)) === null) return { ...counts, end: { kind: "filled" } };
  return failed("the house's history does not list all of them, or not readably");
}

function nextOf(gap: Gap, outcome: PageOutcome, at: HistoryPlace, paging: "id" | "number"): Next {
  if (outcome.refusedReason !== null) return { kind: "ended", reason: "a page of the house's history cannot be read" };
  if (paging === "number") return nextByPage(gap, outcome, at);
  return hasRange(gap) ? nextByNumber(outcome, at.beforeId) : nextByPlace(outcome, at.beforeId);
}

/** The id to ask on from: where ids count up, right above the next missing number; null if none is missing. */
async function nextBefore(sql: Sql, gap: Gap, before: string): Promise<string | null> {
  if (!hasRange(gap)) return before;
  const range = { from: gap.fromNumber, to: BigInt(before) - 1n };
  const highest = range.to < range.from ? null : await findHighestMissing(sql, gap.tableId, range);
  return highest === null ? null : String(highest + 1n);
}

async function findMissing(sql: Sql, gap: Gap): Promise<bigint | null> {
  if (!hasRange(gap)) return null;
  return findHighestMissing(sql, gap.tableId, { from: gap.fromNumber, to: gap.toNumber });
}
