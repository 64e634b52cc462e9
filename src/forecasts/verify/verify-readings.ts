import type { Transaction } from "../../db/client.ts";
import { listStoredAudits, type StoredAudit } from "../readings/audit-store.ts";
import type { Wrong } from "./check-round.ts";
import type { AuditRow } from "../readings/house-audit.ts";
import { factsOf, type Fact } from "../readings/reading-facts.ts";
import { readingFromText, readingToText } from "../readings/reading-json.ts";
import { emptyReading, readingHash, readRounds, type ReadingMemory } from "../readings/reading-memory.ts";
import {
  findPublishedReading,
  listReadingMemories,
  listRoundsToRead,
  type StoredReading,
} from "../readings/reading-store.ts";
import type { VerifiedTable } from "./verify-store.ts";

/** A reading's memory, a published reading or an audit row that is not what the rounds give. */
export interface WrongReading extends Wrong {
  kind: "reading" | "published_reading" | "audit";
  id: string;
}

const ROUNDS_PER_READ = 5000;

/**
 * Makes the memory of a table's reading anew from its rounds, and with it every audit row and the facts that callers
 * see. Null where all are as stored.
 */
export async function verifyReadings(tx: Transaction, table: VerifiedTable): Promise<WrongReading | null> {
  const [stored] = await listReadingMemories(tx, [table.id]);
  const audits = await listStoredAudits(tx, table.id);
  if (stored === undefined) {
    const [first] = audits;
    if (first === undefined) return null;
    return wrongMemory(table, { expected: "a memory beside the audit rows of the table", found: "none" });
  }
  const known = readingFromText(stored.text);
  if (known === null) return wrongMemory(table, { expected: "the memory of a reading", found: "a damaged text" });
  const { memory, rows } = await replay(tx, table, known, stored.learnedSeq);
  const wrong = checkMemory(memory, stored);
  if (wrong !== null) return wrongMemory(table, wrong);
  return checkAudits(table, rows, audits) ?? (await checkPublished(tx, table, memory, stored.learnedSeq));
}

/** With the bands and the edge that the stored memory says it began with. */
async function replay(
  tx: Transaction,
  { id }: VerifiedTable,
  { model, consecutive }: ReadingMemory,
  upToSeq: bigint,
): Promise<{ memory: ReadingMemory; rows: Map<string, AuditRow> }> {
  const memory = emptyReading(model, { consecutive });
  const rows = new Map<string, AuditRow>();
  for (;;) {
    const span = { tableId: id, afterSeq: memory.tally.seq, upToSeq };
    const rounds = await listRoundsToRead(tx, [span], ROUNDS_PER_READ);
    for (const row of readRounds(memory, rounds)) rows.set(row.hour, row);
    if (rounds.length < ROUNDS_PER_READ) return { memory, rows };
  }
}

function checkMemory(memory: ReadingMemory, { text, hash, learnedSeq }: StoredReading): Wrong | null {
  if (memory.tally.seq !== learnedSeq) {
    return { expected: `a memory of ${memory.tally.seq} rounds`, found: `one of ${learnedSeq}` };
  }
  if (readingHash(text) !== hash) return { expected: `hash ${readingHash(text)}`, found: `hash ${hash}` };
  const replayed = readingToText(memory);
  return replayed === text ? null : { expected: `memory ${readingHash(replayed)}`, found: `memory ${hash}` };
}

function checkAudits(
  { name }: VerifiedTable,
  rows: ReadonlyMap<string, AuditRow>,
  audits: readonly StoredAudit[],
): WrongReading | null {
  const stored = new Map(audits.map((audit) => [audit.hour, audit]));
  for (const { hour } of audits) {
    if (!rows.has(hour)) {
      return { kind: "audit", id: `${name} ${hour}`, expected: "none: no round counts there", found: "a row" };
    }
  }
  for (const [hour, row] of rows) {
    const audit = stored.get(hour);
    const wrong =
      audit === undefined ? { expected: "a row", found: "none" } : checkAudit(row, audit, audit === audits.at(-1));
    if (wrong !== null) return { kind: "audit", id: `${name} ${hour}`, ...wrong };
  }
  return null;
}

const AUDITED = [
  "seq",
  "rounds",
  "tested",
  "edgePpm",
  "lnE",
  "lnEMax",
  "rejectedSeq",
  "proven",
  "missing",
  "gaps",
] as const satisfies readonly (keyof AuditRow)[];

function checkAudit(row: AuditRow, audit: StoredAudit, isNewest: boolean): Wrong | null {
  for (const name of AUDITED) {
    if (row[name] !== audit[name]) return { expected: `${name} ${row[name]}`, found: `${name} ${audit[name]}` };
  }
  // what is seen between two rounds is counted with the next one
  if (isNewest ? audit.conflicts > audit.conflictsSeen : audit.conflicts !== audit.conflictsSeen) {
    return { expected: `conflicts ${audit.conflictsSeen}`, found: `conflicts ${audit.conflicts}` };
  }
  // settled items are deleted after a time, so that there may be fewer of them by now
  if (!isNewest && audit.proofsFailed < audit.proofsFailedSeen) {
    return { expected: `proofs_failed ${audit.proofsFailedSeen}`, found: `proofs_failed ${audit.proofsFailed}` };
  }
  return null;
}

/** What depends on the model's weights and on the number of tables at the time is left out. */
const BY_OTHERS = ["dependence_required", "dependence_weight"];

async function checkPublished(
  tx: Transaction,
  table: VerifiedTable,
  memory: ReadingMemory,
  learnedSeq: bigint,
): Promise<WrongReading | null> {
  const published = await findPublishedReading(tx, table.id);
  if (published === null || BigInt(published.seq) !== learnedSeq) return null;
  const colors = table.bands.map(({ name }) => name);
  const weights = memory.model.parameters.priorWeights;
  const facts = factsOf(memory, { colors, weights, tables: 1 });
  const of = (list: readonly Fact[]) => list.filter(({ name }) => !BY_OTHERS.includes(name)).map(factText);
  const [expected, found] = [of(facts), of(published.facts)];
  const id = table.name;
  if (published.rounds !== memory.drift.rounds) {
    const { rounds } = published;
    return { kind: "published_reading", id, expected: `rounds ${memory.drift.rounds}`, found: `rounds ${rounds}` };
  }
  for (let i = 0; i < Math.max(expected.length, found.length); i++) {
    if (expected[i] === found[i]) continue;
    return { kind: "published_reading", id, expected: expected[i] ?? "no more facts", found: found[i] ?? "no fact" };
  }
  return null;
}

/** `unusual` of the evidence on dependence hangs on the number of tables. */
function factText({ name, value, expected, rounds, unusual }: Fact): string {
  const mark = name === "dependence_evidence" ? "" : `, unusual ${unusual}`;
  return `${name} ${value}, expected ${expected}, rounds ${rounds}${mark}`;
}

function wrongMemory({ name }: VerifiedTable, wrong: Wrong): WrongReading {
  return { kind: "reading", id: name, ...wrong };
}
