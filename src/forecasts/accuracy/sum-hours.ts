import type { Transaction } from "../../db/client.ts";
import { NEXT_COLOR } from "../model/features.ts";
import {
  listHourForecasts,
  listLaterForecasts,
  listReceivedRounds,
  type AskedHour,
  type HourForecast,
  type ReceivedRound,
} from "./hour-facts-store.ts";
import { readHourMarks, saveHourMarks, type KeptHourMark, type NewHourMark } from "./hour-marks-store.ts";
import { listHoursToClose, saveHours } from "./hour-sums-store.ts";
import { scoreOutcome } from "../score/judge.ts";
import { referencesOfHours } from "./reference-hours.ts";
import { readBands } from "./reference-store.ts";
import { emptyReferenceSums, mergeReferenceSums, referenceSumsToJson, type ReferenceSums } from "./reference-sums.ts";
import type { TouchedHour } from "../score/score-store.ts";
import { sumsToJson } from "./sums-json.ts";
import { takeTouched } from "../score/touched-store.ts";
import { listUncountedHours } from "../score/due-window-store.ts";
import { addForecast, addPending, addScore, addVoid, emptySums, mergeSums, type Sums } from "./sums.ts";

/** Of so many tables the forecasts of an hour are held at once: few where the hour has a mark, some 2,300 each without. */
const TABLE_HOURS_AT_ONCE = 10;

/** Whoever scores one of these tables waits until they are summed: so many hours of a feature are, in some 300 ms. */
const HOURS_AT_ONCE = 500;

/** A mark takes the place of the one before where so many forecasts of a feature have ended since, */
const FORECASTS_PER_MARK = 32;

/** or those that have lie so many rounds apart: the references walk past all of them. */
const ROUNDS_PER_MARK = 64n;

/**
 * Makes the noted hours of tables anew, with those that are over or have windows that are not counted yet. Gives them;
 * tables with hours `left` are to be summed on by the next transaction. Needs the tables' accuracy locks.
 */
export async function sumTouched(
  tx: Transaction,
  tableIds: readonly number[],
): Promise<{ hours: readonly TouchedHour[]; left: ReadonlySet<number> }> {
  const { hours: touched, left } = await takeTouched(tx, tableIds, HOURS_AT_ONCE);
  const others = tableIds.filter((id) => !left.has(id));
  const hours = distinctHours([
    ...touched,
    ...(await listUncountedHours(tx, others)),
    ...(await listHoursToClose(tx, others)),
  ]);
  await sumHours(tx, hours);
  return { hours, left };
}

function distinctHours(hours: readonly TouchedHour[]): TouchedHour[] {
  const byKey = new Map(hours.map((hour) => [`${hour.tableId} ${hour.model} ${hour.feature} ${hour.hour}`, hour]));
  return [...byKey.values()];
}

/**
 * Makes hours anew, each given once, while they go on from their marks and the facts after these; those of one table at one
 * time together, so that their rounds are read once. Needs the tables' accuracy locks.
 */
async function sumHours(tx: Transaction, hours: readonly TouchedHour[]): Promise<void> {
  const bands = await readBands(tx, [...new Set(hours.map(({ tableId }) => tableId))]);
  const byTable = [...Map.groupBy(hours, ({ tableId, model, hour }) => `${tableId} ${model} ${hour}`).values()];
  for (let at = 0; at < byTable.length; at += TABLE_HOURS_AT_ONCE) {
    const together = byTable.slice(at, at + TABLE_HOURS_AT_ONCE).flatMap((same) => {
      const [first] = same;
      return first === undefined ? [] : [{ ...first, features: same.map(({ feature }) => feature) }];
    });
    const parts = await listParts(tx, together);
    const references = await referencesOfHours(
      tx,
      parts.map((own, place) => {
        const tableId = together[place]?.tableId ?? 0;
        return { tableId, bands: bands.get(tableId) ?? [], forecasts: own.flatMap(({ forecasts }) => forecasts) };
      }),
    );
    const summed = parts.flatMap((own, place) =>
      own.map((part) => sumPart(part, references[place]?.get(part.hour.feature) ?? emptyReferenceSums())),
    );
    await saveHours(
      tx,
      summed.map(({ hour, sums, references: beside }) => ({
        hour,
        sums: sumsToJson(sums),
        references: referenceSumsToJson(beside),
      })),
    );
    await saveHourMarks(
      tx,
      summed.flatMap(({ mark }) => mark ?? []),
    );
  }
}

/** An hour of a feature: what its mark says, if it has one, and all that came after that. */
interface HourPart {
  hour: TouchedHour;
  mark: KeptHourMark | undefined;
  forecasts: readonly HourForecast[];
  received: readonly ReceivedRound[];
}

/**
 * The parts of each hour, one for each of its features. What is kept for good is made without a mark, from all that
 * happened in the hour: once it may close and nothing of it waits.
 */
async function listParts(tx: Transaction, hours: readonly AskedHour[]): Promise<HourPart[][]> {
  const marks = await readHourMarks(tx, hours);
  const parts = await readParts(tx, hours, marks);
  const closing = parts.map((own) =>
    own.filter(({ mark, forecasts }) => mark?.isClosing === true && forecasts.every(({ status }) => status !== null)),
  );
  if (closing.every((own) => own.length === 0)) return parts;
  for (const [place, own] of closing.entries()) for (const { hour } of own) marks[place]?.delete(hour.feature);
  return readParts(tx, hours, marks);
}

