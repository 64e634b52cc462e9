import type { Transaction } from "../../db/client.ts";
import { reasonOf } from "../../errors.ts";
import { PERIODS } from "../accuracy/accuracy-store.ts";
import type { Wrong } from "./check-round.ts";
import { listHourForecasts, listReceivedRounds } from "../accuracy/hour-facts-store.ts";
import { listHourMarks, type StoredMark } from "../accuracy/hour-marks-store.ts";
import { readHourSums } from "../accuracy/hour-sums-store.ts";
import {
  emptyReferenceSums,
  mergeReferenceSums,
  referenceSumsFromJson,
  referenceSumsToJson,
  type ReferenceSums,
} from "../accuracy/reference-sums.ts";
import { REFERENCES } from "../accuracy/references.ts";
import type { TouchedHour } from "../score/score-store.ts";
import { sumForecasts } from "../accuracy/sum-hours.ts";
import { sumsFromJson, sumsToJson } from "../accuracy/sums-json.ts";
import { emptySums, mergeSums, type Sums } from "../accuracy/sums.ts";
import { listTouched } from "../score/touched-store.ts";
import { referencesOnCourse, replayReferences, type Course } from "./verify-references.ts";
import {
  listStoredHours,
  listStoredPeriods,
  listStoredSeries,
  type StoredHour,
  type StoredPeriod,
  type StoredSeries,
} from "./verify-scores-store.ts";
import type { VerifiedTable } from "./verify-store.ts";

/** What is wrong with a row, and which one it is. */
export interface WrongRow extends Wrong {
  kind: "accuracy" | "published_accuracy" | "references" | "published_references" | "reference_mark" | "hour_mark";
  id: string;
}

const HOURS_PER_READ = 500;

/**
 * Sums every hour of a table anew from its forecasts, scores and rounds, every mark of an hour likewise, and every published
 * period from its hours, ours and the references', which are replayed from the first round; tells of the first that is not
 * so. `summed` are the hours that must have a row, since something in them was scored or counted; `checked` is called for
 * each row found right.
 */
export async function verifyAccuracy(
  tx: Transaction,
  table: VerifiedTable,
  summed: ReadonlyMap<string, TouchedHour>,
  checked: () => void,
): Promise<WrongRow | null> {
  const replayed = await replayReferences(tx, table);
  if ("wrong" in replayed) return replayed.wrong;
  // before the rows that were made from them
  for (const mark of await listHourMarks(tx, table.id)) {
    const wrong = await checkMark(tx, table, replayed.course, mark);
    if (wrong !== null) return { kind: "hour_mark", id: nameOf(table, mark, mark.hour), ...wrong };
  }
  const touched = new Set((await listTouched(tx, table.id)).map(hourKey));
  const missing = new Map([...summed].filter(([key]) => !touched.has(key)));
  let after: StoredHour | null = null;
  for (;;) {
    const rows: StoredHour[] = await listStoredHours(tx, table.id, after, HOURS_PER_READ);
    for (const row of rows) {
      const wrong = await checkHour(tx, table, replayed.course, row, touched.has(hourKey(row)));
      if (wrong !== null) return { id: nameOf(table, row, row.hour), ...wrong };
      missing.delete(hourKey(row));
      checked();
    }
    after = rows.at(-1) ?? null;
    if (rows.length < HOURS_PER_READ) break;
  }
  for (const hour of missing.values()) {
    return { kind: "accuracy", id: nameOf(table, hour, hour.hour), expected: "a row of this hour", found: "none" };
  }
  for (const series of await listStoredSeries(tx, table.id)) {
    const wrong = checkSeries(table, series);
    if (wrong !== null) return wrong;
  }
  for (const row of await listStoredPeriods(tx, table.id)) {
    const wrong = await checkPeriod(tx, table, replayed.course, row);
    if (wrong !== null) return { id: nameOf(table, row, row.period), ...wrong };
    checked();
  }
  return null;
}

/** One text for an hour of a feature. */
export function hourKey({ model, feature, hour }: TouchedHour): string {
  return `${model} ${feature} ${hour}`;
}

