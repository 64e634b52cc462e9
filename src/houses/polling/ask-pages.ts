import type { Adapter, Ask, FeedOptions } from "../contract.ts";
import type { LeasedTable } from "./lease-store.ts";
import type { AskedTable } from "./poll-summary.ts";

/** Rounds that are fetched in one poll, one page each, while catching up: a house is asked politely. */
const MOST_PAGES = 5;
/** How far ahead a page is looked for at first while those before it bring no round. */
const NEAR = 10;
/** No house plays faster: so many rounds may have been played since the newest one. */
const SHORTEST_ROUND_MS = 10_000;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;
/** Without a new round for so long, five rounds of the slowest of these houses, the next number may have been left out. */
const SILENCE_MS = 150_000;

/**
 * Asks for the rounds after the newest known one, each by its own page, until one was not played yet.
 *
 * Where the next page cannot be read, the ones after it are looked for as well, since one broken page must not end
 * everything: what lies between becomes a gap. The same is done where the next page does not come for long. `ask` gives
 * null where nothing more is to be asked in this poll.
 */
export async function askPages(
  adapter: Adapter,
  feed: FeedOptions,
  table: LeasedTable,
  ask: (one: Ask) => Promise<AskedTable | null>,
): Promise<AskedTable[]> {
  if (table.hasUnread) return []; // what comes next is told by what was brought and is not read yet
  const asked: AskedTable[] = [];
  const next = adapter.poll(feed, { newest: table.newest });
  const ahead = next.roundId === undefined || table.badAnswers === 0 ? 0 : distanceOf(table);
  let one: Ask = ahead === 0 ? next : adapter.poll(feed, { newest: BigInt(next.roundId ?? 0) - 1n + BigInt(ahead) });
  let isAhead = ahead > 0;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const answered = await ask(one);
    if (answered === null) break;
    const { kind } = answered.answer;
    asked.push({ ...answered, isAhead });
    if (kind === "absent" && one === next && pages === 0 && isSilent(table)) {
      one = adapter.poll(feed, { newest: BigInt(next.roundId ?? 0) + BigInt(stepOf(table)) });
      isAhead = true;
    } else if (kind === "absent" && isAhead && ahead > 0) {
      one = next;
      isAhead = false;
    } else if (kind === "answer" && one.roundId !== undefined && table.badAnswers === 0) {
      one = adapter.poll(feed, { newest: BigInt(one.roundId) });
    } else break;
  }
  return asked;
}

function isSilent({ silentMs }: LeasedTable): boolean {
  return silentMs !== null && silentMs > SILENCE_MS;
}

/** How far beyond a page that brings no round is looked: at each in turn, and farther the longer none came. */
function distanceOf(table: LeasedTable): number {
  return table.badAnswers < NEAR && !isSilent(table) ? table.badAnswers : 1 + stepOf(table);
}

/**
 * How many numbers are left out: of as many as may have been played in the silence another with each second, by steps of
 * the golden ratio, which come near to each of them soon however often the house is asked.
 */
function stepOf({ silentMs, badAnswers }: LeasedTable): number {
  if (silentMs === null) return badAnswers % NEAR;
  const span = Math.max(NEAR, Math.floor(silentMs / SHORTEST_ROUND_MS));
  return Math.floor(((Math.floor(silentMs / 1000) * GOLDEN_RATIO) % 1) * span);
}
