/**
 * The references live: at each forecast of ours that was scored, what they would have said from what they knew then.
 *
 * What they remember at a cutoff follows from the on-time rounds up to it alone. Marks keep that memory where a walk
 * began, so that making an hour anew reads the rounds since its own mark; one that is missing or damaged costs a walk from
 * an earlier one, or from the first round, and nothing else. They are never dropped, since a forecast may be voided long
 * after its hour: one is 1.5 kB, and a table gets one in a hundred rounds at most.
 */
import type { Queryable, Sql } from "../../db/client.ts";
import { isWindow } from "../model/features.ts";
import type { HourForecast } from "./hour-facts-store.ts";
import {
  listColoredRounds,
  listLaggingTables,
  listNewestMarks,
  saveReferenceMarks,
  type HistoryPart,
  type NewMark,
  type ReferenceMark,
} from "./reference-store.ts";
import { emptyReferenceSums, scoreReferences, type ReferenceSums, type ScoredForecast } from "./reference-sums.ts";
import {
  emptyReferences,
  forgetGaps,
  learnReferences,
  referencesFromJson,
  referencesToJson,
  type References,
} from "./references.ts";
import { colorIndex, type Band } from "../model/table-model.ts";

/** Rounds read at once, some 50 ms; a long walk leaves a mark after each. */
const ROUNDS_PER_READ = 10_000;

/** A mark nearer than this to the one before would save next to nothing. */
const ROUNDS_PER_MARK = 100n;

/** A round as the references see it, its color by the place of its band. */
export interface SeenRound {
  seq: bigint;
  color: number;
  afterGap: boolean;
}

interface TableBands {
  tableId: number;
  bands: readonly Band[];
}

/** Where a walk along the rounds of a table stands. */
interface Place {
  seq: bigint;
  memory: References;
}

/** A walk along the rounds of a table, past the forecasts of one hour that were scored. */
interface Walk extends TableBands {
  place: Place;
  firstCutoff: bigint;
  lastCutoff: bigint;
  /** Those not reached yet. */
  scored: ScoredForecast[];
  sums: Map<string, ReferenceSums>;
}

/**
 * The references' sums of each feature of hours, in their order, over the forecasts that were scored; a feature without
 * any is not in it. The rounds of an hour are read once for all its features, and those of all hours together.
 */
export async function referencesOfHours(
  sql: Queryable,
  hours: readonly (TableBands & { forecasts: readonly HourForecast[] })[],
): Promise<Map<string, ReferenceSums>[]> {
  const sums = hours.map(() => new Map<string, ReferenceSums>());
  const walks = hours.flatMap(({ tableId, bands, forecasts }, index) => {
    const scored = scoredOf(forecasts);
    const [first, last, own] = [scored.at(0), scored.at(-1), sums[index]];
    if (first === undefined || last === undefined || own === undefined) return [];
    const place = placeAt(undefined, bands.length);
    return [{ tableId, bands, place, firstCutoff: first.cutoffSeq, lastCutoff: last.cutoffSeq, scored, sums: own }];
  });
  const starts = walks.map(({ tableId, firstCutoff: seq }) => ({ tableId, seq }));
  for (const [index, mark] of (await listNewestMarks(sql, starts)).entries()) {
    const walk = walks[index];
    if (walk !== undefined) walk.place = placeAt(mark, walk.bands.length);
  }
  for (let going = walks; going.length > 0; going = going.filter(({ scored }) => scored.length > 0)) {
    const parts = going.map((walk) => ({ ...walk, afterSeq: walk.place.seq, upToSeq: walk.lastCutoff }));
    const rounds = await listSeenRounds(sql, parts, ROUNDS_PER_READ);
    const marks = going.flatMap((walk, index) => passOn(walk, rounds[index] ?? []));
    await saveReferenceMarks(sql, marks);
  }
  return sums;
}

/**
 * Walks past the next rounds, scoring what is reached. Gives the mark to leave: at the first cutoff, or where the rounds
 * end before it, if that is far from the place before.
 */
function passOn(walk: Walk, rounds: readonly SeenRound[]): NewMark[] {
  const { tableId, bands, place, firstCutoff, lastCutoff, scored, sums } = walk;
  const reachedSeq = rounds.length < ROUNDS_PER_READ ? lastCutoff : rounds.at(-1)!.seq;
  const before = rounds.filter(({ seq }) => seq <= firstCutoff);
  for (const round of before) takeIn(place.memory, round);
  const marks: NewMark[] = [];
  if (place.seq < firstCutoff) {
    const seq = reachedSeq < firstCutoff ? reachedSeq : firstCutoff;
    if (seq - place.seq >= ROUNDS_PER_MARK) marks.push({ tableId, seq, memory: referencesToJson(place.memory) });
  }
  const reached = scored.filter(({ cutoffSeq }) => cutoffSeq <= reachedSeq);
  scoreAlong(sums, bands, place.memory, rounds.slice(before.length), reached);
  place.seq = reachedSeq;
  walk.scored = scored.slice(reached.length);
  return marks;
}

