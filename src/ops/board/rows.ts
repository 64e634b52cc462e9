import { wilsonInterval } from "../../forecasts/accuracy/figures/intervals.ts";
import { statusOf, type Status } from "../../houses/status.ts";
import type { Tone } from "../../frame/text/format.ts";
import type { DayFacts } from "../../forecasts/accuracy/measured-store.ts";
import type { HouseFacts } from "../../health/house-facts-store.ts";
import { type OpenFacts, type TableFacts, tableName } from "../../health/table-facts-store.ts";
import { latencyQuantile, type LatencyBound } from "./latency.ts";
import type { Usual } from "./open-store.ts";
import type { PollSums } from "./polls-store.ts";
import type { Problem } from "./problems.ts";

/** A table on the board, with what is known of its house. */
export interface BoardRow {
  table: TableFacts;
  name: string;
  href: string;
  house: HouseFacts;
  status: Status;
  /** How bad what is wrong with it is; null where nothing is. */
  tone: Tone | null;
  /** Place of its worst problem among all; problems come the worst first. */
  place: number;
  recentPerMinute: number;
  usual: Usual | null;
  p50: LatencyBound | null;
  p95: LatencyBound | null;
  polls: PollSums | null;
  open: OpenFacts | null;
  /** Of forecasts of the last day, as shares; null before the first is scored. The interval is null if it is withheld. */
  hit: { rate: number; stated: number; interval: [number, number] | null; n: number; isOff: boolean } | null;
}

/** The columns that a board can be sorted by; with a minus before it, the other way round. */
export const SORTS = [
  "worst",
  "table",
  "lag",
  "rate",
  "p95",
  "gaps",
  "quarantine",
  "conflicts",
  "evidence",
  "forecast",
  "calibration",
  "hit",
] as const;
type Sort = (typeof SORTS)[number];

/** What a board is limited to. */
export interface BoardFilter {
  /** Part of a table's name. */
  q: string;
  status: Status | "";
  /** Only tables with something wrong. */
  wrong: boolean;
}

/** All that rows are made of. */
export interface BoardFacts {
  tables: readonly TableFacts[];
  houses: readonly HouseFacts[];
  open: readonly OpenFacts[];
  usual: readonly Usual[];
}

/** The rows of all tables, in the order they come. */
export function boardRows(facts: BoardFacts, problems: readonly Problem[], liveWindowSeconds: number): BoardRow[] {
  const houses = new Map(facts.houses.map((house) => [house.id, house]));
  const open = new Map(facts.open.map((one) => [one.tableId, one]));
  const usual = new Map(facts.usual.map((one) => [one.tableId, one]));
  const places = placesOf(problems);
  return facts.tables.flatMap((table) => {
    const house = houses.get(table.house);
    if (house === undefined) return []; // added between two reads: the next look has it
    const name = tableName(table);
    const place = Math.min(places.get(name) ?? problems.length, places.get(house.id) ?? problems.length);
    return {
      table,
      name,
      href: `/ops/tables/${name}`,
      house,
      status: statusOf({ ...house, enabled: table.enabled }, liveWindowSeconds * 1_000),
      tone: problems[place]?.tone ?? null,
      place,
      recentPerMinute: table.recentRounds / table.recentMinutes,
      usual: usual.get(table.id) ?? null,
      p50: null,
      p95: null,
      polls: null,
      open: open.get(table.id) ?? null,
      hit: null,
    };
  });
}

/** Adds how the polls of the rows' houses went. */
export function withPolls(rows: readonly BoardRow[], sums: readonly PollSums[]): BoardRow[] {
  const byHouse = new Map(
    sums.map((one) => [
      one.house,
      { polls: one, p50: latencyQuantile(one.latency, 0.5), p95: latencyQuantile(one.latency, 0.95) },
    ]),
  );
  return rows.map((row) => ({ ...row, ...byHouse.get(row.house.id) }));
}

