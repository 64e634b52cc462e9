import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { listEndpoints } from "../../src/topups/usdt/endpoints/endpoint-store.ts";
import { findUsdtProblems } from "../../src/topups/usdt/problem-store.ts";
import type { Proxy } from "../support/chain.ts";
import { openUsdtWorld, type UsdtWorld } from "./usdt-world.ts";

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

describe("a transfer whose receipt does not match it yet", () => {
  it.each<[string, (receipt: object) => unknown]>([
    ["is missing", () => null],
    ["is of another block", (receipt) => ({ ...receipt, blockHash: NO_HASH })],
    ["lacks the transfer", (receipt) => ({ ...receipt, logs: [] })],
  ])("is not settled while the receipt %s, however deep it is, and is credited once it matches", async (_, change) => {
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
      expect(failing.settledTo).toBe(block - 1n);
      expect(failing.rangeBlocks).toBeGreaterThanOrEqual(rangeBlocks);
      expect(failing).toMatchObject({
        failingSince: expect.any(Date) as Date,
        lastError: expect.stringContaining(txHash) as string,
      });
    }
    expect(await problems()).toContain(txHash);
    first.say = null;
    expect(await poll()).toMatchObject({ found: 1, credited: 1, unread: 0 });
    expect(await world.wallet(id)).toBe(25_000_000n);
    expect(await endpoint()).toMatchObject({
      settledTo: (await chain.head()) - BigInt(world.usdt.chain.rescan),
      failingSince: null,
    });
    expect(await problems()).toBe("");
  });

  it("does not delay other deposits, before and after it", async () => {
    const { chain, first, sql } = world;
    const [early, own, late] = [await world.account(), await world.account(), await world.account()];
    await chain.transfer(early.address, 6_000_000n);
    const txHash = await chain.transfer(own.address, 7_000_000n);
    await sql`update chain_endpoints set range_blocks = 50`;
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
