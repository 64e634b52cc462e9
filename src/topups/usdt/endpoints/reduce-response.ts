import { cut } from "../../../text.ts";
import { placeOf, type Receipt, type Transfer, type TransferLog } from "./on-chain.ts";
import { checkedHash, checkedHead, checkedLog, checkedReceipt } from "./validate.ts";

/** Of `Transfer(address,address,uint256)`. */
export const TRANSFER_TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const LONGEST_MESSAGE = 300;
/** Of a result that is a text: the code of a contract has at most 24,576 bytes (EIP-170), two digits each. */
const LONGEST_TEXT = 64 << 10;
const QUANTITY = /^0x[0-9a-f]{1,30}$/i;
const WORD = /^0x[0-9a-f]{64}$/i;

/** A JSON-RPC request, with the token whose transfers are read. */
export interface RpcRequest {
  method: string;
  params: readonly unknown[];
  token: string;
}

/** A log of `eth_getLogs` as it is left over; numbers are in hexadecimal digits. */
export type ReducedLog = Omit<TransferLog, "blockNumber"> & { blockNumber: string };

/** A receipt as it is left over: its transfers of the token. */
export interface ReducedReceipt {
  transactionHash: string;
  blockHash: Receipt["blockHash"];
  blockNumber: string;
  isSuccessful: boolean;
  transfers: (Omit<Transfer, "units"> & { units: string })[];
}

