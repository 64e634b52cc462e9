import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findUsdtProblems } from "../../src/topups/usdt/problem-store.ts";
import { NodeRefusal, type Proxy } from "../support/chain.ts";
import { CONFIRMATIONS, openUsdtWorld, type UsdtWorld } from "./usdt-world.ts";

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

let world: UsdtWorld;
beforeAll(async () => {
  world = await openUsdtWorld();
});
beforeEach(() => {
  for (const proxy of [world.first, world.second]) proxy.say = null;
});
afterAll(() => world.close());

const word = (value: bigint) => `0x${value.toString(16).padStart(64, "0")}` as const;

interface LogFilter {
  fromBlock: string;
  toBlock: string;
  topics: [string, null, string[]];
}

/** Makes both endpoints change the response to requests for the logs of an address in a range with a block. */
function changeLogs(block: bigint, address: string, change: (logs: object[]) => unknown): void {
  const say: Proxy["say"] = (method, result, params) => {
    if (method !== "eth_getLogs") return result;
    const { fromBlock, toBlock, topics } = params[0] as LogFilter;
    const isIn = BigInt(fromBlock) <= block && block <= BigInt(toBlock);
    return isIn && topics[2].includes(word(BigInt(address))) ? change(result as object[]) : result;
  };
  for (const proxy of [world.first, world.second]) proxy.say = say;
}

const settledTo = async () => {
  const rows = await world.sql<{ at: bigint }[]>`select settled_to as at from chain_endpoints order by place`;
  return rows.map(({ at }) => at);
};

/** The largest position of a block that is never read again. */
const deep = async () => (await world.chain.head()) - BigInt(world.usdt.chain.rescan);

const leftOutProblems = async () => {
  const problems = await findUsdtProblems(world.sql, world.usdt);
  return problems.filter(({ subject }) => subject.startsWith("left out"));
};

describe("a block with more transfers to one address than an endpoint can list", () => {
  /** 4 MB of transfers of nothing, which a few transactions can make. */
  function zeros(block: bigint, address: string): object[] {
    return Array.from({ length: 6_400 }, (_, at) => ({
      address: world.usdt.chain.token,
      topics: [TRANSFER, word(1n), word(BigInt(address))],
      data: word(0n),
      blockNumber: `0x${block.toString(16)}`,
      transactionHash: word(77n),
      transactionIndex: "0x1a",
      blockHash: word(99n),
      blockTimestamp: "0x6728c000",
      logIndex: `0x${at.toString(16)}`,
      removed: false,
    }));
  }

  const refuse = (message: string, status?: number) => () => {
    throw new NodeRefusal(message, status);
  };

  it.each<[string, (block: bigint, address: string) => (logs: object[]) => unknown]>([
    ["sends 4 MB", (block, address) => (logs) => [...logs, ...zeros(block, address)]],
    ["refuses 10,000 results", () => refuse("query returned more than 10000 results")],
    ["refuses too many logs", () => refuse("Too many logs requested. Max logs per response is 20000.")],
    ["refuses its limit of logs", () => refuse("query exceeds max results 20000, retry with the range 7-7")],
    ["refuses the size of the response", () => refuse("Log response size exceeded.", 400)],
  ])("does not stop the deposits of others if the endpoint %s, and is reported", async (_, change) => {
    const { chain } = world;
    const [flooded, own, other] = [await world.account(), await world.account(), await world.account()];
    await chain.transfer(own.address, 8_000_000n);
    const block = await chain.head();
    await chain.transfer(other.address, 9_000_000n);
    await chain.mine(2 * CONFIRMATIONS);
    changeLogs(block, flooded.address, change(block, flooded.address));
    await world.sql`update chain_endpoints set range_blocks = 8`; // fewer long responses
    await world.turn();
    expect(await world.wallet(own.id)).toBe(8_000_000n);
    expect(await world.wallet(other.id)).toBe(9_000_000n);
    const [problem, ...more] = (await leftOutProblems()).filter(({ text }) => text.includes(flooded.address));
    expect(more).toEqual([]);
    expect(problem!.text).toContain(`account ${flooded.id}`);
    expect(problem!.text).toContain(`block ${block}`);
    await chain.mine(2 * world.usdt.chain.rescan);
    expect(await world.turn()).toMatchObject({ unread: 0 });
    expect(await settledTo()).toEqual([await deep(), await deep()]);
  });

  it("is read with the other addresses on its own from then on, in few requests", async () => {
    const { chain, first } = world;
    const flooded = await world.account();
    await chain.mine(1);
    const block = await chain.head();
    await chain.mine(20);
    changeLogs(block, flooded.address, refuse("query returned more than 10000 results"));
    await world.sql`update chain_endpoints set range_blocks = 1000`;
    await world.turn();
    const asked = first.asked.length;
    expect(await world.turn()).toMatchObject({ unread: 0 });
    const requests = first.asked.slice(asked).filter((method) => method === "eth_getLogs");
    expect(requests.length).toBeLessThan(20);
    const found = await world.sql`select range_blocks from chain_endpoints where range_blocks < 1000`;
    expect(found).toEqual([]);
  });

  it("stops an endpoint that refuses an address for another reason, which may pass", async () => {
    const { chain } = world;
    const [refused, own] = [await world.account(), await world.account()];
    await chain.transfer(own.address, 8_000_000n);
    const block = await chain.head();
    await chain.mine(2 * CONFIRMATIONS);
    changeLogs(block, refused.address, refuse("the database is being compacted"));
    expect(await world.turn()).toMatchObject({ unread: 2 });
    expect((await leftOutProblems()).filter(({ text }) => text.includes(refused.address))).toEqual([]);
    for (const proxy of [world.first, world.second]) proxy.say = null;
    await world.turn();
    expect(await world.wallet(own.id)).toBe(8_000_000n);
  });
});

