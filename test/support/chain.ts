import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, dirname } from "node:path";
import { z } from "zod";
import { eventually } from "./eventually.ts";

/** The payload of a node's response. */
type Params = readonly unknown[];
const rpcPayload = z.object({ result: z.unknown().optional(), error: z.object({ message: z.string() }).optional() });

/** A private chain, run by a real node. Amounts are in the token's smallest unit. */
export interface TestChain {
  url: string;
  id: number;
  /** A token with six decimals, and another that no deposit uses. */
  token: `0x${string}`;
  fakeToken: `0x${string}`;
  ask(method: string, ...params: unknown[]): Promise<unknown>;
  /** Sends tokens, and waits for the block that has them; gives the transaction's hash. */
  transfer(
    to: string,
    units: bigint,
    options?: { token?: `0x${string}`; times?: 1 | 2; from?: string },
  ): Promise<`0x${string}`>;
  /** A transaction that moves tokens twice, as nodes take one that is not signed. */
  twice(to: string, units: bigint): Record<string, string>;
  /** Adds empty blocks. */
  mine(blocks: number): Promise<void>;
  head(): Promise<bigint>;
  /** The transaction as it was signed, to send it again. */
  raw(txHash: string): Promise<string>;
  /** Replaces the newest blocks by as many others: empty ones, but for transactions, signed or not, in the first. */
  reorg(depth: number, transactions?: readonly (string | Record<string, string>)[]): Promise<void>;
  stop(): Promise<void>;
}

/** Accounts that the node signs for: the last of anvil's ten well-known accounts. */
const SENDER = "0xa0Ee7A142d267C1f36714E4a8F75612F20a79720";
export const OTHER_SENDER = "0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f";
/** The extended public key of m/44'/60'/0' of the well-known seed phrase `test test … junk`. */
export const XPUB =
  "xpub6Ce9NcJvTk36xtLSrJLZqE7wtgA5deCeYs7rSQtreh4cj6ByPtrg9sD7V2FNFLPnf8heNP3FGkeV9qwfzvZNSd54JoNXVsXFYSYwHsnJxqP";

/** Variables of the environment for deposits on a chain, read through these endpoints. */
export function usdtVariables(
  { id, token }: TestChain,
  { urls, confirmations }: { urls: readonly string[]; confirmations: number },
): Record<string, string> {
  return {
    USDT_XPUB: XPUB,
    USDT_CHAIN: "custom",
    USDT_CHAIN_ID: String(id),
    USDT_TOKEN: token,
    USDT_DECIMALS: "6",
    USDT_RPC_URLS: urls.join(","),
    USDT_CONFIRMATIONS: String(confirmations),
  };
}

/** Starts a chain with its own id; blocks are made by transactions and by {@link TestChain.mine} alone. */
export async function startChain(id = 31_337): Promise<TestChain> {
  // A node that is killed leaves its cache, in the home folder if it has no other. States of older blocks than any test
  // goes back to are not kept: on disk they were 700 MB for 3,000 blocks, and half of the node's time.
  const states = mkdtempSync(join(tmpdir(), "roundhouse-chain-"));
  const args = ["--port", "0", "--chain-id", String(id), "--order", "fifo", "--cache-path", states];
  args.push("--prune-history", "64");
  const node = spawn(anvilPath(), args, { stdio: ["ignore", "pipe", "ignore"] });
  // a test that fails before it stops its chain leaves none behind, and is not kept from ending by it
  const kill = () => {
    node.kill("SIGKILL");
    rmSync(states, { recursive: true, force: true, maxRetries: 3 });
  };
  process.once("exit", kill);
  const url = await listening(node);
  node.unref();
  const ask = (method: string, ...params: unknown[]) => askNode(url, method, params);

  async function send(transaction: Record<string, string>): Promise<`0x${string}`> {
    const sent = await ask("eth_sendTransaction", { from: SENDER, gas: "0x30000", ...transaction });
    // the node says so before the block is made
    await eventually(async () => (await ask("eth_getTransactionReceipt", sent)) !== null);
    return z.string().parse(sent) as `0x${string}`;
  }
  async function deploy(decimals: number): Promise<`0x${string}`> {
    const receipt = await ask("eth_getTransactionReceipt", await send({ data: tokenCode(decimals) }));
    return z.object({ contractAddress: z.string() }).parse(receipt).contractAddress as `0x${string}`;
  }
  const token = await deploy(6);
  const fakeToken = await deploy(6);

  const dataOf = (selector: string, to: string, units: bigint) => `${selector}${word(BigInt(to))}${word(units)}`;

  return {
    url,
    id,
    token,
    fakeToken,
    ask,
    transfer: (to, units, { token: of = token, times = 1, from = SENDER } = {}) =>
      send({ from, to: of, data: dataOf(times === 1 ? TRANSFER : TWICE, to, units) }),
    twice: (to, units) => ({ from: SENDER, to: token, gas: "0x30000", data: dataOf(TWICE, to, units) }),
    mine: async (blocks) => void (await ask("anvil_mine", blocks)),
    head: async () => BigInt(z.string().parse(await ask("eth_blockNumber"))),
    raw: async (txHash) => z.string().parse(await ask("eth_getRawTransactionByHash", txHash)),
    async reorg(depth, transactions = []) {
      const placed = transactions.map((transaction) => [transaction, 0]);
      await ask("anvil_reorg", depth, placed);
    },
    async stop() {
      process.off("exit", kill);
      const gone = new Promise((resolve) => node.once("exit", resolve));
      node.kill("SIGKILL");
      await gone;
      rmSync(states, { recursive: true, force: true });
    },
  };
}