/** The forecasts that were scored, in the order of their cutoffs. */
export function scoredOf(forecasts: readonly HourForecast[]): ScoredForecast[] {
  return forecasts
    .flatMap(({ status, outcome, ...forecast }) =>
      status === "scored" && outcome !== null ? [{ ...forecast, outcome }] : [],
    )
    .toSorted((a, b) => Number(a.cutoffSeq - b.cutoffSeq));
}

/**
 * Scores the references in the place of each forecast, with what they knew at its cutoff, and leaves `memory` as it is
 * after the last of the rounds.
 *
 * @param memory what they remembered before these rounds; moved on
 * @param rounds on-time rounds in seq order, up to the last cutoff or beyond it
 * @param scored in the order of their cutoffs, none of which lies before the rounds
 */
export function scoreAlong(
  sums: Map<string, ReferenceSums>,
  bands: readonly Band[],
  memory: References,
  rounds: readonly SeenRound[],
  scored: readonly ScoredForecast[],
): void {
  let at = 0;
  for (const forecast of scored) {
    for (; at < rounds.length && rounds[at]!.seq <= forecast.cutoffSeq; at++) takeIn(memory, rounds[at]!);
    const own = sums.get(forecast.feature) ?? emptyReferenceSums();
    sums.set(forecast.feature, own);
    const color = isWindow(forecast.feature) ? (forecast.feature.split(":")[1] ?? "") : null;
    scoreReferences(own, memory, forecast, color === null ? null : colorIndex(bands, color));
  }
  for (; at < rounds.length; at++) takeIn(memory, rounds[at]!);
}

/** A round as the references take it in: what was missing before it makes them forget how long colors have stayed away. */
export function takeIn(memory: References, { color, afterGap }: Omit<SeenRound, "seq">): void {
  if (afterGap) forgetGaps(memory);
  learnReferences(memory, color);
}

/**
 * Makes the marks of tables with a long history behind their newest one, such as an imported one, a part at a time, each
 * kept at once: the transaction that scores is then never held up by rounds nobody has looked at.
 */
export async function catchUpReferences(sql: Sql, tableIds: readonly number[], signal: AbortSignal): Promise<void> {
  for (const { tableId, bands, lastSeq } of await listLaggingTables(sql, tableIds, ROUNDS_PER_READ)) {
    const [mark] = await listNewestMarks(sql, [{ tableId, seq: lastSeq }]);
    const place = placeAt(mark, bands.length);
    while (lastSeq - place.seq >= BigInt(ROUNDS_PER_READ)) {
      signal.throwIfAborted();
      await walkOn(sql, { tableId, bands }, place, lastSeq);
      await saveReferenceMarks(sql, [{ tableId, seq: place.seq, memory: referencesToJson(place.memory) }]);
    }
  }
}

/** Takes in the next rounds, as many as are read at once. */
async function walkOn(sql: Queryable, table: TableBands, place: Place, upToSeq: bigint): Promise<void> {
  const [rounds = []] = await listSeenRounds(sql, [{ ...table, afterSeq: place.seq, upToSeq }], ROUNDS_PER_READ);
  for (const round of rounds) takeIn(place.memory, round);
  place.seq = rounds.length < ROUNDS_PER_READ ? upToSeq : rounds.at(-1)!.seq;
}

/** The first `limit` on-time rounds of each part of a table's history, in seq order. */
export async function listSeenRounds(
  sql: Queryable,
  parts: readonly (TableBands & HistoryPart)[],
  limit: number,
): Promise<SeenRound[][]> {
  const rounds = await listColoredRounds(sql, parts, limit);
  return rounds.map((own, place) => {
    const bands = parts[place]?.bands ?? [];
    const index = new Map(bands.map(({ name }, at) => [name, at]));
    return own.map(({ seq, color, afterGap }) => ({
      seq,
      color: index.get(color) ?? colorIndex(bands, color),
      afterGap,
    }));
  });
}

/** Where a mark stands; at the first round where there is none, or where it is damaged, which `verify` then names. */
function placeAt(mark: ReferenceMark | undefined, colors: number): Place {
  const memory = mark === undefined ? null : readMemory(mark.memory, colors);
  return mark === undefined || memory === null
    ? { seq: 0n, memory: emptyReferences(colors) }
    : { seq: mark.seq, memory };
}

function readMemory(json: unknown, colors: number): References | null {
  try {
    const memory = referencesFromJson(json);
    return memory.counts.length === colors ? memory : null;
  } catch {
    return null;
  }
}
