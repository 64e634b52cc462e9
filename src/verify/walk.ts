import type { Transaction } from "../db/client.ts";
import { reasonOf } from "../errors.ts";
import { chancesNow, issueSet, openForecasts } from "../pass/compute/issue.ts";
import { learnRounds, snapshotOf, type Memories } from "../pass/compute/learn.ts";
import { loadTable, type StoredTable } from "../pass/stores/load-store.ts";
import type { ForecastSetRow, HeadRow, RoundRow, ScoreSetRow, SnapshotRow } from "../pass/compute/rows.ts";
import { see } from "../pass/compute/settle.ts";
import type { OpenForecast, TableFacts } from "../pass/compute/state.ts";
import { elapsedMs } from "../pass/compute/times.ts";
import { emptyReferences } from "../forecasts/accuracy/figures/references.ts";
import { forecastIdOf } from "../forecasts/chain/forecast-id.ts";
import { emptyState } from "../forecasts/model/k7.ts";
import type { Model } from "../forecasts/model/model.ts";
import { decodeState, modelOfState, stateHash } from "../forecasts/model/state.ts";
import { modelOf } from "../forecasts/model/table-model.ts";
import type { AuditRow } from "../forecasts/readings/house-audit.ts";
import { auditOf, emptyReading } from "../forecasts/readings/reading-memory.ts";
import { checkPublishedReading } from "./check-readings.ts";
import { checkRound, FIRST_ROUND, roundBefore, type RoundBefore, type Wrong } from "./check-round.ts";
import { beginScores, checkScoreSet, followRevisions, recordDispute, type ScoreWalk } from "./check-scores.ts";
import {
  findStraySet,
  listDisputes,
  listPromotions,
  listScoreRevisions,
  listStoredRounds,
  listStoredScores,
  listStoredSets,
  type StoredPromotion,
  type VerifiedTable,
} from "./verify-store.ts";

/** The first of a table's rounds, forecasts and scores that differs from what its rounds give. */
export interface WalkFailure extends Wrong {
  kind: "round" | "forecast" | "score" | "table" | "snapshot" | "published_reading";
  id: string;
}

/** The number of correct records of each kind. */
export interface WalkCounts {
  rounds: number;
  forecasts: number;
  scores: number;
}

const ROUNDS_PER_READ = 2_000;
const HASH = 64;
/** The longest pause that a table may declare, in milliseconds. */
const LONGEST_PAUSE_MS = 3_600_000;

/** A forecast that was settled late because settling had been paused: until then it was open. */
interface LateSettled {
  forecast: OpenForecast;
  scoredAt: string;
}

/** A table after some of its rounds. */
interface Walk {
  purpose: "verify" | "rebuild";
  table: VerifiedTable;
  stored: StoredTable;
  facts: TableFacts;
  before: RoundBefore;
  newest: RoundRow | null;
  model: Model;
  memories: Memories;
  promotions: StoredPromotion[];
  /** The round after which the newest promotion was made. */
  promotedSeq: bigint;
  audits: Map<string, AuditRow>;
  isSnapshotChecked: boolean;
  open: OpenForecast[];
  lateSettled: LateSettled[];
  scores: ScoreWalk;
  set: ForecastSetRow | null;
  firstSet: ForecastSetRow | null;
  forecastSeq: bigint;
  forecastHash: string;
}

/**
 * Walks through the rounds of a table in order and recomputes everything that follows from them: their chain, the
 * model's state, every forecast set, every score with its revisions, the snapshot, the reading and the head. Returns
 * the first difference, or the audit rows of the table's hours.
 */
