import { gunzipSync } from "node:zlib";
import { hash } from "node:crypto";
import type { Sql } from "../db/client.ts";
import { isConnectionError } from "../db/errors.ts";
import { settingsOf, type House } from "../houses/house.ts";
import { readBody, isOwnFault, ownFault } from "../rounds/read-response.ts";
import { writePass } from "./add.ts";
import { joinPasses } from "./compute/join.ts";
import { pass } from "./compute/pass.ts";
import { loadStates, type Passes } from "./passes.ts";
import { findTime, listUnread, type UnreadPayload } from "./stores/payload-store.ts";
import { readResponse, type Reader, type ResponseBody } from "./read.ts";
import type { PassResult, PassState, PassTime, PayloadMark, ReadResponse, StoredResponse } from "./compute/state.ts";
import { fromDatabase, laterBy } from "./compute/times.ts";
import { refusalOf } from "./stores/write-store.ts";

/** Attempts on the oldest payload: in time, without a set, with every round looked up, and refused. */
const MOST_TRIES = 5;
/**
 * Payloads of a table per transaction: a round of payloads of fifty takes 61 µs of processor time with twenty, 46 with a
 * hundred. Only one if rounds are looked up by hash: that finds stored rounds only, not those of a payload in the same
 * transaction.
 */
const AT_ONCE = 100;

/**
 * Processes the oldest unread payloads of a table as their polls would have, in one transaction; null if there is none.
 * If that fails, the oldest is tried alone. A payload that cannot be read or processed is marked refused with the
 * reason, kept, and can be read again.
 *
 * @throws the signal's reason; the database's error if it is unreachable or full
 */
export async function processUnread(
  { sql, passes }: { sql: Sql; passes: Passes },
  house: House,
  tableId: number,
  { maySettle, signal }: { maySettle: boolean; signal: AbortSignal },
): Promise<PassResult | null> {
  const tables = await passes.countTables();
  let failure: unknown = null;
  let all = false;
  let noSet: PassTime["noSet"] = null;
  let atOnce = AT_ONCE;
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    const state = (await loadStates(passes, [tableId])).get(tableId);
    if (state === undefined) return null;
    if (isLookedUpByHash(house, state)) atOnce = 1;
    const unread = await listUnread(passes.pipeline, tableId, atOnce);
    if (unread.length === 0) return null;
    const reader = { sql: passes.pipeline, prover: passes.prover };
    const read = async (before: PassState, unpacked: Unpacked | undefined): Promise<ReadResponse> => {
      if (failure !== null || unpacked === undefined) return { ok: false, reason: ownFault(failure) };
      return unpacked.ok ? readResponse(reader, house, before, unpacked.given, { signal, all }) : unpacked;
    };
    const { now, takenAt } = await findTime(passes.pipeline);
    const timeNow = (): PassTime => ({
      issuedAt: laterBy(fromDatabase(now), performance.now() - takenAt),
      tables,
      mayRead: true,
      maySettle,
      noSet,
    });
    try {
      // all together: a thread responds after a millisecond or two
      const unpacked = unread.map((payload) => unpack(house, state, payload, signal));
      const result = await processEach(state, unread, (before, place) => read(before, unpacked[place]), timeNow);
      await sql.begin((tx) => writePass(tx, result.rows));
      passes.states.keep(result.state);
      return result;
    } catch (error) {
      passes.states.drop([tableId]);
      if (tries === MOST_TRIES || isConnectionError(error) || !isOwnFault(error)) throw error;
      const refusal = refusalOf(error);
      if (refusal === "late") noSet = "refused";
      if (refusal === "moved") tries -= 1; // another process was first, perhaps with this payload: retry
      if (refusal === "moved" || refusal === "late") continue;
      if (atOnce > 1) {
        atOnce = 1;
        tries -= 1;
        continue;
      }
      if (all) failure = error;
      all = true;
    }
  }
}

/** One pass for each payload, joined. */
async function processEach(
  before: PassState,
  unread: readonly UnreadPayload[],
  read: (state: PassState, place: number) => Promise<ReadResponse>,
  timeNow: () => PassTime,
): Promise<PassResult> {
  const results: PassResult[] = [];
  let state = before;
  for (const [place, payload] of unread.entries()) {
    const earlier = results.at(-1);
    const followsUseless = earlier === undefined ? payload.followsUseless : earlier.rows.marks.every(isUseless);
    const response = responseOf({ ...payload, followsUseless }, await read(state, place), payload.isFollowed);
    const result = pass(state, response, { ...timeNow(), ...placeInBatch(results, place + 1 < unread.length) });
    results.push(result);
    ({ state } = result);
  }
  const [first, ...others] = results;
  if (first === undefined) throw new Error("expected an unread payload, found none");
  return joinPasses([first, ...others]);
}

function placeInBatch(earlier: readonly PassResult[], isFollowed: boolean): Pick<PassTime, "batch"> {
  if (isFollowed) return { batch: "more" };
  return earlier.some(({ rows }) => rows.rounds.length > 0) ? { batch: "last" } : {};
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
  payload: PackedPayload,
  options: { signal: AbortSignal; all?: boolean },
): Promise<ReadResponse> {
  const unpacked = unpack(house, state, payload, options.signal);
  return unpacked.ok ? readResponse(reader, house, state, unpacked.given, options) : unpacked;
}

type PackedPayload = Pick<UnreadPayload, "body" | "sha256" | "receivedAt" | "path">;
type Unpacked = { ok: true; given: ResponseBody } | { ok: false; reason: string };

/** The body of a stored payload, which a thread begins to read, or why it cannot be read. */
function unpack(house: House, state: PassState, payload: PackedPayload, signal: AbortSignal): Unpacked {
  let body: Buffer;
  try {
    body = gunzipSync(payload.body);
  } catch (error) {
    return { ok: false, reason: ownFault(error) };
  }
  if (hash("sha256", body) !== payload.sha256)
    return { ok: false, reason: "the stored payload differs from what was received (its hash does not match)" };
  const given: ResponseBody = { body, now: payload.receivedAt, path: payload.path, kind: "poll" };
  const read = readBody(house, { name: state.table.name, ...gameOf(state) }, given, { signal, isSuspect: true });
  read.catch(() => undefined); // aborted: its caller gets the error
  return { ok: true, given: { ...given, read } };
}

/** Whether the ids of a table give no position of a proven round, so that only its hash identifies an old one. */
function isLookedUpByHash(house: House, state: PassState): boolean {
  return state.table.roundIds === "opaque" && settingsOf(house, gameOf(state))?.fairness !== undefined;
}

function gameOf({ table: { name } }: PassState): { game: string; market: string } {
  const [, game = "", market = ""] = name.split("/");
  return { game, market };
}

function responseOf(payload: UnreadPayload, read: ReadResponse, isMoreUnread: boolean): StoredResponse {
  const { requestedAt, receivedAt, sha256, previousRequestedAt, followsUseless } = payload;
  return {
    from: "stored",
    requestedAt,
    receivedAt,
    sha256,
    absentAt: followsUseless ? null : previousRequestedAt,
    manner: "poll",
    isMoreUnread,
    read,
  };
}
