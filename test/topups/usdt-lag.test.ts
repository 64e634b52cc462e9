import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { listEndpoints } from "../../src/topups/usdt/endpoints/endpoint-store.ts";
import { findUsdtProblems } from "../../src/topups/usdt/problem-store.ts";
import { NodeRefusal, type Proxy } from "../support/chain.ts";
import { CONFIRMATIONS, openUsdtWorld, type UsdtWorld } from "./usdt-world.ts";

const NO_HASH = `0x${"ab".repeat(32)}`;

let world: UsdtWorld;
beforeAll(async () => {
  world = await openUsdtWorld();
});
beforeEach(async () => {
  await world.sql`delete from credited_deposits`; // of earlier tests
  for (const proxy of [world.first, world.second]) proxy.say = null;
});
afterAll(() => world.close());

/** Polls the chain through one endpoint alone, as behind a provider that balances its nodes. */
const poll = () => world.turn({ USDT_RPC_URLS: world.first.url });

/** Makes blocks until the newest known ones are too deep to be read again. */
const mineDeep = () => world.chain.mine(2 * world.usdt.chain.rescan);

const stateOf = async (id: bigint) => (await world.deposits(id)).map(({ state, dispute }) => ({ state, dispute }));

async function endpoint() {
  const [one] = await listEndpoints(world.sql, { ...world.usdt, rpcUrls: [world.first.url] });
  return one!;
}

async function problems() {
  await world.sql`
    update chain_endpoints
    set looked_at = clock_timestamp(), failing_since = failing_since - interval '30 seconds'`;
  await world.sql`
    update chain_deposits
    set disputed_since = disputed_since - interval '1 minute'
    where state = 'pending'`;
  const found = await findUsdtProblems(world.sql, { ...world.usdt, rpcUrls: [world.first.url] });
  return found.map(({ text }) => text).join("\n");
}

/** Changes the receipt of one transaction. */
function withReceipt(txHash: string, change: (receipt: object) => unknown): Proxy["say"] {
  return (method, result, params) =>
    method === "eth_getTransactionReceipt" && params[0] === txHash ? change(result as object) : result;
}

/** Whether a request is for the block of a number. */
const isByNumber = (method: string, params: readonly unknown[]) =>
  method === "eth_getBlockByNumber" && params[0] !== "latest" && params[0] !== "finalized";