function nameOf(table: VerifiedTable, { model, feature }: { model: string; feature: string }, what: string): string {
  return `${table.name} ${model} ${feature} ${what}`;
}

/**
 * An hour is noted when something in it is scored or received, and summed a moment later, so it lacks what was issued and
 * received since: it must be exactly the sum of a beginning of the hour's forecasts, as far as its own `last` says, and of
 * its rounds, as far as the table's mark says at least. No score is missing from it, but where it is noted (`isTouched`)
 * those that were made after the row.
 */
async function checkHour(
  tx: Transaction,
  table: VerifiedTable,
  course: Course,
  row: StoredHour,
  isTouched: boolean,
): Promise<Omit<WrongRow, "id"> | null> {
  const ours = (wrong: Wrong) => ({ kind: "accuracy" as const, ...wrong });
  const read = readSums(row.sums);
  if ("wrong" in read) return ours(read.wrong);
  const { sums } = read;
  if (row.revs !== row.rev) return ours({ expected: `revs 1 to ${row.rev}`, found: `${row.revs} revs` });
  if (row.final && (sums.pending > 0n || !row.over)) {
    return ours({ expected: "a final row only of an hour that is over, without pending ones", found: "a final row" });
  }
  const [issued = []] = await listHourForecasts(
    tx,
    [{ ...row, features: [row.feature] }],
    isTouched ? row.updatedAt : null,
  );
  const forecasts = issued.filter(({ seq, status }) => status !== null || (sums.last !== null && seq <= sums.last.seq));
  const [received = []] = row.feature === "next_color" ? await listReceivedRounds(tx, [row]) : [];
  const least = isTouched ? 0 : received.filter(({ seq }) => seq <= (table.summedSeq ?? 0n)).length;
  if (sums.onTimeRounds < BigInt(least) || sums.onTimeRounds > BigInt(received.length)) {
    return ours({ expected: `on_time_rounds ${received.length}`, found: `on_time_rounds ${sums.onTimeRounds}` });
  }
  const wrong = difference(sumForecasts(forecasts, received.slice(0, Number(sums.onTimeRounds))), sums);
  if (wrong !== null) return ours(wrong);
  const beside = referenceDifference(referencesOnCourse(course, table, forecasts), row.references);
  return beside === null ? null : { kind: "references", ...beside };
}

/** A mark says what all forecasts of its hour up to a cutoff come to, each of which has ended, and the rounds up to a seq. */
async function checkMark(
  tx: Transaction,
  table: VerifiedTable,
  course: Course,
  mark: StoredMark & TouchedHour,
): Promise<Wrong | null> {
  const read = readSums(mark.sums);
  if ("wrong" in read) return read.wrong;
  const [issued = []] = await listHourForecasts(tx, [{ ...mark, features: [mark.feature] }]);
  const forecasts = issued.filter(({ cutoffSeq }) => cutoffSeq <= mark.cutoffSeq);
  const [received = []] = mark.feature === "next_color" ? await listReceivedRounds(tx, [mark]) : [];
  const counted = received.filter(({ seq }) => seq <= mark.roundsSeq);
  return (
    difference(sumForecasts(forecasts, counted), read.sums) ??
    referenceDifference(referencesOnCourse(course, table, forecasts), mark.references)
  );
}

function checkSeries(table: VerifiedTable, series: StoredSeries): WrongRow | null {
  const { model, feature, firstHour, firstHourFound, published, periods } = series;
  if (firstHour === null || firstHour !== firstHourFound) {
    return {
      kind: "accuracy",
      id: nameOf(table, series, firstHourFound ?? firstHour ?? ""),
      expected: `the first hour of ${model} ${feature}, noted as ${firstHour ?? "none"}`,
      found: firstHourFound ?? "none",
    };
  }
  const missing = published ? PERIODS.find((period) => !periods.includes(period)) : undefined;
  if (missing === undefined) return null;
  const id = nameOf(table, series, missing);
  return { kind: "published_accuracy", id, expected: "a row of this period", found: "none" };
}

