import { startDeadline } from "../abort.ts";
import type { Queryable } from "../db/client.ts";
import { isConnectionError } from "../db/errors.ts";
import { reasonOf } from "../errors.ts";
import { afterPoll } from "../houses/polling/circuit.ts";
import { waitForTomorrow } from "../houses/polling/day-budget.ts";
import type { House } from "../houses/house.ts";
import type { Lease, LeasedTable } from "../houses/polling/lease-store.ts";
import type { EndedPoll, FeedChange } from "../houses/polling/poll-store.ts";
import { summarizePoll, type RequestedTable } from "../houses/polling/poll-summary.ts";
import { isOwnFault, ownFault } from "../rounds/read-response.ts";
import { pass } from "./compute/pass.ts";
import { loadStates, type Passes } from "./passes.ts";
import {
  isRepeated,
  payloadOf,
  polledResponse,
  receiveAll,
  type Received,
  type ReceivedBody,
} from "./polled-response.ts";
import { keepUnreadPayload } from "./stores/payload-store.ts";
import { readResponse } from "./read.ts";
import { sharedPart } from "./compute/shared-part.ts";
import type { PassResult, PassState, PassTime, PolledResponse, ReadResponse } from "./compute/state.ts";
import { fromDatabase, laterBy } from "./compute/times.ts";
import { refusalOf } from "./stores/write-store.ts";

/** A poll of a house shard with all responses. */
export interface Poll {
  house: House;
  lease: Lease;
  asked: readonly RequestedTable[];
  /** In [0, 1): spreads the probes of houses whose circuit is open. */
  jitter: number;
}

/** A poll that was saved. */
export interface SavedPoll {
  /** In the order of the responses. */
  results: readonly PassResult[];
  circuit: EndedPoll["lease"]["circuit"]["state"];
  /** Milliseconds until the house may be polled again, 0 = at its next poll. */
  waitMs: number;
}

/** Another worker took the lease before the poll was saved; nothing of it was stored. */
export class LeaseLostError extends Error {}

/** A response that is not read within this time is stored unread, so that its poll is saved before the lease expires. */
const READ_WITHIN_MS = 1_000;

/** Retries of a poll from newer states: another process may change a table at the same time. */
const MOST_TRIES = 4;

/**
 * Loads the states of a lease's tables that are older than the head; call it before the first request. No older
 * transaction can commit later: it locks the row of its lease, which cannot be taken meanwhile, and one that begins
 * later is refused for its epoch.
 */
export async function prepareStates(passes: Passes, { tables }: Lease): Promise<void> {
  const stale = tables.filter(({ tableId, version }) => {
    return (passes.states.get(tableId) ?? passes.damaged.get(tableId))?.version !== version;
  });
  const ids = stale.map(({ tableId }) => tableId);
  if (ids.length > 0) await loadStates(passes, ids);
  for (const table of tables) takeResponseOfOther(passes, table);
}

/** Takes over the time of the newest response if another process received it: it had nothing new, so no version moved. */
function takeResponseOfOther({ states }: Passes, { tableId, respondedAt }: LeasedTable): void {
  const state = states.get(tableId);
  if (respondedAt === null || state === undefined || state.head.respondedAt === null) return;
  const stored = fromDatabase(respondedAt);
  if (stored <= state.head.respondedAt) return;
  states.keep({ ...state, head: { ...state.head, respondedAt: stored }, notedAt: stored });
}

/**
 * Processes the responses of a poll by passes and saves them in transactions: first the first response of each table,
 * and so on; the last transaction ends the poll. A table with a page per round may have several responses, each with
 * its own pass. If a forecast set is refused as late, the poll is saved without it; if a head moved, the pass is
 * recomputed from it; if a response cannot be processed, only its payload is stored, unread, with the error.
 *
 * @throws LeaseLostError if another worker has the lease; ConnectionLostError if the outcome is unknown
 */
export async function savePoll(passes: Passes, poll: Poll, signal: AbortSignal): Promise<SavedPoll> {
  const waves = wavesOf(receiveAll(poll.lease, poll.asked));
  const tables = await passes.countTables();
  const results: ComputedPass[] = [];
  let end = waves.length === 0 ? await writeEnd(passes, poll, []) : null;
  for (const [at, wave] of waves.entries()) {
    const saved = await saveWave(
      passes,
      poll,
      { wave, tables, before: at === waves.length - 1 ? results : null },
      signal,
    );
    results.push(...saved.taken);
    end = saved.end ?? end;
  }
  return {
    results: results.map(({ result }) => result),
    circuit: end?.next?.circuit.state ?? poll.lease.circuit.state,
    waitMs: end?.next?.waitMs ?? 0,
  };
}

/**
 * Ends a poll that could not be saved as a failed one, so that its house waits longer each time: its responses may be
 * too large. Nothing of them is stored. An unreachable database is not the house's failure, and changes nothing.
 *
 * @throws the database's error, if even that cannot be saved
 */
