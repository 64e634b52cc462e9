import { hash } from "node:crypto";
import type { Queryable, Sql } from "../db/client.ts";
import type { Fairness } from "../houses/fairness/index.ts";
import type { ProvenPoint, Prover } from "../houses/fairness/prove.ts";
import type { House } from "../houses/house.ts";
import type { FeedSettings } from "../houses/settings.ts";
import type { UnreadPayload } from "./payload-store.ts";
import { checkProofs } from "./proofs.ts";
import { ownFault, readAnswer } from "./read-answer.ts";
import type { CheckedItem, KnownRound } from "./round.ts";
import { listKnown, listTableStates, type LockedTable, type StoredAnchor } from "./store.ts";

/** An answer that was read and proven, ready to be taken in; or the reason why it is refused. */
export type Prepared = { payload: UnreadPayload } & (
  | { ok: true; items: CheckedItem[]; refusedByAdapter: number; feedOrder: FeedSettings["order"] }
  | { ok: false; reason: string }
);

/** Everything of a batch that is worked out before the locks are taken. */
export interface PreparedBatch {
  answers: Prepared[];
  /** The newest proven round of each table after this batch. */
  anchors: Map<number, StoredAnchor>;
}

/**
 * Reads and proves answers, which come in request order, without any lock: parsing can take a while, and the walk to the
 * published end of a chain seconds. What a proof rests on does not change meanwhile.
 */
export async function prepareBatch(
  sql: Sql,
  house: House,
  prover: Prover,
  payloads: readonly UnreadPayload[],
  signal: AbortSignal,
): Promise<PreparedBatch> {
  const tables = new Map(
    (
      await listTableStates(
        sql,
        payloads.map(({ tableId }) => tableId),
      )
    ).map((table) => [table.id, table]),
  );
  const anchors = new Map<number, StoredAnchor>();
  const answers: Prepared[] = [];
  for (const payload of payloads) {
    const table = tables.get(payload.tableId);
    if (table === undefined) throw new Error(`the answer ${payload.id} is of a table that does not exist`);
    const read = readAnswer(house, table, { ...payload, kind: "poll" });
    if (!read.ok) {
      answers.push({ payload, ok: false, reason: read.reason });
      continue;
    }
    const { fairness = null, feed } = read.settings;
    const before = anchors.get(table.id) ?? anchorFor(table, fairness);
    const known = fairness === null ? NOTHING : await listKnownOf(sql, table.id, read.items);
    const world = { table: table.name, fairness, known, points: before === null ? [] : [before] };
    try {
      const { items, anchor } = await checkProofs(prover, world, read.items, signal);
      if (fairness !== null && anchor !== null) anchors.set(table.id, storedAnchor(anchor, fairness));
      const refusedByAdapter = read.items.filter(({ ok }) => !ok).length;
      answers.push({ payload, ok: true, items, refusedByAdapter, feedOrder: feed.order });
    } catch (error) {
      signal.throwIfAborted();
      answers.push({ payload, ok: false, reason: ownFault(error) });
    }
  }
  return { answers, anchors };
}

/** The proven round that a table begins with: the stored one, if it was proven with the same settings. */
export function anchorFor(table: LockedTable, fairness: Fairness | null): StoredAnchor | null {
  if (fairness === null || table.anchor === null) return null;
  return table.anchor.of === nameOfChain(fairness) ? table.anchor : null;
}

/** A proven round with the name of the settings it was proven with. */
export function storedAnchor({ number, hash: proven }: ProvenPoint, fairness: Fairness): StoredAnchor {
  return { number, hash: proven, of: nameOfChain(fairness) };
}

function nameOfChain({ scheme, salt, terminating_hash, terminating_id }: Fairness): string {
  return hash("sha256", JSON.stringify([scheme, salt, terminating_hash, terminating_id]));
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
