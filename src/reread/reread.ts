import type { Sql, Transaction } from "../db/client.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import type { House } from "../houses/house.ts";
import { addRounds, loadState, lockState, timeOfAddition, withStored } from "../pass/add.ts";
import { lockHeads } from "../tables/heads-store.ts";
import { pass } from "../pass/compute/pass.ts";
import type { ReadResponse, StoredResponse } from "../pass/compute/response.ts";
import type { CompletePassRows, PassState, PassTime } from "../pass/compute/state.ts";
import { readPayload } from "../pass/unread-payloads.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import { quarantinedItem } from "../rounds/lists/quarantined-item.ts";
import { isOwnFault, ownFault } from "../rounds/read-response.ts";
import { emptyReread, countRefusal, type Reread } from "./reread-report.ts";
import { listKnownConflicts, listKnownItems, listReleasable, releaseItems, type ReadableItem } from "./item-store.ts";
import {
  addServedRows,
  listResults,
  listToReread,
  markKept,
  type RereadPlace,
  type RereadRange,
  type StoredPayload,
} from "./reread-store.ts";
import { RESULTS_LISTED, UNDECIDED_LISTED } from "../rounds/conflict-limits.ts";
import type { KnownRound } from "../rounds/round.ts";

/** How a range is read again. */
export interface RereadWork {
  /** Compute everything and store nothing. */
  dryRun: boolean;
  /** Who requested it; released items name them. */
  by: string;
  /** At most this many payloads; `next` is where to continue. */
  most: number;
  after?: RereadPlace | null;
  /** Ends it between two batches, with the result so far and where to continue. */
  until?: AbortSignal;
  /** Ends it and throws the signal's reason; what is stored by then stays. */
  signal: AbortSignal;
  /** Called with the number of payloads read so far. */
  progress?: (done: number) => void;
}

/**
 * Reads the stored payloads of a range again, with the current adapters and settings: after an adapter was fixed, or
 * for payloads that were refused. Rounds that are not stored are added as late (listed, never learned from, resolving
 * nothing), another result for a stored round becomes a conflict, an item that is readable now leaves quarantine, and a
 * payload that is readable now is no longer refused. A second run changes nothing.
 *
 * Payloads are read in the order in which they were received, a batch in one transaction that holds the heads of its
 * tables; no transaction is open while payloads are parsed and proofs checked. A dry run passes its states from payload
 * to payload instead.
 */
export async function rereadRange(
  sql: Sql,
  house: House,
  prover: Prover,
  range: RereadRange,
  { dryRun, by, most, after = null, until, signal, progress = () => undefined }: RereadWork,
): Promise<Reread> {
  const report = emptyReread();
  const imagined: Imagined | null = dryRun
    ? { at: await sql.begin(timeOfAddition), tables: new Map(), known: new Map(), seen: nothingSeen() }
    : null;
  let place = after;
  for (;;) {
    signal.throwIfAborted();
    const left = most - report.payloads;
    const payloads = await listToReread(sql, range, place, Math.max(left, 1));
    const last = payloads.at(-1);
    if (last === undefined) return { ...report, next: null };
    if (left <= 0 || until?.aborted === true) return { ...report, next: place };
    for (const batch of batchesOf(house, payloads)) {
      const reader = { sql, house, prover, signal };
      if (imagined === null) await storeSafely(sql, await readBatch(reader, batch), { report, by, signal });
      else for (const payload of batch) await tryOut(reader, payload, report, imagined);
      report.payloads += batch.length;
      progress(report.payloads);
    }
    place = { requestedAt: last.requestedAt, tableId: last.tableId };
  }
}

/** A payload with its items as they are read now. */
interface Reading {
  payload: StoredPayload;
  read: ReadResponse;
}

interface Reader {
  sql: Sql;
  house: House;
  prover: Prover;
  signal: AbortSignal;
}

/** With opaque ids a hash proves one round only, so each payload must be stored before the next one is checked. */
function batchesOf(house: House, payloads: readonly StoredPayload[]): StoredPayload[][] {
  const isApart = house.settings.tables.some(
    ({ round_ids, fairness }) => round_ids === "opaque" && fairness !== undefined,
  );
  return isApart ? payloads.map((payload) => [payload]) : [[...payloads]];
}

async function readBatch({ sql, ...reader }: Reader, payloads: readonly StoredPayload[]): Promise<Reading[]> {
  const states = new Map<number, PassState>();
  const readings: Reading[] = [];
  for (const payload of payloads) {
    const { tableId } = payload;
    const state = states.get(tableId) ?? (await loadState(sql, tableId));
    states.set(tableId, state);
    readings.push({ payload, read: await readOne({ sql, ...reader }, state, payload) });
  }
  return readings;
}

