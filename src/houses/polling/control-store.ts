import type { Decided, Refusal } from "../../audit/decision.ts";
import type { Transaction } from "../../db/client.ts";

const MOST_NAMED = 5;

/** The controls of a house's polling that operators change. */
interface HouseControl {
  pausedAt: Date | null;
  pausedBy: string | null;
  pauseReason: string | null;
  /** Identifies this pause; null if the house is polled. */
  version: string | null;
}

/** Stops polling a house until it is resumed. A paused house is left unchanged. */
export async function stopHouse(
  tx: Transaction,
  { house, by, reason }: { house: string; by: string; reason: string },
): Promise<Decided> {
  const before = await lockControl(tx, house);
  if (before === null) return unknownHouse(tx, house);
  if (before.pausedAt !== null) return refuse(`${house} is paused already: ${describePause(before)}`);
  await tx`
    update houses
    set
      paused_at = clock_timestamp(),
      paused_by = ${by},
      pause_reason = ${reason}
    where id = ${house}`;
  return changed(house, "is paused", before, await findControl(tx, house));
}

/** Polls a paused house again. With `version` only if that is its current pause. */
export async function startHouse(
  tx: Transaction,
  { house, version = null }: { house: string; version?: string | null },
): Promise<Decided> {
  const before = await lockControl(tx, house);
  if (before === null) return unknownHouse(tx, house);
  if (before.pausedAt === null) return refuse(`${house} is not paused: it is polled`);
  if (version !== null && before.version !== version) {
    return refuse(`the pause of ${house} is not the one that was shown: ${describePause(before)}`);
  }
  await tx`
    update houses
    set
      paused_at = null,
      paused_by = null,
      pause_reason = null,
      updated_at = clock_timestamp()
    where id = ${house}`;
  return changed(house, "is polled again", before, await findControl(tx, house));
}

/** The controls of a house, locked; heads of its tables are not, which an import may keep locked for minutes. */
async function lockControl(tx: Transaction, house: string): Promise<HouseControl | null> {
  await tx`
    select
    from houses
    where id = ${house}
    for no key update`;
  return findControl(tx, house);
}

/**
 * Requests a house with an open circuit at its next poll: with `forget` the circuit is closed and its failures are
 * erased, else the next request is its probe, and if that fails the waits keep growing. On shards with an open circuit
 * it also ends a wait that the house asked for. Refused if no circuit is open: a half-open one is being probed, and a
 * Retry-After alone is respected.
 */
export async function askHouseNow(
  tx: Transaction,
  { house, forget }: { house: string; forget: boolean },
): Promise<Decided> {
  if ((await findControl(tx, house)) === null) return unknownHouse(tx, house);
  // not the row of the house, which a houses file changes after it locked the leases
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
    return refuse(`the polls of ${house} are not suspended: ${how}`);
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
  const outcome = forget ? "is polled as if nothing had failed" : "is probed with its next poll";
  return changed(house, outcome, { open }, { open: [] });
}

/** The controls of a house; null if there is none with this id. */
async function findControl(tx: Transaction, house: string): Promise<HouseControl | null> {
  const [row] = await tx<HouseControl[]>`
    select paused_at as "pausedAt", paused_by as "pausedBy", pause_reason as "pauseReason", paused_at::text as version
    from houses
    where id = ${house}`;
  return row ?? null;
}

function changed(house: string, outcome: string, before: object, after: object | null): Decided {
  return { ok: true, target: `house ${house}`, before, after, message: `${house} ${outcome}` };
}

function refuse(problem: string): Refusal {
  return { ok: false, problem };
}

async function unknownHouse(tx: Transaction, house: string): Promise<Refusal> {
  const houses = await tx<{ id: string; all: number }[]>`
    select id, count(*) over ()::integer as all
    from houses
    order by id
    limit ${MOST_NAMED}`;
  const more = (houses[0]?.all ?? 0) - houses.length;
  const named = houses.map(({ id }) => id).join(", ") || "none yet";
  const known = more > 0 ? `${named} and ${more} more` : named;
  return { ok: false, problem: `there is no house ${JSON.stringify(house)}; there are ${known}`, isUnknown: true };
}

function describePause({ pausedAt, pausedBy, pauseReason }: HouseControl): string {
  const since = pausedAt === null ? "" : ` since ${pausedAt.toISOString().slice(0, 16).replace("T", " ")}Z`;
  return `by ${pausedBy}${since}: ${pauseReason}`;
}
