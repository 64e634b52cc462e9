import type { Queryable } from "../../db/client.ts";
import { codeOf } from "../../errors.ts";
import { saveAuditsStatements } from "../../forecasts/readings/audit-store.ts";
import { saveFormatsStatement } from "../../houses/reading/format-store.ts";
import { saveNoticesStatement } from "../../rounds/notices/notices-store.ts";
import type { CompletePassRows as PassRows } from "../compute/state.ts";
import { rowsOf, type Statement } from "./table-rows.ts";
import { insertForecastSets, insertScoreSets, publishReadings, saveSnapshots } from "./write-forecasts-store.ts";
import { type HeldLease, lockPasses, moveHeads, type NotedResponse, noteResponses } from "./write-heads-store.ts";
import { insertPayloads, markPayloads } from "./write-payloads-store.ts";
import {
  closeUnknownGaps,
  fillGaps,
  insertRounds,
  openGaps,
  saveConflicts,
  saveQuarantine,
} from "./write-rounds-store.ts";

/**
 * Why the database refused passes. `late`: a forecast set is too late: write again without sets. `moved`: a head has another
 * version: drop the cached states. `lease_lost`: another worker has the lease.
 */
export type Refusal = "late" | "moved" | "lease_lost";

const REFUSALS: Readonly<Record<string, Refusal>> = {
  RH002: "late",
  RH008: "lease_lost",
  RH009: "moved",
};

/** Why the database refused the rows of {@link passStatements}; null for any other error. */
export function refusalOf(error: unknown): Refusal | null {
  return REFUSALS[codeOf(error)] ?? null;
}

/** Rows of which a pass has any number, and those of which it has one or none. */
type Lists =
  "payloads" | "marks" | "rounds" | "gaps" | "lateNumbers" | "shownGaps" | "conflicts" | "quarantine" | "scoreSets";
type Singles = "forecastSet" | "snapshot" | "reading";

/**
 * The statements that write passes of different tables in one transaction, in their order: locks, then one per kind of
 * row that there is. `leases` are those under which the passes were made; empty if the responses were stored before.
 */
export function passStatements(
  sql: Queryable,
  passes: readonly PassRows[],
  leases: readonly HeldLease[],
  noted: readonly NotedResponse[] = [],
): Statement[] {
  const ordered = passes.toSorted((a, b) => a.tableId - b.tableId);
  const list = <Key extends Lists>(key: Key) => rowsOf<PassRows[Key][number]>(ordered, (pass) => pass[key]);
  const each = <Key extends Singles>(key: Key) =>
    rowsOf<NonNullable<PassRows[Key]>>(ordered, (pass) => [pass[key]].flatMap((row) => row ?? []));
  const statements = [
    lockPasses(sql, [...ordered, ...noted], leases),
    insertPayloads(sql, list("payloads")),
    markPayloads(sql, list("marks")),
    insertRounds(sql, list("rounds")),
    openGaps(sql, list("gaps")),
    fillGaps(sql, list("lateNumbers")),
    closeUnknownGaps(sql, list("shownGaps")),
    saveConflicts(sql, list("conflicts")),
    saveQuarantine(sql, list("quarantine")),
    // before the forecast sets: a window that was voided is followed by another
    insertScoreSets(sql, list("scoreSets")),
    insertForecastSets(sql, each("forecastSet")),
    saveSnapshots(sql, each("snapshot")),
    publishReadings(sql, each("reading")),
    saveNotices(sql, ordered),
    saveFormats(sql, ordered),
    ...saveAuditsStatements(
      sql,
      ordered.map(({ tableId, audits }) => ({ tableId, rows: audits })),
    ),
    moveHeads(
      sql,
      ordered.filter(({ isQuiet }) => !isQuiet),
    ),
    noteResponses(sql, [
      ...ordered.flatMap(({ isQuiet, tableId, version, head: { respondedAt } }) =>
        isQuiet ? [{ tableId, version, respondedAt }] : [],
      ),
      ...noted,
    ]),
  ];
  return statements.filter((statement) => statement !== null);
}

function saveNotices(sql: Queryable, passes: readonly PassRows[]): Statement | null {
  const changes = passes.flatMap(({ tableId, notices }) =>
    notices.map(({ kind, text, since }) => ({ tableId, kind, text, ...(since !== null && { since }) })),
  );
  return changes.length === 0 ? null : saveNoticesStatement(sql, changes);
}

function saveFormats(sql: Queryable, passes: readonly PassRows[]): Statement | null {
  const changes = passes.flatMap(({ tableId, format }) => (format === null ? [] : [{ tableId, ...format.to }]));
  return changes.length === 0 ? null : saveFormatsStatement(sql, changes);
}
