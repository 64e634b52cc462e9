/**
 * Periods, and how rows of hours, days and periods change when forecasts are added and when a new hour begins.
 *
 * An hour row is written with every addition to it. Days and periods hold only *folded* hours, those before the previous
 * hour: they are written once an hour, not every round, and callers see a period plus the one or two hours that are not
 * folded. A period advances by adding the hours that enter and subtracting those that leave, so that no cost depends on
 * the length of the history.
 */
import { type HourDeltas, type HourKey, type HourSums, hourKey } from "./add-facts.ts";
import { addSums, type SumVector } from "./sum-vector.ts";

/** Whole UTC days including today; 24h: the current UTC hour and the 23 before. */
export const PERIODS = ["24h", "7d", "30d", "90d", "all"] as const;

export type Period = (typeof PERIODS)[number];

const DAYS: Record<Exclude<Period, "24h" | "all">, number> = { "7d": 7, "30d": 30, "90d": 90 };

const HOURS_PER_DAY = 24;

/** The UTC day of an hour, in days since 1970. */
export function dayOf(hour: number): number {
  return Math.floor(hour / HOURS_PER_DAY);
}

/**
 * The first hour of a period, in hours since 1970; null for all.
 *
 * @param current the current hour
 * @example
 * periodStart("24h", 1000); // => 977
 * periodStart("7d", 1000); // => 840
 * periodStart("all", 1000); // => null
 */
export function periodStart(period: Period, current: number): number | null {
  if (period === "all") return null;
  if (period === "24h") return current - (HOURS_PER_DAY - 1);
  return (dayOf(current) - (DAYS[period] - 1)) * HOURS_PER_DAY;
}

/** The end of a period, exclusive, in hours since 1970. */
export function periodEnd(period: Period, current: number): number {
  return period === "24h" ? current + 1 : (dayOf(current) + 1) * HOURS_PER_DAY;
}

/** Hours before this one are folded: most windows that were open at the end of an hour have ended by then. */
export function foldedBefore(current: number): number {
  return current - 1;
}

/** A range, its end exclusive. */
export interface Span {
  from: number;
  to: number;
}

/** The folded hours that leave the period of 24 hours when the current hour moves. */
export function hoursLeaving(current: number, next: number): Span {
  return spanOf(periodStart("24h", current)!, Math.min(periodStart("24h", next)!, foldedBefore(current)));
}

/** The days with folded hours that leave a period of days when the current hour moves. */
export function daysLeaving(period: keyof typeof DAYS, current: number, next: number): Span {
  const end = dayOf(foldedBefore(current) - 1) + 1;
  return spanOf(dayOf(periodStart(period, current)!), Math.min(dayOf(periodStart(period, next)!), end));
}

/** The hours that are folded when the current hour moves. */
export function hoursFolding(current: number, next: number): Span {
  return spanOf(foldedBefore(current), foldedBefore(next));
}

function spanOf(from: number, to: number): Span {
  return { from, to: Math.max(from, to) };
}

/** The sums of a day of a feature. */
export interface DaySums extends Omit<HourKey, "hour"> {
  day: number;
  sums: SumVector;
}

/** The folded sums of a period of a feature. */
export interface PeriodSums extends Omit<HourKey, "hour"> {
  period: Period;
  sums: SumVector;
}

/** Rows of one table by key; `changed` holds the sums of those to be written. */
export interface AccuracyRows {
  hours: Map<string, HourSums>;
  days: Map<string, DaySums>;
  periods: Map<string, PeriodSums>;
  changed: Set<SumVector>;
}

/** No rows. */
export function emptyRows(): AccuracyRows {
  return { hours: new Map(), days: new Map(), periods: new Map(), changed: new Set() };
}

/** The keys of `AccuracyRows`. */
export const rowKeys = {
  hour: hourKey,
  day: ({ model, feature, day }: Omit<DaySums, "sums">) => `${day} ${feature} ${model}`,
  period: ({ model, feature, period }: Omit<PeriodSums, "sums">) => `${period} ${feature} ${model}`,
};

/** Adds to hours and, if they are folded, to their days and periods. */
export function addDeltas(rows: AccuracyRows, current: number, deltas: HourDeltas): void {
  for (const delta of deltas.values()) {
    addToRow(rows, rows.hours, rowKeys.hour(delta), delta);
    if (delta.hour < foldedBefore(current)) fold(rows, current, delta);
  }
}

/**
 * Advances the current hour: subtracts what leaves a period, and folds the hours that have ended.
 *
 * @param rows with all periods of the table, the hours of `hoursLeaving` and `hoursFolding`, the days of `daysLeaving`,
 *   and the days of the hours that are folded
 */
export function moveHour(rows: AccuracyRows, current: number, next: number): void {
  const isWithin = ({ from, to }: Span, at: number) => at >= from && at < to;
  const leaving = hoursLeaving(current, next);
  const folding = hoursFolding(current, next);
  const hours = [...rows.hours.values()];
  for (const row of hours) if (isWithin(leaving, row.hour)) addToPeriod(rows, "24h", row, -1);
  for (const period of PERIODS) {
    if (period === "24h" || period === "all") continue;
    const days = daysLeaving(period, current, next);
    for (const row of rows.days.values()) if (isWithin(days, row.day)) addToPeriod(rows, period, row, -1);
  }
  for (const row of hours) if (isWithin(folding, row.hour)) fold(rows, next, row);
}

function fold(rows: AccuracyRows, current: number, { model, feature, hour, sums }: HourSums): void {
  const day = { model, feature, day: dayOf(hour), sums };
  addToRow(rows, rows.days, rowKeys.day(day), day);
  for (const period of PERIODS) {
    if (hour >= (periodStart(period, current) ?? -Infinity)) addToPeriod(rows, period, { model, feature, sums }, 1);
  }
}

function addToPeriod(
  rows: AccuracyRows,
  period: Period,
  { model, feature, sums }: Omit<PeriodSums, "period">,
  sign: 1 | -1,
): void {
  const own = { model, feature, period, sums };
  addToRow(rows, rows.periods, rowKeys.period(own), own, sign);
}

function addToRow<Row extends { sums: SumVector }>(
  { changed }: AccuracyRows,
  into: Map<string, Row>,
  key: string,
  row: Row,
  sign: 1 | -1 = 1,
): void {
  if (row.sums.size === 0) return;
  const own = into.get(key) ?? { ...row, sums: new Map() };
  addSums(own.sums, row.sums, sign);
  into.set(key, own);
  changed.add(own.sums);
}
