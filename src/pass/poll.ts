import { isConnectionError, isLockError } from "../db/errors.ts";
import { reasonOf } from "../errors.ts";
import { afterPoll } from "../houses/polling/circuit.ts";
import { mayPollWait } from "../houses/house.ts";
import type { EndedPoll } from "../houses/polling/poll-store.ts";
import { summarizePoll } from "../houses/polling/poll-summary.ts";
import type { Poll } from "./end-poll.ts";
import type { Passes } from "./passes.ts";
import { receiveAll, type Received } from "./polled-response.ts";
import type { KeptOne, NotedOne } from "./read-poll.ts";
import { saveEnd, saveWave } from "./save-wave.ts";
import type { PassResult } from "./compute/state.ts";
import type { ComputedPass } from "./write-poll.ts";

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
  const kept: KeptOne[] = [];
  let end = waves.length === 0 ? await saveEnd(passes, poll, { taken, noted, busy, kept }) : null;
  for (const [at, all] of waves.entries()) {
    // a page after one that was dropped would show a gap
    const dropped = new Set(busy.map(({ asked }) => asked.tableId));
    const wave = all.filter(({ asked }) => !dropped.has(asked.tableId));
    busy.push(...all.filter(({ asked }) => dropped.has(asked.tableId)));
    const before = at === waves.length - 1 ? { taken, noted, busy, kept } : null;
    const mayWait = at === 0 && mayPollWait(poll.house);
    const saved = await saveWave(passes, poll, { wave, tables, before, mayWait, lastTry: null }, signal);
    taken.push(...saved.taken);
    noted.push(...saved.noted);
    busy.push(...saved.busy);
    kept.push(...saved.kept);
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
