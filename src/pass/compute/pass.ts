import { chancesNow, findCutoff, issueSet, openForecasts } from "./issue.ts";
import { copyMemories, dueReading, dueSnapshot, learnRounds, type DueReading, type Memories } from "./learn.ts";
import { placeResponse, type Placed } from "./place.ts";
import type { ForecastSetRow, HeadRow, RoundRow, SnapshotRow } from "./rows.ts";
import { dispute, settle, type SeenRound, type Settled } from "./settle.ts";
import type { PassResponse } from "./response.ts";
import type { CompletePassRows, OpenForecast, PassResult, PassState, PassTime } from "./state.ts";

/**
 * Processes a response of a table: places its rounds, settles the forecasts that end with them, learns them, issues the
 * set after the newest one, and computes the data for callers. Pure: it reads and writes nothing, `state` is unchanged,
 * and the returned state counts only once the rows are committed.
 *
 * @throws Error if a round contradicts the table (a color it does not have); then store the payload unread
 */
export function pass(state: PassState, response: PassResponse, at: PassTime): PassResult {
  const placed = placeResponse(state, response);
  const settled = settlePlaced(state, placed, at);
  const learned = learnPlaced(state, placed, at);
  const issued = issueAfter(state, placed, { settled, learned }, at);
  const head = headAfter(state, placed, settled, issued);
  const shown = showToCallers(state, { head, learned, issued }, at);
  const isQuiet = isNothingNew(state, placed, shown);
  return {
    state: stateAfter(state, placed, { learned, issued, shown, isQuiet }),
    rows: { ...rowsOf(state, placed, { settled, learned, issued, shown }), isQuiet },
    sequence: placed.sequence,
  };
}

/** Whether a pass changes nothing but the time of the last response: most polls find nothing new. */
function isNothingNew({ head: before }: PassState, { rows }: Placed, { head, reading }: Shown): boolean {
  if (rows.payloads.length + rows.marks.length + rows.notices.length + rows.quarantine.length > 0) return false;
  if (rows.changesNotices || rows.format !== null || reading !== null) return false;
  const changed = (Object.keys(head) as (keyof HeadRow)[]).filter((key) => head[key] !== before[key]);
  return changed.every((key) => key === "respondedAt");
}

/** Settles the forecasts that end with the placed rounds, after those of earlier rounds which now have a second result. */
function settlePlaced({ table, head, open }: PassState, { rows, disputed }: Placed, at: PassTime): Settled {
  if (open.length === 0) return { open, scoreSets: [], scoreHash: head.scoreHash };
  let left = open;
  for (const seq of disputed) if (seq <= head.lastSeq) left = dispute(left, seq, CONFLICT);
  return settle(
    left,
    rows.rounds.flatMap((round) => seenRound(round, disputed)),
    { tableId: table.tableId, previous: head.scoreHash, scoredAt: at.issuedAt, maySettle: at.maySettle },
  );
}

/** The reason of a void by a second result of the house. */
const CONFLICT = 3;

function seenRound(round: RoundRow, disputed: ReadonlySet<bigint>): SeenRound[] {
  const { seq, ordinal, requestedAt, roundId, hundredths, afterGap } = round;
  if (ordinal === null) return [];
  return [{ seq, ordinal, requestedAt, roundId, hundredths, afterGap, dispute: disputed.has(seq) ? CONFLICT : 0 }];
}

/** The memories after the placed rounds; null without any. */
interface Learned extends Memories {
  audits: CompletePassRows["audits"];
  snapshot: SnapshotRow | null;
}

function learnPlaced(state: PassState, placed: Placed, { batch }: PassTime): Learned | null {
  const { rounds } = placed.rows;
  if (rounds.length === 0 && batch !== "last") return null;
  const memories = copyMemories(state);
  const audits = learnRounds(memories, state.model, state.table, rounds);
  return { ...memories, audits, snapshot: batch === "more" ? null : dueSnapshot(state, placed.state.head, memories) };
}

