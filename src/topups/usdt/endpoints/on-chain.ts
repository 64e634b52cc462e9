/** The newest block of a chain, as an endpoint sees it. */
export interface Head {
  number: bigint;
  /** The block's own timestamp. */
  at: Date;
  /** The newest block that cannot be replaced; null if the endpoint does not return it. */
  finalized: bigint | null;
}

/** The log of a transfer. Hashes are in lower case. */
export interface TransferLog {
  txHash: `0x${string}`;
  blockHash: `0x${string}`;
  blockNumber: bigint;
  /** Its place in the block, which changes if the transaction moves to another one. */
  logIndex: number;
}

/** A transfer of the token; addresses are in lower case. */
export interface Transfer {
  /** Its place among the logs of its transaction: its identity, with the transaction's hash. */
  position: number;
  logIndex: number;
  sender: `0x${string}`;
  to: `0x${string}`;
  units: bigint;
}

/** The effects of a transaction in its block: its transfers of the token; none if it failed. */
export interface Receipt {
  blockHash: `0x${string}`;
  blockNumber: bigint;
  isSuccessful: boolean;
  transfers: readonly Transfer[];
}

/**
 * Returns the address in a topic of a log, in lower case.
 *
 * @example
 * placeOf("0x000000000000000000000000F39fd6e51aad88f6f4ce6ab8827279cfffb92266"); // => "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 */
export function placeOf(topic: string): `0x${string}` {
  return `0x${topic.slice(-40).toLowerCase()}`;
}
