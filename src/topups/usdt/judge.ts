import type { CreditedState } from "./credited-store.ts";
import type { Head, Receipt, Transfer } from "./on-chain.ts";

/** A deposit that waits, as it is stored: `to` in small letters. */
export interface Waiting {
  position: number;
  to: string;
  units: bigint;
  blockHash: string;
  blockNumber: bigint;
}

/** What one endpoint says of a deposit: `behind` where it has not come to the deposit's block yet. */
export type View =
  | { kind: "behind" }
  | { kind: "none" }
  | { kind: "there"; blockHash: `0x${string}`; blockNumber: bigint; transfer: Transfer };

/** What is to be done with it. */
export type Judgement =
  | { kind: "wait" }
  | { kind: "credit" }
  | { kind: "orphan" }
  | { kind: "move"; blockHash: `0x${string}`; blockNumber: bigint; transfer: Transfer }
  | { kind: "dispute"; text: string };

/** What an endpoint says of a deposit, by the receipt it gave for its transaction and the newest block it has. */
export function viewOf(deposit: Waiting, receipt: Receipt | null, head: bigint): View {
  const transfer = receipt?.transfers.find(
    (one) => one.position === deposit.position && one.to === deposit.to && one.units > 0n,
  );
  if (receipt !== null && transfer !== undefined) {
    return { kind: "there", blockHash: receipt.blockHash, blockNumber: receipt.blockNumber, transfer };
  }
  return receipt === null && head < deposit.blockNumber ? { kind: "behind" } : { kind: "none" };
}

/**
 * What all endpoints together make of a deposit. Only what every one of them sees in the same block, with the same amount,
 * deep enough, is credited. What they see differently is waited for, since a chain that is just being reorganized looks
 * so; once it is deep it is a dispute, which people have to look at.
 */
export function judge(deposit: Waiting, views: readonly View[], isDeep: boolean): Judgement {
  const [first, ...others] = views;
  if (first === undefined || views.some(({ kind }) => kind === "behind")) return { kind: "wait" };
  if (views.every(({ kind }) => kind === "none")) return { kind: "orphan" };
  const isSame = first.kind === "there" && others.every((other) => saysTheSame(first, other));
  if (!isSame) {
    return isDeep
      ? { kind: "dispute", text: `the endpoints differ: ${views.map(inWords).join("; ")}` }
      : { kind: "wait" };
  }
  const { blockHash, blockNumber, transfer } = first;
  const isAsStored = blockHash === deposit.blockHash && blockNumber === deposit.blockNumber;
  if (!isAsStored || transfer.units !== deposit.units) {
    return { kind: "move", blockHash, blockNumber, transfer };
  }
  return isDeep ? { kind: "credit" } : { kind: "wait" };
}

/**
 * What all endpoints together say of a deposit that was credited. It counts as there in another block, too, with no less
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

function saysTheSame(one: Extract<View, { kind: "there" }>, other: View): boolean {
  return (
    other.kind === "there" &&
    other.blockHash === one.blockHash &&
    other.blockNumber === one.blockNumber && // what its confirmations are counted from
    other.transfer.units === one.transfer.units
  );
}

function inWords(view: View, at: number): string {
  const who = `endpoint ${at + 1}`;
  if (view.kind !== "there") return `${who} knows no such transfer`;
  return `${who} has ${view.transfer.units} units in block ${view.blockNumber} (${view.blockHash})`;
}
