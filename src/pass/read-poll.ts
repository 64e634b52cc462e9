import { startDeadline } from "../abort.ts";
import type { Queryable } from "../db/client.ts";
import { isLockError } from "../db/errors.ts";
import type { House } from "../houses/house.ts";
import { type Lease, type LeasedTable, LeaseLostError } from "../houses/polling/lease-store.ts";
import type { LockTimeout } from "../tables/heads-store.ts";
import { ThreadBusyError } from "../thread.ts";
import { forgetParsed } from "../houses/reading/read-text.ts";
import { Slices } from "../slices.ts";
import { loadStates, type Passes } from "./passes.ts";
import { isRepeated, payloadOf, polledResponse, type Received } from "./polled-response.ts";
import { keepUnreadPayload } from "./stores/payload-store.ts";
import { refusalOf } from "./stores/write-store.ts";
import { readResponse } from "./read.ts";
import { isReadingDue } from "./compute/learn.ts";
import { sharedPart } from "./compute/shared-part.ts";
import type { PolledResponse, ReadResponse } from "./compute/response.ts";
import type { PassState } from "./compute/state.ts";

/** A response that is not read within this time is stored unread, so that its poll is saved before the lease expires. */
const READ_WITHIN_MS = 1_000;

/** The queue whose pausing leaves responses unread. */
const READING = "normalize-rounds";

/** A response that is read, or not. */
export interface ReadOne {
  received: Received;
  before: PassState;
  response: PolledResponse;
}

/** A response whose part for a table has nothing new, so that only the time of the head's newest response changes. */
export interface NotedOne {
  received: Received;
  response: PolledResponse;
  version: bigint;
  respondedAt: string | null;
  /** Null if it is not loaded, or older than the head. */
  before: PassState | null;
  /** Whether the time is stored, not only kept in the state. */
  isStored: boolean;
}

/** The responses of a poll, at most one of a table. */
export interface ReadWave {
  read: readonly ReadOne[];
  noted: readonly NotedOne[];
  /** Those of tables whose state is not loaded, because another session keeps them locked or writes them. */
  busy: readonly Received[];
  kept: readonly KeptOne[];
}

/** A response of a damaged table, which was stored unread. */
export interface KeptOne {
  received: Received;
  /** Those that were stored; 0 if it is a repeat. */
  bytes: number;
}

/**
 * Reads responses of a poll, at most one of a table. A response that the state cannot place yet, or that takes too long,
 * stays unread; one of a damaged table is stored unread.
 */
export async function readWave(
  passes: Passes,
  { house, lease, isLast }: { house: House; lease: Lease; isLast: () => boolean },
  wave: readonly Received[],
  {
    lookUpAll,
    issuedAt,
    lockTimeout,
    signal,
  }: { lookUpAll: boolean; issuedAt: string; lockTimeout: LockTimeout; signal: AbortSignal },
): Promise<ReadWave> {
  const reader = { sql: passes.pipeline, prover: passes.prover };
  const mayRead = !lease.isAfterExpiry && !lease.paused.includes(READING);
  let compared = compareAll(passes, house, lease, wave, mayRead);
  let served = holdersOf(passes, compared);
  while (await loadMissing(passes, compared, served, lockTimeout)) {
    compared = compareAll(passes, house, lease, wave, mayRead);
    served = holdersOf(passes, compared);
  }
  const read: ReadOne[] = [];
  const noted: NotedOne[] = [];
  const busy: Received[] = [];
  const kept: KeptOne[] = [];
  const slices = new Slices();
  for (const { received, leased, part, isAsBefore: isSamePart } of compared) {
    await slices.next();
    const { asked, receivedAt, body } = received;
    const own = served.get(received);
    const isAsBefore = isSamePart && own === undefined;
    const cached = passes.states.get(asked.tableId);
    if (isAsBefore && !(isCurrent(cached, leased) && isAnythingDue(cached, issuedAt))) {
      const response = await polledResponse(received, null, { isRepeat: true, part, served: [] });
      noted.push({ received, response, ...notedOf(leased, cached, received, isLast()) });
      continue;
    }
    if (cached === undefined) {
      const bytes = passes.damaged.has(asked.tableId) ? await keepPayload(passes, lease, received, lockTimeout) : null;
      if (bytes === null) busy.push(received);
      else kept.push({ received, bytes });
      continue;
    }
    const before = cached;
    const isRepeat = isAsBefore || isRepeated(received, before.head);
    const isRead = body !== null && mayRead && !before.hasUnread && !isRepeat;
    const given = body !== null && { body: body.bytes, now: receivedAt, path: asked.path, kind: "poll" as const };
    const content = isRead && given ? await readInTime(reader, house, before, given, { signal, all: lookUpAll }) : null;
    const response = await polledResponse(received, content, { isRepeat, part, served: own ?? [] });
    read.push({ received, before, response });
  }
  // a table alone shares its response with none, or is saved after others failed, which would parse it once per table
  if (wave.length > 1) for (const { body } of wave) if (body !== null) forgetParsed(body.bytes);
  return { read, noted, busy, kept };
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
    const current = isCurrent(state, leased) ? state : null;
    const isEqual = isRepeated(received, current?.head ?? { ...leased, payloadPath: null });
    const part = body === null || isEqual || !mayRead ? null : sharedPart(house, leased, body);
    const last = current === null ? lastPart(leased) : lastPartOf(current);
    const isAsBefore = !damaged.has(leased.tableId) && last !== null && (isEqual || part === last);
    return [{ received, leased, part, isEqual, isAsBefore }];
  });
}

