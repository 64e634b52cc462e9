import { isConnectionError, isLockError } from "../db/errors.ts";
import { LeaseLostError } from "../houses/polling/lease-store.ts";
import type { EndedPoll } from "../houses/polling/poll-store.ts";
import { isOwnFault } from "../rounds/read-response.ts";
import { endOf, type Poll } from "./end-poll.ts";
import { loadStates, type Passes } from "./passes.ts";
import { lockTimeoutOf } from "./prepare-states.ts";
import type { Received } from "./polled-response.ts";
import { readWave, type KeptOne, type NotedOne } from "./read-poll.ts";
import { refusalOf } from "./stores/write-store.ts";
import { listFreeHeads, type LockTimeout } from "../tables/heads-store.ts";
import { type ComputedPass, computePasses, timeOf, writePoll } from "./write-poll.ts";

/** Retries of a poll from newer states: another process may change a table at the same time. */
const MOST_TRIES = 4;

/** What is stored of responses. */
interface Processed {
  taken: readonly ComputedPass[];
  noted: readonly NotedOne[];
  /** Responses of tables that other sessions keep locked. */
  busy: readonly Received[];
  /** Responses of damaged tables. */
  kept: readonly KeptOne[];
}

/** Responses of different tables that are saved together. */
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

/**
 * Saves the responses of a wave in one transaction if it can be, otherwise in several: a locked table is left out of that
 * of the others, and a response that cannot be processed is stored alone. If `before` is given, the poll is ended too.
 *
 * @throws LeaseLostError if another worker has the lease; the database's error after the last try
 */
export async function saveWave(
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
  let kept: readonly KeptOne[] = []; // of all tries: what one kept, the next finds as a repeat
  for (let tries = 1; ; tries += 1) {
    const { issuedAt } = timeOf(poll.lease);
    const all = await readWave(passes, poll, wave, { lookUpAll, issuedAt, lockTimeout, signal });
    kept = [...kept, ...all.kept];
    const around = { wave, tables, before, kept };
    if (all.busy.length > 0 && !isLast) return saveAround(passes, poll, around, all.busy, signal);
    const circumstances = { tables, mayIssue, keep };
    try {
      return await writePoll(passes, { ...all, mayWait: mayWait && tries === 1, waitsApart }, async () => {
        const taken = await computePasses(all.read, { ...timeOf(poll.lease), ...circumstances });
        const own = { taken, noted: all.noted, busy: all.busy, kept };
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

type Around = Pick<Wave, "wave" | "tables" | "before"> & Pick<Processed, "kept">;

/** Stores nothing of responses, because other sessions keep their tables locked, or moved them each time. */
async function drop(passes: Passes, poll: Poll, { wave, before, kept }: Around): Promise<SavedWave> {
  const saved = { taken: [], noted: [], busy: wave, kept };
  return { ...saved, end: before && (await saveEnd(passes, poll, joined(before, saved))) };
}

/**
 * Saves the responses of tables that no other session keeps locked, and then waits a moment for the others: they are
 * dropped if they stay locked. `unready` could not be read.
 */
async function saveAround(
  passes: Passes,
  poll: Poll,
  { wave, tables, before, kept }: Around,
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
  let saved: Processed = { taken: [], noted: [], busy: [], kept };
  for (const part of parts) if (part.wave.length > 0) saved = joined(saved, await saveWave(passes, poll, part, signal));
  return { ...saved, end: before && (await saveEnd(passes, poll, joined(before, saved))) };
}

/**
 * Saves the responses of a wave one by one, so that one that fails does not delay the others.
 *
 * @throws the error of one that failed, after the others are saved
 */
async function saveEach(
  passes: Passes,
  poll: Poll,
  { wave, tables, before, kept }: Around,
  signal: AbortSignal,
): Promise<SavedWave> {
  const one = { tables, before: null, mayWait: false, lastTry: null };
  let saved: Processed = { taken: [], noted: [], busy: [], kept };
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
  return { ...saved, end: before && (await saveEnd(passes, poll, joined(before, saved))) };
}

function leaseLost(cause: unknown): LeaseLostError {
  return new LeaseLostError(undefined, { cause });
}

function joined(first: Processed, second: Processed): Processed {
  return {
    taken: [...first.taken, ...second.taken],
    noted: [...first.noted, ...second.noted],
    busy: [...first.busy, ...second.busy],
    kept: [...first.kept, ...second.kept],
  };
}

/** Ends a poll in a transaction of its own. @throws LeaseLostError if another worker has the lease */
export async function saveEnd(passes: Passes, poll: Poll, processed: Processed): Promise<EndedPoll> {
  const end = endOf(poll, processed);
  const nothing = { taken: [], noted: [], busy: [], kept: [] };
  try {
    await writePoll(passes, { read: [], noted: [], mayWait: false, waitsApart: "4s" }, () => ({
      ...nothing,
      lease: poll.lease,
      end,
    }));
  } catch (error) {
    throw refusalOf(error) === "lease_lost" ? leaseLost(error) : error;
  }
  return end;
}
