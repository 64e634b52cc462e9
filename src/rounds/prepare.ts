import { setImmediate as othersTurn } from "node:timers/promises";
import type { Queryable, Sql } from "../db/client.ts";
import { togetherBy } from "../db/together.ts";
import { adapterOf } from "../houses/adapters/index.ts";
import type { FeedOrder } from "../houses/contract.ts";
import { chainsOf } from "../houses/fairness/chains.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import type { Fairness } from "../houses/fairness/settings.ts";
import type { House } from "../houses/house.ts";
import { listKnown } from "./known-store.ts";
import type { UnreadPayload } from "./payload-store.ts";
import { listHashOwners } from "./proof-range-store.ts";
import { checkProofs } from "./proofs.ts";
import { ownFault, readAnswer } from "./read-answer.ts";
import type { CheckedItem, KnownRound } from "./round.ts";
import { listTableStates, type LockedTable, type StoredAnchor } from "./store.ts";

/** An answer that was read and proven, ready to be taken in; or the reason why it is refused. */
export type Prepared = { payload: UnreadPayload } & (
  | { ok: true; items: CheckedItem[]; refusedByAdapter: number; feedOrder: FeedOrder; isPage: boolean }
  | { ok: false; reason: string }
);

/** Everything of a batch that is worked out before the locks are taken. */
export interface PreparedBatch {
  answers: Prepared[];
  /** The newest proven round of each table after this batch. */
  anchors: Map<number, StoredAnchor>;
  /** What is stored of the rounds that the answers name, by table, as long as the table's last seq is `lastSeqs`. */
  known: ReadonlyMap<number, ReadonlyMap<string, KnownRound>>;
  lastSeqs: ReadonlyMap<number, bigint>;
}

/** Batches whose tables or rounds are looked up by one statement, and how many rounds. */
const BATCHES_AT_ONCE = 50;
const ROUNDS_AT_ONCE = 5_000;

const statesTogether = togetherBy<Sql, readonly number[], LockedTable[]>(
  async (sql, asked) => {
    const tables = new Map((await listTableStates(sql, asked.flat())).map((table) => [table.id, table]));
    return asked.map((ids) => [...new Set(ids)].flatMap((id) => tables.get(id) ?? []));
  },
  { items: BATCHES_AT_ONCE },
);

type KnownByTable = Map<number, Map<string, KnownRound>>;

const knownTogether = togetherBy<Sql, readonly { tableId: number; roundId: string }[], KnownByTable>(
  async (sql, asked) => {
    const known = await listKnown(sql, asked.flat());
    return asked.map((ids) => {
      const own = new Set(ids.map(({ tableId }) => tableId));
      return new Map([...own].flatMap((id) => (known.has(id) ? [[id, known.get(id)!]] : [])));
    });
  },
  { items: BATCHES_AT_ONCE, weight: { most: ROUNDS_AT_ONCE, of: (ids) => ids.length } },
);

/**
 * Reads and proves answers, which come in request order, without any lock: parsing can take a while, and the walk to the
 * published end of a chain seconds. What a proof rests on does not change meanwhile.
 */
export async function prepareBatch(
  sql: Sql,
  house: House,
  prover: Prover,
  payloads: readonly (UnreadPayload & { kind?: "poll" | "history" })[],
  signal: AbortSignal,
): Promise<PreparedBatch> {
  const tables = new Map(
    (
      await statesTogether(
        sql,
        payloads.map(({ tableId }) => tableId),
        signal,
      )
    ).map((table) => [table.id, table]),
  );
  const anchors = new Map<number, StoredAnchor>();
  /** Whose hashes the answers before brought, which are not stored yet. */
  const owners = new Map<number, Map<string, string>>();
  const answers: Prepared[] = [];
  const reads = [];
  for (const payload of payloads) {
    // an answer of megabytes takes a while to parse; a hundred of them in a row would stop this process for seconds
    await othersTurn(undefined, { signal });
    const table = tables.get(payload.tableId);
    if (table === undefined) throw new Error(`the answer ${payload.id} is of a table that does not exist`);
    reads.push({ payload, table, read: readAnswer(house, table, { ...payload, kind: payload.kind ?? "poll" }) });
  }
  // asked once for all answers, and after the tables: where their last seq is the same under the locks, nothing was added
  const ofTables = await knownTogether(
    sql,
    reads.flatMap(({ table, read }) => (read.ok ? idsOf(table.id, read.items) : [])),
    signal,
  );
  for (const { payload, table, read } of reads) {
    await othersTurn(undefined, { signal });
    if (!read.ok) {
      answers.push({ payload, ok: false, reason: read.reason });
      continue;
    }
    const { fairness = null, feed } = read.settings;
    const before = anchors.get(table.id) ?? anchorFor(table, fairness);
    const known = ofTables.get(table.id) ?? NOTHING;
    const { roundIds } = table.state;
    const earlier = owners.get(table.id) ?? new Map<string, string>();
    owners.set(table.id, earlier);
    const findOwners = async (hashes: readonly string[]) =>
      new Map([...earlier, ...(await listHashOwners(sql, table.id, hashes))]);
    const points = before === null ? [] : [before];
    const world = { table: table.name, roundIds, fairness, known, points, findOwners };
    try {
      const { items, anchor } = await checkProofs(prover, world, read.items, signal);
      if (anchor !== null) anchors.set(table.id, anchor);
      for (const item of items) {
        if (item.ok && item.verified === true && item.round.hash !== null)
          earlier.set(item.round.hash, item.round.roundId);
      }
      const refusedByAdapter = read.items.filter(({ ok }) => !ok).length;
      const isPage = adapterOf(read.settings).rounds === "page";
      answers.push({ payload, ok: true, items, refusedByAdapter, feedOrder: feed.order, isPage });
    } catch (error) {
      signal.throwIfAborted();
      answers.push({ payload, ok: false, reason: ownFault(error) });
    }
  }
  const lastSeqs = new Map([...tables].map(([id, { state }]) => [id, state.lastSeq]));
  return { answers, anchors, known: ofTables, lastSeqs };
}

/** The proven round that a table begins with: the stored one, if it was proven in a chain that is still declared. */
export function anchorFor(table: LockedTable, fairness: Fairness | null): StoredAnchor | null {
  if (fairness === null || table.anchor === null) return null;
  const { of } = table.anchor;
  return chainsOf(fairness).some(({ id }) => id === of) ? table.anchor : null;
}

const NOTHING: ReadonlyMap<string, KnownRound> = new Map();

/** What is stored of the rounds that items name. */
export async function listKnownOf(
  sql: Queryable,
  tableId: number,
  items: readonly Named[],
): Promise<ReadonlyMap<string, KnownRound>> {
  return (await listKnown(sql, idsOf(tableId, items))).get(tableId) ?? NOTHING;
}

/** Anything that may name a round. */
type Named = { ok: true; round: { roundId: string } } | { ok: false; roundId: string | null };

/** The ids that items name, each once. */
export function idsOf(tableId: number, items: readonly Named[]): { tableId: number; roundId: string }[] {
  const ids = new Set(items.map((item) => (item.ok ? item.round.roundId : item.roundId)));
  return [...ids].flatMap((roundId) => (roundId === null ? [] : [{ tableId, roundId }]));
}
