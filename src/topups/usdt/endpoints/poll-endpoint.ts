import type { Address } from "viem";
import type { Sql } from "../../../db/client.ts";
import { reasonOf } from "../../../errors.ts";
import type { Log } from "../../../log.ts";
import { amountOf } from "../amount.ts";
import { type FoundDeposit, listUnknown, listWatched, saveDeposits } from "../deposit-store.ts";
import { type Endpoint, EndpointError } from "./endpoint.ts";
import { listLeftOutBlocks, saveLeftOut } from "./left-out-store.ts";
import { listTransfers } from "./list-transfers.ts";
import { isVerified, releaseHeld, saveHead, savePolled, saveSettled, saveVerified } from "./endpoint-store.ts";
import type { Head, Receipt, TransferLog } from "./on-chain.ts";
import { type BlockRange, batches, nextRange, settledTo } from "./ranges.ts";
import type { Usdt } from "../../../config/usdt.ts";

/** Nodes accept about a thousand addresses per request; half of that leaves room. */
const ADDRESSES_AT_ONCE = 500;
/** The largest range; more blocks make longer responses. */
const MOST_BLOCKS = 1_000;
/** Ranges per poll: the rest is left for the next one, so that a long catch-up never hits the deadline. */
const MOST_RANGES = 100;
/** Held blocks of an endpoint: each costs a range of every poll. While there are more, the next one is not settled. */
const MOST_HELD = 50;
/** Receipts that are requested concurrently: one for each transaction, however many transfers it has. */
export const RECEIPTS_AT_ONCE = 5;

/** What a poll of a chain needs. */
export interface Watch {
  sql: Sql;
  usdt: Usdt;
  endpoints: readonly Endpoint[];
  log: Log;
  signal: AbortSignal;
}

/** The result of polling an endpoint, even if it ended with an error. */
export interface EndpointPoll {
  endpoint: Endpoint;
  /** Its newest block; null unless it was read up to it, except held blocks. */
  head: Head | null;
  error: string | null;
  /** Deposits that are new, or moved to another block. */
  found: number;
  /** The range size from now on, in blocks; null if the endpoint was not read. */
  rangeBlocks: number | null;
}

/** A block with a transfer that could not be stored, since its receipt does not match it (yet). */
interface Incomplete {
  block: bigint;
  text: string;
}

/** What reading of an endpoint begins with. */
interface Reading {
  head: Head;
  from: bigint;
  held: readonly bigint[];
  addresses: readonly Address[];
}

/**
 * Reads the blocks of an endpoint that are not settled, up to its newest, and stores the deposits in them. An endpoint
 * that is down, refuses or has another chain is a result, not an exception.
 */
export async function pollEndpoint(watch: Watch, endpoint: Endpoint): Promise<EndpointPoll> {
  const { sql, usdt, log, signal } = watch;
  const poll: EndpointPoll = { endpoint, head: null, error: null, found: 0, rangeBlocks: null };
  try {
    await verify(watch, endpoint);
    const head = await endpoint.head();
    const { settledTo: settled, heldBlocks: held, rangeBlocks } = await saveHead(sql, usdt, endpoint, head);
    poll.rangeBlocks = rangeBlocks;
    if (head.number < settled) {
      const text = `its newest block is ${head.number}, and it was read up to ${settled} before; if its responses were wrong then, have it read again at /ops/deposits`;
      throw new EndpointError(`${endpoint.host}: ${text}`, "other");
    }
    // listed after the newest block was read: every address that these blocks can pay is in this list
    const addresses = await listWatched(sql);
    const reading = { head, from: settled + 1n, held, addresses };
    const { isAtHead, incomplete } = await readBlocks(watch, poll, reading);
    if (isAtHead) poll.head = head;
    poll.error = (await rereadHeld(watch, poll, reading)) ?? incomplete?.text ?? null;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof EndpointError)) throw error;
    log.debug({ endpoint: endpoint.place }, reasonOf(error));
    poll.error = error.message;
  }
  return poll;
}

async function verify({ sql, usdt }: Watch, endpoint: Endpoint): Promise<void> {
  if (await isVerified(sql, usdt, endpoint)) return;
  const problem = await endpoint.verify();
  if (problem !== null) throw new EndpointError(`refused: ${problem}`, "other");
  await saveVerified(sql, usdt, endpoint);
}

/**
 * Reads blocks in ranges and settles them. A settled block with a transfer that could not be stored is held, so that it
 * is read again on its own and does not stop the blocks after it. Returns the lowest such block.
 */