describe("a flood of new deposits", () => {
  /** Stores as many new pending deposits as a poll decides on, in a block that no endpoint has yet. */
  async function flood(accountId: bigint, micros: bigint): Promise<void> {
    const { sql, usdt } = world;
    const block = (await world.chain.head()) + 10_000n;
    await sql`
      insert into chain_deposits (
        chain_id, token, tx_hash, position, account_id, sender, units, micros, rest_units, block_number, block_hash,
        log_index
      )
      select
        ${usdt.chain.id}, ${usdt.chain.token.toLowerCase()}, '0x' || encode(sha256(gen_random_uuid()::text::bytea), 'hex'),
        0, ${accountId}, ${`0x${"1".repeat(40)}`}, ${String(micros)}::numeric, ${micros}, 0, ${block}, ${word(block)}, n
      from generate_series(1, 200) as n`;
  }

  afterEach(async () => {
    await world.sql`update chain_deposits set state = 'orphaned' where state = 'pending'`;
  });

  it("does not delay a deposit that reaches the minimum if its own do not", async () => {
    const { chain } = world;
    const [flooder, own] = [await world.account(), await world.account()];
    await flood(flooder.id, 1n);
    await chain.transfer(own.address, 8_000_000n);
    await chain.mine(CONFIRMATIONS);
    await world.turn();
    expect(await world.wallet(own.id)).toBe(8_000_000n);
  });

  it("delays other deposits by no more than those that were there before them", async () => {
    const { chain } = world;
    const [flooder, own] = [await world.account(), await world.account()];
    await chain.transfer(own.address, 8_000_000n);
    await world.turn(); // checked, and not deep enough
    await chain.mine(CONFIRMATIONS);
    await flood(flooder.id, 8_000_000n);
    await world.turn();
    expect(await world.wallet(own.id)).toBe(8_000_000n);
  });

  it("is reported if a deposit has been deep enough for minutes and is not decided on", async () => {
    const { chain, sql, usdt } = world;
    const own = await world.account();
    await chain.transfer(own.address, 2_000_000n);
    await chain.transfer(own.address, 8_000_000n);
    await world.turn();
    const waiting = async () => {
      const problems = await findUsdtProblems(sql, usdt);
      return problems.find(({ subject }) => subject === "deposits not decided");
    };
    const age = () =>
      sql`update chain_deposits set changed_at = changed_at - interval '6 minutes' where state = 'pending'`;
    await age();
    expect(await waiting()).toBeUndefined(); // not deep enough
    await chain.mine(CONFIRMATIONS + 300);
    const before = await sql`select id, checked_at from chain_deposits where state = 'pending'`;
    expect(before).toHaveLength(2);
    await sql`update chain_endpoints set head = ${await chain.head()}`; // as read by a poll that does not reach them
    expect((await waiting())!.text).toMatch(/2 deposits, together 10\.00 USD, 1 of them .*minimum/);
    await world.turn();
    expect(await waiting()).toBeUndefined();
  });
});
