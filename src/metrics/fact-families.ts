import type { Family, Sample } from "./families.ts";
import type { Count, DatabaseFacts } from "./facts-store.ts";
import type { HouseFacts } from "./house-facts-store.ts";

/**
 * The facts of PostgreSQL as metrics; without samples if it is unavailable (null). Every process reports the same, so
 * rules take the `max` over instances.
 */
export function factFamilies(facts: DatabaseFacts | null): Family[] {
  return [
    ...houseFamilies(facts),
    ...calibrationFamilies(facts),
    ...openItemFamilies(facts),
    ...serverFamilies(facts),
    ...databaseFamilies(facts),
  ];
}

function houseFamilies(facts: DatabaseFacts | null): Family[] {
  const polled = facts?.houses.filter(({ enabled }) => enabled) ?? [];
  return [
    gauge(
      "roundhouse_house_lag_seconds",
      "Seconds since the newest polled round of a house, or since it was added if there is none; absent if no table is polled.",
      of(polled, ({ lag }) => lag),
    ),
    gauge(
      "roundhouse_house_longest_table_lag_seconds",
      "The largest lag of the tables of a house.",
      of(polled, ({ longestLag }) => longestLag),
    ),
    gauge(
      "roundhouse_house_paused",
      "1 if an operator paused the house.",
      of(polled, ({ paused }) => Number(paused)),
    ),
    gauge(
      "roundhouse_house_tables",
      "Tables of a house that are polled.",
      of(polled, ({ tables }) => tables),
    ),
    gauge(
      "roundhouse_house_circuit",
      "Shards of a house by the state of their circuit: closed, open, half_open.",
      by(facts?.circuits, "house", "state"),
    ),
    counter(
      "roundhouse_rounds_total",
      "Stored rounds of a house, from every source.",
      of(facts?.houses ?? [], ({ rounds }) => rounds),
    ),
    counter(
      "roundhouse_forecasts_issued_total",
      "Forecasts issued for a house: next colors and windows.",
      of(facts?.houses ?? [], ({ forecasts }) => forecasts),
    ),
    gauge(
      "roundhouse_rounds_unsummed",
      "Rounds of a house that are not yet in the sums of accuracy.",
      of(polled, ({ unsummed }) => unsummed),
    ),
    gauge(
      "roundhouse_readings",
      "Tables of a house that have a reading.",
      of(polled, ({ readings }) => readings),
    ),
  ];
}

function calibrationFamilies(facts: DatabaseFacts | null): Family[] {
  const polled = facts?.houses.filter(({ enabled }) => enabled) ?? [];
  return [
    gauge(
      "roundhouse_calibration_newest_age_seconds",
      "Age of the newest calibration of a house that equals the live state.",
      of(polled, ({ newestCalibration }) => newestCalibration),
    ),
    gauge(
      "roundhouse_calibration_oldest_age_seconds",
      "Age of the newest calibration of the table that has waited longest.",
      of(polled, ({ oldestCalibration }) => oldestCalibration),
    ),
    gauge(
      "roundhouse_calibration_runs",
      "Calibration runs: queued and running now; done, failed and cancelled in the last day.",
      only(facts?.calibrationRuns, "state"),
    ),
  ];
}

function openItemFamilies(facts: DatabaseFacts | null): Family[] {
  return [
    gauge("roundhouse_gaps_open", "Open gaps of a house.", openItems(facts, "gaps")),
    gauge("roundhouse_gap_rounds_missing", "Missing rounds in the open gaps of a house.", openItems(facts, "missing")),
    gauge("roundhouse_quarantine_open", "Undecided quarantined items of a house.", openItems(facts, "quarantine")),
    gauge(
      "roundhouse_conflicts_open",
      "Undecided conflicts of a house, at most 10,000.",
      openItems(facts, "conflicts"),
    ),
    gauge(
      "roundhouse_notices_open",
      "Open continuity notices of a house by kind.",
      by(facts?.notices, "house", "kind"),
    ),
    gauge("roundhouse_alerts_open", "Open alerts by kind.", only(facts?.alerts, "kind")),
  ];
}

