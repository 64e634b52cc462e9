import type { Sql } from "../db/client.ts";
import { isConnectionError } from "../db/errors.ts";
import { settingsOf, type House } from "../houses/house.ts";
import {
  isOwnFault,
  ownFault,
  readStored,
  type PackedBody,
  type ReadResponse as ReadItems,
} from "../rounds/read-response.ts";
import { ThreadBusyError } from "../thread.ts";
import { writePass } from "./add.ts";
import { joinPasses } from "./compute/join.ts";
import { idsToLookUp } from "./compute/known-rounds.ts";
import { pass } from "./compute/pass.ts";
import { loadStates, type Passes } from "./passes.ts";
import { findTime, listUnread, maySettle, type UnreadPayload } from "./stores/payload-store.ts";
import { checkItems, gameOf, type Reader } from "./read.ts";
import type { ReadResponse, StoredResponse } from "./compute/response.ts";
import type { PayloadMark } from "./compute/rows.ts";
import { KNOWN_ROUNDS, type PassResult, type PassState, type PassTime } from "./compute/state.ts";
import { fromDatabase, laterBy } from "./compute/times.ts";
import { refusalOf } from "./stores/write-store.ts";

/** Attempts on the oldest payload: in time, without a set, with every round looked up, and refused. */
const MOST_TRIES = 5;
/** Payloads of a table per transaction: with 25, a round of payloads of fifty takes 3.7 µs more of all processes. */
const PER_TRANSACTION = 100;
/** Transactions per list of a table, at most; the bytes of its payloads are bounded too. */
const TRANSACTIONS_PER_LIST = 10;

/** How the next payloads are processed, after what failed. */
interface Attempt {
  tries: number;
  /** Payloads per transaction: fewer if polls move the head faster than so many are processed. */
  size: number;
  /** Only the oldest payload. */
  isAlone: boolean;
  mayIssue: boolean;
  /** Every listed round is looked up. */
  all: boolean;
  /** Why the payload is refused. */
  failure: unknown;
}

const FIRST_ATTEMPT: Attempt = {
  tries: 1,
  size: PER_TRANSACTION,
  isAlone: false,
  mayIssue: true,
  all: false,
  failure: null,
};

/** The next attempt after an error; `hasStored`: a transaction before it was committed. @throws the error, if there is none */
function nextAttempt(attempt: Attempt, error: unknown, hasStored: boolean): Attempt {
  if (attempt.tries === MOST_TRIES || isConnectionError(error) || !isOwnFault(error)) throw error;
  if (error instanceof ThreadBusyError) throw error; // nothing is wrong with the payload
  const refusal = refusalOf(error);
  // another process was first, perhaps with these payloads
  if (refusal === "moved") return hasStored ? attempt : { ...attempt, size: Math.ceil(attempt.size / 2) };
  const next = { ...attempt, tries: attempt.tries + 1 };
  if (refusal === "late") return { ...next, mayIssue: false };
  if (!attempt.isAlone) return { ...attempt, isAlone: true };
  return { ...next, all: true, failure: attempt.all ? error : null };
}

/** Whether other tables may be processed after this error. */
export function isOfOneTable(error: unknown): boolean {
  return !isConnectionError(error);
}

/** The dependencies of passes on stored payloads. */
interface Processing {
  sql: Sql;
  passes: Passes;
  house: House;
  signal: AbortSignal;
}

/**
 * Processes the unread payloads of a table as their polls would have, oldest first, and yields the result of each
 * transaction after its commit. If one fails, its oldest payload is tried alone. A payload that cannot be read or processed
 * is marked refused with the reason, kept, and can be read again.
 *
 * @throws the signal's reason; the database's error if it is unreachable or full
 */
