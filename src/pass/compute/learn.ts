import type { PublishedReadingJson } from "../../forecasts/readings/reading-state.ts";
import {
  copyReferences,
  forgetGaps,
  learnReferences,
  referencesToJson,
  type References,
} from "../../forecasts/accuracy/figures/references.ts";
import { forgetContext, learn, stateOf, weights, type State } from "../../forecasts/model/k7.ts";
import type { Model } from "../../forecasts/model/model.ts";
import { encodeState, stateHash } from "../../forecasts/model/state.ts";
import type { AuditRow } from "../../forecasts/readings/house-audit.ts";
import { factsOf, unusualFacts, type Fact } from "../../forecasts/readings/reading-facts.ts";
import { readingToText } from "../../forecasts/readings/reading-json.ts";
import {
  auditOf,
  copyReading,
  readingHash,
  readRound,
  type ReadingMemory,
} from "../../forecasts/readings/reading-memory.ts";
import type { Color } from "../../rounds/colors.ts";
import type { HeadRow, ReadingRow, RoundRow, SnapshotRow } from "./rows.ts";
import { bandOf } from "./settle.ts";
import {
  READING_EVERY_MS,
  SNAPSHOT_EVERY,
  type PassState,
  type PassTime,
  type PublishedFacts,
  type TableFacts,
} from "./state.ts";
import { elapsedMs, hourOf } from "./times.ts";

/** The memories learned from a table's rounds. */
export interface Memories {
  /** K7's, with its derived values. */
  k7: State;
  references: References;
  reading: ReadingMemory;
}

/** A round for learning; late ones count for the reading alone. */
export type LearnedRound = Pick<
  RoundRow,
  "seq" | "roundId" | "hundredths" | "late" | "afterGap" | "verified" | "receivedAt"
>;

/** Copies of a state's memories, which may be changed without changing the state. */
export function copyMemories({ model, memory, references, reading }: CopiedState): Memories {
  return {
    k7: stateOf(model, memory.slice()),
    references: copyReferences(references),
    reading: copyReading(reading),
  };
}

type CopiedState = Pick<PassState, "model" | "memory" | "references" | "reading">;

/**
 * Learns rounds in seq order, in place, and returns the audit row of each hour that ended with them. Passes and replays
 * both use it, so that the same rounds always give the same memories.
 */
export function learnRounds(
  { k7, references, reading }: Memories,
  model: Model,
  { bands, resets }: Pick<TableFacts, "bands" | "resets">,
  rounds: readonly LearnedRound[],
): AuditRow[] {
  const audits: AuditRow[] = [];
  let receivedHour = "";
  let ofTime = "";
  for (const { seq, roundId, hundredths, late, afterGap, verified, receivedAt } of rounds) {
    if (receivedAt !== ofTime) [ofTime, receivedHour] = [receivedAt, hourOf(receivedAt)];
    if (reading.tally.hour !== null && receivedHour > reading.tally.hour) audits.push(...runningAudit(reading));
    // field by field: a spread takes half a microsecond
    readRound(reading, { seq, roundId, hundredths, late, afterGap, verified, receivedHour }, resets);
    if (late) continue;
    const color = bandOf(hundredths, bands);
    if (afterGap) {
      forgetContext(model, k7);
      forgetGaps(references);
    }
    learn(model, k7, color, hundredths >= model.x0Hundredths);
    learnReferences(references, color);
  }
  return audits;
}

/**
 * The snapshot that is due after a pass; null if the newest one is recent enough. The first rounds of a table get one:
 * it preserves the edge that the house declared then, whatever the houses file contains later.
 */
export function dueSnapshot(
  { model, snapshot }: Pick<PassState, "model" | "snapshot">,
  head: HeadRow,
  memories: Memories,
): SnapshotRow | null {
  const isYoung = snapshot !== null && head.lastSeq - snapshot.seq < BigInt(SNAPSHOT_EVERY);
  return isYoung ? null : snapshotOf(model, head, memories);
}

/** A snapshot of memories after the newest round of a table. */
export function snapshotOf(
  model: Model,
  head: Pick<HeadRow, "model" | "lastOrdinal" | "lastSeq">,
  { k7, references, reading }: Memories,
): SnapshotRow {
  const state = encodeState(model, k7);
  const text = readingToText(reading);
  return {
    model: head.model,
    ordinal: head.lastOrdinal,
    seq: head.lastSeq,
    state,
    stateHash: stateHash(state),
    reading: text,
    readingHash: readingHash(text),
    refs: referencesToJson(references),
  };
}

/** A reading to publish, and the audit of its running hour; null when none is due. */
export interface DueReading {
  row: ReadingRow;
  published: PublishedFacts;
  audits: AuditRow[];
}

/** Whether there are newer rounds than in the published reading, and it is ten seconds old. */
export function isReadingDue({ published }: Pick<PassState, "published">, head: HeadRow, issuedAt: string): boolean {
  if (head.lastSeq === 0n || published?.seq === head.lastSeq) return false;
  return published === null || elapsedMs(published.madeAt, issuedAt) >= READING_EVERY_MS;
}

/**
 * The reading that is due: there are newer rounds, and the last one is ten seconds old or a fact became unusual. Without
 * `learned`, the memories after the rounds of this pass, no fact changed.
 */
export function dueReading(
  state: Pick<PassState, "table" | "model" | "published" | "memory" | "reading">,
  head: HeadRow,
  learned: Memories | null,
  at: PassTime,
): DueReading | null {
  const { table, model, published } = state;
  if (head.lastSeq === 0n || published?.seq === head.lastSeq) return null;
  const isYoung = !isReadingDue(state, head, at.issuedAt);
  if (isYoung && learned === null) return null;
  const { k7, reading } = learned ?? { k7: state, reading: state.reading };
  const context = { colors: namesOf(table.bands), weights: weights(model, k7), tables: at.tables };
  if (isYoung) {
    const isNews = unusualFacts(reading, context).some((name) => published?.unusual.includes(name) !== true);
    if (!isNews) return null;
  }
  const facts = factsOf(reading, context);
  const json: PublishedReadingJson = {
    seq: String(head.lastSeq),
    rounds: reading.drift.rounds,
    made_at: at.issuedAt,
    facts,
  };
  return {
    row: { seq: head.lastSeq, reading: json },
    published: publishedFacts(json),
    audits: runningAudit(reading),
  };
}

/** The part of a published reading that later passes need. */
export function publishedFacts({ seq, made_at: madeAt, facts }: PublishedReadingJson): PublishedFacts {
  return { seq: BigInt(seq), madeAt, unusual: facts.filter(isUnusual).map(({ name }) => name) };
}

function isUnusual({ unusual }: Fact): boolean {
  return unusual;
}

function runningAudit(reading: ReadingMemory): AuditRow[] {
  const row = auditOf(reading);
  return row === null ? [] : [row];
}

function namesOf(bands: readonly Color[]): string[] {
  return bands.map(({ name }) => name);
}
