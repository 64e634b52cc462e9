import type { Transaction } from "../../db/client.ts";
import { treeOfHour, type HourTree } from "../chain/anchors.ts";
import { listHoursAfterRoots, listHoursToVerify } from "../chain/anchors-store.ts";
import type { Wrong } from "./check-round.ts";

/** A root that is not what the forecasts give, or is missing; the id is its hour. */
export interface WrongRoot extends Wrong {
  kind: "root";
  id: string;
}

/**
 * Hours with forecasts that may still wait for their roots. Whoever works has made a root minutes after its hour, so
 * one is missing when two later hours with forecasts are over: two hours of work, however long a standstill was between.
 */
const HOURS_THAT_MAY_WAIT = 2;

/**
 * Recomputes every root from the forecasts of its hour, and finds hours that should have one and have none.
 *
 * Of one table: the roots of the hours in which it was spoken of, over the forecasts of all tables.
 */
export async function verifyAnchors(
  tx: Transaction,
  tableId: number | undefined,
  progress: (done: number, total: number) => void,
): Promise<WrongRoot | null> {
  const hours = await listHoursToVerify(tx, tableId);
  for (const [index, { hour, anchor }] of hours.entries()) {
    const tree = await treeOfHour(tx, hour);
    if (!tree.ok || anchor?.root !== tree.root || anchor.size !== tree.size) return wrongRoot(hour, tree, anchor);
    progress(index + 1, hours.length);
  }
  const waiting = await listHoursAfterRoots(tx, tableId, HOURS_THAT_MAY_WAIT + 1);
  const [oldest] = waiting;
  if (oldest === undefined || waiting.length <= HOURS_THAT_MAY_WAIT) return null;
  return wrongRoot(oldest, await treeOfHour(tx, oldest), null);
}

function wrongRoot(hour: string, tree: HourTree, anchor: { root: string; size: number } | null): WrongRoot {
  return {
    kind: "root",
    id: hour,
    expected: tree.ok ? sayRoot(tree) : "forecasts that a root can be made of",
    found: tree.ok ? (anchor === null ? "none" : sayRoot(anchor)) : tree.reason,
  };
}

function sayRoot({ root, size }: { root: string; size: number }): string {
  return `the root ${root} over ${size} forecasts`;
}
