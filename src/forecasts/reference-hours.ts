/**
 * The references live: at each forecast of ours that was scored, what they would have said from what they knew then.
 *
 * What they remember at a cutoff follows from the on-time rounds up to it alone. Marks keep that memory where an hour
 * begins, so that making an hour anew reads its own rounds; a mark that is missing or damaged costs a walk from an
 * earlier one, or from the first round, and nothing else. They are never dropped, since a forecast may be voided long
 * after its hour: one is 1.5 kB, and a table gets one an hour at most.
 */
import type { Queryable, Sql } from "../db/client.ts";
import type { HourForecast } from "./accuracy-store.ts";
import { isWindow } from "./features.ts";
import { listRoundsToLearn } from "./model-store.ts";
import { findReferenceMark, listLaggingTables, saveReferenceMark, type ReferenceMark } from "./reference-store.ts";
import { emptyReferenceSums, scoreReferences, type ReferenceSums, type ScoredForecast } from "./reference-sums.ts";
import {
  emptyReferences,
  forgetGaps,
  learnReferences,
  referencesFromJson,
  referencesToJson,
  type References,
} from "./references.ts";
import { colorIndex, type Band } from "./table-model.ts";

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

/**
 * The references' sums of each feature of one hour, over the forecasts that were scored; a feature without any is not
 * in it. The hour's rounds are read once for all its features.
 */
export async function referencesOfHour(
  sql: Queryable,
  table: TableBands,
  forecasts: readonly HourForecast[],
): Promise<Map<string, ReferenceSums>> {
  const scored = scoredOf(forecasts);
  const [first, last] = [scored.at(0), scored.at(-1)];
  const sums = new Map<string, ReferenceSums>();
  if (first === undefined || last === undefined) return sums;
  const place = await walkTo(sql, table, first.cutoffSeq);
  for (let rest = scored; rest.length > 0;) {
    const rounds = await listSeenRounds(sql, table, {
      afterSeq: place.seq,
      upToSeq: last.cutoffSeq,
      limit: ROUNDS_PER_READ,
    });
    place.seq = rounds.length < ROUNDS_PER_READ ? last.cutoffSeq : rounds.at(-1)!.seq;
    const reached = rest.filter(({ cutoffSeq }) => cutoffSeq <= place.seq);
    scoreAlong(sums, table.bands, place.memory, rounds, reached);
    rest = rest.slice(reached.length);
  }
  return sums;
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
    const place = placeAt(await findReferenceMark(sql, tableId, lastSeq), bands.length);
    while (lastSeq - place.seq >= BigInt(ROUNDS_PER_READ)) {
      signal.throwIfAborted();
      await walkOn(sql, { tableId, bands }, place, lastSeq);
      await saveReferenceMark(sql, tableId, { seq: place.seq, memory: referencesToJson(place.memory) });
    }
  }
}

/** What the references remember at a seq, from the nearest mark before it; leaves one there where that was far. */
async function walkTo(sql: Queryable, table: TableBands, seq: bigint): Promise<Place> {
  const place = placeAt(await findReferenceMark(sql, table.tableId, seq), table.bands.length);
  while (place.seq < seq) {
    const from = place.seq;
    await walkOn(sql, table, place, seq);
    if (place.seq - from < ROUNDS_PER_MARK) break;
    await saveReferenceMark(sql, table.tableId, { seq: place.seq, memory: referencesToJson(place.memory) });
  }
  return place;
}

/** Takes in the next rounds, as many as are read at once. */
async function walkOn(sql: Queryable, table: TableBands, place: Place, upToSeq: bigint): Promise<void> {
  const rounds = await listSeenRounds(sql, table, { afterSeq: place.seq, upToSeq, limit: ROUNDS_PER_READ });
  for (const round of rounds) takeIn(place.memory, round);
  place.seq = rounds.length < ROUNDS_PER_READ ? upToSeq : rounds.at(-1)!.seq;
}

/** The first on-time rounds of a part of a table's history, in seq order. */
export async function listSeenRounds(
  sql: Queryable,
  { tableId, bands }: TableBands,
  { limit, ...part }: { afterSeq: bigint; upToSeq: bigint; limit: number },
): Promise<SeenRound[]> {
  const rounds = await listRoundsToLearn(sql, [{ tableId, ...part }], limit);
  const index = new Map(bands.map(({ name }, at) => [name, at]));
  return rounds.map(({ seq, color, afterGap }) => ({
    seq,
    color: index.get(color) ?? colorIndex(bands, color),
    afterGap,
  }));
}

/** Where a mark stands; at the first round where there is none, or where it is damaged, which `verify` then names. */
function placeAt(mark: ReferenceMark | null, colors: number): Place {
  const memory = mark === null ? null : readMemory(mark.memory, colors);
  return mark === null || memory === null ? { seq: 0n, memory: emptyReferences(colors) } : { seq: mark.seq, memory };
}

function readMemory(json: unknown, colors: number): References | null {
  try {
    const memory = referencesFromJson(json);
    return memory.counts.length === colors ? memory : null;
  } catch {
    return null;
  }
}
