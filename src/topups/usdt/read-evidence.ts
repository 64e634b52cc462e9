import { type View, viewOf, type Waiting } from "./decide-deposit.ts";
import { type Endpoint, EndpointError } from "./endpoints/endpoint.ts";
import type { Head, Receipt, TransferLog } from "./endpoints/on-chain.ts";
import type { EndpointPoll } from "./endpoints/poll-endpoint.ts";

/** One endpoint's evidence on a deposit. */
export interface Evidence {
  receipt: Receipt | null;
  view: View;
}

type Deposit = Waiting & Pick<TransferLog, "txHash">;

/** Returns every endpoint's evidence on a deposit; null if one of them does not respond. */
export type ReadEvidence = (deposit: Deposit) => Promise<readonly Evidence[] | null>;

/**
 * Creates the reader of evidence for one poll. Each transaction and block is requested once per endpoint, however many
 * deposits are of it. An error of an endpoint is stored in its poll.
 */
export function createEvidenceReader(
  polls: readonly EndpointPoll[],
  heads: readonly Head[],
  signal: AbortSignal,
): ReadEvidence {
  const readers = polls.map((poll, at) => createReader(poll, heads[at]?.number ?? -1n));
  return async (deposit) => {
    const evidence = await Promise.all(readers.map((read) => read(deposit)));
    signal.throwIfAborted();
    const given = evidence.filter((one) => one !== null);
    return given.length === evidence.length ? given : null;
  };
}

function createReader(poll: EndpointPoll, head: bigint): (deposit: Deposit) => Promise<Evidence | null> {
  const { endpoint } = poll;
  const receipts = new Map<string, ReturnType<Endpoint["receipt"]>>();
  const hashes = new Map<bigint, ReturnType<Endpoint["blockHash"]>>();
  return async (deposit) => {
    try {
      const receipt = await remember(receipts, deposit.txHash, () => readReceipt(endpoint, deposit.txHash));
      const view = viewOf(deposit, receipt, null, head);
      if (view.kind !== "unproven") return { receipt, view };
      const hash = await remember(hashes, deposit.blockNumber, () => endpoint.blockHash(deposit.blockNumber));
      return { receipt, view: viewOf(deposit, receipt, hash, head) };
    } catch (error) {
      if (!(error instanceof EndpointError)) throw error;
      poll.error ??= error.message;
      return null;
    }
  };
}

/** A receipt that is too long is like a missing one: the deposit is not credited, and becomes a dispute once it is deep. */
async function readReceipt(endpoint: Endpoint, txHash: Deposit["txHash"]): Promise<Receipt | null> {
  try {
    return await endpoint.receipt(txHash);
  } catch (error) {
    if (error instanceof EndpointError && error.why === "large") return null;
    throw error;
  }
}

function remember<Key, Value>(known: Map<Key, Promise<Value>>, key: Key, request: () => Promise<Value>) {
  const value = known.get(key) ?? request();
  known.set(key, value);
  return value;
}
