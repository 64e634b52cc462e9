import type { Sql } from "../db/client.ts";
import { syncFormatCircuit } from "../houses/reading/format-store.ts";
import { findNextGap } from "../rounds/gaps/gaps-store.ts";
import { refreshNotices } from "../rounds/notices/notices-store.ts";
import type { PassResult } from "./compute/state.ts";

/** Counts of what passes did, for the line in the log. */
export interface PassCounts {
  rounds: number;
  late: number;
  quarantined: number;
  conflicts: number;
  gaps: number;
  forecasts: number;
  scores: number;
}

/** Counts what passes did. */
export function countPasses(results: readonly PassResult[]): PassCounts {
  const sum = (count: (rows: PassResult["rows"]) => number) => results.reduce((all, { rows }) => all + count(rows), 0);
  return {
    rounds: sum(({ rounds }) => rounds.length),
    late: sum(({ rounds }) => rounds.filter(({ late }) => late).length),
    quarantined: sum(({ quarantine }) => quarantine.length),
    conflicts: sum(({ conflicts }) => conflicts.length),
    gaps: sum(({ gaps }) => gaps.length),
    forecasts: sum(({ forecastSet }) => forecastSet?.features.length ?? 0),
    scores: sum(({ scoreSets }) => scoreSets.reduce((all, { features }) => all + features.length, 0)),
  };
}

/** Callbacks for what passes trigger elsewhere. */
export interface Consequences {
  sql: Sql;
  published: (tableIds: readonly number[]) => void;
  /** Requests the filling of a gap; the house's others follow it. */
  fill: (gap: string) => Promise<void>;
}

/**
 * The follow-ups of committed passes of a house: notices that depend on several rows, the circuit of a house whose
 * format changed, gap requests, and the notification of API processes. If this process ends before, sweeps fill the gaps
 * and refresh the notices.
 */
export async function afterCommit(house: string, results: readonly PassResult[], to: Consequences): Promise<void> {
  const shown = results.filter(({ rows }) => !rows.isQuiet);
  if (shown.length === 0) return;
  to.published(idsOf(shown)); // first: notices may wait for locked heads, and the next round may begin meanwhile
  const failing = idsOf(shown.filter(({ rows }) => rows.changesNotices));
  const changed = failing.length > 0 ? await refreshNotices(to.sql, failing) : [];
  if (changed.length > 0) to.published(changed);
  const formats = shown.flatMap(({ state, rows }) => (rows.format === null ? [] : [{ state, ...rows.format }]));
  if (formats.some(({ from, to: after }) => (from.since === null) !== (after.since === null))) {
    const known = formats.filter(({ from, to: after }) => from.since !== null && after.since === null);
    await syncFormatCircuit(
      to.sql,
      house,
      known.map(({ state }) => state.table.tableId),
    );
  }
  const gap = shown.some(({ rows }) => rows.gaps.length > 0) ? await findNextGap(to.sql, house) : null;
  if (gap !== null) await to.fill(gap);
}

function idsOf(results: readonly PassResult[]): number[] {
  return [...new Set(results.map(({ state }) => state.table.tableId))];
}