async function readParts(
  tx: Transaction,
  hours: readonly AskedHour[],
  marks: readonly ReadonlyMap<string, KeptHourMark>[],
): Promise<HourPart[][]> {
  const parts = hours.map(({ features, ...hour }, place) =>
    features.map((feature) => ({ hour: { ...hour, feature }, mark: marks[place]?.get(feature) })),
  );
  const marked = parts.flat().flatMap(({ hour, mark }) => (mark ? [{ ...hour, afterCutoff: mark.cutoffSeq }] : []));
  const later = new Map(zip(marked.map(keyOf), await listLaterForecasts(tx, marked)));
  // of the others all forecasts of an hour are read at once
  const unmarked = parts.map((own) => own.filter(({ mark }) => mark === undefined).map(({ hour }) => hour.feature));
  const anew = hours.flatMap((hour, place) => {
    const features = unmarked[place] ?? [];
    return features.length === 0 ? [] : [{ ...hour, features }];
  });
  const whole = (await listHourForecasts(tx, anew)).flatMap((forecasts, place) => {
    const hour = anew[place];
    if (hour === undefined) return [];
    const byFeature = Map.groupBy(forecasts, ({ feature }) => feature);
    return hour.features.map((feature) => [keyOf({ ...hour, feature }), byFeature.get(feature) ?? []] as const);
  });
  const forecasts = new Map([...later, ...whole]);
  // coverage is a matter of the next color alone: a round without a window of its own is no round that was missed
  const counted = parts
    .flat()
    .filter(({ hour }) => hour.feature === NEXT_COLOR)
    .map(({ hour, mark }) => ({ ...hour, afterSeq: mark?.roundsSeq ?? 0n }));
  const received = new Map(zip(counted.map(keyOf), await listReceivedRounds(tx, counted)));
  return parts.map((own) =>
    own.map((part) => ({
      ...part,
      forecasts: forecasts.get(keyOf(part.hour)) ?? [],
      received: received.get(keyOf(part.hour)) ?? [],
    })),
  );
}

function keyOf({ tableId, model, feature, hour }: TouchedHour): string {
  return `${tableId} ${model} ${feature} ${hour}`;
}

function zip<A, B>(keys: readonly A[], values: readonly B[]): [A, B][] {
  return values.flatMap((value, at): [A, B][] => {
    const key = keys[at];
    return key === undefined ? [] : [[key, value]];
  });
}

/** What an hour comes to, and the mark to leave where enough has ended since the one before. */
function sumPart(
  { hour, mark, forecasts, received }: HourPart,
  references: ReferenceSums,
): { hour: TouchedHour; sums: Sums; references: ReferenceSums; mark: NewHourMark | null } {
  const waiting = forecasts.findIndex(({ status }) => status === null);
  const ended = waiting === -1 ? forecasts : forecasts.slice(0, waiting);
  const others = forecasts.slice(ended.length);
  const settled = mergeSums([mark?.sums ?? emptySums(), sumForecasts(ended, received)]);
  const beside = mergeReferenceSums([mark?.references ?? emptyReferenceSums(), references]);
  return {
    hour,
    sums: mergeSums([settled, sumForecasts(others, [])]),
    references: beside,
    mark: isFarOn(ended, others)
      ? {
          ...hour,
          cutoffSeq: ended.at(-1)!.cutoffSeq,
          roundsSeq: received.at(-1)?.seq ?? mark?.roundsSeq ?? 0n,
          sums: settled,
          references: beside,
        }
      : null,
  };
}

/** Enough has ended for a mark, all of it before whatever has not. */
function isFarOn(ended: readonly HourForecast[], others: readonly HourForecast[]): boolean {
  const [first, last] = [ended.at(0), ended.at(-1)];
  if (first === undefined || last === undefined || others.some(({ status }) => status !== null)) return false;
  return ended.length >= FORECASTS_PER_MARK || last.cutoffSeq - first.cutoffSeq >= ROUNDS_PER_MARK;
}

/** The sums of an hour from its forecasts and its rounds: the one definition, for the job and for `verify`. */
export function sumForecasts(forecasts: readonly HourForecast[], received: readonly ReceivedRound[]): Sums {
  const sums = emptySums();
  for (const { seq, hash, status, pPpm, basePpm, outcome } of forecasts) {
    addForecast(sums, { seq, hash });
    if (status === null) addPending(sums);
    else if (status !== "scored") addVoid(sums, VOID_KIND[status]);
    else if (outcome === null) throw new Error(`expected an outcome of forecast ${seq}, which is scored, got none`);
    else addScore(sums, scoreOutcome(pPpm, basePpm, outcome));
  }
  sums.onTimeRounds = BigInt(received.length);
  sums.notIssued = BigInt(received.filter(({ issued }) => !issued).length);
  return sums;
}

const VOID_KIND = { void_gap: "gap", void_house: "house", void_quarantine: "quarantine", void_late: "late" } as const;
