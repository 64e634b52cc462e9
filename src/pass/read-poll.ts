import { startDeadline } from "../abort.ts";
import type { Queryable } from "../db/client.ts";
import type { House } from "../houses/house.ts";
import type { Lease, LeasedTable } from "../houses/polling/lease-store.ts";
import { loadStates, type Passes } from "./passes.ts";
import { isRepeated, payloadOf, polledResponse, type Received } from "./polled-response.ts";
import { keepUnreadPayload } from "./stores/payload-store.ts";
import { readResponse } from "./read.ts";
import { sharedPart } from "./compute/shared-part.ts";
import type { PassState, PolledResponse, ReadResponse } from "./compute/state.ts";

/** A response that is not read within this time is stored unread, so that its poll is saved before the lease expires. */
const READ_WITHIN_MS = 1_000;

/** The queue whose pausing leaves responses unread. */
const READING = "normalize-rounds";

/** A response that is read, or not. */
export interface ReadOne {
  received: Received;
  before: PassState;
  response: PolledResponse;
  /** Another process polls the table too: it must find each response, also one with nothing new. */
  hasOther: boolean;
}

/** A response with nothing new for a table whose state is not loaded: of its head, only the time of it changes. */
export interface NotedOne {
  received: Received;
  response: PolledResponse;
  version: bigint;
}

/** The responses of a poll, at most one of a table. */
export interface ReadWave {
  read: readonly ReadOne[];
  noted: readonly NotedOne[];
}

/**
 * Reads responses of a poll, at most one of a table. A response that the state cannot place yet, or that takes too long,
 * stays unread; one of a damaged table is stored unread.
 */
export async function readWave(
  passes: Passes,
  { house, lease }: { house: House; lease: Lease },
  wave: readonly Received[],
  { lookUpAll, signal }: { lookUpAll: boolean; signal: AbortSignal },
): Promise<ReadWave> {
  const reader = { sql: passes.pipeline, prover: passes.prover };
  const mayRead = !lease.isAfterExpiry && !lease.paused.includes(READING);
  const compared = compareAll(passes, house, lease, wave, mayRead);
  const served = holdersOf(compared);
  await loadMissing(passes, compared, served);
  const read: ReadOne[] = [];
  const noted: NotedOne[] = [];
  for (const { received, leased, part, isAsBefore: isSamePart } of compared) {
    const { asked, receivedAt, body } = received;
    const own = served.get(received);
    const isAsBefore = isSamePart && own === undefined;
    const before = passes.states.get(asked.tableId);
    if (isAsBefore && (before === undefined || before.version < leased.version)) {
      const response = await polledResponse(received, null, { isRepeat: true, part, served: [] });
      noted.push({ received, response, version: leased.version });
      continue;
    }
    if (before === undefined) {
      // damaged, or the houses file was applied meanwhile, without the table
      if (passes.damaged.has(asked.tableId)) await keepPayload(passes, received);
      continue;
    }
    const isRepeat = isAsBefore || isRepeated(received, before.head);
    const isRead = body !== null && mayRead && !before.hasUnread && !isRepeat;
    const given = body !== null && { body: body.bytes, now: receivedAt, path: asked.path, kind: "poll" as const };
    const content = isRead && given ? await readInTime(reader, house, before, given, { signal, all: lookUpAll }) : null;
    const response = await polledResponse(received, content, { isRepeat, part, served: own ?? [] });
    read.push({ received, before, response, hasOther: lease.hasOther });
  }
  return { read, noted };
}

/** A response and what the table read last. */
interface Compared {
  received: Received;
  leased: LeasedTable;
  /** SHA-256 of the table's part, if other tables share the response and it may be read. */
  part: string | null;
  /** The table has the body of the response as its newest payload, or received a 304. */
  isEqual: boolean;
  /** The response has nothing new for the table. */
  isAsBefore: boolean;
}

