import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CHAINS } from "../../src/config/usdt-chains.ts";
import { openEndpoints } from "../../src/topups/usdt/endpoints/endpoint.ts";
import { LARGEST_HERE, readResponse } from "../../src/topups/usdt/endpoints/read-response.ts";
import type { RpcRequest } from "../../src/topups/usdt/endpoints/reduce-response.ts";
import type { Proxy } from "../support/chain.ts";
import { countTicks } from "../support/ticks.ts";
import { openUsdtWorld, type UsdtWorld } from "./usdt-world.ts";

const MOST = 4_000_000;
const TOKEN: string = CHAINS.ethereum.token;
const TOPIC = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const word = (value: bigint | string) =>
  `0x${(typeof value === "bigint" ? value.toString(16) : value.slice(2).toLowerCase()).padStart(64, "0")}`;
const OURS = `0x${"ab".repeat(20)}`;

const LOGS: RpcRequest = {
  method: "eth_getLogs",
  params: [{ address: TOKEN, topics: [TOPIC, null, [word(OURS)]], fromBlock: "0x1", toBlock: "0x9" }],
  token: TOKEN,
};
const RECEIPT: RpcRequest = { method: "eth_getTransactionReceipt", params: [word(7n)], token: TOKEN };
const BLOCK: RpcRequest = { method: "eth_getBlockByNumber", params: ["latest", false], token: TOKEN };

/** A log of a transfer to an address, as nodes give it. */
function logOf(at: number, { to = OURS, token = TOKEN, txHash = word(BigInt(at)), block = 5n } = {}) {
  return {
    address: token,
    topics: [TOPIC, word(1n), word(to)],
    data: word(1_000_000n),
    transactionHash: txHash,
    blockHash: word(99n),
    blockNumber: `0x${block.toString(16)}`,
    logIndex: `0x${at.toString(16)}`,
    transactionIndex: "0x0",
    removed: false,
  };
}

/** As many of one text as fit. */
const fill = (text: string, room = MOST - 300) => text.repeat(Math.floor(room / text.length));
const listOf = (item: object | string) => {
  const text = typeof item === "string" ? item : JSON.stringify(item);
  return `[${fill(`${text},`)}${text}]`;
};
const result = (text: string) => `{"jsonrpc":"2.0","id":1,"result":${text}}`;
const receipt = (logs: string) =>
  result(
    `{"transactionHash":"${word(7n)}","blockHash":"${word(99n)}","blockNumber":"0x5","status":"0x1","logs":${logs}}`,
  );

describe("[PARSERS] a response of a chain endpoint", () => {
  it.each<[string, RpcRequest, string]>([
    ["logs of ours", LOGS, result(listOf(logOf(3)))],
    ["logs of others", LOGS, result(listOf(logOf(3, { to: `0x${"cd".repeat(20)}` })))],
    ["logs without fields", LOGS, result(listOf("{}"))],
    ["logs that are lists", LOGS, result(listOf("[]"))],
    [
      "a log of many topics",
      LOGS,
      result(`[${JSON.stringify({ ...logOf(1), topics: [] }).replace("[]", listOf('""'))}]`),
    ],
    ["brackets that do not end", LOGS, "[".repeat(MOST)],
    ["one long number", LOGS, `[${fill("1")}]`],
    ["one long text", RECEIPT, result(`"${fill("x")}"`)],
    ["a receipt of transfers", RECEIPT, receipt(listOf(logOf(3)))],
    ["a receipt of empty logs", RECEIPT, receipt(listOf("{}"))],
    [
      "a block of many transactions",
      BLOCK,
      result(`{"number":"0x5","timestamp":"0x5","transactions":${listOf('"0x"')}}`),
    ],
    ["an error of many words", BLOCK, `{"error":{"code":-32000,"message":"${fill("no ")}"}}`],
  ])("of 4 MB is parsed in a thread, and what is left is small: %s", async (_, request, text) => {
    const body = Buffer.from(text);
    expect(body.length).toBeGreaterThan(MOST / 2);
    let most = 0;
    for (let time = 0; time < 10 && most < 2; time += 1) {
      const { result: left, ticks } = await countTicks(() => readResponse(request, body).catch(String));
      if (left.includes("the task did not end within")) continue; // a busy machine; at most ten times
      expect(left).not.toContain("the task");
      if (!left.includes('"transfers":[{')) expect(left.length).toBeLessThan(1_000);
      most = Math.max(most, ticks);
    }
    expect(most).toBeGreaterThan(1);
  });

  it("that is small is parsed here, into the same", async () => {
    const body = Buffer.from(result(JSON.stringify([logOf(1), logOf(2)])));
    expect(body.length).toBeLessThan(LARGEST_HERE);
    const padded = Buffer.concat([body, Buffer.alloc(LARGEST_HERE, " ")]);
    expect(await readResponse(LOGS, padded)).toBe(await readResponse(LOGS, body));
    expect(JSON.parse(await readResponse(LOGS, body))).toEqual({
      result: [1, 2].map((at) => ({
        txHash: word(BigInt(at)),
        blockHash: word(99n),
        blockNumber: "0x5",
        logIndex: at,
      })),
    });
  });

  it("leaves out logs that were not requested", async () => {
    const others = [
      { ...logOf(1), removed: true },
      { ...logOf(1), data: word(0n) },
      { ...logOf(1), topics: [TOPIC, word(1n)] },
      { ...logOf(1), topics: [word(1n), word(1n), word(OURS)] },
      logOf(1, { token: OURS }),
      logOf(1, { to: `0x${"cd".repeat(20)}` }),
      logOf(1, { block: 10n }),
      null,
      7,
    ];
    const body = Buffer.from(result(JSON.stringify(others)));
    expect(JSON.parse(await readResponse(LOGS, body))).toEqual({ result: [] });
  });
});

