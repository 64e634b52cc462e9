import type { Decided } from "../audit/decision.ts";
import type { Transaction } from "../db/client.ts";
import { lockHeads, touchHeads } from "../tables/heads-store.ts";
import { closeGapManually, findGapState, reopenGap, type GapState } from "../rounds/gaps/gap-list-store.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import type { Decision } from "./revision.ts";

type GapDecision = Decided<{ table: string; state: GapState["state"] }>;

/**
 * Gives up an open gap: its rounds are no longer requested, and an active run stops after its page. Rounds that arrive
 * anyway still fill it. Waits for the table's lock.
 */
export function giveUpGap(tx: Transaction, id: bigint, decision: Decision): Promise<GapDecision> {
  return change(tx, id, "open", () => closeGapManually(tx, id, decision));
}

/** Reopens a gap that was given up, with all its attempts. Waits for the table's lock. */
export function openGapAgain(tx: Transaction, id: bigint): Promise<GapDecision> {
  return change(tx, id, "given_up", () => reopenGap(tx, id));
}

async function change(
  tx: Transaction,
  id: bigint,
  expected: GapState["state"],
  act: () => Promise<void>,
): Promise<GapDecision> {
  const known = await findGapState(tx, id);
  const [table] = known === null ? [] : await lockHeads(tx, [known.tableId]);
  const before = known === null ? null : await findGapState(tx, id);
  if (table === undefined || before === null) return { ok: false, problem: `there is no gap ${id}` };
  if (before.state !== expected) {
    const who = before.closedBy === null ? "" : ` by ${before.closedBy}`;
    const since = before.closedAt === null ? "" : ` since ${before.closedAt}`;
    const state = before.state.replace("_", " ");
    return {
      ok: false,
      problem: `expected a gap that is ${expected.replace("_", " ")}; gap ${id} is ${state}${since}${who}`,
    };
  }
  await act();
  await touchHeads(tx, [table.id]); // a cached state includes gaps of unknown size
  await refreshNoticesWithin(tx, [table.id]);
  const after = (await findGapState(tx, id)) ?? before;
  const target = `gap ${id} of ${table.name}`;
  const message = `${target} is ${after.state === "open" ? "open again" : "given up"}`;
  return { ok: true, target, before, after, message, table: table.name, state: after.state };
}
