/** The newest block of a chain as an endpoint sees it. */
export interface Head {
  number: bigint;
  /** When the block says that it was made. */
  at: Date;
  /** The newest block that is never replaced any more; null where the endpoint does not tell. */
  finalized: bigint | null;
}

/** Where a transfer was seen. Hashes are in small letters. */
export interface TransferLog {
  txHash: `0x${string}`;
  blockHash: `0x${string}`;
  blockNumber: bigint;
  /** Its place in the block, which changes when the transaction gets into another one. */
  logIndex: number;
}

/** A transfer of the token; addresses are in small letters. */
export interface Transfer {
  /** Its place among the logs of its transaction: with the transaction's hash, what it is known by. */
  position: number;
  logIndex: number;
  sender: `0x${string}`;
  to: `0x${string}`;
  units: bigint;
}

/** What a transaction did in the block that it is in: its transfers of the token; none where it failed. */
export interface Receipt {
  blockHash: `0x${string}`;
  blockNumber: bigint;
  transfers: readonly Transfer[];
}

/**
 * The address in a topic of a log, in small letters.
 *
 * @example
 * placeOf("0x000000000000000000000000F39fd6e51aad88f6f4ce6ab8827279cfffb92266"); // => "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 */
export function placeOf(topic: string): `0x${string}` {
  return `0x${topic.slice(-40).toLowerCase()}`;
}
