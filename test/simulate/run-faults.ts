import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "../../src/db/client.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { DISK_FAULTS, STOPPING_FAULTS, type Fault, type FaultKind } from "./faults.ts";
import { checkInvariants } from "./invariants.ts";
import { make, type FaultTargets } from "./inject-fault.ts";
import type { Sample } from "./memory.ts";
import type { ManagedProcess } from "./processes.ts";
import { faultsOfHouse, type Truth } from "./truth.ts";

/** What a day goes through, and with whom. */
export interface FaultRun extends FaultTargets {
  faults: readonly Fault[];
  processes: readonly ManagedProcess[];
}

/** How long after a fault its houses brought rounds again, and what processes needed all the while. */
export interface FaultRunResults {
  recoveries: { kind: FaultKind; seconds: number }[];
  samples: Sample[];
}

const CHECK_EVERY_MS = 2_000;
const TIMEOUT_MS = 60_000;
/** What happens to APIs alone keeps no house from being polled. */
const OF_APIS: readonly string[] = ["kill api", "set clock of api"];
/** A house that is in trouble, or was a moment ago, is not waited for. */
const TROUBLE_FROM_MS = -3_000;
const TROUBLE_TO_MS = 6_000;

/** Faults one after another, with looks at the invariants between them. */
export async function runFaults(going: FaultRun): Promise<FaultRunResults> {
  const { faults, truth, servers, disk, note } = going;
  const gone: FaultRunResults = { recoveries: [], samples: [] };
  const canFill = servers.hasDisk && disk !== null;
  for (const fault of [...faults, null]) {
    const atMs = fault === null ? truth.endMs : truth.startMs + fault.atMs;
    await checkUntil(atMs, going, gone);
    if (fault === null) break;
    const { kind } = fault;
    if (DISK_FAULTS.includes(kind) && !canFill) continue;
    if (STOPPING_FAULTS.includes(kind) && going.keptAlive.size > 0) continue;
    note(kind);
    await make(fault, going);
    if (!OF_APIS.includes(kind)) await waitForRounds(kind, going, gone);
  }
  return gone;
}

async function waitForRounds(
  kind: FaultKind,
  { servers, truth, note }: FaultRun,
  gone: FaultRunResults,
): Promise<void> {
  const seconds = await recovery(servers.sql, truth, TIMEOUT_MS);
  if (seconds === null)
    throw new InvariantViolation(`${TIMEOUT_MS / 1_000} s after "${kind}" not all houses bring rounds again`);
  gone.recoveries.push({ kind, seconds });
  note(`  rounds again ${seconds.toFixed(1)} s after its end`);
}

async function checkUntil(
  atMs: number,
  { truth, servers, processes }: FaultRun,
  { samples }: FaultRunResults,
): Promise<void> {
  while (Date.now() < atMs) {
    await delay(Math.min(CHECK_EVERY_MS, Math.max(1, atMs - Date.now())));
    await checkInvariants(servers.sql, truth);
    const part = (Date.now() - truth.startMs) / (truth.endMs - truth.startMs);
    for (const { name, residentBytes } of processes) {
      const bytes = residentBytes();
      if (bytes !== null) samples.push({ name, part, bytes });
    }
  }
}

/** How long it takes until every house brought a round that was asked for after now; those in trouble are not waited for. */
async function recovery(sql: Sql, truth: Truth, timeoutMs: number): Promise<number | null> {
  const fromMs = Date.now();
  while (Date.now() < fromMs + timeoutMs) {
    const now = Date.now();
    const lively = [...truth.houseFaults.keys()].filter((house) =>
      faultsOfHouse(truth, house).every(
        ({ fromMs: from, toMs }) => now <= from + TROUBLE_FROM_MS || now >= toMs + TROUBLE_TO_MS,
      ),
    );
    const rows = await sql<{ house: string; at: number | null }[]>`
      select h.id as house, extract(epoch from max(d.last_polled_round_at))::float8 * 1000 as at
      from houses h
      join tables t on t.house_id = h.id
      join table_heads d on d.table_id = t.id
      group by h.id`;
    const at = new Map(rows.map((row) => [row.house, row.at ?? 0]));
    if (lively.length > 0 && lively.every((house) => (at.get(house) ?? 0) > fromMs))
      return (Date.now() - fromMs) / 1_000;
    await delay(100);
  }
  return null;
}
