import { isConnectionError, isLockError } from "../db/errors.ts";
import { reasonOf } from "../errors.ts";
import { afterPoll } from "../houses/polling/circuit.ts";
import { mayPollWait } from "../houses/house.ts";
import { type Lease, LeaseLostError } from "../houses/polling/lease-store.ts";
import type { EndedPoll } from "../houses/polling/poll-store.ts";
import { summarizePoll } from "../houses/polling/poll-summary.ts";
import { isOwnFault, ownFault } from "../rounds/read-response.ts";
import { Slices } from "../slices.ts";
import { pass } from "./compute/pass.ts";
import { endOf, type Poll } from "./end-poll.ts";
import { loadStates, type Passes } from "./passes.ts";
import { lockTimeoutOf } from "./prepare-states.ts";
import { receiveAll, type Received } from "./polled-response.ts";
import { readWave, type NotedOne, type ReadOne, type ReadWave } from "./read-poll.ts";
import type { PassResult, PassTime } from "./compute/state.ts";
import { fromDatabase, laterBy } from "./compute/times.ts";
import { refusalOf } from "./stores/write-store.ts";
import { listFreeHeads, type LockTimeout } from "../tables/heads-store.ts";
import type { Write } from "./writer.ts";

/** A poll that was saved. */
export interface SavedPoll {
  /** In the order of the responses. */
  results: readonly PassResult[];
  circuit: EndedPoll["lease"]["circuit"]["state"];
  /** Milliseconds until the shard may be polled again, 0 = at its next poll. */
  waitMs: number;
  /** Milliseconds until any of its shards may be polled again, see PollSummary. */
  houseWaitMs: number;
  /** Tables whose responses were dropped, because another session kept their heads locked or moved them each time. */
  busy: readonly string[];
}

/** Retries of a poll from newer states: another process may change a table at the same time. */
const MOST_TRIES = 4;

/**
 * Processes the responses of a poll by passes and saves them in transactions: first the first response of each table,
 * and so on; the last transaction ends the poll. A table with a page per round may have several responses, each with
 * its own pass. If a forecast set is refused as late, the poll is saved without it; if a head moved, the pass is
 * recomputed from it; if a response cannot be processed, only its payload is stored, unread, with the error. A table that
 * another session keeps locked, as a repair does, is saved after the others, or left out if it stays locked.
 *
 * @throws LeaseLostError if another worker has the lease; ConnectionLostError if the outcome is unknown
 */
export async function savePoll(passes: Passes, poll: Poll, signal: AbortSignal): Promise<SavedPoll> {
  const waves = wavesOf(await receiveAll(poll.lease, poll.asked));
  const tables = await passes.countTables();
  const taken: ComputedPass[] = [];
  const noted: NotedOne[] = [];
  const busy: Received[] = [];
  let keptBytes = 0;
  let end = waves.length === 0 ? await writeEnd(passes, poll, { taken, noted, busy, keptBytes }) : null;
  for (const [at, all] of waves.entries()) {
    // a page after one that was dropped would show a gap
    const dropped = new Set(busy.map(({ asked }) => asked.tableId));
    const wave = all.filter(({ asked }) => !dropped.has(asked.tableId));
    busy.push(...all.filter(({ asked }) => dropped.has(asked.tableId)));
    const before = at === waves.length - 1 ? { taken, noted, busy, keptBytes } : null;
    const mayWait = at === 0 && mayPollWait(poll.house);
    const saved = await saveWave(passes, poll, { wave, tables, before, mayWait, lastTry: null }, signal);
    taken.push(...saved.taken);
    noted.push(...saved.noted);
    busy.push(...saved.busy);
    keptBytes += saved.keptBytes;
    end = saved.end ?? end;
  }
  return {
    results: taken.map(({ result }) => result),
    circuit: end?.next?.circuit.state ?? poll.lease.circuit.state,
    waitMs: end?.next?.waitMs ?? 0,
    houseWaitMs: end?.summary.houseWaitMs ?? 0,
    busy: [...new Set(busy.map(({ asked }) => asked.name))],
  };
}

/**
 * Ends a poll that could not be saved as a failed one, so that its house waits longer each time: its responses may be
 * too large. Only those of earlier transactions are stored. A locked row is not the house's failure; nor is an unreachable
 * database, which changes nothing.
 *
 * @throws the database's error, if even that cannot be saved
 */