export async function* processUnread(work: Processing, tableId: number): AsyncGenerator<PassResult> {
  const { passes, house, signal } = work;
  const reads: Reads = new Map();
  let attempt = FIRST_ATTEMPT;
  let oldest: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    const state = (await loadStates(passes, [tableId], "1s")).get(tableId);
    if (state === undefined) return;
    // a look-up by hash finds stored rounds only, not those of a payload in the same transaction
    if (isLookedUpByHash(house, state)) attempt = { ...attempt, isAlone: true };
    const unread = await listUnread(
      passes.pipeline,
      tableId,
      attempt.isAlone ? 1 : attempt.size * TRANSACTIONS_PER_LIST,
    );
    if (unread.length === 0) return;
    // another process stored the payload that failed
    if (attempt.all && unread[0]?.receivedAt !== oldest) attempt = { ...FIRST_ATTEMPT, size: attempt.size };
    oldest = unread[0]?.receivedAt;
    if (!attempt.isAlone) forgetOthers(reads, unread);
    let hasStored = false;
    try {
      for await (const result of processListed(work, state, { unread, reads }, attempt)) {
        hasStored = true;
        attempt = { ...FIRST_ATTEMPT, size: attempt.size };
        for (const { receivedAt } of result.rows.marks) reads.delete(receivedAt);
        yield result;
      }
    } catch (error) {
      passes.states.drop([tableId]);
      attempt = nextAttempt(attempt, error, hasStored);
    }
  }
}

/** What listed payloads contain, by the time of receipt: one that stopped its reader is not read again by each attempt. */
type Reads = Map<string, () => ReadItems>;

function forgetOthers(reads: Reads, unread: readonly UnreadPayload[]): void {
  const listed = new Set(unread.map(({ receivedAt }) => receivedAt));
  for (const receivedAt of reads.keys()) if (!listed.has(receivedAt)) reads.delete(receivedAt);
}

/** Reads payloads that are not in `reads`, and returns all of them, or those up to one that stopped its reader. */
async function readMissing(
  reads: Reads,
  payloads: readonly UnreadPayload[],
  read: (missing: readonly UnreadPayload[]) => ReturnType<typeof readStored>,
): Promise<(() => ReadItems)[]> {
  const missing = payloads.filter(({ receivedAt }) => !reads.has(receivedAt));
  const found = await read(missing);
  for (const [place, one] of found.entries()) {
    const payload = missing[place];
    if (payload !== undefined) reads.set(payload.receivedAt, one);
  }
  const all = payloads.map(({ receivedAt }) => reads.get(receivedAt));
  const end = all.indexOf(undefined);
  return all.slice(0, end === -1 ? all.length : end).filter((one) => one !== undefined);
}

/**
 * Processes payloads in their order, some per transaction: while PostgreSQL stores some, the next ones are computed, and a
 * thread reads those after them.
 */
async function* processListed(
  { sql, passes, house, signal }: Processing,
  first: PassState,
  { unread, reads }: { unread: readonly UnreadPayload[]; reads: Reads },
  attempt: Attempt,
): AsyncGenerator<PassResult> {
  const table = { name: first.table.name, ...gameOf(first) };
  const read = (from: number) => {
    const payloads = unread.slice(from, from + attempt.size);
    const items = readMissing(reads, payloads, (missing) => readStored(house, table, missing, signal));
    items.catch(() => undefined); // aborted: its `await` throws the reason
    return items;
  };
  let state = first;
  let before: PayloadMark | null = null;
  let next = read(0);
  let writing: Promise<PassResult> | null = null;
  let computing: Promise<PassResult> | null = null;
  try {
    for (let from = 0; from < unread.length;) {
      signal.throwIfAborted();
      const items = await next;
      const payloads = unread.slice(from, from + items.length);
      from += items.length;
      next = read(from);
      // a set may follow the newest payload, and the database refuses a set that waited a second
      if (payloads.at(-1)?.isFollowed === false && writing !== null) {
        yield await writing;
        writing = null;
      }
      computing = compute({ passes, signal }, state, { payloads, items, before, stored: writing }, attempt);
      computing.catch(() => undefined); // awaited below
      if (writing !== null) yield await writing;
      const result: PassResult = await computing;
      writing = write({ sql, passes }, result);
      writing.catch(() => undefined); // awaited with the next ones
      ({ state } = result);
      before = result.rows.marks.at(-1) ?? null;
      const left = payloads.length - result.rows.marks.length;
      if (left > 0) {
        await next;
        from -= left;
        next = read(from);
      }
    }
    if (writing !== null) yield await writing;
  } finally {
    await Promise.allSettled([next, computing, writing]); // else the next attempt would wait for the thread
  }
}