/**
 * A published row is the sum of its hours. Where some of these are newer than the row, it is compared with what had
 * been scored when it was made, and what else moves (pending, rounds) is left out.
 */
async function checkPeriod(
  tx: Transaction,
  table: VerifiedTable,
  course: Course,
  row: StoredPeriod,
): Promise<Omit<WrongRow, "id"> | null> {
  const ours = (wrong: Wrong | null) => wrong && { kind: "published_accuracy" as const, ...wrong };
  const read = readSums(row.sums);
  if ("wrong" in read) return ours(read.wrong);
  if (row.startByEnd !== null && row.start !== row.startByEnd) {
    return ours({ expected: `a period from ${row.startByEnd}`, found: `one from ${row.start}` });
  }
  let whole = emptySums();
  let asOf = emptySums();
  let references = emptyReferenceSums();
  const newer: string[] = [];
  for await (const hours of readHourSums(tx, [row])) {
    const older = hours.filter(({ updatedAt }) => updatedAt <= row.updatedAt);
    whole = mergeSums([whole, ...hours.map(({ sums }) => sums)]);
    asOf = mergeSums([asOf, ...older.map(({ sums }) => sums)]);
    references = mergeReferenceSums([references, ...older.map((hour) => hour.references)]);
    newer.push(...hours.filter(({ updatedAt }) => updatedAt > row.updatedAt).map(({ hour }) => hour));
  }
  for (const hour of newer) {
    const [forecasts = []] = await listHourForecasts(tx, [{ ...row, hour, features: [row.feature] }], row.updatedAt);
    asOf = mergeSums([asOf, sumForecasts(forecasts, [])]);
    references = mergeReferenceSums([references, referencesOnCourse(course, table, forecasts)]);
  }
  const wrong = newer.length === 0 ? difference(whole, read.sums) : difference(scoredOnly(asOf), scoredOnly(read.sums));
  if (wrong !== null) return ours(wrong);
  const beside = referenceDifference(references, row.references);
  return beside === null ? null : { kind: "published_references", ...beside };
}

/** A reference of which nothing was scored. */
const NOTHING = { n: "0" };

/** The first reference, and its first part, in which a row is another than it should be. */
function referenceDifference(expected: ReferenceSums, json: unknown): Wrong | null {
  let found: ReferenceSums;
  try {
    found = referenceSumsFromJson(json);
  } catch (error) {
    return { expected: "the sums of the references", found: reasonOf(error) };
  }
  const [want, have] = [referenceSumsToJson(expected), referenceSumsToJson(found)];
  for (const name of REFERENCES) {
    const wrong = firstDifference(want[name] ?? NOTHING, have[name] ?? NOTHING);
    if (wrong !== null) return { expected: `${name} ${wrong.expected}`, found: `${name} ${wrong.found}` };
  }
  return null;
}

function scoredOnly(sums: Sums): Sums {
  return { ...sums, forecasts: 0n, pending: 0n, onTimeRounds: 0n, notIssued: 0n, first: null, last: null };
}

function readSums(json: unknown): { sums: Sums } | { wrong: Wrong } {
  try {
    return { sums: sumsFromJson(json) };
  } catch (error) {
    return { wrong: { expected: "the sums of an accuracy row", found: reasonOf(error) } };
  }
}

/** The first part in which two rows differ; of the counts, the first count. */
function difference(expectedSums: Sums, foundSums: Sums): Wrong | null {
  const [{ counts, ...expected }, { counts: foundCounts, ...found }] = [
    sumsToJson(expectedSums),
    sumsToJson(foundSums),
  ];
  return firstDifference(counts, foundCounts) ?? firstDifference(expected, found);
}

function firstDifference(expected: Record<string, unknown>, found: Record<string, unknown>): Wrong | null {
  for (const [name, value] of Object.entries(expected)) {
    const [want, have] = [textOf(value), textOf(found[name])];
    if (want !== have) return { expected: `${name} ${want}`, found: `${name} ${have}` };
  }
  return null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "none");
}
