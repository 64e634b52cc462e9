import type { CreditedState } from "./credited-store.ts";
import type { Head, Receipt, Transfer } from "./endpoints/on-chain.ts";

/** A stored pending deposit: `to` in lower case. */
export interface Waiting {
  position: number;
  to: string;
  units: bigint;
  blockHash: string;
  blockNumber: bigint;
}

/**
 * One endpoint's view of a deposit: `behind` if it has not reached the deposit's block, `none` if it shows that the
 * transfer is not on its chain, `unproven` if it neither returns a receipt of use nor shows another block at that height.
 */
export type View =
  | { kind: "behind" }
  | { kind: "none" }
  | { kind: "unproven" }
  | { kind: "there"; blockHash: `0x${string}`; blockNumber: bigint; transfer: Transfer };

/** The decision on a deposit. */
export type DepositDecision =
  | { kind: "wait" }
  | { kind: "credit" }
  | { kind: "orphan" }
  | { kind: "move"; blockHash: `0x${string}`; blockNumber: bigint; transfer: Transfer }
  | { kind: "dispute"; text: string };

/**
 * Returns an endpoint's view of a deposit, from the transaction's receipt, the hash of the endpoint's block at the
 * deposit's height (null if unknown) and its newest block. A missing receipt alone proves nothing: a node can lag behind,
 * and a deposit in a settled block would be lost.
 */
export function viewOf(deposit: Waiting, receipt: Receipt | null, blockHash: string | null, head: bigint): View {
  const transfer = receipt?.transfers.find(
    (one) => one.position === deposit.position && one.to === deposit.to && one.units > 0n,
  );
  if (receipt !== null && transfer !== undefined) {
    return { kind: "there", blockHash: receipt.blockHash, blockNumber: receipt.blockNumber, transfer };
  }
  if (receipt?.blockHash === deposit.blockHash && contradicts(receipt)) return { kind: "none" };
  if (head < deposit.blockNumber) return { kind: "behind" };
  return blockHash === null || blockHash === deposit.blockHash ? { kind: "unproven" } : { kind: "none" };
}

/** Whether a receipt without the transfer shows what happened instead. Some nodes return receipts without their logs. */
function contradicts({ isSuccessful, transfers }: Receipt): boolean {
  return !isSuccessful || transfers.length > 0;
}

/**
 * Combines the views of all endpoints. A deposit is credited only if all of them see it in the same block, with the
 * same amount, deep enough, and orphaned only if all of them show that it is not on the chain. Anything else may be a
 * reorganization or a node that lags behind, so the deposit stays pending; once it is deep, that is a dispute for people
 * to resolve.
 */
export function decideDeposit(deposit: Waiting, views: readonly View[], isDeep: boolean): DepositDecision {
  const [first, ...others] = views;
  if (first === undefined || views.some(({ kind }) => kind === "behind")) return { kind: "wait" };
  if (views.every(({ kind }) => kind === "none")) return { kind: "orphan" };
  const isSame = first.kind === "there" && others.every((other) => isSameView(first, other));
  if (!isSame) {
    if (!isDeep) return { kind: "wait" };
    const isUnproven = views.every(({ kind }) => kind === "unproven");
    const text = `${isUnproven ? "" : "the endpoints differ: "}${views.map(describeView).join("; ")}`;
    return { kind: "dispute", text };
  }
  const { blockHash, blockNumber, transfer } = first;
  const isAsStored = blockHash === deposit.blockHash && blockNumber === deposit.blockNumber;
  if (!isAsStored || transfer.units !== deposit.units) {
    return { kind: "move", blockHash, blockNumber, transfer };
  }
  return isDeep ? { kind: "credit" } : { kind: "wait" };
}

/**
 * Combines the views of all endpoints on a credited deposit. It also counts as there in another block, with no less
 * than was credited: the same transaction was mined again.
 */
export function creditedState(deposit: Waiting, views: readonly View[], heads: readonly Head[]): CreditedState {
  if (views.length > 0 && views.every(({ kind }) => kind === "none")) return "gone";
  const isThere = (view: View) => view.kind === "there" && view.transfer.units >= deposit.units;
  if (!views.every(isThere)) return "unclear";
  const isFinal = views.every((view, at) => {
    const finalized = heads[at]?.finalized ?? null;
    return view.kind === "there" && finalized !== null && view.blockNumber <= finalized;
  });
  return isFinal ? "final" : "there";
}

function isSameView(one: Extract<View, { kind: "there" }>, other: View): boolean {
  return (
    other.kind === "there" &&
    other.blockHash === one.blockHash &&
    other.blockNumber === one.blockNumber && // what its confirmations are counted from
    other.transfer.units === one.transfer.units
  );
}

function describeView(view: View, at: number): string {
  const who = `endpoint ${at + 1}`;
  if (view.kind === "unproven") {
    return `${who} knows no such transfer yet: it has no receipt with it, and no other block at its height`;
  }
  if (view.kind !== "there") return `${who} knows no such transfer`;
  return `${who} has ${view.transfer.units} units in block ${view.blockNumber} (${view.blockHash})`;
}