/** The set of a pass, and every forecast that is open after it. */
interface Issued {
  set: ForecastSetRow | null;
  open: readonly OpenForecast[];
}

function issueAfter(
  { table, model, ends }: PassState,
  placed: Placed,
  { settled: { open }, learned }: { settled: Settled; learned: Learned | null },
  at: PassTime,
): Issued {
  const cutoff = findCutoff(placed.rows.rounds, placed.state, at);
  if (cutoff === null || learned === null) return { set: null, open };
  const { k7, references } = learned;
  const { head } = placed.state;
  const set = issueSet({ table, model, k7, references }, cutoff, { head, open, previousEnds: ends }, at.issuedAt);
  return { set, open: [...open, ...openForecasts(set, table.bands)] };
}

function headAfter(before: PassState, placed: Placed, { scoreHash }: Settled, { set, open }: Issued): HeadRow {
  const { head } = placed.state;
  const openSets = open === before.open ? head.openSets : [...new Set(open.map(({ cutoffSeq }) => cutoffSeq))];
  const after = { ...head, scoreHash, openSets, hasEnded: open.some(({ end }) => end !== null) };
  if (set === null) return after;
  return {
    ...after,
    forecastSeq: head.forecastSeq + BigInt(set.features.length),
    forecastHash: set.hashes.slice(-64),
    firstForecastAt: head.firstForecastAt ?? set.issuedAt,
    firstForecastOrdinal: head.firstForecastOrdinal ?? set.cutoffOrdinal,
    setSeq: set.cutoffSeq,
  };
}

/** The data for callers after a pass. */
interface Shown {
  head: HeadRow;
  reading: DueReading | null;
}

function showToCallers(
  state: PassState,
  { head, learned, issued }: { head: HeadRow; learned: Learned | null; issued: Issued },
  at: PassTime,
): Shown {
  const { table, model } = state;
  const hasMoved = learned !== null && head.lastOrdinal > state.head.lastOrdinal;
  const nowPpm = hasMoved
    ? chancesNow({ table, model, k7: learned.k7 }, issued.open, { head, issued: issued.set })
    : head.nowPpm;
  return {
    head: { ...head, nowPpm },
    reading: at.batch === "more" ? null : dueReading(state, head, learned, at),
  };
}

function stateAfter(
  state: PassState,
  placed: Placed,
  {
    learned,
    issued: { set, open },
    shown,
    isQuiet,
  }: { learned: Learned | null; issued: Issued; shown: Shown; isQuiet: boolean },
): PassState {
  return {
    ...state,
    ...placed.state,
    ...(learned !== null && {
      memory: learned.k7.memory,
      references: learned.references,
      reading: learned.reading,
    }),
    version: isQuiet ? state.version : state.version + 1n,
    head: shown.head,
    notedAt: shown.head.respondedAt,
    published: shown.reading?.published ?? state.published,
    snapshot: snapshotKept(learned?.snapshot ?? state.snapshot),
    open,
    ends: set?.ends ?? state.ends,
  };
}

/** The part of a snapshot that a state keeps; its texts would waste memory. */
function snapshotKept(snapshot: PassState["snapshot"]): PassState["snapshot"] {
  return snapshot === null ? null : { seq: snapshot.seq, stateHash: snapshot.stateHash };
}

function rowsOf(
  { table, version }: PassState,
  { rows }: Placed,
  {
    settled,
    learned,
    issued: { set },
    shown,
  }: { settled: Settled; learned: Learned | null; issued: Issued; shown: Shown },
): Omit<CompletePassRows, "isQuiet"> {
  return {
    ...rows,
    tableId: table.tableId,
    version,
    head: shown.head,
    forecastSet: set,
    scoreSets: settled.scoreSets,
    snapshot: learned?.snapshot ?? null,
    reading: shown.reading?.row ?? null,
    audits: [...(learned?.audits ?? []), ...(shown.reading?.audits ?? [])],
  };
}
