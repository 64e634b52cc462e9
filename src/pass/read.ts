import type { Queryable } from "../db/client.ts";
import { adapterOf } from "../houses/adapters/index.ts";
import { chainsOf } from "../houses/fairness/chains.ts";
import type { Anchor, Prover } from "../houses/fairness/prove.ts";
import type { Fairness } from "../houses/fairness/settings.ts";
import type { HouseItem } from "../houses/contract.ts";
import type { Point } from "../houses/fairness/claims.ts";
import type { House } from "../houses/house.ts";
import { listStored } from "./stores/known-store.ts";
import { listHashOwners } from "../rounds/proofs/proof-range-store.ts";
import { checkProofs } from "../rounds/proofs/proofs.ts";
import { ownFault, readBody, type ReadResponse as ReadItems } from "../rounds/read-response.ts";
import type { KnownRound } from "../rounds/round.ts";
import { idsToLookUp, knownAmong } from "./compute/known-rounds.ts";
import type { HeadRow } from "./compute/rows.ts";
import type { ReadResponse } from "./compute/response.ts";
import type { PassState } from "./compute/state.ts";

/** The body of a response, unpacked; `now` is when it was received. */
export interface ResponseBody {
  body: Buffer;
  now: string;
  path: string;
  kind: "poll" | "history";
}

/** The dependencies of reading, besides the state. */
export interface Reader {
  sql: Queryable;
  prover: Prover;
}

export interface ReadOptions {
  signal: AbortSignal;
  /** Looks up every round that is listed. */
  all?: boolean;
  /** Rows of the state that are being stored: look-ups wait for them. */
  stored?: Promise<unknown> | null;
  /** Proven rounds near the listed ones, in addition to the newest one. */
  pointsNear?: (fairness: Fairness, items: readonly HouseItem[]) => Promise<Point[]>;
}

/** Without declared proofs nothing is compared with known rounds. */
const NOTHING_KNOWN: ReadonlyMap<string, KnownRound> = new Map();

/**
 * Reads a response of a table and checks its proofs. Looks up stored rounds only if the state may have dropped them
 * (`all`: every listed one). For a response that cannot be read, returns the reason.
 *
 * @throws the signal's reason when it is aborted; the database's errors
 */
export async function readResponse(
  reader: Reader,
  house: House,
  state: PassState,
  response: ResponseBody,
  options: ReadOptions,
): Promise<ReadResponse> {
  const { name } = state.table;
  const read = await readBody(house, { name, ...gameOf(state) }, response, options);
  return checkItems(reader, state, read, options);
}

/** The game and the market of a table, by its name. */
export function gameOf({ table: { name } }: PassState): { game: string; market: string } {
  const [, game = "", market = ""] = name.split("/");
  return { game, market };
}

/** Checks the proofs of a response that its adapter read, as {@link readResponse} does. */
export async function checkItems(
  { sql, prover }: Reader,
  state: PassState,
  read: ReadItems,
  { signal, all = false, stored = null, pointsNear = () => Promise.resolve([]) }: ReadOptions,
): Promise<ReadResponse> {
  if (!read.ok) return read;
  const { tableId, name, roundIds } = state.table;
  const listed = read.items.flatMap((item) => (item.ok ? item.round.roundId : (item.roundId ?? [])));
  const ids = all ? [...new Set(listed)] : idsToLookUp(state, read.items);
  if (ids.length > 0) await stored;
  const lookedUp = ids.length === 0 ? undefined : await listStored(sql, tableId, ids);
  const { fairness = null, feed } = read.settings;
  const anchor = anchorOf(state.head, fairness);
  const world = {
    table: name,
    roundIds,
    fairness,
    known: fairness === null ? NOTHING_KNOWN : knownAmong(state, read.items, lookedUp?.known),
    points: [
      ...(anchor === null ? [] : [anchor]),
      ...(fairness === null ? [] : await pointsNear(fairness, read.items)),
    ],
    findOwners: (hashes: readonly string[]) => listHashOwners(sql, tableId, hashes),
  };
  try {
    const proven = await checkProofs(prover, world, read.items, signal);
    return {
      ok: true,
      items: proven.items,
      anchor: proven.anchor,
      feedOrder: feed.order,
      refusedByAdapter: read.items.filter(({ ok }) => !ok).length,
      isPage: adapterOf(read.settings).rounds === "page",
      ...lookedUp,
    };
  } catch (error) {
    signal.throwIfAborted();
    return { ok: false, reason: ownFault(error) };
  }
}

/** The proven round that a table continues from: the stored one, if it was proven in a chain that is still declared. */
export function anchorOf({ proofNumber, proofHash, proofOf }: HeadRow, fairness: Fairness | null): Anchor | null {
  if (fairness === null || proofNumber === null || proofHash === null || proofOf === null) return null;
  if (!chainsOf(fairness).some(({ id }) => id === proofOf)) return null;
  return { number: proofNumber, hash: proofHash, of: proofOf };
}