describe("an endpoint", () => {
  let server: Server | null = null;
  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
  });
  /** An endpoint that gives this response to everything. */
  async function endpointOf(respond: RequestListener) {
    server = createServer(respond).listen(0, "127.0.0.1");
    await new Promise((resolve) => server?.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    const [endpoint] = openEndpoints(CHAINS.ethereum, [`http://127.0.0.1:${port}`], new AbortController().signal);
    return endpoint!;
  }

  it("[PARSERS] that sends more than 4 MB is refused before it has sent all", async () => {
    let sent = 0;
    const endpoint = await endpointOf((_, response) => {
      const more = () => {
        while (!response.destroyed && sent < 400 * MOST) {
          sent += 100_000;
          if (!response.write("[".repeat(100_000))) return void response.once("drain", more);
        }
        response.end();
      };
      more();
    });
    const refused = endpoint.receipt(word(7n) as `0x${string}`);
    await expect(refused).rejects.toMatchObject({ name: "EndpointError", why: "large" });
    expect(sent).toBeLessThan(100 * MOST);
  });

  it("[TEXTS] that refuses with megabytes is quoted with a few words", async () => {
    const endpoint = await endpointOf((_, response) => {
      response.statusCode = 400;
      response.end(JSON.stringify({ error: { code: 1, message: "no ".repeat(1_000_000) } }));
    });
    const error = await endpoint.head().catch((caught: unknown) => caught);
    expect(error).toMatchObject({ name: "EndpointError" });
    expect(String(error).length).toBeLessThan(400);
  });
});

describe("an address with more transfers in one block than one poll credits", () => {
  let world: UsdtWorld;
  beforeAll(async () => {
    world = await openUsdtWorld();
  });
  afterAll(() => world.close());

  it("[PARSERS] is credited in batches, with one receipt for each transaction", async () => {
    const { chain, first, second, usdt, sql } = world;
    const { id, address } = await world.account();
    await chain.mine(1);
    const block = await chain.head();
    const token = usdt.chain.token;
    const hashOf = (at: number) => word(BigInt(at + 1));
    const logs = Array.from({ length: 250 }, (_, at) => ({
      ...logOf(at, { to: address, token, txHash: hashOf(at % 20), block }),
      data: word(6_000_000n),
    }));
    const say: Proxy["say"] = (method, told, params) => {
      if (method === "eth_getLogs") {
        const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }];
        return BigInt(fromBlock) <= block && block <= BigInt(toBlock) ? logs : [];
      }
      if (method !== "eth_getTransactionReceipt") return told;
      const [hash] = params;
      const own = logs.filter(({ transactionHash }) => transactionHash === hash);
      return {
        transactionHash: hash,
        blockHash: word(99n),
        blockNumber: `0x${block.toString(16)}`,
        status: "0x1",
        logs: own,
      };
    };
    for (const proxy of [first, second]) Object.assign(proxy, { say, asked: [] });
    expect(JSON.stringify(logs).length).toBeGreaterThan(LARGEST_HERE);
    expect(await world.turn()).toMatchObject({ found: 250, unread: 0, credited: 0 });
    const receipts = () => first.asked.filter((method) => method === "eth_getTransactionReceipt").length;
    expect(receipts()).toBeLessThanOrEqual(40);
    await chain.mine(8);
    const credited: number[] = [];
    for (let polls = 0; polls < 3; polls += 1) credited.push((await world.turn())["credited"] ?? 0);
    expect(credited).toEqual([200, 50, 0]);
    expect(await world.wallet(id)).toBe(1_500_000_000n);
    const [counted] = await sql`select count(*)::integer as n from chain_deposits where state = 'credited'`;
    expect(counted).toEqual({ n: 250 });
  });

  it("[PARSERS] whose receipt is too long stops no other deposit, and is not credited", async () => {
    const { chain, first, second } = world;
    const [own, other] = [await world.account(), await world.account()];
    const huge = await chain.transfer(own.address, 7_000_000n);
    await chain.transfer(other.address, 8_000_000n);
    const say: Proxy["say"] = (method, told, params) =>
      method === "eth_getTransactionReceipt" && params[0] === huge
        ? { ...(told as object), more: "x".repeat(MOST) }
        : told;
    for (const proxy of [first, second]) proxy.say = say;
    await chain.mine(8);
    expect(await world.turn()).toMatchObject({ unread: 0, credited: 1 });
    expect([await world.wallet(own.id), await world.wallet(other.id)]).toEqual([0n, 8_000_000n]);
  });
});