export async function endUnsavedPoll(passes: Passes, poll: Poll, error: unknown): Promise<void> {
  if (isConnectionError(error)) return;
  const { lease, asked, jitter } = poll;
  const outcome = { kind: "failed", retryAfterMs: null } as const;
  const summary = { ...summarizePoll(asked), outcome, error: `its responses could not be saved: ${reasonOf(error)}` };
  const next = afterPoll(lease.circuit, outcome, jitter);
  const rows = { passes: [], lease, end: { lease, asked, feeds: [], summary, next } };
  await passes.write({ tableIds: [], bytes: 0, rows: () => rows });
}

/** The first response of each table, the second … */
function wavesOf(received: readonly Received[]): Received[][] {
  const counts = new Map<number, number>();
  const waves: Received[][] = [];
  for (const one of received) {
    const { tableId } = one.asked;
    const at = counts.get(tableId) ?? 0;
    counts.set(tableId, at + 1);
    (waves[at] ??= []).push(one);
  }
  return waves;
}

/** A response with the result of its pass. */
interface ComputedPass extends ReadOne {
  result: PassResult;
}

interface Wave {
  wave: readonly Received[];
  tables: number;
  /** Responses of earlier waves, if this is the last one; null if another follows. */
  before: readonly ComputedPass[] | null;
}

async function saveWave(
  passes: Passes,
  poll: Poll,
  { wave, tables, before }: Wave,
  signal: AbortSignal,
): Promise<{ taken: ComputedPass[]; end: EndedPoll | null }> {
  const tableIds = wave.map(({ asked }) => asked.tableId);
  let noSet: PassTime["noSet"] = null;
  let lookUpAll = false;
  let keep: unknown = null;
  for (let tries = 1; ; tries += 1) {
    const read = await readWave(passes, poll, wave, { lookUpAll, signal });
    const circumstances = { tables, noSet, keep };
    try {
      return await write(passes, read, () => {
        const taken = computePasses(read, { ...timeOf(poll.lease), ...circumstances });
        return { lease: poll.lease, taken, end: before === null ? null : endOf(poll, [...before, ...taken]) };
      });
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal === "late" && tries < MOST_TRIES) {
        noSet = "refused"; // nothing was committed: the states are as they were
        continue;
      }
      passes.states.drop(tableIds);
      if (refusal === "lease_lost") throw new LeaseLostError(undefined, { cause: error });
      if (tries === MOST_TRIES || isConnectionError(error) || !isOwnFault(error)) throw error;
      await loadStates(passes, tableIds);
      if (refusal === "moved") continue;
      else if (wave.length > 1) return saveEach(passes, poll, { wave, tables, before }, signal);
      else if (lookUpAll) keep = error;
      else lookUpAll = true;
    }
  }
}

/** Saves the responses of a wave one by one, so that one that fails does not delay the others. */
async function saveEach(
  passes: Passes,
  poll: Poll,
  { wave, tables, before }: Wave,
  signal: AbortSignal,
): Promise<{ taken: ComputedPass[]; end: EndedPoll | null }> {
  const taken: ComputedPass[] = [];
  for (const one of wave) {
    const saved = await saveWave(passes, poll, { wave: [one], tables, before: null }, signal);
    taken.push(...saved.taken);
  }
  return { taken, end: before === null ? null : await writeEnd(passes, poll, [...before, ...taken]) };
}

/** A response that is read, or not. */
interface ReadOne {
  received: Received;
  before: PassState;
  response: PolledResponse;
  /** Another process polls the table too: it must find each response, also one with nothing new. */
  hasOther: boolean;
}