/** Writes a pass; its state counts from the commit on. */
async function write({ sql, passes }: Pick<Processing, "sql" | "passes">, result: PassResult): Promise<PassResult> {
  await sql.begin((tx) => writePass(tx, result.rows));
  passes.states.keep(result.state);
  return result;
}

/** Payloads that are read, and the result of the one before them if that is not stored yet. */
interface ReadPayloads {
  payloads: readonly UnreadPayload[];
  items: readonly (() => ReadItems)[];
  before: PayloadMark | null;
  /** The transaction before them, if it has not ended. */
  stored: Promise<unknown> | null;
}

/** One pass for each payload, joined; those from one on that needs rounds of this transaction are left. */
async function compute(
  { passes, signal }: Pick<Processing, "passes" | "signal">,
  first: PassState,
  { payloads, items: found, before, stored }: ReadPayloads,
  attempt: Attempt,
): Promise<PassResult> {
  const reader: Reader = { sql: passes.pipeline, prover: passes.prover };
  const { now, takenAt } = await findTime(passes.pipeline);
  const circumstances = {
    tables: await passes.countTables(),
    maySettle: await maySettle(passes.pipeline),
    mayIssue: attempt.mayIssue,
  };
  const all: PassResult["rows"][] = []; // without the states: what lives on is copied by the garbage collector
  let last: PassResult | null = null;
  let state = first;
  let mark = before;
  let rounds = 0;
  for (const [place, payload] of payloads.entries()) {
    const items = attempt.failure === null ? found[place]?.() : undefined;
    // a look-up finds stored rounds only: the next transaction processes this payload
    if (rounds > KNOWN_ROUNDS && items?.ok === true && idsToLookUp(state, items.items).length > 0) break;
    const read: ReadResponse =
      items === undefined
        ? { ok: false, reason: ownFault(attempt.failure) }
        : await checkItems(reader, state, items, { signal, stored, all: attempt.all });
    const followsUseless = mark === null ? payload.followsUseless : isUseless(mark);
    const result = pass(state, responseOf({ ...payload, followsUseless }, read), {
      ...circumstances,
      issuedAt: laterBy(fromDatabase(now), performance.now() - takenAt),
      ...placeInBatch(all, place + 1 < payloads.length),
    });
    all.push(result.rows);
    rounds += result.rows.rounds.length;
    last = result;
    ({ state } = result);
    mark = result.rows.marks.at(-1) ?? null;
  }
  if (last === null) throw new Error("expected an unread payload, found none");
  return joinPasses(all, last);
}

function placeInBatch(earlier: readonly PassResult["rows"][], isFollowed: boolean): Pick<PassTime, "batch"> {
  if (isFollowed) return { batch: "more" };
  return earlier.some(({ rounds }) => rounds.length > 0) ? { batch: "last" } : {};
}

/** Whether a payload proves nothing about any round, as its row will state. */
function isUseless(mark: PayloadMark): boolean {
  return mark.state === "refused" || mark.items === 0;
}

/** Reads a stored payload, also one that was read before. */
export async function readPayload(
  reader: Reader,
  house: House,
  state: PassState,
  payload: PackedBody,
  options: { signal: AbortSignal; all?: boolean },
): Promise<ReadResponse> {
  const table = { name: state.table.name, ...gameOf(state) };
  const [items] = await readStored(house, table, [payload], options.signal);
  return items === undefined
    ? { ok: false, reason: ownFault("no result") }
    : checkItems(reader, state, items(), options);
}

/** Whether the ids of a table give no position of a proven round, so that only its hash identifies an old one. */
function isLookedUpByHash(house: House, state: PassState): boolean {
  return state.table.roundIds === "opaque" && settingsOf(house, gameOf(state))?.fairness !== undefined;
}

function responseOf(payload: UnreadPayload, read: ReadResponse): StoredResponse {
  const { requestedAt, receivedAt, sha256, previousRequestedAt, followsUseless, isFollowed } = payload;
  return {
    from: "stored",
    requestedAt,
    receivedAt,
    sha256,
    absentAt: followsUseless ? null : previousRequestedAt,
    manner: "poll",
    isMoreUnread: isFollowed,
    read,
  };
}