function compareAll(
  { states, damaged }: Passes,
  house: House,
  { tables }: Lease,
  wave: readonly Received[],
  mayRead: boolean,
): Compared[] {
  const leasedById = new Map(tables.map((table) => [table.tableId, table]));
  return wave.flatMap((received) => {
    const { asked, body } = received;
    const leased = leasedById.get(asked.tableId);
    if (leased === undefined) return [];
    const state = states.get(asked.tableId);
    const isCurrent = state !== undefined && state.version >= leased.version;
    const isEqual = isRepeated(received, isCurrent ? state.head : { ...leased, payloadPath: null });
    const part = body === null || isEqual || !mayRead ? null : sharedPart(house, leased, body);
    const isAsBefore = isCurrent
      ? isPartRepeated(state, part)
      : !damaged.has(leased.tableId) && isGood(leased) && (isEqual || part === leased.partSha256);
    return [{ received, leased, part, isEqual, isAsBefore }];
  });
}

/**
 * Of each body that is not stored, the response that is stored with it: of the first table for which it has something
 * new, or of the first. With the tables that it served without anything new.
 */
function holdersOf(compared: readonly Compared[]): Map<Received, number[]> {
  const holders = new Map<Received, number[]>();
  for (const [body, tables] of Map.groupBy(compared, ({ received }) => received.body)) {
    if (body === null || tables.some(({ isEqual }) => isEqual)) continue;
    const holder = tables.find(({ isAsBefore }) => !isAsBefore) ?? tables[0];
    const served = tables.filter((one) => one.isAsBefore && one !== holder);
    if (holder !== undefined)
      holders.set(
        holder.received,
        served.map(({ leased }) => leased.tableId),
      );
  }
  return holders;
}

/** Loads the states that are needed: also an older one, of which another process moved the head. */
async function loadMissing(
  passes: Passes,
  compared: readonly Compared[],
  holders: ReadonlyMap<Received, unknown>,
): Promise<void> {
  const missing = compared.flatMap(({ received, leased: { tableId, version }, isAsBefore }) => {
    const isSkipped = (isAsBefore && !holders.has(received)) || passes.damaged.has(tableId);
    const loaded = passes.states.get(tableId)?.version ?? -1n;
    return isSkipped || loaded >= version ? [] : [tableId];
  });
  if (missing.length > 0) await loadStates(passes, missing);
}

/**
 * Whether a table's part of a response equals the one it read last; a table whose newest payload must be read again has
 * none.
 */
function isPartRepeated({ head, hasUnread }: PassState, part: string | null): boolean {
  return part !== null && !hasUnread && part === head.partSha256;
}

/** Whether a table shares its responses and could read the last one, by its lease alone. */
function isGood({ partSha256, respondedAt, refused, badResponses }: LeasedTable): boolean {
  return partSha256 !== null && respondedAt !== null && !refused && badResponses === 0;
}

/** Stores the responses of a damaged table unread: they are read after the repair. */
async function keepPayload({ pipeline, damaged }: Passes, received: Received): Promise<void> {
  const payload = await payloadOf(received);
  const { tableId } = received.asked;
  const { reason = "" } = damaged.get(tableId) ?? {};
  if (payload === null) return;
  const { requestedAt, receivedAt } = received;
  await keepUnreadPayload(pipeline, tableId, { ...payload, requestedAt, receivedAt, error: reason });
}

/** Null if it takes too long, as the first walk to the end of a long chain does. */
async function readInTime(
  reader: { sql: Queryable; prover: Passes["prover"] },
  house: House,
  state: PassState,
  body: Parameters<typeof readResponse>[3],
  { signal, all }: { signal: AbortSignal; all: boolean },
): Promise<ReadResponse | null> {
  const deadline = startDeadline(signal, READ_WITHIN_MS);
  try {
    return await readResponse(reader, house, state, body, { signal: deadline.signal, all });
  } catch (error) {
    signal.throwIfAborted();
    if (deadline.isLate()) return null;
    throw error;
  } finally {
    deadline.end();
  }
}