/** A block as it is left over; its hash only if it was requested by its number. */
export interface ReducedBlock {
  number: string;
  timestamp: string;
  hash?: `0x${string}`;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Parses the body of a JSON-RPC response and leaves of it what is used: of logs the transfers that were requested, of a
 * receipt the transfers of the token, of a block its number, time and hash. Returns JSON-RPC again, a few percent of the
 * size.
 * @throws Error with what was expected and found: the fault of the endpoint alone
 */
export function reduceResponse(request: RpcRequest, body: Uint8Array): string {
  const response = fieldsOf(JSON.parse(Buffer.from(body).toString("utf8")));
  if (response === null) throw new Error("expected a JSON-RPC response, found another JSON value");
  const { error } = response;
  if (error !== undefined && error !== null) {
    const { code, message } = fieldsOf(error) ?? {};
    const shown = { code: typeof code === "number" ? code : -32_000, message: cut(textOf(message), LONGEST_MESSAGE) };
    return JSON.stringify({ error: shown });
  }
  return JSON.stringify({ result: reduceResult(request, response["result"] ?? null) });
}

function reduceResult(request: RpcRequest, result: unknown): unknown {
  switch (request.method) {
    case "eth_getLogs":
      return reduceLogs(request, result);
    case "eth_getTransactionReceipt":
      return result === null ? null : reduceReceipt(request, result);
    case "eth_getBlockByNumber":
      return result === null ? null : reduceBlock(request, result);
    default:
      if (typeof result === "string" && result.length <= LONGEST_TEXT) return result;
      throw new Error(`expected ${request.method} to return a text of at most ${LONGEST_TEXT} characters`);
  }
}

/** Some nodes list a log twice, which one statement cannot store; transfers of nothing are sent to be mistaken for others. */
function reduceLogs({ params, token }: RpcRequest, result: unknown): ReducedLog[] {
  if (!Array.isArray(result)) throw new Error("expected eth_getLogs to return a list");
  const { topics, fromBlock, toBlock } = fieldsOf(params[0]) ?? {};
  const recipients = new Set((topics as unknown[])[2] as string[]);
  const [from, to] = [BigInt(fromBlock as string), BigInt(toBlock as string)];
  const found = new Map<string, ReducedLog>();
  for (const one of result) {
    const log = fieldsOf(one);
    const transfer = transferOf(log, 0, token);
    if (log === null || transfer === null || log["removed"] === true || transfer.units === 0n) continue;
    if (!recipients.has(topicOf(transfer.to))) continue;
    const blockNumber = quantityOf(log["blockNumber"], "a block number");
    if (blockNumber < from || blockNumber > to) continue;
    const { logIndex } = transfer;
    const hashes = { txHash: small(log["transactionHash"]), blockHash: small(log["blockHash"]) };
    checkedLog({ ...hashes, blockNumber, logIndex });
    const reduced = { ...hashes, blockNumber: hex(blockNumber), logIndex };
    found.set(`${reduced.txHash} ${reduced.blockHash} ${logIndex}`, reduced);
  }
  return [...found.values()];
}

function reduceReceipt({ token }: RpcRequest, result: unknown): ReducedReceipt {
  const receipt = fieldsOf(result);
  const { logs } = receipt ?? {};
  if (receipt === null || !Array.isArray(logs)) throw new Error("expected a receipt to have logs");
  const isSuccessful = receipt["status"] === "0x1";
  const transfers = isSuccessful ? logs.flatMap((log, at) => transferOf(fieldsOf(log), at, token) ?? []) : [];
  const blockHash = small(receipt["blockHash"]);
  const blockNumber = quantityOf(receipt["blockNumber"], "a block number");
  checkedReceipt({ blockHash, blockNumber, isSuccessful, transfers });
  return {
    transactionHash: small(receipt["transactionHash"]),
    blockHash,
    blockNumber: hex(blockNumber),
    isSuccessful,
    transfers: transfers.map((transfer) => ({ ...transfer, units: hex(transfer.units) })),
  };
}

function reduceBlock({ params: [requested] }: RpcRequest, result: unknown): ReducedBlock {
  const { number, timestamp, hash } = fieldsOf(result) ?? {};
  const block = { number: quantityOf(number, "a block number"), timestamp: quantityOf(timestamp, "a time in seconds") };
  checkedHead(block);
  const reduced = { number: hex(block.number), timestamp: hex(block.timestamp) };
  if (typeof requested !== "string" || !QUANTITY.test(requested)) return reduced;
  if (BigInt(requested) !== block.number) throw new Error(`expected block ${BigInt(requested)}, got ${block.number}`);
  return { ...reduced, hash: checkedHash(small(hash)) };
}

/** The transfer of the token that a log is; null for any other log. */
function transferOf(log: Fields | null, position: number, token: string): Transfer | null {
  const { address, topics, data } = log ?? {};
  if (log === null || small(address) !== token.toLowerCase() || !Array.isArray(topics) || topics.length !== 3)
    return null;
  const [topic, from, to] = topics as unknown[];
  if (topic !== TRANSFER_TOPIC || typeof data !== "string" || data.length !== 66) return null;
  for (const word of [from, to, data]) {
    if (typeof word !== "string" || !WORD.test(word))
      throw new Error(`expected a word of 32 bytes, got ${short(word)}`);
  }
  const logIndex = Number(quantityOf(log["logIndex"], "a log index"));
  return { position, logIndex, sender: placeOf(from as string), to: placeOf(to as string), units: BigInt(data) };
}

function fieldsOf(value: unknown): Fields | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

function quantityOf(value: unknown, what: string): bigint {
  if (typeof value === "string" && QUANTITY.test(value)) return BigInt(value);
  throw new Error(`expected ${what} in hexadecimal digits, got ${short(value)}`);
}

/** Returns the topic of an address, as logs have it. */
export function topicOf(address: string): `0x${string}` {
  return `0x${address.slice(2).toLowerCase().padStart(64, "0")}`;
}

function small(value: unknown): `0x${string}` {
  return textOf(value).toLowerCase() as `0x${string}`;
}

function hex(value: bigint): string {
  return `0x${value.toString(16)}`;
}

function short(value: unknown): string {
  return textOf(value).slice(0, 80);
}

/** Unlike String(), never fails: an object from JSON can have a `toString` that is none. */
function textOf(value: unknown): string {
  if (value === undefined) return "nothing";
  return typeof value === "string" ? value : JSON.stringify(value);
}