export async function endUnsavedPoll(passes: Passes, poll: Poll, error: unknown): Promise<void> {
  if (isConnectionError(error)) return;
  const { lease, asked, jitter } = poll;
  const polled = summarizePoll(asked);
  const { retryAfterMs } = polled.outcome;
  const outcome = isLockError(error) ? polled.outcome : ({ kind: "failed", retryAfterMs } as const);
  const summary = { ...polled, outcome, error: `its responses could not be saved: ${reasonOf(error)}` };
  const next = afterPoll(lease.circuit, outcome, jitter);
  const rows = { passes: [], noted: [], lease, end: { lease, asked, feeds: [], summary, storedBytes: 0, next } };
  await passes.write({ tableIds: [], bytes: 0, mayWait: false, waitsApart: "4s", rows: () => rows });
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

/** What is stored of responses. */
interface Processed {
  taken: readonly ComputedPass[];
  noted: readonly NotedOne[];
  /** Responses of tables that other sessions keep locked. */
  busy: readonly Received[];
  /** Bytes that damaged tables stored. */
  keptBytes: number;
}

interface Wave {
  wave: readonly Received[];
  tables: number;
  /** Responses of earlier waves, if this is the last one; null if another follows. */
  before: Processed | null;
  /** Its first write may be held back a moment. */
  mayWait: boolean;
  /** How long this last try waits for a locked table, which is then left out; null if another try may follow. */
  lastTry: LockTimeout | null;
}

type SavedWave = Processed & { end: EndedPoll | null };

async function saveWave(
  passes: Passes,
  poll: Poll,
  { wave, tables, before, mayWait, lastTry }: Wave,
  signal: AbortSignal,
): Promise<SavedWave> {
  const tableIds = wave.map(({ asked }) => asked.tableId);
  const isLast = lastTry !== null || poll.lease.tables.length === 1;
  const lockTimeout = lastTry ?? lockTimeoutOf(poll.lease);
  const waitsApart = isLast ? lockTimeout : null; // else the other tables would wait too
  let mayIssue = true;
  let lookUpAll = false;
  let keep: unknown = null;
  let keptBytes = 0; // of all tries: what one kept, the next finds as a repeat
  for (let tries = 1; ; tries += 1) {
    const { issuedAt } = timeOf(poll.lease);
    const all = await readWave(passes, poll, wave, { lookUpAll, issuedAt, lockTimeout, signal });
    keptBytes += all.keptBytes;
    const around = { wave, tables, before, keptBytes };
    if (all.busy.length > 0 && !isLast) return saveAround(passes, poll, around, all.busy, signal);
    const circumstances = { tables, mayIssue, keep };
    try {
      return await write(passes, { ...all, mayWait: mayWait && tries === 1, waitsApart }, async () => {
        const taken = await computePasses(all.read, { ...timeOf(poll.lease), ...circumstances });
        const own = { taken, noted: all.noted, busy: all.busy, keptBytes };
        return { ...own, lease: poll.lease, end: before && endOf(poll, joined(before, own)) };
      });
    } catch (error) {
      const refusal = refusalOf(error);
      if (isLockError(error)) return isLast ? drop(passes, poll, around) : saveAround(passes, poll, around, [], signal);
      if (refusal === "late" && tries < MOST_TRIES) {
        mayIssue = false; // nothing was committed: the states are as they were
        continue;
      }
      passes.states.drop(tableIds);
      if (refusal === "lease_lost") throw leaseLost(error);
      if (refusal === "moved" && tries === MOST_TRIES) return drop(passes, poll, around);
      if (tries === MOST_TRIES || isConnectionError(error) || !isOwnFault(error)) throw error;
      await loadStates(passes, tableIds, lockTimeout);
      // another session may move a table again and again; the first time it is usually over
      if (refusal === "moved" && (tries === 1 || wave.length === 1)) continue;
      else if (wave.length > 1) return saveEach(passes, poll, around, signal);
      else if (lookUpAll) keep = error;
      else lookUpAll = true;
    }
  }
}

type Around = Pick<Wave, "wave" | "tables" | "before"> & { keptBytes: number };

/** Stores nothing of responses, because other sessions keep their tables locked, or moved them each time. */
async function drop(passes: Passes, poll: Poll, { wave, before, keptBytes }: Around): Promise<SavedWave> {
  const saved = { taken: [], noted: [], busy: wave, keptBytes };
  return { ...saved, end: before && (await writeEnd(passes, poll, joined(before, saved))) };
}

/**
 * Saves the responses of tables that no other session keeps locked, and then waits a moment for the others: they are
 * dropped if they stay locked. `unready` could not be read.
 */
async function saveAround(
  passes: Passes,
  poll: Poll,
  { wave, tables, before, keptBytes }: Around,
  unready: readonly Received[],
  signal: AbortSignal,
): Promise<SavedWave> {
  const free = new Set(
    await listFreeHeads(
      passes.pipeline,
      wave.map(({ asked }) => asked.tableId),
    ),
  );
  const isFree = (received: Received) => free.has(received.asked.tableId) && !unready.includes(received);
  const locked = wave.filter((received) => !isFree(received));
  const own = { tables, before: null, mayWait: false };
  const parts: Wave[] = [
    { ...own, wave: wave.filter(isFree), lastTry: null },
    { ...own, wave: locked, lastTry: "1s" },
  ];
  // another row than a head is locked, for which all have to wait
  if (locked.length === 0) parts.splice(0, 2, { ...own, wave, lastTry: "4s" });
  let saved: Processed = { taken: [], noted: [], busy: [], keptBytes };
  for (const part of parts) if (part.wave.length > 0) saved = joined(saved, await saveWave(passes, poll, part, signal));
  return { ...saved, end: before && (await writeEnd(passes, poll, joined(before, saved))) };
}

/**
 * Saves the responses of a wave one by one, so that one that fails does not delay the others.
 *
 * @throws the error of one that failed, after the others are saved
 */
async function saveEach(
  passes: Passes,
  poll: Poll,
  { wave, tables, before, keptBytes }: Around,
  signal: AbortSignal,
): Promise<SavedWave> {
  const one = { tables, before: null, mayWait: false, lastTry: null };
  let saved: Processed = { taken: [], noted: [], busy: [], keptBytes };
  const failures: unknown[] = [];
  for (const received of wave) {
    try {
      saved = joined(saved, await saveWave(passes, poll, { ...one, wave: [received] }, signal));
    } catch (error) {
      if (signal.aborted || error instanceof LeaseLostError || isConnectionError(error)) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return { ...saved, end: before && (await writeEnd(passes, poll, joined(before, saved))) };
}

function leaseLost(cause: unknown): LeaseLostError {
  return new LeaseLostError(undefined, { cause });
}

function joined(first: Processed, second: Processed): Processed {
  return {
    taken: [...first.taken, ...second.taken],
    noted: [...first.noted, ...second.noted],
    busy: [...first.busy, ...second.busy],
    keptBytes: first.keptBytes + second.keptBytes,
  };
}

/** The queue whose pausing leaves forecasts that ended unsettled. */
const SETTLING = "score-accuracy";

/** Time and circumstances of passes now. */
function timeOf({ now, takenAt, paused }: Lease): Omit<PassTime, "tables" | "mayIssue"> {
  return {
    issuedAt: laterBy(fromDatabase(now), performance.now() - takenAt),
    maySettle: !paused.includes(SETTLING),
  };
}

/**
 * Passes of responses. A response that a pass cannot process, or whose error is `keep`, is stored unread with the
 * error.
 */
async function computePasses(
  read: readonly ReadOne[],
  { keep, ...at }: PassTime & { keep: unknown },
): Promise<ComputedPass[]> {
  const slices = new Slices();
  const computed: ComputedPass[] = [];
  for (const one of read) {
    await slices.next();
    computed.push(computePass(one, at, keep));
  }
  return computed;
}

function computePass(one: ReadOne, at: PassTime, keep: unknown): ComputedPass {
  if (keep !== null) return storeUnread(one, at, keep);
  try {
    return { ...one, result: pass(one.before, one.response, at) };
  } catch (error) {
    return storeUnread(one, at, error);
  }
}

function storeUnread({ response, ...one }: ReadOne, at: PassTime, error: unknown): ComputedPass {
  const unread = { ...response, read: null };
  const { rows, ...result } = pass(one.before, unread, at);
  const payloads = rows.payloads.map((payload) => ({ ...payload, error: ownFault(error) }));
  return { ...one, response: unread, result: { ...result, rows: { ...rows, payloads } } };
}

interface ToWrite extends Processed {
  lease: Lease;
  end: EndedPoll | null;
}

/** Writes what is computed when its transaction begins, and then keeps the states after it. */
async function write(
  { write: commit, states }: Passes,
  { read, noted, ...waits }: Pick<ReadWave, "read" | "noted"> & Pick<Write, "mayWait" | "waitsApart">,
  compute: () => ToWrite | Promise<ToWrite>,
): Promise<ToWrite> {
  let written = null as ToWrite | null;
  const stored = noted.filter(({ isStored }) => isStored);
  const bodies = new Set(read.flatMap(({ response }) => response.payload?.body ?? []));
  await commit({
    tableIds: [
      ...read.map(({ before }) => before.table.tableId),
      ...stored.map(({ received }) => received.asked.tableId),
    ],
    bytes: [...bodies].reduce((sum, { length }) => sum + length, 0),
    mayWait: waits.mayWait,
    waitsApart: waits.waitsApart,
    rows: async () => {
      written = await compute();
      const { lease, taken, end } = written;
      return {
        passes: taken.map(({ result }) => result.rows),
        noted: stored.map(({ received, version, respondedAt }) => {
          return { tableId: received.asked.tableId, version, respondedAt };
        }),
        lease,
        end,
      };
    },
  });
  if (written === null) throw new Error("expected the writer to compute the rows before it commits them");
  for (const { result } of written.taken) states.keep(result.state);
  for (const { before, respondedAt, isStored } of noted) {
    if (before === null) continue;
    const notedAt = isStored ? respondedAt : before.notedAt;
    states.keep({ ...before, head: { ...before.head, respondedAt }, notedAt });
  }
  return written;
}

async function writeEnd(passes: Passes, poll: Poll, processed: Processed): Promise<EndedPoll> {
  const end = endOf(poll, processed);
  const nothing = { taken: [], noted: [], busy: [], keptBytes: 0 };
  try {
    await write(passes, { read: [], noted: [], mayWait: false, waitsApart: "4s" }, () => ({
      ...nothing,
      lease: poll.lease,
      end,
    }));
  } catch (error) {
    throw refusalOf(error) === "lease_lost" ? leaseLost(error) : error;
  }
  return end;
}