/** Adds how the forecasts of the rows' tables did. */
export function withHits(rows: readonly BoardRow[], hits: readonly DayFacts[]): BoardRow[] {
  const byTable = new Map(hits.map((one) => [one.tableId, hitOf(one)]));
  return rows.map((row) => ({ ...row, hit: byTable.get(row.table.id) ?? null }));
}

/** Those rows that a filter lets through. */
export function filterRows(rows: readonly BoardRow[], { q, status, wrong }: BoardFilter): BoardRow[] {
  const part = q.toLowerCase();
  return rows.filter(
    (row) =>
      (part === "" || row.name.includes(part) || row.house.name.toLowerCase().includes(part)) &&
      (status === "" || row.status === status) &&
      (!wrong || row.tone === "bad" || row.tone === "warn"),
  );
}

/** Rows in the order of a column; unknown values come last either way, and equal ones by name. */
export function sortRows(rows: readonly BoardRow[], sort: string): BoardRow[] {
  const isDown = sort.startsWith("-");
  const by = KEYS[sort.replace(/^-/, "") as Sort];
  return rows
    .map((row) => ({ row, key: by(row) }))
    .toSorted((a, b) => {
      if (a.key === null || b.key === null) return Number(a.key === null) - Number(b.key === null) || byName(a, b);
      const order = a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
      return (isDown ? -order : order) || byName(a, b);
    })
    .map(({ row }) => row);
}

function byName(a: { row: BoardRow }, b: { row: BoardRow }): number {
  return a.row.name < b.row.name ? -1 : 1;
}

const KEYS: Record<Sort, (row: BoardRow) => number | string | null> = {
  worst: ({ place, table }) => (table.enabled ? place : Infinity),
  table: ({ name }) => name,
  lag: ({ table }) => table.lagSeconds,
  rate: ({ recentPerMinute, usual }) =>
    usual === null || usual.perMinute === 0 ? null : recentPerMinute / usual.perMinute,
  p95: ({ p95 }) => (p95 === null ? null : p95.ms + Number(p95.isBeyond)),
  gaps: ({ open }) => open?.gaps ?? 0,
  quarantine: ({ open }) => open?.quarantine ?? 0,
  conflicts: ({ open }) => open?.conflicts ?? 0,
  evidence: ({ table }) => table.lnE,
  forecast: ({ table }) => table.forecastAt?.getTime() ?? null,
  calibration: ({ table }) => table.calibratedAt?.getTime() ?? null,
  hit: ({ hit }) => (hit === null ? null : hit.rate - hit.stated),
};

/**
 * Formats an e-value in few characters, from its logarithm in micro-nats. Below a hundredth the exact value does not matter.
 *
 * @example
 * evidenceText(0); // => "1.00"
 * evidenceText(2995733); // => "20.0"
 * evidenceText(-9000000); // => "< 0.01"
 * evidenceText(40000000); // => "e^40.0"
 */
export function evidenceText(lnE: number): string {
  const nats = lnE / 1e6;
  if (nats > Math.log(1e6)) return `e^${nats.toFixed(1)}`;
  const e = Math.exp(nats);
  if (e < 0.01) return "< 0.01";
  return e < 10 ? e.toFixed(2) : e < 100 ? e.toFixed(1) : String(Math.round(e));
}

function hitOf({ scored, hits, sumP, isWithheld }: DayFacts): BoardRow["hit"] {
  if (scored === 0) return null;
  const interval = isWithheld ? null : wilsonInterval(hits, scored);
  const stated = sumP / scored / 1e6;
  const isOff = interval !== null && (stated < interval[0] || stated > interval[1]);
  return { rate: hits / scored, stated, interval, n: scored, isOff };
}

/** The first place of each subject. */
function placesOf(problems: readonly Problem[]): Map<string, number> {
  return new Map(problems.map(({ subject }, place) => [subject, place] as const).toReversed());
}