export async function walkTable(
  tx: Transaction,
  table: VerifiedTable,
  counts: WalkCounts,
  progress: (done: number) => void,
): Promise<WalkFailure | { audits: ReadonlyMap<string, AuditRow> }> {
  const walk = await begin(tx, table, "verify");
  if ("kind" in walk) return walk;
  const failure = await walkRounds(tx, walk, { counts, progress });
  if (failure !== null) return failure;
  counts.scores += walk.scores.revised.size;
  return (await finish(tx, walk)) ?? { audits: walk.audits };
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
  const walk = await begin(tx, table, "rebuild");
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

async function begin(tx: Transaction, table: VerifiedTable, purpose: Walk["purpose"]): Promise<Walk | WalkFailure> {
  try {
    return await beginWalk(tx, table, purpose);
  } catch (error) {
    return { kind: "table", id: table.name, expected: "a state with the model's beginning", found: reasonOf(error) };
  }
}

async function beginWalk(tx: Transaction, table: VerifiedTable, purpose: Walk["purpose"]): Promise<Walk> {
  const stored = await loadTable(tx, table.id);
  if (stored === null) throw new Error(`expected a head of ${table.name}, found none`);
  const { id: tableId, name, bands, edge, consecutive } = table;
  const isSound = table.state !== null && (purpose === "verify" || isUndamaged(table.state, stored.snapshot));
  const model = isSound && table.state !== null ? modelOfState(table.state) : modelOf(bands, edge);
  if (model.name !== table.firstModel)
    throw new Error(`expected ${name} to begin with ${table.firstModel}, found a state or settings of ${model.name}`);
  return {
    purpose,
    table,
    stored,
    facts: { tableId, name, bands, edge, roundIds: consecutive ? "consecutive" : "opaque" },
    before: FIRST_ROUND,
    newest: null,
    model,
    memories: {
      k7: emptyState(model),
      references: emptyReferences(model.colors),
      reading: emptyReading(model, { consecutive }),
    },
    promotions: await listPromotions(tx, tableId),
    promotedSeq: 0n,
    audits: new Map(),
    isSnapshotChecked: false,
    open: [],
    lateSettled: [],
    scores: beginScores(table, await listScoreRevisions(tx, tableId), await listDisputes(tx, tableId)),
    set: null,
    firstSet: null,
    forecastSeq: 0n,
    forecastHash: "0".repeat(HASH),
  };
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
  counts.rounds += 1;
  const wrongScore = settleRound(walk, round, scores);
  if (wrongScore !== null) return wrongScore;
  counts.scores += scores?.features.length ?? 0;
  for (const row of learnRounds(walk.memories, walk.model, table.bands, [round])) walk.audits.set(row.hour, row);
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

/** Whether a state equals that of the snapshot and has the hash in the snapshot. */
function isUndamaged(state: Buffer, snapshot: SnapshotRow | null): boolean {
  return snapshot === null || !state.equals(snapshot.state) || stateHash(state) === snapshot.stateHash;
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

/** Computes a forecast set again and compares it. */
function checkSet(walk: Walk, round: RoundRow, set: ForecastSetRow): WalkFailure | null {
  const { table, facts, model, memories, forecastSeq, forecastHash } = walk;
  const fail = (expected: string, found: string, place = 0): WalkFailure => ({
    kind: "forecast",
    id: forecastIdOf(table.id, forecastSeq + 1n + BigInt(place)),
    expected,
    found,
  });
  if (round.late || round.source !== 0 || round.absentAt === null)
    return fail("a cutoff that was polled on time", `round ${round.roundId}, late ${round.late}`);
  const sinceAbsent = elapsedMs(round.absentAt, set.issuedAt);
  if (set.pauseMs > LONGEST_PAUSE_MS || sinceAbsent < 0 || sinceAbsent >= set.pauseMs)
    return fail(`an issue within ${set.pauseMs} ms after the cutoff was absent`, `${sinceAbsent} ms`);
  const last = walk.set?.issuedAt ?? round.receivedAt;
  if (set.issuedAt < last || set.issuedAt < round.receivedAt)
    return fail(`issued at ${last} or later`, `issued at ${set.issuedAt}`);
  walk.lateSettled = walk.lateSettled.filter(({ scoredAt }) => scoredAt > set.issuedAt);
  const open = [...walk.open, ...walk.lateSettled.map(({ forecast }) => forecast)];
  const expected = issueSet(
    { table: facts, model, k7: memories.k7, references: memories.references },
    round,
    {
      head: { ...walk.stored.head, model: model.name, forecastSeq, forecastHash, pauseMs: set.pauseMs },
      open,
      previousEnds: walk.set?.model === model.name ? walk.set.ends : table.bands.flatMap(() => [0n, 0n, 0n]),
    },
    set.issuedAt,
  );
  const wrong = difference(expected, set);
  if (wrong !== null) return fail(wrong.expected, wrong.found, wrong.place);
  walk.set = set;
  walk.firstSet ??= set;
  walk.open = [...walk.open, ...openForecasts(set, table.bands)];
  walk.forecastSeq += BigInt(set.features.length);
  walk.forecastHash = set.hashes.slice(-HASH);
  return null;
}

/** The first part in which two sets differ, and the forecast it belongs to. */
function difference(expected: ForecastSetRow, found: ForecastSetRow): (Wrong & { place: number }) | null {
  for (const name of Object.keys(expected) as (keyof ForecastSetRow)[]) {
    if (name === "hashes") continue;
    if (isSame(expected[name], found[name])) continue;
    return { expected: `${name} ${textOf(expected[name])}`, found: `${name} ${textOf(found[name])}`, place: 0 };
  }
  if (expected.hashes === found.hashes) return null;
  for (let place = 0; place < expected.features.length; place++) {
    const [want, have] = [expected, found].map(({ hashes }) => hashes.slice(HASH * place, HASH * (place + 1)));
    if (want !== have) return { expected: `hash ${want}`, found: `hash ${have}`, place };
  }
  return { expected: `${expected.features.length} hashes`, found: `${found.hashes.length / HASH}`, place: 0 };
}

/** Whether two columns of a set are equal: numbers, texts or arrays of them. */
function isSame(one: unknown, other: unknown): boolean {
  if (!Array.isArray(one) || !Array.isArray(other)) return one === other;
  return one.length === other.length && one.every((value, at) => value === other[at]);
}

function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join("|") : String(value);
}

/** Continues from a promoted state if one was promoted at this round. */
function promote(walk: Walk, { seq }: RoundRow): void {
  while (walk.promotions[0]?.toSeq === seq) {
    const [{ state } = { state: Buffer.alloc(0) }] = walk.promotions.splice(0, 1);
    walk.model = modelOfState(state);
    walk.memories.k7 = decodeState(walk.model, state);
    walk.promotedSeq = seq;
  }
}

function checkSnapshot(walk: Walk, { seq }: RoundRow): WalkFailure | null {
  const { table, model, memories, before } = walk;
  const { snapshot } = walk.stored;
  if (snapshot === null || snapshot.seq !== seq || snapshot.model !== model.name) return null;
  walk.isSnapshotChecked = true;
  const expected = snapshotOf(model, { model: model.name, lastOrdinal: before.ordinal, lastSeq: seq }, memories);
  const differs = (name: string, want: string, have: string): WalkFailure | null =>
    want === have
      ? null
      : { kind: "snapshot", id: `${table.name} ${model.name}`, expected: `${name} ${want}`, found: `${name} ${have}` };
  return (
    differs("ordinal", String(expected.ordinal), String(snapshot.ordinal)) ??
    differs("state", Buffer.from(expected.state).toString("hex"), Buffer.from(snapshot.state).toString("hex")) ??
    differs("state_hash", expected.stateHash, snapshot.stateHash) ??
    differs("reading", expected.reading, snapshot.reading) ??
    differs("reading_hash", expected.readingHash, snapshot.readingHash) ??
    differs("refs", JSON.stringify(sorted(expected.refs)), JSON.stringify(sorted(snapshot.refs)))
  );
}

/** An object with sorted keys; the database has its own order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, part]) => [key, sorted(part)]),
  );
}

/** Compares the head of a table with the end of its rounds, forecasts and scores. */
async function finish(tx: Transaction, walk: Walk): Promise<WalkFailure | null> {
  const { table, before, stored } = walk;
  const { head } = stored;
  if (before.seq < head.lastSeq) return missingRound(walk);
  const stray = await findStraySet(tx, table.id, before.seq);
  if (stray !== null) return { kind: "table", id: table.name, expected: "sets of stored rounds only", found: stray };
  if (walk.forecastSeq < head.forecastSeq)
    return {
      kind: "forecast",
      id: forecastIdOf(table.id, walk.forecastSeq + 1n),
      expected: `a forecast with seq ${walk.forecastSeq + 1n}`,
      found: "none",
    };
  const wrongScore = followRevisions(walk.scores, null);
  if (wrongScore !== null) return wrongScore;
  const { snapshot, reading } = stored;
  if (reading !== null && (BigInt(reading.seq) < 1n || BigInt(reading.seq) > before.seq))
    return {
      kind: "published_reading",
      id: table.name,
      expected: `a seq from 1 to ${before.seq}`,
      found: `seq ${reading.seq}`,
    };
  if (snapshot !== null && !walk.isSnapshotChecked)
    return {
      kind: "snapshot",
      id: `${table.name} ${snapshot.model}`,
      expected: `one after a round of ${walk.model.name}`,
      found: `one after seq ${snapshot.seq}`,
    };
  const expected = headOf(walk);
  for (const [name, want] of Object.entries(expected)) {
    const [wanted, had] = [textOf(want), textOf(head[name as keyof typeof expected])];
    if (wanted !== had)
      return { kind: "table", id: table.name, expected: `${name} ${wanted}`, found: `${name} ${had}` };
  }
  return null;
}

function headOf({ table, facts, before, newest, model, memories, open, set, firstSet, ...walk }: Walk) {
  const isLast = set !== null && set.cutoffSeq === newest?.seq && walk.promotedSeq < set.cutoffSeq;
  return {
    lastSeq: before.seq,
    lastOrdinal: before.ordinal,
    historyHash: before.historyHash,
    palette: table.palette,
    model: model.name,
    newestSeq: newest?.seq ?? null,
    newestRoundId: newest?.roundId ?? null,
    forecastSeq: walk.forecastSeq,
    forecastHash: walk.forecastHash,
    scoreHash: walk.scores.hash,
    setSeq: set?.cutoffSeq ?? null,
    firstForecastAt: firstSet?.issuedAt ?? null,
    firstForecastOrdinal: firstSet?.cutoffOrdinal ?? null,
    openSets: [...new Set(open.map(({ cutoffSeq }) => cutoffSeq))],
    hasEnded: open.some(({ end }) => end !== null),
    nowPpm:
      newest === null
        ? []
        : chancesNow({ table: facts, model, k7: memories.k7 }, open, {
            head: { model: model.name, lastOrdinal: before.ordinal },
            issued: isLast ? set : null,
          }),
  } satisfies Partial<HeadRow>;
}

function missingRound({ table: { name }, before }: Walk): WalkFailure {
  const seq = before.seq + 1n;
  return { kind: "round", id: `${name} seq ${seq}`, expected: `a round with seq ${seq}`, found: "none" };
}
