import { hash } from "node:crypto";
import {
  type Address,
  BaseError,
  createPublicClient,
  getAddress,
  type Hex,
  http,
  HttpRequestError,
  isAddress,
  numberToHex,
  parseAbiItem,
  type PublicClient,
} from "viem";
import type { Chain } from "../../../config/usdt-chains.ts";
import { cut } from "../../../text.ts";
import { checkedHead } from "./validate.ts";
import type { Head, Receipt, TransferLog } from "./on-chain.ts";
import type { BlockRange } from "./ranges.ts";
import { readBody, readResponse, ResponseSizeError } from "./read-response.ts";
import { type ReducedBlock, type ReducedLog, type ReducedReceipt, topicOf, TRANSFER_TOPIC } from "./reduce-response.ts";

const DECIMALS = parseAbiItem("function decimals() view returns (uint8)");
const TIMEOUT_MS = 10_000;
/** Of the body of a refusal; a library parses it. */
const LONGEST_REFUSAL = 10_000;
const LONGEST_REASON = 300;
/** A shorter text in a URL is no key. */
const SHORTEST_KEY = 12;
const TOO_MANY = 429;
/** Refusals for too many logs, as common nodes state them. */
const TOO_MANY_LOGS =
  /more than \d+ results|exceeds (?:max results|limit of \d+)|too many logs|response (?:size exceeded|(?:is )?too large)/i;

/** A node of a chain. Its responses are checked against the request, and nothing is trusted on its word alone. */
export interface Endpoint {
  /** 1 or 2, in the order of the setting. */
  place: number;
  /** The part of its URL that may be shown; path and user may be a key. */
  host: string;
  /** SHA-256 of the URL. */
  urlHash: string;
  /**
   * Returns what differs from the configuration: the chain's id, the token's contract or its decimals; null if nothing
   * does.
   */
  verify(): Promise<string | null>;
  head(): Promise<Head>;
  /** Returns transfers of the token to any of the addresses, in a range of blocks. */
  transfers(range: BlockRange, addresses: readonly Address[]): Promise<TransferLog[]>;
  /** Returns the receipt of a transaction; null if it is in no block, or the node lags behind. */
  receipt(txHash: Hex): Promise<Receipt | null>;
  /** Returns the hash of the block of a number; null if the endpoint has none. */
  blockHash(number: bigint): Promise<Hex | null>;
}

/** A request whose response {@link readResponse} reduced to this. */
interface Question<Result> {
  Method: string;
  Parameters: unknown[];
  ReturnType: Result;
}

/** An endpoint did not respond, or responded with an error. The message has its host and never its URL. */
export class EndpointError extends Error {
  override name = "EndpointError";
  /** `busy`: rate limited (HTTP 429). `large`: the response is too long, or would be. */
  readonly why: "timeout" | "busy" | "large" | "other";

  constructor(message: string, why: EndpointError["why"]) {
    super(message);
    this.why = why;
  }
}

/**
 * Opens the endpoints of a chain, in the order of the setting. A request is cancelled by `signal` or after `timeoutMs`
 * (10 s), measured from the name lookup to the last byte; a failed one is retried once.
 */
export function openEndpoints(
  chain: Chain,
  urls: readonly string[],
  signal: AbortSignal,
  { timeoutMs = TIMEOUT_MS } = {},
): Endpoint[] {
  return urls.map((url, at) => openEndpoint(chain, url, at + 1, { signal, timeoutMs }));
}

/** Returns the problem with the token's address, or null. An address in lower case has no checksum to verify. */
export function tokenProblem(token: string): string | null {
  const isRight = token === token.toLowerCase() || isAddress(token);
  return isRight
    ? null
    : `expected an address whose capital letters are its checksum (EIP-55), got ${token}; for these digits it is ${getAddress(token.toLowerCase())}`;
}

