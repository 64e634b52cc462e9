import type { Transaction } from "../../db/client.ts";
import { pauseHouse, resumeHouse } from "./pause-store.ts";

/** How a house is polled: what persons change of it. */
export interface HouseControl {
  pausedAt: Date | null;
  pausedBy: string | null;
  pauseReason: string | null;
  /** Tells this pause from any other; null where it is polled. */
  version: string | null;
}

/** What came of it; `refused` says how it is, and who made it so. `unknown`: there is no such house. */
export type HouseOutcome<Facts> =
  { kind: "done"; before: Facts; after: Facts } | { kind: "refused"; problem: string } | { kind: "unknown" };

/** Stops polling a house until it is resumed. One that is paused is left as it is, whoever asks. */
export async function stopHouse(
  tx: Transaction,
  { house, by, reason }: { house: string; by: string; reason: string },
): Promise<HouseOutcome<HouseControl>> {
  const before = await lockControl(tx, house);
  if (before === null) return { kind: "unknown" };
  if (before.pausedAt !== null) return { kind: "refused", problem: `${house} is paused already: ${told(before)}` };
  await pauseHouse(tx, { house, by, reason });
  return { kind: "done", before, after: await requireControl(tx, house) };
}

/** Polls a paused house again. With `version` only where its pause is the one that was looked at. */
export async function startHouse(
  tx: Transaction,
  { house, version = null }: { house: string; version?: string | null },
): Promise<HouseOutcome<HouseControl>> {
  const before = await lockControl(tx, house);
  if (before === null) return { kind: "unknown" };
  if (before.pausedAt === null) return { kind: "refused", problem: `${house} is not paused: it is polled` };
  if (version !== null && before.version !== version) {
    return { kind: "refused", problem: `the pause of ${house} is not the one that you saw: ${told(before)}` };
  }
  await resumeHouse(tx, house);
  return { kind: "done", before, after: await requireControl(tx, house) };
}

/** The circuit of a house's shards, as far as it is open. */
export interface OpenCircuits {
  /** Shards that were open, with the time of their next probe. */
  open: { shard: number; nextProbe: Date; openedTimes: number }[];
}

/**
 * Has a house that was given up asked again at its next turn, whatever its circuit says: with `forget` the circuit is
 * closed and what failed is forgotten, else the next request is its probe, and where it fails the waits go on growing.
 * Refused where no circuit is open: one that is half open is being probed, and a house that asked us to slow down is
 * left alone as long as it wants.
 */
export async function askHouseNow(
  tx: Transaction,
  { house, forget }: { house: string; forget: boolean },
): Promise<HouseOutcome<OpenCircuits>> {
  if ((await lockControl(tx, house)) === null) return { kind: "unknown" };
  const leases = await tx<{ shard: number; circuit: string; nextProbe: Date; openedTimes: number }[]>`
    select shard, circuit, next_allowed_at as "nextProbe", opened_times as "openedTimes"
    from poll_leases
    where house_id = ${house}
    order by shard
    for update`;
  const open = leases
    .filter(({ circuit }) => circuit === "open")
    .map(({ shard, nextProbe, openedTimes }) => ({ shard, nextProbe, openedTimes }));
  if (open.length === 0) {
    const isProbing = leases.some(({ circuit }) => circuit === "half_open");
    const how = isProbing ? "it is being probed right now" : "its circuit is closed";
    return { kind: "refused", problem: `${house} is not left alone for its failures: ${how}` };
  }
  await tx`
    update poll_leases
    set
      next_allowed_at = '-infinity',
      circuit = case when ${forget} then 'closed' else circuit end,
      failures_in_row = case when ${forget} then 0 else failures_in_row end,
      recent = case when ${forget} then '' else recent end,
      opened_at = case when ${forget} then null else opened_at end,
      opened_times = case when ${forget} then 0 else opened_times end
    where house_id = ${house}
      and circuit = 'open'`;
  return { kind: "done", before: { open }, after: { open: [] } };
}

/** How a house is polled; null where there is none of this id. */
async function findControl(tx: Transaction, house: string): Promise<HouseControl | null> {
  const [row] = await tx<HouseControl[]>`
    select paused_at as "pausedAt", paused_by as "pausedBy", pause_reason as "pauseReason", paused_at::text as version
    from houses
    where id = ${house}`;
  return row ?? null;
}

async function lockControl(tx: Transaction, house: string): Promise<HouseControl | null> {
  await tx`
    select
    from houses
    where id = ${house}
    for no key update`;
  return findControl(tx, house);
}

async function requireControl(tx: Transaction, house: string): Promise<HouseControl> {
  const found = await findControl(tx, house);
  if (found === null) throw new Error(`the house ${house} has gone while its row was locked`);
  return found;
}

function told({ pausedAt, pausedBy, pauseReason }: HouseControl): string {
  const since = pausedAt === null ? "" : ` since ${pausedAt.toISOString().slice(0, 16).replace("T", " ")}Z`;
  return `by ${pausedBy}${since}: ${pauseReason}`;
}
