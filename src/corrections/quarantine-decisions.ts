import type { Decided } from "../audit/decision.ts";
import type { Transaction } from "../db/client.ts";
import { lockHeads, touchHeads } from "../tables/heads-store.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import { decideItems, listItemsToDecide } from "../rounds/lists/quarantine-list-store.ts";
import type { Decision } from "./revision.ts";

/** Items per decision, the limit of a form. */
export const MOST_ITEMS = 500;

/** The reasons on which an operator can decide: a suspicious result or number may be right. */
export const RELEASABLE: ReadonlySet<string> = new Set(["stuck_feed", "far_ahead"]);

/** Names of the decisions in the audit log. */
export const QUARANTINE_ACTIONS = { released: "quarantine.release", discarded: "quarantine.discard" } as const;

/**
 * Decides quarantined items: `discarded` marks them invalid; `released` accepts a repeated result or a far number when the
 * response is read again or the house lists it once more. All or nothing: it is refused if another operator has decided on
 * one of them. Waits for the locks of their tables.
 */
export async function decideOnItems(
  tx: Transaction,
  ids: readonly bigint[],
  decision: Decision & { state: "released" | "discarded" },
): Promise<Decided<{ ids: bigint[] }>> {
  if (ids.length === 0 || ids.length > MOST_ITEMS) {
    return { ok: false, problem: `expected 1 to ${MOST_ITEMS} items, found ${ids.length}` };
  }
  const before = await listItemsToDecide(tx, ids);
  const tables = await lockHeads(tx, [...new Set(before.map(({ tableId }) => tableId))]);
  const items = await listItemsToDecide(tx, ids);
  const missing = ids.find((id) => !items.some((item) => item.id === id));
  if (missing !== undefined) return { ok: false, problem: `there is no item ${missing} in quarantine` };
  const decided = items.find(({ state }) => state !== "open");
  if (decided !== undefined) {
    const who = decided.decidedBy === null ? "" : ` by ${decided.decidedBy}`;
    return { ok: false, problem: `item ${decided.id} was ${decided.state} already${who}; nothing was changed` };
  }
  const unfit = decision.state === "released" ? items.find(({ code }) => !RELEASABLE.has(code)) : undefined;
  if (unfit !== undefined) {
    return {
      ok: false,
      problem: `item ${unfit.id} is quarantined for ${unfit.code}, which a release does not fix; fix the adapter or the houses file, and read its payload again`,
    };
  }
  const changed = await decideItems(tx, ids, decision);
  const tableIds = tables.map(({ id }) => id);
  await touchHeads(tx, tableIds); // a cached state includes the quarantined rounds
  await refreshNoticesWithin(tx, tableIds);
  const { state } = decision;
  const target = `items ${ids.join(", ")} of ${tables.map(({ name }) => name).join(", ")}`;
  const message = `${changed.length === 1 ? "1 item" : `${changed.length} items`} ${state}`;
  return { ok: true, target, before: "open", after: state, message, ids: changed };
}
