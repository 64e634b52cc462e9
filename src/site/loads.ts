import { listPlans } from "../callers/plan-store.ts";
import type { Sql, Transaction } from "../db/client.ts";
import type { Log } from "../log.ts";
import { SECONDS_WITHHELD } from "../published/held-readings.ts";
import { ROUNDS_WITHHELD } from "./delayed.ts";
import { ROUNDS_COUNTED, THRESHOLDS } from "./houses/table.ts";
import { readPastForecast, readTableFacts } from "./houses/table-store.ts";
import { loader, loaders } from "./loader.ts";
import { readShownLog } from "./method/method.ts";
import {
  listIncidents,
  listPollSuccess,
  listSiteHouses,
  listSiteNotices,
  listUptime,
  readBriefly,
  readWork,
} from "./site-store.ts";
import { UPTIME_DAYS } from "./uptime.ts";

/** Prices and limits are changed manually. */
const PLANS_CACHED_MS = 10_000;
/** Shorter than a poll interval, so a badge is never late by more than one poll. */
const HOUSES_CACHED_MS = 2_000;
const WORK_CACHED_MS = 5_000;
/** PostgreSQL takes 300 ms for an hour of polls of a thousand houses. */
const POLLS_CACHED_MS = 30_000;
const LOG_CACHED_MS = 5_000;
/** On the status page and in its feed, which links to them. */
const NOTICES_SHOWN = 20;
const INCIDENTS_OF_ONE = 20;
/** History changes every few minutes. */
const HISTORY_CACHED_MS = 30_000;
/** Each has 90 days of up to 30 houses. */
const STATUS_VIEWS_CACHED = 5;
/** PostgreSQL takes some milliseconds for ten thousand rounds of a table. */
const FACTS_CACHED_MS = 60_000;
const PAST_CACHED_MS = 5_000;

/** The parts of pages that are read from the database, each cached for all visitors. */
export function loadsOf({ sql, log }: { sql: Sql; log: Log }) {
  const load = <Value>(what: string, cachedMs: number, read: Parameters<typeof readBriefly<Value>>[1]) =>
    loader(what, () => readBriefly(sql, read), { cachedMs, log });
  const each = <Value>(
    what: string,
    cachedMs: number,
    read: (tx: Transaction, of: string) => Promise<Value>,
    most?: number,
  ) => loaders(what, (of: string) => readBriefly(sql, (tx) => read(tx, of)), { cachedMs, log, most });
  const uptimeOf = (tx: Transaction, of: string) => listUptime(tx, of.split(" "), UPTIME_DAYS);
  return {
    plans: load("the plans", PLANS_CACHED_MS, listPlans),
    houses: load("the houses", HOUSES_CACHED_MS, listSiteHouses),
    work: load("the state of the workers", WORK_CACHED_MS, readWork),
    polls: load("the results of polls", POLLS_CACHED_MS, listPollSuccess),
    notices: load("the notices", WORK_CACHED_MS, (tx) => listSiteNotices(tx, NOTICES_SHOWN)),
    publicLog: load("the public log", LOG_CACHED_MS, readShownLog),
    incidents: load("the incidents", HISTORY_CACHED_MS, (tx) => listIncidents(tx, { limit: NOTICES_SHOWN })),
    uptime: each("the history of availability", HISTORY_CACHED_MS, uptimeOf),
    /** By the houses that the status page shows, which change with the states of many houses. */
    houseUptimes: each("the history of houses", HISTORY_CACHED_MS, uptimeOf, STATUS_VIEWS_CACHED),
    houseIncidents: each("the incidents", HISTORY_CACHED_MS, (tx, house) =>
      listIncidents(tx, { limit: INCIDENTS_OF_ONE, house }),
    ),
    tableIncidents: each("the incidents", HISTORY_CACHED_MS, (tx, id) =>
      listIncidents(tx, { limit: INCIDENTS_OF_ONE, tableId: Number(id) }),
    ),
    facts: each("the facts of a table", FACTS_CACHED_MS, (tx, id) =>
      readTableFacts(tx, Number(id), { rounds: ROUNDS_COUNTED, thresholds: THRESHOLDS }),
    ),
    past: each("a past forecast", PAST_CACHED_MS, (tx, id) =>
      readPastForecast(tx, Number(id), { rounds: ROUNDS_WITHHELD, seconds: SECONDS_WITHHELD }),
    ),
  };
}
