import { duration, number } from "../../../frame/text/format.ts";
import { within } from "../../../within.ts";
import { readDepths } from "../../../queue/runs/inspect.ts";
import type { OpsParts } from "../../contract.ts";
import type { BoardRow } from "../rows.ts";
import type { HouseFacts } from "../../../health/house-facts-store.ts";
import type { Waiting } from "./summary-store.ts";

/** Redis usually responds within milliseconds; the board waits no longer than this for the number of failed runs. */
const REDIS_TIMEOUT_MS = 1_000;
/** A forecast is issued within a second of its round; between two reads of the database a newer round may arrive. */
const ON_TIME_MS = 10_000;
/** Responses are parsed within seconds. */
const BACKLOG_SECONDS = 60;

/** A tile of the component `stats`. */
export interface Tile {
  label: string;
  value: string;
  unit?: string;
  note?: string;
  state?: "warn" | "bad" | undefined;
  href: string;
}

/** What the tiles are made of. */
export interface SummaryFacts {
  houses: readonly HouseFacts[];
  /** All tables, whatever the filter of the list below. */
  rows: readonly BoardRow[];
  waiting: Waiting;
  /** Null if Redis is unavailable. */
  failedRuns: number | null;
  liveWindowSeconds: number;
}

/** Counts the failed runs of all queues; null if Redis is unavailable or silent. */
export async function countFailedRuns({ queues }: Pick<OpsParts, "queues">): Promise<number | null> {
  if (queues === null) return null;
  try {
    const depths = await within(REDIS_TIMEOUT_MS, "Redis", readDepths(queues));
    return depths.reduce((sum, { state, runs }) => sum + (state === "failed" ? runs : 0), 0);
  } catch {
    return null; // shown as unknown; the page of the queues states why
  }
}

/** The summary of the board: seven figures, each with a link to its evidence and a color when it needs attention. */
export function summaryTiles(facts: SummaryFacts): Tile[] {
  const polled = facts.rows.filter(({ table }) => table.enabled);
  return [
    housesTile(facts),
    lagTile(polled, facts.liveWindowSeconds),
    roundsTile(polled),
    forecastsTile(polled),
    jobsTile(facts.failedRuns),
    backlogTile(facts.waiting),
    moneyTile(facts.waiting),
  ];
}

function housesTile({ houses, liveWindowSeconds }: SummaryFacts): Tile {
  const enabled = houses.filter(({ enabled: isEnabled }) => isEnabled);
  const paused = enabled.filter(({ pausedAt }) => pausedAt !== null).length;
  const live = enabled.filter(
    ({ pausedAt, newestPolledAgeMs: age }) => pausedAt === null && age !== null && age <= liveWindowSeconds * 1_000,
  ).length;
  return {
    label: "Houses live",
    value: number(live),
    unit: `of ${number(enabled.length)}`,
    ...(paused > 0 && { note: `${number(paused)} paused` }),
    state: live + paused < enabled.length ? "bad" : undefined,
    href: "/ops?sort=-lag#tables",
  };
}

/** The lag that 95 % of the tables do not exceed, so that one slow table does not hide the others. */
function lagTile(polled: readonly BoardRow[], liveWindowSeconds: number): Tile {
  const lags = polled.flatMap(({ table }) => table.lagSeconds ?? []).toSorted((a, b) => a - b);
  const p95 = lags[Math.ceil(lags.length * 0.95) - 1];
  return {
    label: "Lag, p95",
    value: p95 === undefined ? "–" : duration(p95),
    note: "since the newest round",
    state: p95 !== undefined && p95 > liveWindowSeconds ? "warn" : undefined,
    href: "/ops?sort=-lag#tables",
  };
}

function roundsTile(polled: readonly BoardRow[]): Tile {
  const now = polled.reduce((sum, { recentPerMinute }) => sum + recentPerMinute, 0);
  const known = polled.flatMap(({ usual: one }) => one ?? []);
  const usual = known.reduce((sum, { perMinute }) => sum + perMinute, 0);
  return {
    label: "Rounds per minute",
    value: now.toFixed(1),
    note: known.length === 0 ? "usual not known" : `usual ${usual.toFixed(1)}`,
    state: now < usual / 2 ? "warn" : undefined,
    href: "#freshness",
  };
}

function forecastsTile(polled: readonly BoardRow[]): Tile {
  const live = polled.filter(({ status }) => status === "live");
  const onTime = live.filter(
    ({ table: { forecastAt, newestRoundAt } }) =>
      forecastAt !== null && newestRoundAt !== null && newestRoundAt.getTime() - forecastAt.getTime() <= ON_TIME_MS,
  ).length;
  return {
    label: "Forecasts on time",
    value: number(onTime),
    unit: `of ${number(live.length)}`,
    note: "live tables",
    state: onTime < live.length ? "warn" : undefined,
    href: "/ops?sort=forecast#tables",
  };
}

function jobsTile(failedRuns: number | null): Tile {
  return {
    label: "Failed runs",
    value: failedRuns === null ? "–" : number(failedRuns),
    ...(failedRuns === null && { note: "Redis is unavailable" }),
    state: failedRuns === 0 ? undefined : "bad",
    href: "/ops/queues#failures",
  };
}

function backlogTile({ backlogSeconds }: Waiting): Tile {
  return {
    label: "Backlog",
    value: backlogSeconds === null ? "none" : duration(backlogSeconds),
    note: backlogSeconds === null ? "all responses parsed" : "oldest unparsed response",
    state: backlogSeconds !== null && backlogSeconds > BACKLOG_SECONDS ? "warn" : undefined,
    href: "/ops/payloads?state=unread",
  };
}

function moneyTile({ transfers, reversals }: Waiting): Tile {
  const total = transfers + reversals;
  return {
    label: "Money waiting",
    value: number(total),
    note: total === 0 ? "nothing to decide" : `${number(transfers)} transfers, ${number(reversals)} reversals`,
    state: total > 0 ? "warn" : undefined,
    href: transfers === 0 && reversals > 0 ? "/ops/ledger#proposals" : "/ops/bank",
  };
}