/**
 * Of each body that is not stored, the response that is stored with it: of the first table for which it has something
 * new, or of the first. With the tables that it served without anything new. A damaged table keeps its own copy.
 */
function holdersOf({ damaged }: Passes, compared: readonly Compared[]): Map<Received, number[]> {
  const holders = new Map<Received, number[]>();
  const sound = compared.filter(({ leased }) => !damaged.has(leased.tableId));
  for (const [body, tables] of Map.groupBy(sound, ({ received }) => received.body)) {
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

/**
 * Loads the states that are needed, also in place of one that is older than the head. Returns whether it loaded any: then
 * more may be known of what is new.
 */
async function loadMissing(
  passes: Passes,
  compared: readonly Compared[],
  holders: ReadonlyMap<Received, unknown>,
  lockTimeout: LockTimeout,
): Promise<boolean> {
  const missing = compared.flatMap(({ received, leased: { tableId, version }, isAsBefore }) => {
    const isSkipped = (isAsBefore && !holders.has(received)) || passes.damaged.has(tableId);
    const loaded = passes.states.get(tableId)?.version ?? -1n;
    return isSkipped || loaded >= version ? [] : [tableId];
  });
  if (missing.length === 0) return false;
  const loaded = await loadStates(passes, missing, lockTimeout);
  return missing.some((tableId) => loaded.has(tableId) || passes.damaged.has(tableId));
}

/** Whether no other process moved the head since. */
function isCurrent(state: PassState | undefined, { version }: LeasedTable): state is PassState {
  return state !== undefined && state.version >= version;
}

/** The part that a table read last, by its lease alone; null if it must read the next response whatever it lists. */
function lastPart({ partSha256, respondedAt, refused, badResponses }: LeasedTable): string | null {
  return respondedAt !== null && !refused && badResponses === 0 ? partSha256 : null;
}

/** The same of its state. */
function lastPartOf({ head, format, hasUnread }: PassState): string | null {
  return !hasUnread && format.since === null ? head.partSha256 : null;
}

/** Whether a pass has something to do without a new round: to settle what ended while that was paused, or to publish. */
function isAnythingDue(state: PassState, issuedAt: string): boolean {
  return state.head.hasEnded || isReadingDue(state, state.head, issuedAt);
}

/** The time of a repeated part is stored this often, and by the last poll of a run. */
const NOTE_EVERY_MS = 10_000;

/** What is stored and kept of a response that lists nothing new for a table. */
function notedOf(
  { version, respondedAt }: LeasedTable,
  state: PassState | undefined,
  { requestedAt }: Received,
  isLast: boolean,
): Pick<NotedOne, "version" | "respondedAt" | "before" | "isStored"> {
  if (state === undefined || state.version < version)
    return { version, respondedAt: respondedAt === null ? null : requestedAt, before: null, isStored: true };
  const { head, notedAt } = state;
  // no evidence, nor becomes it any by being repeated
  if (head.respondedAt === null || notedAt === null)
    return { version: state.version, respondedAt: null, before: state, isStored: false };
  const isStored = isLast || Date.parse(requestedAt) - Date.parse(notedAt) >= NOTE_EVERY_MS;
  return { version: state.version, respondedAt: requestedAt, before: state, isStored };
}

/**
 * Stores a response of a damaged table unread, to be read after the repair. Returns its bytes; 0 if it is a repeat, null if
 * the table is locked, as by its repair.
 */
async function keepPayload(
  { pipeline, damaged }: Passes,
  lease: Lease,
  received: Received,
  lockTimeout: LockTimeout,
): Promise<number | null> {
  const payload = await payloadOf(received);
  const { tableId } = received.asked;
  const { reason = "" } = damaged.get(tableId) ?? {};
  if (payload === null) return 0;
  const { requestedAt, receivedAt } = received;
  const kept = { ...payload, requestedAt, receivedAt, error: reason };
  try {
    return (await keepUnreadPayload(pipeline, lease, { tableId, ...kept }, lockTimeout)) ? payload.bytes : 0;
  } catch (error) {
    if (isLockError(error)) return null;
    if (refusalOf(error) === "lease_lost") throw new LeaseLostError(undefined, { cause: error });
    throw error;
  }
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
    if (deadline.isLate() || error instanceof ThreadBusyError) return null;
    throw error;
  } finally {
    deadline.end();
  }
}