async function readBlocks(
  watch: Watch,
  poll: EndpointPoll,
  { head, from, held, addresses }: Reading,
): Promise<{ isAtHead: boolean; incomplete: Incomplete | null }> {
  const { sql, usdt, signal } = watch;
  const begun = Math.min(MOST_BLOCKS, poll.rangeBlocks ?? MOST_BLOCKS);
  const leftOut = await listLeftOutBlocks(sql, usdt, from);
  let size = BigInt(begun);
  let next = from;
  let isLimit = false;
  const incomplete: Incomplete[] = [];
  for (let ranges = held.length; ranges < MOST_RANGES; ranges += 1) {
    const range = nextRange(next, head.number, size, leftOut);
    if (range === null) break;
    signal.throwIfAborted();
    try {
      const read = await readRange(watch, poll.endpoint, range, addresses);
      poll.found += read.found;
      incomplete.push(...read.incomplete);
      if (read.isSplit) {
        poll.rangeBlocks = begun; // the range was refused because of this block alone
        size = BigInt(begun);
      }
    } catch (error) {
      // mostly too many blocks or too long a response: each node has its own limit and its own message
      if (!(error instanceof EndpointError)) throw error;
      if (range.from === range.to || error.why === "busy") {
        poll.rangeBlocks = begun; // it was not for the number of blocks, and more questions would make it worse
        throw error;
      }
      size = (size + 1n) / 2n;
      poll.rangeBlocks = Number(size);
      if (error.why === "timeout") throw error;
      continue;
    }
    isLimit ||= range.to - range.from + 1n === size;
    const blocks = [...new Set(incomplete.map(({ block }) => block))].filter((block) => !held.includes(block));
    const excess = blocks[Math.max(0, MOST_HELD - held.length)]; // settling stops before it
    const read = excess === undefined ? range.to : excess - 1n;
    const settled = settledTo({ read, head: head.number, rescan: usdt.chain.rescan });
    const toHold = blocks.filter((block) => block <= settled);
    await saveSettled(sql, usdt, poll.endpoint.place, { from, to: settled, held: toHold });
    next = range.to + 1n;
  }
  // the range grows slowly, since every attempt costs a request
  if (isLimit) poll.rangeBlocks = Math.min(MOST_BLOCKS, Number(size + size / 8n + 1n));
  return { isAtHead: next > head.number, incomplete: incomplete[0] ?? null };
}

/** Reads held blocks again, and releases those whose transfers are all stored now. Returns the error of the lowest other. */
async function rereadHeld(watch: Watch, poll: EndpointPoll, { held, addresses }: Reading): Promise<string | null> {
  const { sql, usdt, signal } = watch;
  const { endpoint } = poll;
  let problem: string | null = null;
  for (const block of held) {
    signal.throwIfAborted();
    try {
      const { found, incomplete } = await readRange(watch, endpoint, { from: block, to: block }, addresses);
      poll.found += found;
      if (incomplete[0] === undefined) await releaseHeld(sql, usdt, endpoint.place, block);
      else problem ??= incomplete[0].text;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof EndpointError)) throw error;
      problem ??= `block ${block}, in which a receipt was missing, could not be read again: ${error.message}`;
      if (error.why === "busy" || error.why === "timeout") break;
    }
    await savePolled(sql, usdt, endpoint.place);
  }
  return problem;
}

async function readRange(
  watch: Watch,
  endpoint: Endpoint,
  range: BlockRange,
  addresses: readonly Address[],
): Promise<{ found: number; incomplete: Incomplete[]; isSplit: boolean }> {
  const { sql, usdt } = watch;
  let found = 0;
  let isSplit = false;
  const incomplete: Incomplete[] = [];
  for (const some of batches(addresses, ADDRESSES_AT_ONCE)) {
    const listed = await listTransfers(endpoint, range, some);
    isSplit ||= listed.isSplit;
    await saveLeftOut(sql, usdt, range.from, listed.leftOut);
    const unknown = await listUnknown(sql, usdt, listed.logs);
    const byTransaction = [...Map.groupBy(unknown, ({ txHash }) => txHash)];
    for (const few of batches(byTransaction, RECEIPTS_AT_ONCE)) {
      const completed = await Promise.all(few.map(([txHash, logs]) => complete(watch, endpoint, txHash, logs)));
      found += await saveDeposits(
        sql,
        usdt,
        completed.flatMap(({ deposits }) => deposits),
      );
      incomplete.push(...completed.flatMap((one) => one.incomplete));
    }
  }
  return { found, incomplete: incomplete.toSorted((a, b) => Number(a.block - b.block)), isSplit };
}

/**
 * Adds to the logs of a transaction their positions in it, which only the receipt contains. Logs that do not match the
 * receipt are incomplete: the node lags behind, or a reorganization is in progress.
 */
async function complete(
  { usdt, log }: Watch,
  endpoint: Endpoint,
  txHash: TransferLog["txHash"],
  logs: readonly TransferLog[],
): Promise<{ deposits: FoundDeposit[]; incomplete: Incomplete[] }> {
  const receipt = await endpoint.receipt(txHash).catch((error: unknown) => {
    // anyone can send such a transaction, which must not stop the deposits of others
    if (!(error instanceof EndpointError) || error.why !== "large") throw error;
    log.warn(`the deposits of ${txHash} are left out, check them manually: ${error.message}`);
    return "large" as const;
  });
  if (receipt === "large") return { deposits: [], incomplete: [] };
  const deposits: FoundDeposit[] = [];
  const incomplete: Incomplete[] = [];
  for (const seen of logs) {
    const transfer = receipt?.transfers.find(({ logIndex }) => logIndex === seen.logIndex);
    if (receipt?.blockHash !== seen.blockHash || transfer === undefined) {
      incomplete.push({ block: seen.blockNumber, text: describeIncomplete(endpoint, seen, receipt) });
      continue;
    }
    const amount = amountOf(transfer.units, usdt.chain.decimals);
    if (amount === null) {
      log.warn(
        `${endpoint.host} reports ${transfer.units} units in ${txHash}, which is more than exists; it is left out`,
      );
      continue;
    }
    const { position, to, sender, units } = transfer;
    deposits.push({ ...seen, position, to, sender, units, ...amount });
  }
  return { deposits, incomplete };
}

function describeIncomplete({ host }: Endpoint, log: TransferLog, receipt: Receipt | null): string {
  const { txHash, blockNumber, blockHash } = log;
  const otherBlock = receipt?.blockHash === blockHash ? "without this transfer" : "of another block";
  const found = receipt === null ? "no receipt" : `a receipt ${otherBlock}`;
  return `${host}: expected the receipt of ${txHash}, which has a transfer in block ${blockNumber}, got ${found}; the block is read again until it matches`;
}
