import type { Sql } from "../db/client.ts";
import { togetherBy } from "../db/together.ts";
import type { Prover } from "../houses/fairness/prove.ts";
import { syncFormatCircuit } from "../houses/format-store.ts";
import type { House } from "../houses/house.ts";
import { listUnread } from "./payload-store.ts";
import { prepareBatch, type Prepared, type PreparedBatch } from "./prepare.ts";
import { isOwnFault, ownFault } from "./read-answer.ts";
import { storeBatch, storeBatches, type NormalizedBatch } from "./store-batch.ts";

/** Houses that are taken in by one transaction, and the items of their answers: it holds their tables for some 300 ms. */
const HOUSES_AT_ONCE = 50;
const ITEMS_AT_ONCE = 5_000;

const storeTogether = togetherBy<Sql, PreparedBatch, NormalizedBatch>(
  (sql, batches) => sql.begin((transaction) => storeBatches(transaction, batches)),
  {
    items: HOUSES_AT_ONCE,
    weight: { most: ITEMS_AT_ONCE, of: itemsOf },
    apart: (sql, batch) => sql.begin((transaction) => storeBatch(transaction, batch, new Map())),
  },
);

/**
 * Takes in the oldest unread answers of a house, at most a batch; null where none is unread.
 *
 * Reading and proving come first and hold no lock; then one transaction takes the tables in id order, gives each round
 * its place and writes everything, with those of other houses that come at the same time. An answer that breaks the
 * transaction is refused alone, and the others go on.
 */
export async function normalizeBatch(
  sql: Sql,
  house: House,
  prover: Prover,
  signal: AbortSignal,
): Promise<NormalizedBatch | null> {
  const payloads = await listUnread(sql, house.id, signal);
  if (payloads.length === 0) return null;
  const prepared = await prepareBatch(sql, house, prover, payloads, signal);
  const batch = await storeAll(sql, prepared, signal);
  if (batch.formats.length > 0) await syncFormatCircuit(sql, house.id, recoveredOf(batch));
  return batch;
}

function itemsOf({ answers }: PreparedBatch): number {
  return answers.reduce((sum, answer) => sum + (answer.ok ? answer.items.length : 1), 0);
}

async function storeAll(sql: Sql, prepared: PreparedBatch, signal: AbortSignal): Promise<NormalizedBatch> {
  try {
    return await storeTogether(sql, prepared, signal);
  } catch (error) {
    if (!isOwnFault(error)) throw error;
    return storeEach(sql, prepared, error, signal);
  }
}

/** Tables whose format was another one, and is known again by the last of their answers. */
function recoveredOf({ formats }: NormalizedBatch): number[] {
  const last = new Map(formats.map(({ tableId, to }) => [tableId, to]));
  return formats.flatMap(({ tableId, from }) =>
    from.since !== null && last.get(tableId)?.since === null ? [tableId] : [],
  );
}

async function storeEach(
  sql: Sql,
  batch: PreparedBatch,
  first: unknown,
  signal: AbortSignal,
): Promise<NormalizedBatch> {
  const sum: NormalizedBatch = { ...EMPTY, payloadIds: [], gaps: [], formats: [] };
  const useless = new Map<number, boolean>();
  for (const answer of batch.answers) {
    signal.throwIfAborted();
    try {
      if (batch.answers.length === 1) throw first;
      add(sum, await sql.begin((transaction) => storeBatch(transaction, { ...batch, answers: [answer] }, useless)));
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      const refused: Prepared = { ok: false, payload: answer.payload, reason: ownFault(error) };
      add(sum, await sql.begin((transaction) => storeBatch(transaction, { ...batch, answers: [refused] }, useless)));
    }
  }
  return sum;
}

const EMPTY: Omit<NormalizedBatch, "payloadIds" | "gaps" | "formats"> = {
  payloads: 0,
  refused: 0,
  rounds: 0,
  late: 0,
  quarantined: 0,
  conflicts: 0,
  published: 0,
  proofFailed: false,
};

function add(sum: NormalizedBatch, one: NormalizedBatch): void {
  sum.payloadIds.push(...one.payloadIds);
  sum.payloads += one.payloads;
  sum.refused += one.refused;
  sum.rounds += one.rounds;
  sum.late += one.late;
  sum.quarantined += one.quarantined;
  sum.conflicts += one.conflicts;
  sum.gaps.push(...one.gaps);
  sum.formats.push(...one.formats);
  sum.published += one.published;
  sum.proofFailed ||= one.proofFailed;
}
