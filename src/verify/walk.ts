import type { Transaction } from "../db/client.ts";
import { learnRounds, snapshotOf } from "../pass/compute/learn.ts";
import type { ForecastSetRow, RoundRow, ScoreSetRow, SnapshotRow } from "../pass/compute/rows.ts";
import { see } from "../pass/compute/settle.ts";
import { forecastIdOf } from "../forecasts/chain/forecast-id.ts";
import { decodeState, modelOfState } from "../forecasts/model/state.ts";
import type { AuditRow } from "../forecasts/readings/house-audit.ts";
import { countAbove } from "../forecasts/readings/house-audit.ts";
import { auditOf } from "../forecasts/readings/reading-memory.ts";
import { checkEnd, checkSnapshot, headOf, missingRound } from "./check-end.ts";
import { checkPublishedReading } from "./check-readings.ts";
import { checkRound, roundBefore } from "./check-round.ts";
import { checkScoreSet, followRevisions, recordDispute } from "./check-scores.ts";
import { checkSet } from "./check-sets.ts";
import type { VerifiedTable } from "./verified-table-store.ts";
import { listStoredRounds, listStoredScores, listStoredSets } from "./verify-store.ts";
import type { NumberRange } from "./verify-unproven-store.ts";
import { noteProof, unprovenRange } from "./verify-unproven.ts";
import { beginWalk, type Walk, type WalkFailure } from "./walk-state.ts";

/** The number of correct records of each kind. */
export interface WalkCounts {
  rounds: number;
  forecasts: number;
  scores: number;
}

const ROUNDS_PER_READ = 2_000;

/**
 * Walks through the rounds of a table in order and recomputes everything that follows from them: their chain, the
 * model's state, every forecast set, every score with its revisions, the snapshot, the reading and the head. Returns
 * the first difference, or the audit rows of the table's hours and whether a score is missing.
 */
export async function walkTable(
  tx: Transaction,
  table: VerifiedTable,
  counts: WalkCounts,
  progress: (done: number) => void,
): Promise<WalkFailure | WalkedTable> {
  const walk = await beginWalk(tx, table, "verify");
  if ("kind" in walk) return walk;
  const failure = await walkRounds(tx, walk, { counts, progress });
  if (failure !== null) return failure;
  counts.scores += walk.scores.revised.size;
  const { audits, proofs } = walk;
  return (await checkEnd(tx, walk)) ?? { audits, unscored: oldestEnded(walk), unproven: unprovenRange(proofs) };
}

/** What a walk without a difference gives. */
export interface WalkedTable {
  audits: ReadonlyMap<string, AuditRow>;
  /** The forecast that ended first and has no score, and the seq of the round that ended it; null if there is none. */
  unscored: { forecastId: string; seq: bigint } | null;
  /** The range of round numbers in which a proven round determines an unproven one; null if there is none. */
  unproven: NumberRange | null;
}

function oldestEnded({ open, table }: Walk): WalkedTable["unscored"] {
  let oldest: WalkedTable["unscored"] = null;
  for (const { seq, end } of open)
    if (end !== null && (oldest === null || end.seq < oldest.seq))
      oldest = { forecastId: forecastIdOf(table.id, seq), seq: end.seq };
  return oldest;
}

/** The snapshot of a table, and the columns of its head, that follow from its rounds, forecasts and scores. */
export interface RebuiltTable {
  snapshot: SnapshotRow | null;
  head: ReturnType<typeof headOf>;
}

/**
 * The same walk without checking the snapshot and the head, in order to rebuild them. Returns the first damaged record,
 * which cannot be rebuilt, or the rebuilt table.
 */
export async function rebuildTable(
  tx: Transaction,
  table: VerifiedTable,
  progress: (done: number) => void,
): Promise<WalkFailure | RebuiltTable> {
  const walk = await beginWalk(tx, table, "rebuild");
  if ("kind" in walk) return walk;
  const counts = { rounds: 0, forecasts: 0, scores: 0 };
  const failure = (await walkRounds(tx, walk, { counts, progress })) ?? followRevisions(walk.scores, null);
  if (failure !== null) return failure;
  const head = headOf(walk);
  const snapshot = head.lastSeq === 0n ? null : snapshotOf(walk.model, head, walk.memories);
  return { snapshot, head };
}

