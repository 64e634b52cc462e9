import type { Adapter, FeedRequest, FeedOptions } from "../contract.ts";
import type { LeasedTable } from "./lease-store.ts";
import type { RequestedTable } from "./poll-summary.ts";

/** Rounds per poll while catching up, one page each: a limit out of courtesy to the house. */
const MOST_PAGES = 5;
/** How far ahead pages are first requested while those before bring no round. */
const NEAR = 10;
/** No house plays faster: the number of rounds that may have been played since the newest one. */
const SHORTEST_ROUND_MS = 10_000;
const GOLDEN_RATIO = (Math.sqrt(5) - 1) / 2;
/** After this time without a new round, five rounds of the slowest of these houses, the next number may have been skipped. */
const SILENCE_MS = 150_000;

/**
 * Requests the rounds after the newest known one, each by its own page, until one was not played yet.
 *
 * If the next page cannot be read, later ones are requested as well, so that one broken page does not stop the table: what
 * lies between becomes a gap. So it is if the next page stays missing for long. `send` returns null if this poll must send no
 * more requests.
 */
export async function requestPages(
  adapter: Adapter,
  feed: FeedOptions,
  table: LeasedTable,
  send: (one: FeedRequest) => Promise<RequestedTable | null>,
): Promise<RequestedTable[]> {
  if (table.hasUnread) return []; // the next round depends on a stored payload that is not read yet
  const requested: RequestedTable[] = [];
  const next = adapter.poll(feed, { newest: table.newest });
  const ahead = next.roundId === undefined || table.badResponses === 0 ? 0 : distanceOf(table);
  let one: FeedRequest =
    ahead === 0 ? next : adapter.poll(feed, { newest: BigInt(next.roundId ?? 0) - 1n + BigInt(ahead) });
  let isAhead = ahead > 0;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await send(one);
    if (page === null) break;
    const { kind } = page.response;
    requested.push({ ...page, isAhead });
    if (kind === "absent" && one === next && pages === 0 && isSilent(table)) {
      one = adapter.poll(feed, { newest: BigInt(next.roundId ?? 0) + BigInt(stepOf(table)) });
      isAhead = true;
    } else if (kind === "absent" && isAhead && ahead > 0) {
      one = next;
      isAhead = false;
    } else if (kind === "response" && one.roundId !== undefined && table.badResponses === 0) {
      one = adapter.poll(feed, { newest: BigInt(one.roundId) });
    } else break;
  }
  return requested;
}

function isSilent({ silentMs }: LeasedTable): boolean {
  return silentMs !== null && silentMs > SILENCE_MS;
}

/** How far beyond a missing page requests go: to each page in order, and farther the longer none arrives. */
function distanceOf(table: LeasedTable): number {
  return table.badResponses < NEAR && !isSilent(table) ? table.badResponses : 1 + stepOf(table);
}

/**
 * How many numbers to skip: of those that may have been played in the silence another one each second, in steps of the
 * golden ratio, which soon approach each of them at any poll interval.
 */
function stepOf({ silentMs, badResponses }: LeasedTable): number {
  if (silentMs === null) return badResponses % NEAR;
  const span = Math.max(NEAR, Math.floor(silentMs / SHORTEST_ROUND_MS));
  return Math.floor(((Math.floor(silentMs / 1000) * GOLDEN_RATIO) % 1) * span);
}
