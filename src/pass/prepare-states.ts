import type { Lease, LeasedTable } from "../houses/polling/lease-store.ts";
import type { LockTimeout } from "../tables/heads-store.ts";
import { fromDatabase } from "./compute/times.ts";
import { loadStates, type Passes } from "./passes.ts";

/**
 * Loads the states of a lease's tables that are older than the head; call it before the first request. No older
 * transaction can commit later: it locks the row of its lease, which cannot be taken meanwhile, and one that begins
 * later is refused for its epoch. While another process polls the house too, tables that share a response wait for it:
 * often it has nothing new for them.
 */
export async function prepareStates(passes: Passes, lease: Lease): Promise<void> {
  const { tables, hasOther } = lease;
  const stale = tables.filter(({ tableId, version, partSha256 }) => {
    if (hasOther && partSha256 !== null && !passes.damaged.has(tableId)) return false;
    return (passes.states.get(tableId) ?? passes.damaged.get(tableId))?.version !== version;
  });
  const ids = stale.map(({ tableId }) => tableId);
  if (ids.length > 0) await loadStates(passes, ids, lockTimeoutOf(lease));
  for (const table of tables) takeResponseOfOther(passes, table);
}

/** How long a poll waits for a locked table: longer than most passes are written, and not long if others wait with it. */
export function lockTimeoutOf({ tables }: Lease): LockTimeout {
  return tables.length === 1 ? "4s" : "250ms";
}

/** Takes over the time of the newest response if another process received it: it had nothing new, so no version moved. */
function takeResponseOfOther({ states }: Passes, { tableId, respondedAt }: LeasedTable): void {
  const state = states.get(tableId);
  if (respondedAt === null || state === undefined || state.head.respondedAt === null) return;
  const stored = fromDatabase(respondedAt);
  if (stored <= state.head.respondedAt) return;
  states.keep({ ...state, head: { ...state.head, respondedAt: stored }, notedAt: stored });
}