async function walkRounds(
  tx: Transaction,
  walk: Walk,
  { counts, progress }: { counts: WalkCounts; progress: (done: number) => void },
): Promise<WalkFailure | null> {
  const { table } = walk;
  for (;;) {
    const afterSeq = walk.before.seq;
    const rounds = await listStoredRounds(tx, table.id, afterSeq, ROUNDS_PER_READ);
    const upToSeq = rounds.at(-1)?.seq ?? afterSeq;
    const span = { tableId: table.id, afterSeq, upToSeq };
    const sets = await listStoredSets(tx, span);
    const scores = await listStoredScores(tx, span);
    for (const round of rounds) {
      const failure = step(walk, round, sets.get(round.seq) ?? null, scores.get(round.seq) ?? null, counts);
      if (failure !== null) return failure;
    }
    progress(counts.rounds + counts.forecasts);
    if (rounds.length < ROUNDS_PER_READ) return null;
  }
}

function step(
  walk: Walk,
  round: RoundRow,
  set: ForecastSetRow | null,
  scores: ScoreSetRow | null,
  counts: WalkCounts,
): WalkFailure | null {
  const { table, before } = walk;
  if (round.seq !== before.seq + 1n) return missingRound(walk);
  const wrong = checkRound(table, round, before);
  if (wrong !== null) return { kind: "round", id: `${table.name} ${round.roundId}`, ...wrong };
  walk.before = roundBefore(table, round, before);
  noteProof(walk.proofs, table, round);
  counts.rounds += 1;
  const wrongScore = settleRound(walk, round, scores);
  if (wrongScore !== null) return wrongScore;
  counts.scores += scores?.features.length ?? 0;
  countAbove(walk.facts.resets, round);
  for (const row of learnRounds(walk.memories, walk.model, walk.facts, [round])) walk.audits.set(row.hour, row);
  const wrongSet = set === null ? null : checkSet(walk, round, set);
  if (wrongSet !== null) return wrongSet;
  counts.forecasts += set?.features.length ?? 0;
  if (!round.late) walk.newest = round;
  promote(walk, round);
  if (walk.stored.reading !== null && BigInt(walk.stored.reading.seq) === round.seq) {
    const running = auditOf(walk.memories.reading); // written with the reading
    if (running !== null) walk.audits.set(running.hour, running);
  }
  return walk.purpose === "rebuild" ? null : (checkSnapshot(walk, round) ?? checkPublishedReading(walk, round));
}

/** Adds an on-time round to the open forecasts and removes those that its score set settled. */
function settleRound(walk: Walk, round: RoundRow, scores: ScoreSetRow | null): WalkFailure | null {
  const { table } = walk;
  const { seq, ordinal, requestedAt, roundId, hundredths, afterGap } = round;
  if (ordinal !== null) {
    recordDispute(walk.scores, round);
    const seen = { seq, ordinal, requestedAt, roundId, hundredths, afterGap, dispute: 0 };
    walk.open = walk.open.map((forecast) => see(forecast, seen));
  }
  if (scores !== null) {
    const checked = checkScoreSet(walk.scores, round, scores, walk.open);
    if ("kind" in checked) return checked;
    const isLate = scores.scoredAt > round.receivedAt;
    for (const forecast of walk.open)
      if (isLate && checked.settled.has(forecast.seq)) walk.lateSettled.push({ forecast, scoredAt: scores.scoredAt });
    walk.open = walk.open.filter((forecast) => !checked.settled.has(forecast.seq));
  }
  const ended = walk.open.find(({ end }) => end !== null);
  if (ended === undefined || walk.stored.head.hasEnded || walk.purpose === "rebuild") return null;
  return {
    kind: "score",
    id: forecastIdOf(table.id, ended.seq),
    expected: `a score, since the forecast ended with seq ${ended.end?.seq}`,
    found: "none",
  };
}

/** Continues from a promoted state if one was promoted at this round. */
function promote(walk: Walk, { seq }: RoundRow): void {
  const state = walk.promotions.get(seq);
  if (state === undefined) return;
  walk.model = modelOfState(state);
  walk.memories.k7 = decodeState(walk.model, state);
  walk.promotedSeq = seq;
}