async function readWave(
  passes: Passes,
  { house, lease }: Poll,
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

/** The queues whose pausing acts inside passes. */
const READING = "normalize-rounds";
const SETTLING = "score-accuracy";

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

/** Time and circumstances of passes now. */
function timeOf({ now, takenAt, paused }: Lease): Omit<PassTime, "tables" | "noSet"> {
  return {
    issuedAt: laterBy(fromDatabase(now), performance.now() - takenAt),
    mayRead: true, // decided before: a response that may not be read has none
    maySettle: !paused.includes(SETTLING),
  };
}

/**
 * Passes of responses. A response that a pass cannot process, or whose error is `keep`, is stored unread with the
 * error.
 */
function computePasses(read: readonly ReadOne[], { keep, ...at }: PassTime & { keep: unknown }): ComputedPass[] {
  return read.map((one) => {
    if (keep !== null) return storeUnread(one, at, keep);
    try {
      return { ...one, result: pass(one.before, one.response, at) };
    } catch (error) {
      return storeUnread(one, at, error);
    }
  });
}

function storeUnread({ response, ...one }: ReadOne, at: PassTime, error: unknown): ComputedPass {
  const unread = { ...response, read: null };
  const { rows, ...result } = pass(one.before, unread, at);
  const payloads = rows.payloads.map((payload) => ({ ...payload, error: ownFault(error) }));
  return { ...one, response: unread, result: { ...result, rows: { ...rows, payloads } } };
}

interface ToWrite {
  lease: Lease;
  taken: ComputedPass[];
  end: EndedPoll | null;
}

/** Writes what is computed when its transaction begins, and then keeps the states after it. */
async function write(
  { write: commit, states }: Passes,
  read: readonly ReadOne[],
  compute: () => ToWrite,
): Promise<ToWrite> {
  let written: ToWrite | null = null;
  let after: PassState[] = [];
  const bodies = new Set(read.flatMap(({ response }) => response.payload?.body ?? []));
  await commit({
    tableIds: read.flatMap((one) => (mayStaySilent(one) ? [] : [one.before.table.tableId])),
    bytes: [...bodies].reduce((sum, { length }) => sum + length, 0),
    rows: () => {
      written = compute();
      const { lease, taken, end } = written;
      const unwritten = new Set(taken.filter((one) => one.result.rows.isQuiet && mayStaySilent(one)));
      after = taken.map((one) => {
        const { state } = one.result;
        return unwritten.has(one) ? { ...state, notedAt: one.before.notedAt } : state;
      });
      return { passes: taken.flatMap((one) => (unwritten.has(one) ? [] : [one.result.rows])), lease, end };
    },
  });
  for (const state of after) states.keep(state);
  if (written === null) throw new Error("expected the writer to compute the rows before it commits them");
  return written;
}

async function writeEnd(passes: Passes, poll: Poll, taken: readonly ComputedPass[]): Promise<EndedPoll> {
  const end = endOf(poll, taken);
  await write(passes, [], () => ({ lease: poll.lease, taken: [], end }));
  return end;
}

/** The time of a repeated part is stored at most this often, while one process polls the table. */
const NOTE_EVERY_MS = 10_000;

/** Whether a response repeats the table's part of a shared one, and its time need not be stored yet. */
function mayStaySilent({ before, received, response, hasOther }: ReadOne): boolean {
  const { head, notedAt } = before;
  if (!response.isRepeat || head.partSha256 === null) return false;
  if (notedAt === null) return true; // no evidence, nor becomes it any by being repeated
  return !hasOther && Date.parse(received.requestedAt) - Date.parse(notedAt) < NOTE_EVERY_MS;
}

function endOf({ lease, asked, jitter }: Poll, taken: readonly ComputedPass[]): EndedPoll {
  const refused = new Set(lease.tables.filter((table) => table.refused).map(({ tableId }) => tableId));
  const unreadable = new Set(
    taken.flatMap(({ received, response, result }) => {
      const isChanged = result.state.format.since !== null;
      const isRefusedAgain = response.isRepeat && refused.has(received.asked.tableId);
      return received.asked.response.kind !== "failed" && (isChanged || isRefusedAgain) ? [received.asked] : [];
    }),
  );
  const summary = summarizePoll(asked.map((one) => (unreadable.has(one) ? { ...one, isUnreadable: true } : one)));
  const feeds = feedsOf(lease, taken);
  if (asked.length === 0) return { lease, asked, feeds, summary, next: null };
  const next = afterPoll(lease.circuit, summary.outcome, jitter);
  const spent = waitForTomorrow(lease, summary.bytes);
  if (spent === null) return { lease, asked, feeds, summary, next };
  const { waitMs, error } = spent;
  return {
    lease,
    asked,
    feeds,
    summary: { ...summary, error },
    next: { ...next, waitMs: Math.max(next.waitMs, waitMs) },
  };
}

/**
 * Changed rows of feeds: of tables with a full response, and of all requested tables if others had none. Of tables that
 * share a response, the first has the validators, and the others store theirs only as often as a full response is due.
 */
function feedsOf({ tables }: Lease, taken: readonly ComputedPass[]): FeedChange[] {
  const newest = new Map(taken.map((one) => [one.received.asked.tableId, one]));
  const isPart = newest.size < tables.length;
  const due = new Set(tables.filter(({ fullIsDue }) => fullIsDue).map(({ tableId }) => tableId));
  return [...newest].flatMap(([tableId, { received, response }]): FeedChange[] => {
    const { response: polled } = received.asked;
    if (polled.kind !== "response" && !isPart) return [];
    if (!isPart && response.isRepeat && response.part !== null && !due.has(tableId)) return [];
    return [
      {
        tableId,
        askedAt: received.requestedAt,
        full:
          polled.kind === "response"
            ? { etag: polled.etag?.slice(0, 1000) ?? null, lastModified: polled.lastModified?.slice(0, 100) ?? null }
            : null,
        isRefused: response.payload === null ? null : response.read?.ok === false,
      },
    ];
  });
}