describe("a transfer whose receipt does not match it yet", () => {
  it.each<[string, (receipt: object) => unknown]>([
    ["is missing", () => null],
    ["is of another block", (receipt) => ({ ...receipt, blockHash: NO_HASH })],
    ["lacks the transfer", (receipt) => ({ ...receipt, logs: [] })],
  ])("is held while the receipt %s, however deep it is, and is credited once it matches", async (_, change) => {
    const { chain, first } = world;
    await poll();
    const { id, address } = await world.account();
    const txHash = await chain.transfer(address, 25_000_000n);
    const block = await chain.head();
    await mineDeep();
    const { rangeBlocks } = await endpoint();
    first.say = withReceipt(txHash, change);
    for (let polls = 0; polls < 2; polls += 1) {
      expect(await poll()).toMatchObject({ found: 0, credited: 0, unread: 1 });
      const failing = await endpoint();
      expect(failing.settledTo).toBe((await chain.head()) - BigInt(world.usdt.chain.rescan));
      expect(failing.rangeBlocks).toBeGreaterThanOrEqual(rangeBlocks);
      expect(failing).toMatchObject({
        heldBlocks: [block],
        failingSince: expect.any(Date) as Date,
        lastError: expect.stringContaining(txHash) as string,
      });
    }
    expect(await problems()).toMatch(new RegExp(`${txHash}.*credited late`));
    first.say = null;
    expect(await poll()).toMatchObject({ found: 1, credited: 1, unread: 0 });
    expect(await world.wallet(id)).toBe(25_000_000n);
    expect(await endpoint()).toMatchObject({ heldBlocks: [], failingSince: null });
    expect(await problems()).toBe("");
  });

  it("does not stop the endpoint or the credits of others if it never appears", async () => {
    const { chain, first, sql } = world;
    await poll();
    const [own, late] = [await world.account(), await world.account()];
    const txHash = await chain.transfer(own.address, 12_000_000n);
    const block = await chain.head();
    await chain.mine(210);
    await chain.transfer(late.address, 13_000_000n);
    await chain.mine(CONFIRMATIONS);
    first.say = withReceipt(txHash, () => null);
    let credited = 0;
    for (let polls = 0; polls < 3; polls += 1) {
      await sql`update chain_endpoints set range_blocks = 2 where place = 1`; // the most ranges of a poll are 200 blocks
      credited += (await poll())["credited"]!;
    }
    expect(credited).toBe(1);
    expect(await world.wallet(late.id)).toBe(13_000_000n);
    expect(await endpoint()).toMatchObject({
      heldBlocks: [block],
      settledTo: (await chain.head()) - BigInt(world.usdt.chain.rescan),
      lastError: expect.stringContaining(txHash) as string,
    });
    first.say = null;
    await sql`update chain_endpoints set range_blocks = 1000 where place = 1`;
    expect(await poll()).toMatchObject({ found: 1, credited: 1, unread: 0 });
    expect(await world.wallet(own.id)).toBe(12_000_000n);
  });

  it("is held with others, each until its own receipt matches", async () => {
    const { chain, first } = world;
    await poll();
    const accounts = [await world.account(), await world.account()];
    const sent: { txHash: string; block: bigint }[] = [];
    for (const { address } of accounts) {
      sent.push({ txHash: await chain.transfer(address, 14_000_000n), block: await chain.head() });
      await chain.mine(3);
    }
    await mineDeep();
    const missing = new Set(sent.map(({ txHash }) => txHash));
    first.say = (method, result, params) =>
      method === "eth_getTransactionReceipt" && missing.has(String(params[0])) ? null : result;
    expect(await poll()).toMatchObject({ found: 0, unread: 1 });
    expect((await endpoint()).heldBlocks).toEqual(sent.map(({ block }) => block));
    missing.delete(sent[1]!.txHash);
    expect(await poll()).toMatchObject({ found: 1, credited: 1, unread: 1 });
    expect((await endpoint()).heldBlocks).toEqual([sent[0]!.block]);
    missing.clear();
    expect(await poll()).toMatchObject({ found: 1, credited: 1, unread: 0 });
    expect((await endpoint()).heldBlocks).toEqual([]);
  });

  it("is held while its block cannot be read again, and others are credited", async () => {
    const { chain, first } = world;
    await poll();
    const [own, late] = [await world.account(), await world.account()];
    const txHash = await chain.transfer(own.address, 15_000_000n);
    const block = await chain.head();
    await mineDeep();
    first.say = withReceipt(txHash, () => null);
    await poll();
    await chain.transfer(late.address, 16_000_000n);
    await chain.mine(CONFIRMATIONS);
    first.say = (method, result, params) => {
      const [filter] = params as [{ fromBlock?: string }];
      if (method === "eth_getLogs" && filter.fromBlock === `0x${block.toString(16)}`) throw new NodeRefusal("pruned");
      return result;
    };
    expect(await poll()).toMatchObject({ credited: 1, unread: 1 });
    expect(await world.wallet(late.id)).toBe(16_000_000n);
    expect(await endpoint()).toMatchObject({
      heldBlocks: [block],
      lastError: expect.stringContaining(String(block)) as string,
    });
    first.say = null;
    expect(await poll()).toMatchObject({ credited: 1, unread: 0 });
  });

  it("is released once the endpoint shows no transfer in its block any more", async () => {
    const { chain, first } = world;
    await poll();
    const { address } = await world.account();
    const txHash = await chain.transfer(address, 17_000_000n);
    await mineDeep();
    first.say = withReceipt(txHash, () => null);
    expect(await poll()).toMatchObject({ unread: 1 });
    first.say = (method, result) => (method === "eth_getLogs" ? [] : result);
    expect(await poll()).toMatchObject({ found: 0, unread: 0 });
    expect((await endpoint()).heldBlocks).toEqual([]);
    first.say = null;
    expect(await world.turn(), "the second endpoint shows it").toMatchObject({ found: 1, credited: 1 });
  });

  it("is not settled while the most blocks are held, and is not lost", async () => {
    const { chain, first, sql } = world;
    await poll();
    const { settledTo } = await endpoint();
    const { id, address } = await world.account();
    const txHash = await chain.transfer(address, 18_000_000n);
    const block = await chain.head();
    await mineDeep();
    await sql`
      update chain_endpoints
      set held_blocks = array(select n from generate_series(${settledTo! - 49n}::bigint, ${settledTo}) as n)`;
    first.say = withReceipt(txHash, () => null);
    expect(await poll()).toMatchObject({ found: 0, unread: 1 });
    expect(await endpoint()).toMatchObject({ settledTo: block - 1n, heldBlocks: [] });
    expect(await poll()).toMatchObject({ found: 0, unread: 1 });
    expect((await endpoint()).heldBlocks).toEqual([block]);
    first.say = null;
    expect(await poll()).toMatchObject({ found: 1, credited: 1 });
    expect(await world.wallet(id)).toBe(18_000_000n);
  });

  it("does not delay other deposits, before and after it", async () => {
    const { chain, first, sql } = world;
    const [early, own, late] = [await world.account(), await world.account(), await world.account()];
    await chain.transfer(early.address, 6_000_000n);
    const txHash = await chain.transfer(own.address, 7_000_000n);
    await sql`update chain_endpoints set range_blocks = 50 where place = 1`;
    await chain.mine(100); // into another range
    await chain.transfer(late.address, 8_000_000n);
    await mineDeep();
    first.say = withReceipt(txHash, () => null);
    expect(await poll()).toMatchObject({ found: 2, credited: 2, unread: 1 });
    first.say = null;
    expect(await poll()).toMatchObject({ found: 1, credited: 1, unread: 0 });
    expect(await world.wallet(own.id)).toBe(7_000_000n);
  });
});

