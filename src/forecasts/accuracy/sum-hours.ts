import type { Transaction } from "../../db/client.ts";
import { NEXT_COLOR } from "../model/features.ts";
import { listHourForecasts, listReceivedRounds, type HourForecast, type ReceivedRound } from "./hour-facts-store.ts";
import { listHoursToClose, saveHours } from "./hour-sums-store.ts";
import { scoreOutcome } from "../score/judge.ts";
import { referencesOfHours } from "./reference-hours.ts";
import { readBands } from "./reference-store.ts";
import { emptyReferenceSums, referenceSumsToJson } from "./reference-sums.ts";
import type { TouchedHour } from "../score/score-store.ts";
import { sumsToJson } from "./sums-json.ts";
import { takeTouched } from "../score/touched-store.ts";
import { listUncountedHours } from "../score/due-window-store.ts";
import { addForecast, addPending, addScore, addVoid, emptySums, type Sums } from "./sums.ts";

/** Of so many tables the forecasts of an hour are held at once: some 2,300 each, with a round every six seconds. */
const TABLE_HOURS_AT_ONCE = 10;

/** Whoever scores one of these tables waits until they are summed: so many hours of a feature are, in some 300 ms. */
const HOURS_AT_ONCE = 500;

/**
 * Makes the noted hours of tables anew from the facts, with those that are over or have windows that are not counted yet.
 * Gives them; tables with hours `left` are to be summed on by the next transaction. Needs the tables' accuracy locks.
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
 * Makes hours anew from the facts, each given once; those of one table at one time together, so that their rounds are
 * read once. Needs the tables' accuracy locks.
 */
async function sumHours(tx: Transaction, hours: readonly TouchedHour[]): Promise<void> {
  const bands = await readBands(tx, [...new Set(hours.map(({ tableId }) => tableId))]);
  const byTable = [...Map.groupBy(hours, ({ tableId, model, hour }) => `${tableId} ${model} ${hour}`).values()];
  for (let at = 0; at < byTable.length; at += TABLE_HOURS_AT_ONCE) {
    const together = byTable.slice(at, at + TABLE_HOURS_AT_ONCE).flatMap((same) => {
      const [first] = same;
      return first === undefined ? [] : [{ ...first, features: same.map(({ feature }) => feature) }];
    });
    const forecasts = await listHourForecasts(tx, together);
    const references = await referencesOfHours(
      tx,
      together.map(({ tableId }, place) => ({
        tableId,
        bands: bands.get(tableId) ?? [],
        forecasts: forecasts[place] ?? [],
      })),
    );
    // coverage is a matter of the next color alone: a round without a window of its own is no round that was missed
    const counted = together.filter(({ features }) => features.includes(NEXT_COLOR));
    const rounds = await listReceivedRounds(
      tx,
      counted.map((hour) => ({ ...hour, feature: NEXT_COLOR })),
    );
    const received = new Map(counted.map((hour, place) => [hour, rounds[place] ?? []]));
    const summed = together.flatMap((hour, place) => {
      const byFeature = Map.groupBy(forecasts[place] ?? [], ({ feature }) => feature);
      return hour.features.map((feature) => {
        const own = feature === NEXT_COLOR ? (received.get(hour) ?? []) : [];
        const beside = references[place]?.get(feature) ?? emptyReferenceSums();
        return {
          hour: { tableId: hour.tableId, model: hour.model, feature, hour: hour.hour },
          sums: sumsToJson(sumForecasts(byFeature.get(feature) ?? [], own)),
          references: referenceSumsToJson(beside),
        };
      });
    });
    await saveHours(tx, summed);
  }
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
