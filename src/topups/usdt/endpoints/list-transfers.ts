import type { Address } from "viem";
import { type Endpoint, EndpointError } from "./endpoint.ts";
import type { TransferLog } from "./on-chain.ts";
import { type BlockRange, batches } from "./ranges.ts";

/** Transfers of a range, and what had to be done to read them. */
export interface ListedTransfers {
  logs: TransferLog[];
  /** Addresses with more transfers in a single block than a response can have; their transfers are not in `logs`. */
  leftOut: Address[];
  /** Whether the addresses were divided among several requests. */
  isSplit: boolean;
}

/**
 * Returns the transfers of a range. If a single block is refused, its addresses are divided down to one, so that anyone
 * who floods one address in one block does not stop the deposits of others.
 * @throws EndpointError if the endpoint is busy or too slow, refuses several blocks, or refuses one address for another
 * reason than the size of the response
 */
export async function listTransfers(
  endpoint: Endpoint,
  range: BlockRange,
  addresses: readonly Address[],
): Promise<ListedTransfers> {
  try {
    return { logs: await endpoint.transfers(range, addresses), leftOut: [], isSplit: false };
  } catch (error) {
    if (range.from < range.to || !(error instanceof EndpointError)) throw error;
    if (error.why === "busy" || error.why === "timeout") throw error;
    if (addresses.length > 1) return splitAddresses(endpoint, range, addresses);
    if (error.why !== "large") throw error;
    return { logs: [], leftOut: [...addresses], isSplit: true };
  }
}

async function splitAddresses(
  endpoint: Endpoint,
  range: BlockRange,
  addresses: readonly Address[],
): Promise<ListedTransfers> {
  const listed: ListedTransfers = { logs: [], leftOut: [], isSplit: true };
  for (const half of batches(addresses, Math.ceil(addresses.length / 2))) {
    const { logs, leftOut } = await listTransfers(endpoint, range, half);
    listed.logs.push(...logs);
    listed.leftOut.push(...leftOut);
  }
  return listed;
}
