import { afterPoll } from "../houses/polling/circuit.ts";
import { waitForTomorrow } from "../houses/polling/day-budget.ts";
import type { House } from "../houses/house.ts";
import type { Lease } from "../houses/polling/lease-store.ts";
import type { EndedPoll, FeedChange } from "../houses/polling/poll-store.ts";
import { summarizePoll, type RequestedTable } from "../houses/polling/poll-summary.ts";
import type { Received } from "./polled-response.ts";
import type { PassResult } from "./compute/state.ts";
import type { KeptOne, ReadOne } from "./read-poll.ts";

/** A poll of a house shard with all responses. */
export interface Poll {
  house: House;
  lease: Lease;
  asked: readonly RequestedTable[];
  /** In [0, 1): spreads the probes of houses whose circuit is open. */
  jitter: number;
  /** Whether another process may send the next poll, and must find all that this one knows. */
  isLast: () => boolean;
}

/** A response that has a pass, with its result, or that had nothing new. */
type OfResponse = Pick<ReadOne, "received" | "response">;

/** What became of the responses of a poll: `busy` ones were dropped, `kept` ones are of damaged tables. */
interface Outcomes {
  taken: readonly (OfResponse & { result: PassResult })[];
  noted: readonly OfResponse[];
  busy: readonly Received[];
  kept: readonly KeptOne[];
}

/** The end of a poll from what became of its responses: its outcome, when the house may be polled again, and its feeds. */
export function endOf({ lease, asked, jitter }: Poll, { taken, noted, busy, kept }: Outcomes): EndedPoll {
  const refused = new Set(lease.tables.filter((table) => table.refused).map(({ tableId }) => tableId));
  const unreadable = new Set(
    taken.flatMap(({ received, response, result }) => {
      const isChanged = result.state.format.since !== null;
      const isRefusedAgain = response.isRepeat && refused.has(received.asked.tableId);
      return received.asked.response.kind !== "failed" && (isChanged || isRefusedAgain) ? [received.asked] : [];
    }),
  );
  const summary = summarizePoll(asked.map((one) => (unreadable.has(one) ? { ...one, isUnreadable: true } : one)));
  const feeds = feedsOf(lease, { all: [...taken, ...noted], busy, kept });
  const storedBytes = kept.reduce((sum, { bytes }) => sum + bytes, 0) + storedBytesOf([...taken, ...noted]);
  const end = { lease, asked, feeds, summary, storedBytes };
  if (asked.length === 0) return { ...end, next: null };
  const next = afterPoll(lease.circuit, summary.outcome, jitter);
  const spent = waitForTomorrow(lease, storedBytes);
  if (spent === null) return { ...end, next };
  const { waitMs, error } = spent;
  return { ...end, summary: { ...summary, error }, next: { ...next, waitMs: Math.max(next.waitMs, waitMs) } };
}

/** The bytes of the bodies that are stored with a pass; tables that share a response store its body once. */
function storedBytesOf(all: readonly OfResponse[]): number {
  const bytes = new Map(
    all.flatMap(({ received, response: { payload } }) =>
      payload === null ? [] : [[received.asked.response, payload.bytes] as const],
    ),
  );
  return [...bytes.values()].reduce((sum, of) => sum + of, 0);
}

/**
 * Changed rows of feeds: of tables with a full response, and of all requested tables if others had none. Of tables that
 * share a response, the first has the validators, and the others store theirs only as often as a full response is due. None
 * stores those of a response that was dropped for one of its tables: a 304 would say that this table has read it.
 */
function feedsOf(
  { tables }: Lease,
  { all, busy, kept }: Pick<Outcomes, "busy" | "kept"> & { all: readonly OfResponse[] },
): FeedChange[] {
  const dropped = new Set(busy.map(({ asked }) => asked.response));
  const newest = new Map(all.map((one) => [one.received.asked.tableId, one]));
  const damaged = new Map(kept.map(({ received }) => [received.asked.tableId, received]));
  const isPart = newest.size + damaged.size < tables.length;
  const due = new Set(tables.filter(({ fullIsDue }) => fullIsDue).map(({ tableId }) => tableId));
  // a damaged table that seemed not to be requested would go first in each poll that cannot request all
  const asked = [...busy, ...(isPart ? damaged.values() : [])].filter((one) => !newest.has(one.asked.tableId));
  const onlyAsked = new Map(asked.map(({ asked: { tableId }, requestedAt }) => [tableId, requestedAt]));
  const changes = [...newest].flatMap(([tableId, { received, response }]): FeedChange[] => {
    const { response: polled } = received.asked;
    if (polled.kind !== "response" && !isPart) return [];
    const isLater = received.asked.isShared === true && response.isRepeat && response.part !== null;
    if (isLater && !isPart && !due.has(tableId)) return [];
    return [
      {
        tableId,
        askedAt: received.requestedAt,
        full:
          polled.kind === "response" && !dropped.has(polled)
            ? { etag: polled.etag?.slice(0, 1000) ?? null, lastModified: polled.lastModified?.slice(0, 100) ?? null }
            : null,
        isRefused: response.payload === null ? null : response.read?.ok === false,
      },
    ];
  });
  for (const [tableId, askedAt] of onlyAsked) changes.push({ tableId, askedAt, full: null, isRefused: null });
  return changes;
}