function openEndpoint(
  chain: Chain,
  url: string,
  place: number,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Endpoint {
  const { host } = new URL(url);
  const token = getAddress(chain.token.toLowerCase());
  const client = clientOf(url, token, { signal, timeoutMs });

  /** A malformed response is the endpoint's fault too, so it is parsed inside. */
  async function ask<Result>(question: (of: PublicClient) => Promise<Result>): Promise<Result> {
    try {
      return await question(client);
    } catch (error) {
      signal.throwIfAborted();
      // the library's message contains the URL, and so does the cause: neither is kept
      throw new EndpointError(cut(`${host}: ${withoutUrl(reasonOf(error), url)}`, LONGEST_REASON), whyOf(error));
    }
  }

  return {
    place,
    host,
    urlHash: hash("sha256", url),
    async verify() {
      const difference = await findDifference(ask, chain, token);
      return difference === null ? null : `${host}: ${difference}`;
    },
    async head() {
      const latest = await ask(async (of) => checkedHead(await of.getBlock({ blockTag: "latest" })));
      // by tag, and only here: not every node accepts the tag for logs
      const finalized = await ask(async (of) => checkedHead(await of.getBlock({ blockTag: "finalized" }))).catch(
        nullForUnknownTag,
      );
      return { ...latest, finalized: finalized?.number ?? null };
    },
    async transfers({ from, to }, addresses) {
      if (addresses.length === 0) return [];
      const filter = {
        address: token,
        topics: [TRANSFER_TOPIC, null, addresses.map(topicOf)],
        fromBlock: numberToHex(from),
        toBlock: numberToHex(to),
      };
      return ask(async (of) => {
        const logs = await of.request<Question<ReducedLog[]>>({ method: "eth_getLogs", params: [filter] });
        return logs.map((log) => ({ ...log, blockNumber: BigInt(log.blockNumber) }));
      });
    },
    receipt: (txHash) => ask((of) => requestReceipt(of, txHash)),
    blockHash: (number) => ask((of) => requestBlockHash(of, number)),
  };
}

function clientOf(
  url: string,
  token: Address,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): PublicClient {
  return createPublicClient({
    cacheTime: 0, // else the newest block is that of seconds ago
    transport: http(url, {
      timeout: timeoutMs,
      retryCount: 1,
      fetchFn: async (input, init = {}) => {
        const signals = [signal, AbortSignal.timeout(timeoutMs), ...(init.signal ? [init.signal] : [])];
        const response = await fetch(input, { ...init, signal: AbortSignal.any(signals) });
        const body = await readBody(response);
        const { status, ok } = response;
        if (!ok) return new Response(new Uint8Array(body.subarray(0, LONGEST_REFUSAL)), { status });
        const { method, params } = JSON.parse(init.body as string) as { method: string; params: unknown[] };
        return new Response(await readResponse({ method, params, token }, body), { status });
      },
    }),
  });
}

/** Some nodes do not know the tag `finalized` at all; then only depth counts. */
function nullForUnknownTag(error: unknown): null {
  if (error instanceof EndpointError && error.why === "other") return null;
  throw error;
}

async function requestReceipt(of: PublicClient, txHash: Hex): Promise<Receipt | null> {
  const question = { method: "eth_getTransactionReceipt", params: [txHash] };
  const found = await of.request<Question<ReducedReceipt | null>>(question);
  return found?.transactionHash === txHash ? receiptOf(found) : null;
}

async function requestBlockHash(of: PublicClient, number: bigint): Promise<Hex | null> {
  const question = { method: "eth_getBlockByNumber", params: [numberToHex(number), false] };
  const found = await of.request<Question<ReducedBlock | null>>(question);
  return found?.hash ?? null;
}

function receiptOf({ blockHash, blockNumber, isSuccessful, transfers }: ReducedReceipt): Receipt {
  return {
    blockHash,
    blockNumber: BigInt(blockNumber),
    isSuccessful,
    transfers: transfers.map((transfer) => ({ ...transfer, units: BigInt(transfer.units) })),
  };
}

type Ask = <Result>(question: (of: PublicClient) => Promise<Result>) => Promise<Result>;

/** What differs from the configuration: the chain, the token's contract or its decimals; null if nothing does. */
async function findDifference(ask: Ask, chain: Chain, token: Address): Promise<string | null> {
  const id = BigInt(await ask((of) => of.getChainId()));
  if (id !== chain.id) return `expected chain ${chain.id} (${chain.name}), got chain ${id}`;
  const code = await ask((of) => of.getCode({ address: token }));
  if (code === undefined) return `expected the token at ${token}, got an address without a contract`;
  const decimals = await ask((of) => of.readContract({ address: token, abi: [DECIMALS], functionName: "decimals" }));
  return decimals === chain.decimals
    ? null
    : `expected a token of ${chain.decimals} decimals at ${token}, got one of ${decimals}`;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof BaseError)) return error instanceof Error ? error.message : String(error);
  return [error.shortMessage, error.details].filter((text) => text !== "").join(" ");
}

/** Removes the URL and its parts that may be a key, which some nodes repeat. */
function withoutUrl(text: string, url: string): string {
  const { pathname, search, username, password } = new URL(url);
  const parts = [...`${pathname}${search}`.split(/[/?&=]/), username, password];
  const shown = [url, ...parts.filter(({ length }) => length >= SHORTEST_KEY)].reduce(
    (left, part) => left.replaceAll(part, "…"),
    text,
  );
  return cut(shown.replaceAll(/\s+/g, " ").trim(), LONGEST_REASON);
}

function whyOf(error: unknown): EndpointError["why"] {
  if (!(error instanceof BaseError)) return "other";
  // the library's TimeoutError, or that of a signal
  if (error.walk((one) => one instanceof Error && one.name === "TimeoutError") !== null) return "timeout";
  if (error.walk((one) => one instanceof ResponseSizeError) !== null) return "large";
  if (error.walk((one) => one instanceof HttpRequestError && one.status === TOO_MANY) !== null) return "busy";
  return TOO_MANY_LOGS.test(reasonOf(error)) ? "large" : "other";
}
