import { emptyReferences, referencesFromJson } from "../../forecasts/accuracy/figures/references.ts";
import { emptyState } from "../../forecasts/model/k7.ts";
import type { Model } from "../../forecasts/model/model.ts";
import { decodeState, modelOfState, stateHash } from "../../forecasts/model/state.ts";
import { modelOf } from "../../forecasts/model/table-model.ts";
import { readingFromText } from "../../forecasts/readings/reading-json.ts";
import { emptyReading, readingHash, type ReadingMemory } from "../../forecasts/readings/reading-memory.ts";
import { hashesOf, openForecasts } from "./issue.ts";
import { knownFrom } from "./known-rounds.ts";
import { copyMemories, learnRounds, publishedFacts, type Memories } from "./learn.ts";
import type { SnapshotRow } from "./rows.ts";
import { see } from "./settle.ts";
import type { OpenForecast, PassState, ReplayRound, StoredState } from "./state.ts";

/** Memories after some round. */
interface Start extends Memories {
  model: Model;
  /** 0 before the first. */
  seq: bigint;
  ordinal: bigint;
}

/**
 * Computes a table's state from stored rows: the newest snapshot, or `from`, an older cached state, and the rounds
 * after it. The state equals that of the passes that stored the rows.
 *
 * @throws Error if the snapshot, an open forecast set or its scores are damaged, or `rounds` do not reach from the snapshot
 *   to the head
 */
export function replay(stored: StoredState, from?: PassState): PassState {
  const { table, version, head, snapshot, rounds } = stored;
  const start = from !== undefined && isBefore(from, stored) ? startFrom(from) : startOf(stored);
  const added = rounds.filter(({ seq }) => seq > start.seq);
  checkRounds(stored, start, added);
  checkSets(stored);
  learnRounds(start, start.model, table, added);
  const newest = stored.sets.find(({ cutoffSeq }) => cutoffSeq === head.setSeq);
  return {
    table,
    version,
    head,
    notedAt: head.respondedAt,
    known: knownFrom(stored.known),
    heldBack: stored.heldBack,
    isHeldCut: stored.isHeldCut,
    unknownGaps: stored.unknownGaps,
    notices: stored.notices,
    format: stored.format,
    hasUnread: stored.hasUnread,
    model: start.model,
    memory: start.k7.memory,
    references: start.references,
    reading: start.reading,
    published: stored.reading === null ? null : publishedFacts(stored.reading),
    snapshot: snapshot === null ? null : { seq: snapshot.seq, stateHash: snapshot.stateHash },
    open: checkEnds(stored, stillOpen(stored)),
    ends: newest?.model === head.model ? newest.ends : table.bands.flatMap(() => [0n, 0n, 0n]),
  };
}

/** Whether an older state can be used: it has the same model, and no other snapshot replaced its own. */
function isBefore({ table, head, snapshot }: PassState, stored: StoredState): boolean {
  return (
    table.tableId === stored.table.tableId &&
    table.roundIds === stored.table.roundIds &&
    head.model === stored.head.model &&
    head.palette === stored.head.palette &&
    head.lastSeq <= stored.head.lastSeq &&
    snapshot?.seq === stored.snapshot?.seq &&
    snapshot?.stateHash === stored.snapshot?.stateHash
  );
}

function startFrom(from: PassState): Start {
  const { model, head } = from;
  return { ...copyMemories(from), model, seq: head.lastSeq, ordinal: head.lastOrdinal };
}

function startOf({ table, head, snapshot }: StoredState): Start {
  if (snapshot !== null) return startAt(snapshot, table.name);
  const model = modelOf(table.bands, table.edge);
  if (model.name !== head.model)
    throw new Error(`expected a snapshot of ${head.model} for ${table.name}, found none; rebuild it by calibrate`);
  return {
    model,
    seq: 0n,
    ordinal: 0n,
    k7: emptyState(model),
    references: emptyReferences(model.colors),
    // its constants stay those of K7 whatever model is promoted, so that readings stay comparable
    reading: emptyReading(model, { consecutive: table.roundIds === "consecutive" }),
  };
}