describe("a deposit whose receipt is missing at its decision", () => {
  /** A stored deposit in a settled block, whose receipt the endpoint returned once. */
  async function stored(units: bigint, during: (block: bigint) => Proxy["say"]) {
    const { chain, first } = world;
    const { id, address } = await world.account();
    const txHash = await chain.transfer(address, units);
    const block = await chain.head();
    await mineDeep();
    let receipts = 0;
    const then = during(block);
    first.say = (method, result, params) => {
      if (method === "eth_getTransactionReceipt" && params[0] === txHash) {
        receipts += 1;
        return receipts === 1 ? result : null;
      }
      return then === null ? result : then(method, result, params);
    };
    expect(await poll()).toMatchObject({ found: 1, credited: 0 });
    expect((await endpoint()).settledTo).toBeGreaterThan(block);
    return { id, txHash };
  }

  it.each<[string, (block: bigint) => Proxy["say"]]>([
    ["the endpoint has its block", () => null],
    [
      "the endpoint does not know its block",
      () => (method, result, params) => (isByNumber(method, params) ? null : result),
    ],
  ])("stays pending while %s, with the reason, and is credited later", async (_, during) => {
    const { first } = world;
    const { id, txHash } = await stored(9_000_000n, during);
    for (let polls = 0; polls < 2; polls += 1) {
      expect(await poll()).toMatchObject({ credited: 0, orphaned: 0, disputed: 1, unread: 0 });
      expect(await stateOf(id)).toEqual([
        { state: "pending", dispute: expect.stringContaining("no receipt") as string },
      ]);
    }
    expect(await problems()).toContain(txHash);
    first.say = null;
    expect(await poll()).toMatchObject({ credited: 1, disputed: 0 });
    expect(await world.wallet(id)).toBe(9_000_000n);
    expect(await problems()).toBe("");
  });

  it("stays pending while its receipt is of a successful transaction without any transfer", async () => {
    const { first } = world;
    const { id, txHash } = await stored(9_200_000n, () => null);
    first.say = withReceipt(txHash, (receipt) => ({ ...receipt, logs: [] }));
    expect(await poll()).toMatchObject({ credited: 0, orphaned: 0, disputed: 1 });
    expect(await stateOf(id)).toMatchObject([{ state: "pending" }]);
    first.say = null;
    expect(await poll()).toMatchObject({ credited: 1 });
  });

  it("stays pending while the question of its block fails, or names another block", async () => {
    const { first } = world;
    let isRefused = true;
    const { id } = await stored(9_500_000n, () => (method, result, params) => {
      if (!isByNumber(method, params)) return result;
      if (isRefused) throw new NodeRefusal("no more requests");
      return { ...(result as object), number: "0x1", hash: NO_HASH };
    });
    for (const refused of [true, false]) {
      isRefused = refused;
      expect(await poll()).toMatchObject({ orphaned: 0, credited: 0, unread: 1 });
      expect(await stateOf(id)).toMatchObject([{ state: "pending" }]);
    }
    first.say = null;
    expect(await poll()).toMatchObject({ credited: 1, unread: 0 });
  });

  it("is not orphaned while one endpoint has another block at its height, and another only lacks the receipt", async () => {
    const { first, second } = world;
    const { id } = await stored(
      9_700_000n,
      () => (method, result, params) =>
        isByNumber(method, params) ? { ...(result as object), hash: NO_HASH } : result,
    );
    expect(await stateOf(id)).toMatchObject([{ state: "orphaned" }]);
    await world.sql`update chain_deposits set state = 'pending' where account_id = ${id}`;
    second.say = (method, result) => (method === "eth_getTransactionReceipt" ? null : result);
    expect(await world.turn()).toMatchObject({ orphaned: 0, credited: 0, disputed: 1 });
    expect(await stateOf(id)).toMatchObject([
      { state: "pending", dispute: expect.stringMatching(/^the endpoints differ: .*no receipt/) as string },
    ]);
    Object.assign(first, { say: null });
    second.say = null;
    expect(await world.turn()).toMatchObject({ credited: 1 });
  });

  it("is orphaned once the endpoint has another block at its height, and is not credited", async () => {
    const { id } = await stored(10_000_000n, (block) => (method, result, params) => {
      const isIts = isByNumber(method, params) && params[0] === `0x${block.toString(16)}`;
      return isIts ? { ...(result as object), hash: NO_HASH } : result;
    });
    await poll();
    expect(await stateOf(id)).toEqual([{ state: "orphaned", dispute: null }]);
    world.first.say = null;
    await poll();
    expect(await world.wallet(id)).toBe(0n);
  });
});

