import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { DISK_FAULTS, HELD_MS, STOPPING_FAULTS, type Fault, type FaultKind } from "./faults.ts";
import { checkInvariants } from "./invariants.ts";
import { injectFault, type FaultTargets } from "./inject-fault.ts";
import { isMeasured, type Sample } from "./memory.ts";
import type { ManagedProcess } from "./processes.ts";
import { faultsOfHouse, type Truth } from "./truth.ts";

/** The faults of a day and what they affect. */
export interface FaultRun extends FaultTargets {
  faults: readonly Fault[];
  processes: readonly ManagedProcess[];
}

/** The recovery time of each fault, and memory samples of the processes. */
export interface FaultRunResults {
  recoveries: { kind: FaultKind; seconds: number }[];
  samples: Sample[];
}

const CHECK_EVERY_MS = 2_000;
const TIMEOUT_MS = 60_000;
/** These faults do not affect polling. */
const API_FAULTS: readonly string[] = ["kill api", "set clock of api"];
/** Recovery ignores a house from 3 s before a fault of its own until 6 s after it. */
const HOUSE_FAULT_FROM_MS = -3_000;
const HOUSE_FAULT_TO_MS = 6_000;

/** Causes the faults one after another and checks the invariants between them. */
export async function runFaults(run: FaultRun): Promise<FaultRunResults> {
  const { faults, truth, servers, disk, note } = run;
  const results: FaultRunResults = { recoveries: [], samples: [] };
  const canFill = servers.hasDisk && disk !== null;
  for (const fault of [...faults, null]) {
    const atMs = fault === null ? truth.endMs : truth.startMs + fault.atMs;
    await checkUntil(atMs, run, results);
    if (fault === null) break;
    const { kind } = fault;
    if (DISK_FAULTS.includes(kind) && !canFill) continue;
    if (run.keptAlive.size > 0 && isLeftOut(kind, truth)) continue;
    note(kind);
    await injectFault(fault, run);
    if (!API_FAULTS.includes(kind)) await waitForRounds(kind, run, results);
  }
  return results;
}

/** Whether a soak leaves a fault out: it would stop the measured processes, or take memory while theirs is measured. */
function isLeftOut(kind: FaultKind, { startMs, endMs }: Truth): boolean {
  const heldMs = HELD_MS[kind];
  if (heldMs === undefined) return STOPPING_FAULTS.includes(kind);
  return isMeasured(Date.now() - startMs, heldMs, endMs - startMs);
}

async function waitForRounds(
  kind: FaultKind,
  { servers, truth, note }: FaultRun,
  results: FaultRunResults,
): Promise<void> {
  const seconds = await recovery(servers.sql, truth, TIMEOUT_MS);
  if (seconds === null)
    throw new InvariantViolation(`${TIMEOUT_MS / 1_000} s after "${kind}" not all houses deliver rounds`);
  results.recoveries.push({ kind, seconds });
  note(`  recovered ${seconds.toFixed(1)} s after its end`);
}

async function checkUntil(
  atMs: number,
  { truth, servers, processes, keptAlive }: FaultRun,
  { samples }: FaultRunResults,
): Promise<void> {
  while (Date.now() < atMs) {
    await delay(Math.min(CHECK_EVERY_MS, Math.max(1, atMs - Date.now())));
    await checkInvariants(servers.sql, truth);
    const part = (Date.now() - truth.startMs) / (truth.endMs - truth.startMs);
    // one that was started again has another memory
    for (const { name, residentBytes } of keptAlive.size > 0 ? keptAlive : processes) {
      const bytes = residentBytes();
      if (bytes !== null) samples.push({ name, part, bytes });
    }
  }
}

/** Seconds until every house without a fault delivered a round that was requested after now; null after the timeout. */
async function recovery(sql: Sql, truth: Truth, timeoutMs: number): Promise<number | null> {
  const fromMs = Date.now();
  while (Date.now() < fromMs + timeoutMs) {
    const now = Date.now();
    const healthy = [...truth.houseFaults.keys()].filter((house) =>
      faultsOfHouse(truth, house).every(
        ({ fromMs: from, toMs }) => now <= from + HOUSE_FAULT_FROM_MS || now >= toMs + HOUSE_FAULT_TO_MS,
      ),
    );
    const rows = await sql<{ house: string; at: number | null }[]>`
      select h.id as house, extract(epoch from max(d.last_polled_round_at))::float8 * 1000 as at
      from houses h
      join tables t on t.house_id = h.id
      join table_heads d on d.table_id = t.id
      group by h.id`;
    const at = new Map(rows.map((row) => [row.house, row.at ?? 0]));
    if (healthy.length > 0 && healthy.every((house) => (at.get(house) ?? 0) > fromMs))
      return (Date.now() - fromMs) / 1_000;
    await delay(100);
  }
  return null;
}