function startAt(snapshot: SnapshotRow, table: string): Start {
  const { state, seq, ordinal, refs } = snapshot;
  if (stateHash(state) !== snapshot.stateHash)
    throw new Error(`expected the snapshot of ${table} to hash to ${snapshot.stateHash}; it is damaged, recalibrate`);
  const model = modelOfState(state);
  return {
    model,
    seq,
    ordinal,
    k7: decodeState(model, state),
    references: referencesFromJson(refs),
    reading: readingOf(snapshot, table),
  };
}

function readingOf({ reading: text, readingHash: hash }: SnapshotRow, table: string): ReadingMemory {
  const memory = readingHash(text) === hash ? readingFromText(text) : null;
  if (memory === null)
    throw new Error(`expected the reading of ${table} to hash to ${hash}; it is damaged, recalibrate`);
  return memory;
}

/** Every round from the start to the head must be there: a gap in a state would never be detected later. */
function checkRounds({ table, head }: StoredState, start: Start, rounds: readonly ReplayRound[]): void {
  let { seq, ordinal } = start;
  for (const round of rounds) {
    seq += 1n;
    if (!round.late) ordinal += 1n;
    const isNext = round.seq === seq && round.ordinal === (round.late ? null : ordinal);
    if (!isNext)
      throw new Error(
        `expected round ${seq} of ${table.name} as on-time round ${ordinal}, got ${round.seq} as ${round.ordinal ?? "late"}`,
      );
  }
  if (seq !== head.lastSeq || ordinal !== head.lastOrdinal)
    throw new Error(
      `expected the rounds of ${table.name} up to ${head.lastSeq} (on time ${head.lastOrdinal}), got them up to ` +
        `${seq} (on time ${ordinal}); read all of them after the snapshot`,
    );
}

/** A damaged set would be settled with wrong probabilities, and a damaged score would let a forecast be settled again. */
function checkSets({ table, sets, settled }: StoredState): void {
  const known = new Set<bigint>();
  for (const { bands = table.bands, hashes, ...set } of sets) {
    if (hashesOf({ ...table, bands }, set) !== hashes)
      throw new Error(
        `expected the forecasts after round ${set.cutoffRoundId} of ${table.name} to hash to what is stored with them; ` +
          "they are damaged, restore them from a backup",
      );
    for (const place of set.features.keys()) known.add(set.firstSeq + BigInt(place));
  }
  const stranger = [...settled].find((seq) => !known.has(seq));
  if (stranger !== undefined)
    throw new Error(
      `expected scores of the open forecasts of ${table.name}, found one of forecast ${stranger}, which is none of them; ` +
        "it is damaged, restore it from a backup",
    );
}

/** A forecast whose last round is stored is settled, unless settling was paused. */
function checkEnds({ table, head }: StoredState, open: OpenForecast[]): OpenForecast[] {
  const ended = open.find(({ endOrdinal }) => endOrdinal <= head.lastOrdinal);
  if (ended !== undefined && !head.hasEnded)
    throw new Error(
      `expected a score of forecast ${ended.seq} of ${table.name}, which ended with on-time round ${ended.endOrdinal}, ` +
        "found none; restore it from a backup",
    );
  return open;
}

/** The forecasts that are not settled, with what the rounds since their cutoff showed of them. */
function stillOpen({ sets, settled, rounds, head, table }: StoredState): OpenForecast[] {
  const listed = new Set(head.openSets);
  return sets
    .filter(({ cutoffSeq }) => listed.has(cutoffSeq))
    .flatMap((set) => openForecasts(set, set.bands ?? table.bands))
    .filter(({ seq }) => !settled.has(seq))
    .map((forecast) => rounds.reduce(seeRound, forecast));
}

function seeRound(forecast: OpenForecast, { ordinal, ...round }: ReplayRound): OpenForecast {
  return ordinal === null || round.seq <= forecast.cutoffSeq ? forecast : see(forecast, { ...round, ordinal });
}
