import { gunzipSync } from "node:zlib";
import { hash } from "node:crypto";
import { isConnectionError } from "../db/errors.ts";
import { settingsOf, type House } from "../houses/house.ts";
import { isOwnFault, ownFault } from "../rounds/read-answer.ts";
import { pass } from "./pass.ts";
import { loadStates, type Passes } from "./passes.ts";
import { findTime, listUnread, type UnreadPayload } from "./payload-store.ts";
import { readResponse, type Reader } from "./read.ts";
import type { PassResult, PassState, PassTime, ReadResponse, StoredResponse } from "./state.ts";
import { fromDatabase, laterBy } from "./times.ts";
import { tryToRead } from "./trial.ts";
import { refusalOf } from "./write-store.ts";

/** How often a payload is tried: in time, without a set, with every round looked up, and to be refused. */
const MOST_TRIES = 5;

/**
 * Takes in the oldest unread payload of a table, as its poll would have; null when there is none. One that cannot be read or
 * taken in is marked refused with the reason, kept, and can be read again.
 *
 * @throws the signal's reason; the database's error when it is out of reach or has no room
 */
export async function takeInStored(
  passes: Passes,
  house: House,
  tableId: number,
  { maySettle, signal }: { maySettle: boolean; signal: AbortSignal },
): Promise<PassResult | null> {
  const tables = await passes.countTables();
  let failure: unknown = null;
  let all = false;
  let noSet: PassTime["noSet"] = null;
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    const state = (await loadStates(passes, [tableId])).get(tableId);
    const [payload, another] = await listUnread(passes.pipeline, tableId, 2);
    if (payload === undefined || state === undefined) return null;
    const read: ReadResponse =
      failure === null
        ? await readPayload({ sql: passes.pipeline, prover: passes.prover }, house, state, payload, { signal, all })
        : { ok: false, reason: ownFault(failure) };
    const { now, takenAt } = await findTime(passes.pipeline);
    const at = {
      issuedAt: laterBy(fromDatabase(now), performance.now() - takenAt),
      tables,
      mayRead: true,
      maySettle,
      noSet,
    };
    try {
      const result = pass(state, responseOf(payload, read, another !== undefined), at);
      await passes.write({ passes: [result.rows], lease: null, end: null });
      passes.states.keep(result.state);
      return result;
    } catch (error) {
      passes.states.drop([tableId]);
      if (tries === MOST_TRIES || isConnectionError(error) || !isOwnFault(error)) throw error;
      const refusal = refusalOf(error);
      if (refusal === "late") noSet = "refused";
      if (refusal === "moved") tries -= 1; // somebody else was first, perhaps with this payload: look again
      if (refusal === "moved" || refusal === "late") continue;
      if (all) failure = error;
      all = true;
    }
  }
}

/** Reads a stored payload; also what it would say now, when it was read before. */
export async function readPayload(
  reader: Reader,
  house: House,
  state: PassState,
  payload: Pick<UnreadPayload, "body" | "sha256" | "receivedAt" | "path">,
  options: { signal: AbortSignal; all?: boolean },
): Promise<ReadResponse> {
  let body: Buffer;
  try {
    body = gunzipSync(payload.body);
  } catch (error) {
    return { ok: false, reason: ownFault(error) };
  }
  if (hash("sha256", body) !== payload.sha256)
    return { ok: false, reason: "the stored payload is not what was received" };
  const given = { body, now: payload.receivedAt, path: payload.path, kind: "poll" as const };
  const settings = settingsOf(house, gameOf(state));
  const reason = settings === null ? null : await tryToRead(settings, given);
  if (reason !== null) return { ok: false, reason };
  return readResponse(reader, house, state, given, options);
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