function readOne(
  { sql, house, prover, signal }: Reader,
  state: PassState,
  payload: StoredPayload,
): Promise<ReadResponse> {
  return readPayload({ sql, prover }, house, state, payload, { signal, all: true });
}

/** The state of a dry run: tables as they would be, their rounds, and the counts. */
interface Imagined {
  at: PassTime;
  tables: Map<number, PassState>;
  known: Map<number, Map<string, KnownRound>>;
  seen: Seen;
}

interface Storing {
  report: Reread;
  by: string;
  signal: AbortSignal;
}

/**
 * Stores all in one transaction. If our own code fails on it, stores one after the other, and refuses the one that
 * fails.
 */
async function storeSafely(sql: Sql, readings: readonly Reading[], { report, by, signal }: Storing): Promise<void> {
  try {
    await storeReadings(sql, readings, report, by);
  } catch (error) {
    if (!isOwnFault(error)) throw error;
    for (const reading of readings) {
      signal.throwIfAborted();
      try {
        await storeReadings(sql, [reading], report, by);
      } catch (own) {
        if (!isOwnFault(own)) throw own;
        await storeReadings(sql, [{ ...reading, read: { ok: false, reason: ownFault(own) } }], report, by);
      }
    }
  }
}

async function storeReadings(sql: Sql, readings: readonly Reading[], report: Reread, by: string): Promise<void> {
  const counted = emptyReread();
  await sql.begin(async (tx) => {
    const tableIds = [...new Set(readings.map(({ payload }) => payload.tableId))];
    await lockHeads(tx, tableIds);
    const stored = readings.map(({ payload }) => payload);
    await addServedRows(tx, stored);
    const results = await listResults(tx, stored);
    const states = new Map<number, PassState>();
    for (const [place, { payload: listed, read }] of readings.entries()) {
      const payload = { ...listed, ...results.get(place) };
      const { tableId } = payload;
      if (isKept(payload, read, counted)) continue;
      const state = states.get(tableId) ?? (await lockState(tx, tableId));
      const response = await withStored(tx, state, responseOf(state, payload, read));
      const result = await addRounds(tx, state, response, async (rows) => {
        const readable = readableItems(payload, response.read, rows);
        const kept = await onlyNews(tx, tableId, totalOf(payload, rows), nothingSeen());
        const releasable = await listReleasable(tx, readable);
        await releaseItems(tx, releasable, by);
        count(counted, payload, response.read, { rows, kept, released: releasable.length });
        return kept;
      });
      await markKept(tx, tableId, result.rows.marks);
      states.set(tableId, result.state);
    }
    await refreshNoticesWithin(tx, [...states.keys()]);
  });
  // only what was stored counts
  report.readable += counted.readable;
  report.rounds += counted.rounds;
  report.known += counted.known;
  report.conflicts += counted.conflicts;
  report.quarantined += counted.quarantined;
  report.released += counted.released;
  for (const { reason, payloads } of counted.refused) countRefusal(report, reason, payloads);
}

async function tryOut(reader: Reader, payload: StoredPayload, report: Reread, imagined: Imagined): Promise<void> {
  const { sql } = reader;
  const { tableId } = payload;
  const state = imagined.tables.get(tableId) ?? (await loadState(sql, tableId));
  const read = await readOne(reader, state, payload);
  if (isKept(payload, read, report)) return;
  const known = imagined.known.get(tableId) ?? new Map<string, KnownRound>();
  imagined.known.set(tableId, known);
  const given: ReadResponse = read.ok ? { ...read, known: new Map([...(read.known ?? []), ...known]) } : read;
  const { rows, state: after } = pass(state, responseOf(state, payload, given), imagined.at);
  imagined.tables.set(tableId, after);
  for (const round of rows.rounds) known.set(round.roundId, { ...round, receivedAt: payload.receivedAt });
  const items = (await listReleasable(sql, readableItems(payload, given, rows))).filter(
    (id) => !imagined.seen.keys.has(`item ${id}`),
  );
  for (const id of items) imagined.seen.keys.add(`item ${id}`);
  const kept = await onlyNews(sql, tableId, rows, imagined.seen);
  count(report, payload, read, { rows, kept, released: items.length });
}

/** Whether a payload that cannot be read now keeps its state: it was read before and keeps its rounds. */
function isKept({ state }: StoredPayload, read: ReadResponse, report: Reread): boolean {
  if (!read.ok) countRefusal(report, read.reason);
  return !read.ok && state === "read";
}

