import { startDeadline } from "../abort.ts";
import type { Queryable } from "../db/client.ts";
import type { House } from "../houses/house.ts";
import type { Lease } from "../houses/polling/lease-store.ts";
import { loadStates, type Passes } from "./passes.ts";
import { isRepeated, payloadOf, polledResponse, type Received, type ReceivedBody } from "./polled-response.ts";
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

/**
 * Reads responses of a poll, at most one of a table. A response that the state cannot place yet, or that takes too long,
 * stays unread; one of a damaged table is stored unread.
 */
export async function readWave(
  passes: Passes,
  { house, lease }: { house: House; lease: Lease },
  wave: readonly Received[],
  { lookUpAll, signal }: { lookUpAll: boolean; signal: AbortSignal },
): Promise<ReadOne[]> {
  const reader = { sql: passes.pipeline, prover: passes.prover };
  const mayRead = !lease.isAfterExpiry && !lease.paused.includes(READING);
  const all: ReadOne[] = [];
  const served = new Map<ReceivedBody, number[]>();
  for (const received of wave) {
    const { asked, receivedAt, body } = received;
    const before = passes.states.get(asked.tableId) ?? (await loadOne(passes, asked.tableId));
    if (before === undefined) {
      // damaged, or the houses file was applied meanwhile, without the table
      if (passes.damaged.has(asked.tableId)) await keepPayload(passes, received);
      continue;
    }
    const isEqual = isRepeated(received, before.head);
    const others = body === null ? undefined : served.get(body);
    const part = body === null || isEqual || !mayRead ? null : sharedPart(house, before.table, body);
    const isAsBefore = others !== undefined && isPartRepeated(before, part);
    if (isAsBefore) others.push(asked.tableId);
    // the first of the tables that share a response stores it, unless it is stored, whatever it lists for the others
    const own: number[] = [];
    if (body !== null && others === undefined) served.set(body, own);
    const isRead = body !== null && mayRead && !before.hasUnread && !isEqual && !isAsBefore;
    const given = body !== null && { body: body.bytes, now: receivedAt, path: asked.path, kind: "poll" as const };
    const read = isRead && given ? await readInTime(reader, house, before, given, { signal, all: lookUpAll }) : null;
    const response = await polledResponse(received, read, { isRepeat: isEqual || isAsBefore, part, served: own });
    all.push({ received, before, response, hasOther: lease.hasOther });
  }
  return all;
}

/**
 * Whether a table's part of a response equals the one it read last; a table whose newest payload must be read again has
 * none.
 */
function isPartRepeated({ head, hasUnread }: PassState, part: string | null): boolean {
  return part !== null && !hasUnread && part === head.partSha256;
}

async function loadOne(passes: Passes, tableId: number): Promise<PassState | undefined> {
  return passes.damaged.has(tableId) ? undefined : (await loadStates(passes, [tableId])).get(tableId);
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
