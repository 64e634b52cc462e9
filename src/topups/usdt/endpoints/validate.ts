import type { Head, Receipt, TransferLog } from "./on-chain.ts";

/** The columns are `integer`; no block of any chain has so many logs. */
const HIGHEST_INDEX = 2 ** 31 - 1;
/** A million years at one block per second. */
const HIGHEST_BLOCK = 2n ** 45n;
/** The year 9999, in seconds. */
const LATEST_SECOND = 253_402_300_799n;
const HASH = /^0x[0-9a-f]{64}$/;
const ADDRESS = /^0x[0-9a-f]{40}$/;

/**
 * Checks the newest block of an endpoint: every value is bounded before it is stored.
 * @throws Error with what was expected and found: the fault of this endpoint alone
 */
export function checkedHead(block: { number: bigint | null; timestamp: bigint }): Omit<Head, "finalized"> {
  const number = blockNumberOf(block.number);
  const { timestamp } = block;
  if (typeof timestamp !== "bigint" || timestamp < 0n || timestamp > LATEST_SECOND) {
    throw new Error(`expected a time in seconds, got ${short(timestamp)}`);
  }
  return { number, at: new Date(Number(timestamp) * 1_000) };
}

/** Checks a log of a transfer. @throws Error like {@link checkedHead} */
export function checkedLog(log: TransferLog): TransferLog {
  checkedHash(log.txHash);
  checkedHash(log.blockHash);
  blockNumberOf(log.blockNumber);
  indexOf(log.logIndex);
  return log;
}

/** Checks the receipt of a transaction. @throws Error like {@link checkedHead} */
export function checkedReceipt(receipt: Receipt): Receipt {
  checkedHash(receipt.blockHash);
  blockNumberOf(receipt.blockNumber);
  for (const { logIndex, sender, to } of receipt.transfers) {
    indexOf(logIndex);
    for (const address of [sender, to]) {
      if (!ADDRESS.test(address)) throw new Error(`expected an address, got ${short(address)}`);
    }
  }
  return receipt;
}

function blockNumberOf(number: bigint | null): bigint {
  if (typeof number === "bigint" && number >= 0n && number <= HIGHEST_BLOCK) return number;
  throw new Error(`expected a block number of at most ${HIGHEST_BLOCK}, got ${short(number)}`);
}

function indexOf(index: number): void {
  if (Number.isInteger(index) && index >= 0 && index <= HIGHEST_INDEX) return;
  throw new Error(`expected a log index of at most ${HIGHEST_INDEX}, got ${short(index)}`);
}

/** Checks a hash in lower case. @throws Error like {@link checkedHead} */
export function checkedHash<Hash extends string>(hash: Hash): Hash {
  if (HASH.test(hash)) return hash;
  throw new Error(`expected a hash of 32 bytes, got ${short(hash)}`);
}

function short(value: unknown): string {
  return String(value).slice(0, 80);
}
