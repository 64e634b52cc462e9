import type { Transaction } from "../../db/client.ts";
import { isOwnFault } from "../../rounds/read-answer.ts";
import { reasonOf } from "../../errors.ts";
import { deleteAudits, saveAudits } from "./audit-store.ts";
import type { AuditRow } from "./house-audit.ts";
import { weights, type State } from "../model/k7.ts";
import { createModel, type Model } from "../model/model.ts";
import { factsOf } from "./reading-facts.ts";
import { readingFromText, readingToText } from "./reading-json.ts";
import { emptyReading, readingHash, readRounds, type ReadingMemory } from "./reading-memory.ts";
import {
  countTables,
  deleteReadingMemory,
  listReadingMemories,
  listRoundsToRead,
  publishReadings,
  saveReadingMemories,
  type StoredReading,
} from "./reading-store.ts";

/** A table whose model has learned up to a seq, under its lock. */
export interface TableToRead {
  tableId: number;
  consecutive: boolean;
  colors: readonly string[];
  model: Model;
  state: State;
  /** What the house declares now, null where it declares nothing; a memory that is there keeps what it began with. */
  edge: number | null;
  learnedSeq: bigint;
  /** The newest seq of all: a reading of anything older is not shown. */
  lastSeq: bigint;
}

/**
 * Takes the rounds that the model has learned into readings and audits, at most `most` of all tables together, and shows
 * the readings of tables that know all their rounds. A memory that is missing, damaged or of another version is made
 * anew from the first round. Needs the tables' locks. Tables with rounds left to take in are `unfinished`.
 *
 * A memory that reads well and makes no sense keeps no other table from going on: its own work is undone, it is told of
 * as `damaged`, with the reason, and it is made anew next time.
 */
export async function learnReadings(
  tx: Transaction,
  tables: readonly TableToRead[],
  most: number,
): Promise<{ unfinished: Set<number>; damaged: Map<number, string> }> {
  const unfinished = new Set<number>();
  const damaged = new Map<number, string>();
  if (tables.length === 0) return { unfinished, damaged };
  const together = await tryLearning(tx, tables, most);
  if (together.ok) return { unfinished: new Set(together.unfinished), damaged };
  for (const table of tables) {
    const alone = await tryLearning(tx, [table], most);
    if (alone.ok) {
      for (const id of alone.unfinished) unfinished.add(id);
      continue;
    }
    damaged.set(table.tableId, reasonOf(alone.error));
    await deleteReadingMemory(tx, table.tableId);
  }
  return { unfinished, damaged };
}

async function tryLearning(
  tx: Transaction,
  tables: readonly TableToRead[],
  most: number,
): Promise<{ ok: true; unfinished: number[] } | { ok: false; error: unknown }> {
  try {
    return { ok: true, unfinished: await tx.savepoint((inner) => learnTogether(inner, tables, most)) };
  } catch (error) {
    if (!isOwnFault(error)) throw error;
    return { ok: false, error };
  }
}

/** Gives the tables with rounds left. */
async function learnTogether(tx: Transaction, tables: readonly TableToRead[], most: number): Promise<number[]> {
  const ids = tables.map(({ tableId }) => tableId);
  const stored = new Map((await listReadingMemories(tx, ids)).map((row) => [row.tableId, row]));
  const begun = tables.map((table) => ({ table, ...memoryOf(table, stored.get(table.tableId)) }));
  await deleteAudits(
    tx,
    begun.filter(({ isNew }) => isNew).map(({ table }) => table.tableId),
  );
  const spans = begun
    .filter(({ table, afterSeq }) => afterSeq < table.learnedSeq)
    .map(({ table: { tableId, learnedSeq }, afterSeq }) => ({ tableId, afterSeq, upToSeq: learnedSeq }));
  const limit = Math.ceil(most / Math.max(spans.length, 1));
  const rounds = Map.groupBy(await listRoundsToRead(tx, spans, limit), ({ tableId }) => tableId);
  const read = begun.map(({ table, memory, afterSeq }) => {
    const own = rounds.get(table.tableId) ?? [];
    const audits = readRounds(memory, own);
    return { table, memory, afterSeq, audits, seq: reachedSeq(table, memory, own.length === limit) };
  });
  const changed = read.filter(({ seq, afterSeq }) => seq > afterSeq);
  await saveReadingMemories(
    tx,
    changed.map(({ table: { tableId }, memory, seq }) => storedOf(tableId, memory, seq)),
  );
  await saveAudits(
    tx,
    changed.map(({ table: { tableId }, audits }): { tableId: number; rows: AuditRow[] } => ({ tableId, rows: audits })),
  );
  const current = changed.filter(({ table, seq }) => seq === table.lastSeq);
  const context = { tables: current.length === 0 ? 0 : await countTables(tx) };
  await publishReadings(
    tx,
    current.map(({ table, memory, seq }) => ({
      tableId: table.tableId,
      seq: String(seq),
      rounds: memory.drift.rounds,
      facts: factsOf(memory, { ...context, colors: table.colors, weights: weights(table.model, table.state) }),
    })),
  );
  return read.flatMap(({ table, seq }) => (seq < table.lastSeq ? [table.tableId] : []));
}

/** Where a reading stands after its rounds: at the newest it took in, where more of them are left. */
function reachedSeq({ learnedSeq }: TableToRead, { tally }: ReadingMemory, isFull: boolean): bigint {
  return isFull ? tally.seq : learnedSeq;
}

function memoryOf(
  { model: { thresholds }, edge, consecutive }: TableToRead,
  stored: StoredReading | undefined,
): { memory: ReadingMemory; afterSeq: bigint; isNew: boolean } {
  const known = stored !== undefined && readingHash(stored.text) === stored.hash ? readingFromText(stored.text) : null;
  // the seq beside it is not part of its hash: rounds that it knows must not be counted again
  if (stored !== undefined && known !== null && known.tally.seq <= stored.learnedSeq)
    return { memory: known, afterSeq: stored.learnedSeq, isNew: false };
  // the constants are those of the first model, whatever one is promoted later: readings stay comparable
  const memory = emptyReading(createModel({ thresholds, edge }), { consecutive });
  return { memory, afterSeq: 0n, isNew: true };
}

function storedOf(tableId: number, memory: ReadingMemory, learnedSeq: bigint): StoredReading {
  const text = readingToText(memory);
  return { tableId, learnedSeq, text, hash: readingHash(text) };
}