function serverFamilies(facts: DatabaseFacts | null): Family[] {
  const server = facts?.server;
  return [
    gauge(
      "roundhouse_payloads_unread",
      "Payloads that normalize-rounds has not read, without those of damaged tables; at most 10,000 are counted.",
      one(server?.unreadPayloads),
    ),
    gauge(
      "roundhouse_payloads_oldest_unread_seconds",
      "Age of the oldest unread payload, without those of damaged tables; 0 if there is none.",
      one(server?.oldestUnread),
    ),
    gauge("roundhouse_forecasts_open", "Forecasts whose rounds are not played yet.", one(server?.openForecasts)),
    gauge("roundhouse_workers", "Worker processes that reported in the last minute.", one(server?.workers)),
    gauge(
      "roundhouse_workers_wrong_clock",
      "Worker processes that accept no work because their clock is wrong.",
      one(server?.wrongClocks),
    ),
    gauge(
      "roundhouse_reconciled_age_seconds",
      "Seconds since the leader last reconciled the queues.",
      one(server?.reconciled),
    ),
    gauge("roundhouse_queue_paused", "1 for each queue that an operator paused.", only(facts?.pauses, "queue")),
    gauge("roundhouse_mails_waiting", "Pending mails.", one(server?.waitingMails)),
    gauge(
      "roundhouse_mails_late_seconds",
      "Time since the most overdue mail was due to be tried; 0 if there is none. The alert mail_late reports mails that were tried and put off.",
      one(server?.lateMail),
    ),
    gauge(
      "roundhouse_chain_read_age_seconds",
      "Seconds since an endpoint of a chain was last read up to its newest block.",
      by(facts?.chains, "chain", "endpoint"),
    ),
    gauge(
      "roundhouse_deposits_oldest_pending_seconds",
      "Age of the oldest pending deposit of a chain, in seconds.",
      (facts?.oldestDeposits ?? []).map(({ house, n }) => ({ labels: { chain: house }, value: n })),
    ),
  ];
}

function databaseFamilies(facts: DatabaseFacts | null): Family[] {
  const server = facts?.server;
  return [
    gauge(
      "roundhouse_partitions_ahead_seconds",
      "Time beyond today for which partitions exist, in whole days; below 0 nothing can be stored.",
      one(server?.partitionsAhead),
    ),
    gauge(
      "roundhouse_database_connections",
      "Connections of all processes to PostgreSQL by pool and state.",
      by(facts?.connections, "pool", "state"),
    ),
    gauge(
      "roundhouse_database_connections_max",
      "Connections that PostgreSQL allows in all.",
      one(server?.mostConnections),
    ),
    gauge(
      "roundhouse_database_bytes",
      "Size of the database on the disk of PostgreSQL, with indexes; without its log.",
      one(server?.databaseBytes),
    ),
  ];
}

function gauge(name: string, help: string, samples: Sample[]): Family {
  return { name, help, type: "gauge", samples };
}

function counter(name: string, help: string, samples: Sample[]): Family {
  return { name, help, type: "counter", samples };
}

function of(houses: readonly HouseFacts[], valueOf: (facts: HouseFacts) => number | null): Sample[] {
  return houses.flatMap((facts) => {
    const value = valueOf(facts);
    return value === null ? [] : [{ labels: { house: facts.house }, value }];
  });
}

/** The open items of a kind per house; 0 for a house without any, so that sums over houses are complete. */
function openItems(facts: DatabaseFacts | null, kind: string): Sample[] {
  const found = new Map(facts?.openItems.filter((item) => item.kind === kind).map(({ house, n }) => [house, n]));
  return of(facts?.houses ?? [], ({ house }) => found.get(house) ?? 0);
}

function by(counts: readonly Count[] = [], first: string, second: string): Sample[] {
  return counts.map(({ house, kind, n }) => ({ labels: { [first]: house, [second]: kind }, value: n }));
}

function only(counts: readonly Count[] = [], label: string): Sample[] {
  return counts.map(({ kind, n }) => ({ labels: { [label]: kind }, value: n }));
}

function one(value: number | null | undefined): Sample[] {
  return value === null || value === undefined ? [] : [{ labels: {}, value }];
}