function responseOf(
  { hasUnread }: PassState,
  { requestedAt, receivedAt, sha256 }: StoredPayload,
  read: ReadResponse,
): StoredResponse {
  return {
    from: "stored",
    requestedAt,
    receivedAt,
    sha256,
    absentAt: null,
    manner: "reread",
    isMoreUnread: hasUnread,
    read,
  };
}

/** The payload's count includes all rounds that it ever brought. */
function totalOf({ newRounds }: StoredPayload, rows: CompletePassRows): CompletePassRows {
  const marks = rows.marks.map((mark) => ({ ...mark, newRounds: newRounds + (mark.newRounds ?? 0) }));
  return { ...rows, marks };
}

function count(
  report: Reread,
  { state }: StoredPayload,
  read: ReadResponse,
  { rows, kept, released }: { rows: CompletePassRows; kept: CompletePassRows; released: number },
): void {
  if (!read.ok) return;
  if (state === "refused") report.readable += 1;
  report.rounds += rows.rounds.length;
  const quarantined = rows.marks.reduce((sum, mark) => sum + (mark.quarantined ?? 0), 0);
  report.known += read.items.length - rows.rounds.length - rows.conflicts.length - quarantined;
  report.conflicts += kept.conflicts.length;
  report.quarantined += kept.quarantine.length;
  report.released += released;
}

/** What is listed already, or would be after a dry run. */
interface Seen {
  /** Of quarantined items. */
  keys: Set<string>;
  /** Other results by table and round. */
  results: Map<string, Set<string>>;
  /** Conflicts that a dry run would add, by table. */
  added: Map<number, number>;
}

function nothingSeen(): Seen {
  return { keys: new Set(), results: new Map(), added: new Map() };
}

/**
 * Leaves out conflicts and quarantined items that are listed already, and results beyond the limits of their round: a re-read
 * must not count them again.
 */
async function onlyNews(
  sql: Sql | Transaction,
  tableId: number,
  rows: CompletePassRows,
  seen: Seen,
): Promise<CompletePassRows> {
  const { keys } = seen;
  for (const key of await listKnownItems(sql, tableId, rows.quarantine)) keys.add(`item ${tableId}|${key}`);
  const isNew = (key: string) => !keys.has(key) && keys.add(key).has(key);
  return {
    ...rows,
    conflicts: await newConflicts(sql, tableId, rows.conflicts, seen),
    quarantine: rows.quarantine.filter(({ itemSha256, code }) => isNew(`item ${tableId}|${itemSha256}|${code}`)),
  };
}

/** The conflicts that `saveConflicts` would list. */
async function newConflicts(
  sql: Sql | Transaction,
  tableId: number,
  conflicts: CompletePassRows["conflicts"],
  { results, added }: Seen,
): Promise<CompletePassRows["conflicts"]> {
  const resultsOf = (roundId: string) => {
    const found = results.get(`${tableId}|${roundId}`) ?? new Set();
    results.set(`${tableId}|${roundId}`, found);
    return found;
  };
  const known = await listKnownConflicts(sql, tableId, [...new Set(conflicts.map(({ roundId }) => roundId))]);
  for (const { roundId, other } of known.results) resultsOf(roundId).add(other);
  const decided = Map.groupBy(
    known.results.filter(({ isDecided }) => isDecided),
    ({ roundId }) => roundId,
  );
  const undecided = known.undecided + (added.get(tableId) ?? 0);
  const most = undecided < UNDECIDED_LISTED ? RESULTS_LISTED : 1;
  const kept = conflicts.filter(({ roundId, otherHundredths }) => {
    const listed = resultsOf(roundId);
    const open = listed.size - (decided.get(roundId)?.length ?? 0);
    return open < most && !listed.has(String(otherHundredths)) && listed.add(String(otherHundredths));
  });
  added.set(tableId, (added.get(tableId) ?? 0) + kept.length);
  return kept;
}

/** The items of a payload that are rounds, new or known. Not all that are refused are in `quarantine`. */
function readableItems(
  { tableId, receivedAt }: StoredPayload,
  read: ReadResponse,
  { rounds, quarantine }: CompletePassRows,
): ReadableItem[] {
  if (!read.ok) return [];
  const refused = new Set(quarantine.map(({ roundId }) => roundId));
  const added = new Set(rounds.map(({ roundId }) => roundId));
  return read.items.flatMap((item) => {
    if (!item.ok || refused.has(item.round.roundId)) return [];
    const { roundId } = item.round;
    if (!added.has(roundId) && read.known?.has(roundId) !== true) return [];
    return [{ tableId, payloadReceivedAt: receivedAt, sha256: quarantinedItem(item.raw).itemSha256, roundId }];
  });
}