it("no deposit is credited by an endpoint that was not read up to its newest block", async () => {
  const { chain, sql } = world;
  await poll();
  const { address } = await world.account();
  await chain.transfer(address, 19_000_000n);
  await poll(); // found, not deep
  await chain.mine(CONFIRMATIONS);
  await sql`update chain_endpoints set range_blocks = 1 where place = 1`; // 100 ranges are fewer blocks than are read again
  expect(await poll()).toMatchObject({ credited: 0, unread: 0 });
  await sql`update chain_endpoints set range_blocks = 1000 where place = 1`;
  expect(await poll()).toMatchObject({ credited: 1, unread: 0 });
});

it("an alert about an endpoint that cannot be reached states that nothing is credited", async () => {
  world.first.say = () => {
    throw new NodeRefusal("closed");
  };
  expect(await poll()).toMatchObject({ unread: 1 });
  expect(await problems()).toMatch(/cannot be read since .*no deposit is credited until then, and none is lost/);
  world.first.say = null;
  expect(await poll()).toMatchObject({ unread: 0 });
});

it("a credited deposit is not reported as gone while only its receipt is missing", async () => {
  const { chain, first, sql } = world;
  const { id, address } = await world.account();
  const txHash = await chain.transfer(address, 11_000_000n);
  await chain.mine(CONFIRMATIONS);
  expect(await poll()).toMatchObject({ credited: 1 });
  const again = async () => {
    await sql`update credited_deposits set checked_at = null`;
    return poll();
  };
  first.say = withReceipt(txHash, () => null);
  expect(await again()).toMatchObject({ gone: 0 });
  first.say = (method, result, params) => {
    if (isByNumber(method, params)) return { ...(result as object), hash: NO_HASH };
    return method === "eth_getTransactionReceipt" ? null : result;
  };
  expect(await again()).toMatchObject({ gone: 1 });
  expect(await world.wallet(id)).toBe(11_000_000n);
});