/** A proxy of a node, which may change responses, or be unavailable. */
export interface Proxy {
  url: string;
  /** Methods requested since it started. */
  asked: string[];
  /** Replaces a result of the node; null passes it on unchanged. */
  say: ((method: string, result: unknown, params: Params) => unknown) | null;
  /** Closes each connection without a response. */
  isAway: boolean;
  close(): Promise<void>;
}

/** Thrown by {@link Proxy.say} for an error as nodes give them, with a status of HTTP. */
export class NodeRefusal extends Error {
  readonly status: number;

  constructor(message: string, status = 200) {
    super(message);
    this.status = status;
  }
}

/** Starts a proxy in front of a node. */
export async function startProxy(target: string): Promise<Proxy> {
  const proxy: Omit<Proxy, "url" | "close"> = { asked: [], say: null, isAway: false };
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => void chunks.push(chunk));
    request.on("end", () => {
      void (async () => {
        if (proxy.isAway) return void response.destroy();
        const question = z
          .object({ id: z.number(), method: z.string(), params: z.array(z.unknown()).default([]) })
          .parse(JSON.parse(Buffer.concat(chunks).toString()));
        proxy.asked.push(question.method);
        const { status = 200, ...payload } = await sayIt(question.method, question.params);
        response.statusCode = status;
        response.setHeader("Content-Type", "application/json");
        response.end(JSON.stringify({ jsonrpc: "2.0", id: question.id, ...payload }));
      })();
    });
  });
  async function sayIt(method: string, params: Params): Promise<{ status?: number; result?: unknown; error?: object }> {
    try {
      const result = await askNode(target, method, params);
      return { result: proxy.say === null ? result : proxy.say(method, result, params) };
    } catch (error) {
      const status = error instanceof NodeRefusal ? error.status : 200;
      return { status, error: { code: -32_000, message: error instanceof Error ? error.message : "refused" } };
    }
  }
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(proxy, {
    url: `http://127.0.0.1:${port}/key-of-the-operator`,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  });
}

const TRANSFER = "0xa9059cbb";
const TWICE = "0xa733e21d";
const TOPIC = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

/**
 * A contract that logs transfers of tokens, and keeps no balances: `decimals()`, `transfer(address,uint256)`, which logs one Transfer,
 * and `twice(address,uint256)`, which logs it two times. Anything else is reverted. Written in byte code, so that no compiler
 * is needed.
 */
function tokenCode(decimals: number): string {
  // value to memory 0; recipient, caller and topic on the stack; log3(0, 32, topic, caller, recipient)
  const log = `602435600052600435337f${TOPIC}60206000a3`;
  const runtime = [
    "60003560e01c", // the selector
    "8063313ce56714602857", // decimals
    "8063a9059cbb14606457", // transfer
    "8063a733e21d14603357", // twice
    "600080fd",
    `5b60${decimals.toString(16).padStart(2, "0")}60005260206000f3`, // 0x28
    `5b${log}`, // 0x33, continues with
    `5b${log}600160005260206000f3`, // 0x64
  ].join("");
  const length = (runtime.length / 2).toString(16).padStart(2, "0");
  return `0x60${length}80600b6000396000f3${runtime}`;
}

function word(value: bigint): string {
  return value.toString(16).padStart(64, "0");
}

/** The node's binary lies in a package for the machine that it runs on, next to the one that is imported. */
function anvilPath(): string {
  const require = createRequire(import.meta.url);
  const arch = process.arch === "x64" ? "amd64" : process.arch;
  const inside = createRequire(require.resolve("@foundry-rs/anvil/package.json"));
  const folder = dirname(inside.resolve(`@foundry-rs/anvil-${process.platform}-${arch}/package.json`));
  return join(folder, "bin", "anvil");
}

async function askNode(url: string, method: string, params: Params): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = rpcPayload.parse(await response.json());
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
}

function listening(node: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    node.once("error", reject);
    node.once("exit", (code) => reject(new Error(`the chain ended with ${code}: ${output}`)));
    node.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const address = /Listening on (\S+)/.exec(output)?.[1];
      if (address === undefined) return;
      node.stdout?.destroy();
      resolve(`http://${address}`);
    });
  });
}
