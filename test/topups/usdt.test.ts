import { join } from "node:path";
import { mnemonicToAccount } from "viem/accounts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { closeRows } from "../../src/accounts/holders/close-store.ts";
import { addressOf } from "../../src/topups/usdt/address.ts";
import { addressAt } from "../../src/topups/usdt/derive.ts";
import { saveDeposits } from "../../src/topups/usdt/deposit-store.ts";
import { listEndpoints } from "../../src/topups/usdt/endpoints/endpoint-store.ts";
import { requireUsdt } from "../../src/topups/usdt/ready.ts";
import { findUsdtProblems } from "../../src/topups/usdt/problem-store.ts";
import { findTopup } from "../../src/topups/topup-store.ts";
import { usdtOf } from "../../src/config/usdt.ts";
import { loadSettings } from "../../src/config/environment.ts";
import type { ConsoleParts, Holder } from "../../src/console/contract.ts";
import { usdtPage } from "../../src/console/top-up/usdt.ts";
import { renderPage } from "../../src/frame/render.ts";
import type { FileInParts, Shown } from "../../src/frame/view.ts";
import type { OpsParts, Visitor } from "../../src/ops/contract.ts";
import { depositAddressesPage, depositsPage, readDepositsAgainAction } from "../../src/ops/deposits/deposits.ts";
import { NodeRefusal, OTHER_SENDER, type Proxy, XPUB } from "../support/chain.ts";
import { testContext } from "../support/context.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { takeBack } from "../support/take-back.ts";
import { makeVictims, stopAt, type Victim } from "../support/victims.ts";
import { CONFIRMATIONS, openUsdtWorld, type UsdtWorld } from "./usdt-world.ts";

/** The words that everybody knows, and a key of other words, from the test vectors of BIP-39. */
const WORDS = "test test test test test test test test test test test junk";
const OTHER_WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow";

let world: UsdtWorld;
beforeAll(async () => {
  world = await openUsdtWorld();
});
beforeEach(async () => {
  await world.sql`update chain_endpoints set verified_at = null`;
  await world.sql`delete from credited_deposits`; // of earlier tests, which would be checked again after half a minute
  for (const proxy of [world.first, world.second]) Object.assign(proxy, { say: null, isAway: false });
});
afterAll(() => world.close());

/** Confirms what waits, and looks. */
async function settle(blocks = CONFIRMATIONS) {
  await world.chain.mine(blocks);
  return world.turn();
}

const hex = (value: bigint) => `0x${value.toString(16)}`;
const asReceipt = (result: unknown) => result as { logs: { data: string }[] };

function withAmount(receipt: { logs: { data: string }[] }, units: bigint) {
  const data = `0x${units.toString(16).padStart(64, "0")}`;
  return { ...receipt, logs: receipt.logs.map((log) => ({ ...log, data })) };
}

const states = async (id: bigint) => (await world.deposits(id)).map(({ state }) => state);

describe("addresses", () => {
  it("are those that the private key leads to, and no private key is needed", () => {
    for (const index of [0, 1, 19, 2_000_000_000]) {
      const own = mnemonicToAccount(WORDS, { path: `m/44'/60'/0'/0/${index}` });
      expect(addressAt(XPUB, index)).toBe(own.address);
    }
    expect(addressAt(XPUB, 0)).toBe("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    const receiving = mnemonicToAccount(WORDS, { path: "m/44'/60'/0'/0" }).getHdKey().publicExtendedKey;
    expect(addressAt(receiving, 7), "the key one level below leads to the same").toBe(addressAt(XPUB, 7));
  });

  it("are one for each account, permanently, without a gap between, however many requests are concurrent", async () => {
    const { sql, usdt } = world;
    const made = await sql<{ id: bigint }[]>`
      insert into accounts (email) select 'many-' || n || '@example.com' from generate_series(1, 5) n returning id`;
    const asked = await Promise.all(
      [...made, ...made].map(async ({ id }) => [id, await addressOf(sql, usdt, id)] as const),
    );
    const given = new Map(asked.map(([id, found]) => [id, found.ok ? found.index : -1]));
    const indexes = [...given.values()].toSorted((a, b) => a - b);
    expect(indexes.map((index) => index - indexes[0]!)).toEqual([0, 1, 2, 3, 4]);
    for (const [id, found] of asked) expect(found.ok && found.index).toBe(given.get(id));
    await expect(sql`update deposit_addresses set address = lower(address)`).rejects.toThrow(/only ever added to/);
  });

  it("are not given to an account that is closed meanwhile", async () => {
    const { sql, usdt } = world;
    const [made] = await sql<[{ id: bigint }]>`insert into accounts (email) values ('leaves@example.com') returning id`;
    const { asked } = await sql.begin(async (tx) => {
      await closeRows(tx, made.id);
      const asking = addressOf(sql, usdt, made.id);
      await lockWaits(sql, 1);
      return { asked: asking };
    });
    expect(await asked).toEqual({ ok: false, reason: "closed" });
  });

  it("are not shown if the key is another one, nor before the chain is watched", async () => {
    const { sql, variables } = world;
    const { id, address } = await world.account();
    const otherXpub = mnemonicToAccount(OTHER_WORDS, { path: "m/44'/60'/0'" }).getHdKey().publicExtendedKey;
    const changed = loadSettings({ ...variables, USDT_XPUB: otherXpub });
    expect(await addressOf(sql, usdtOf(changed)!, id)).toEqual({ ok: false, reason: "other-key" });
    const { context } = testContext(sql);
    await expect(requireUsdt(sql, changed, context.log)).rejects.toThrow(/set the former key again/);
    const elsewhere = loadSettings({ ...variables, USDT_CHAIN_ID: "4242" });
    expect(await addressOf(sql, usdtOf(elsewhere)!, id)).toEqual({ ok: false, reason: "not-watched" });
    expect(await addressOf(sql, world.usdt, id)).toMatchObject({ ok: true, address });
  });
});

describe("a deposit", () => {
  it("is pending from its first block, and credited once it is deep enough: once, though three look at the same time", async () => {
    const { id, address } = await world.account();
    await world.chain.transfer(address, 25_000_000n);
    expect(await world.turn()).toMatchObject({ found: expect.any(Number) as number, credited: 0 });
    await settle(CONFIRMATIONS - 2);
    expect(await states(id)).toEqual(["pending"]);
    expect(await world.wallet(id)).toBe(0n);
    await world.chain.mine(1);
    await Promise.all([world.turn(), world.turn(), world.turn()]);
    expect(await world.deposits(id)).toEqual([{ state: "credited", micros: 25_000_000n, position: 0, dispute: null }]);
    expect(await world.wallet(id)).toBe(25_000_000n);
    await settle();
    expect(await world.wallet(id)).toBe(25_000_000n);
    const mails = await world.sql<{ subject: string }[]>`
      select subject from mails where recipient = (select email from accounts where id = ${id})`;
    expect(mails).toEqual([{ subject: "Your balance was credited: 25.00 USD" }]);
    const topups = await world.sql`
      select state, reference, amount_micros::text as micros from topups where account_id = ${id}`;
    expect(topups).toEqual([
      {
        state: "credited",
        reference: expect.stringMatching(/^evm:31337:0x[0-9a-f]{64}:0$/) as string,
        micros: "25000000",
      },
    ]);
  });

  it("is credited as soon as the chain reports its block as final", async () => {
    const { id, address } = await world.account();
    await world.chain.transfer(address, 6_000_000n);
    const block = await world.chain.head();
    for (const proxy of [world.first, world.second]) {
      proxy.say = (method, result, [tag]) =>
        method === "eth_getBlockByNumber" && tag === "finalized"
          ? { ...(result as object), number: `0x${block.toString(16)}` }
          : result;
    }
    await world.turn();
    expect(await states(id)).toEqual(["credited"]);
  });

  it("counts each transfer of a transaction, and none of another token, of nothing, or to another address", async () => {
    const { id, address } = await world.account();
    const { chain } = world;
    await chain.transfer(address, 7_000_001n, { times: 2 });
    await chain.transfer(address, 100_000_000n, { token: chain.fakeToken });
    await chain.transfer(address, 0n);
    await chain.transfer("0x00000000000000000000000000000000000000aa", 9_000_000n);
    await settle();
    expect(await world.deposits(id)).toMatchObject([
      { state: "credited", micros: 7_000_001n, position: 0 },
      { state: "credited", micros: 7_000_001n, position: 1 },
    ]);
    expect(await world.wallet(id)).toBe(14_000_002n);
  });

  it("that is below the minimum is kept, and credited with others once they make it together", async () => {
    const { id, address } = await world.account();
    await world.chain.transfer(address, 2_000_000n);
    await world.chain.transfer(address, 2_999_999n);
    await settle();
    expect(await states(id)).toEqual(["below_min", "below_min"]);
    expect(await world.wallet(id)).toBe(0n);
    await world.chain.transfer(address, 1n);
    await world.chain.mine(CONFIRMATIONS);
    await Promise.all([world.turn(), world.turn()]);
    await world.turn();
    expect(await states(id)).toEqual(["credited", "credited", "credited"]);
    expect(await world.wallet(id)).toBe(5_000_000n);
    expect(await world.sql`select 1 from topups where account_id = ${id}`).toHaveLength(1);
  });

  it("of a token of eighteen decimals is rounded down, and what is left over stays in its row", async () => {
    const { sql, chain, turn } = world;
    const { id, address } = await world.account();
    await chain.transfer(address, 6_000_000_999_999_999_999n);
    await chain.mine(CONFIRMATIONS);
    for (const proxy of [world.first, world.second]) {
      proxy.say = (method, result) => (method === "eth_call" ? `0x${"12".padStart(64, "0")}` : result);
    }
    await sql`update chain_endpoints set verified_at = null`;
    expect(await turn({ USDT_DECIMALS: "18" })).toMatchObject({ unread: 0, credited: 1 });
    const [row] = await sql`
      select state, micros::text as micros, rest_units::text as rest from chain_deposits where account_id = ${id}`;
    expect(row).toEqual({ state: "credited", micros: "6000000", rest: "999999999999" });
  });
});

describe("deposits below a minimum that was above the default", () => {
  it("are not reported when USDT is switched off, since nothing was to credit them", async () => {
    const { sql, chain } = world;
    const { id, address } = await world.account();
    await chain.transfer(address, 7_000_000n);
    await chain.mine(CONFIRMATIONS);
    await world.turn({ USDT_MIN: "20" });
    expect(await states(id)).toEqual(["below_min"]);
    expect(await findUsdtProblems(sql, null)).toEqual([]);
    expect(await world.turn()).toMatchObject({ credited: 1 });
  });
});

describe("a deposit on a chain that is not configured any more", () => {
  it.each<[string, Partial<UsdtWorld["usdt"]["chain"]>]>([
    ["another chain", { id: 56n }],
    ["another token", { token: "0x55d398326f99059fF775485246999027B3197955" }],
  ])(
    "is reported while %s is configured, if it is pending or those of its address reach the minimum",
    async (_, other) => {
      const { sql, chain, usdt } = world;
      const { id, address } = await world.account();
      const { id: dusted, address: dustedAddress } = await world.account();
      await chain.transfer(address, 2_000_000n);
      await chain.transfer(dustedAddress, 1n);
      await settle();
      await chain.transfer(address, 12_500_000n);
      await settle(1);
      expect(await states(id)).toEqual(["below_min", "pending"]);
      expect(await states(dusted)).toEqual(["below_min"]);
      const changed = { ...usdt, chain: { ...usdt.chain, ...other } };
      const reported = async (minMicros: bigint) =>
        (await findUsdtProblems(sql, { ...changed, minMicros })).map(({ text }) => text.replace(/ cannot.*$/, ""));
      const where = `on chain ${usdt.chain.id} (token ${usdt.chain.token.toLowerCase()})`;
      expect(await reported(usdt.minMicros)).toEqual([`1 deposit of 12.50 USD ${where}`]);
      expect(await reported(2_000_000n)).toEqual([`2 deposits, together 14.50 USD ${where}`]);
      const withoutUsdt = (await findUsdtProblems(sql, null)).map(({ text }) => text);
      expect(withoutUsdt).toEqual([
        expect.stringMatching(/^1 deposit of 12\.50 USD on chain .* while USDT is not configured: set USDT_XPUB/),
      ]);
      expect(await findUsdtProblems(sql, usdt)).toEqual([]);
      expect(await settle()).toMatchObject({ credited: 1 });
      expect(await reported(usdt.minMicros)).toEqual([]);
      expect(await findUsdtProblems(sql, null)).toEqual([]);
      expect(await world.turn({ USDT_MIN: "1" })).toMatchObject({ credited: 1 });
      expect(await reported(1_000_000n)).toEqual([]);
    },
  );
});

describe("a reorganisation", () => {
  it("removes a deposit, returns it in another block, and it is credited once", async () => {
    const { chain } = world;
    const { id, address } = await world.account();
    const txHash = await chain.transfer(address, 8_000_000n);
    const raw = await chain.raw(txHash);
    await chain.mine(1);
    await world.turn();
    expect(await states(id)).toEqual(["pending"]);
    await chain.reorg(2);
    expect(await world.turn()).toMatchObject({ orphaned: 1 });
    expect(await states(id)).toEqual(["orphaned"]);
    expect(await settle()).toMatchObject({ credited: 0 });
    await chain.ask("eth_sendRawTransaction", raw);
    await chain.mine(1);
    await world.turn();
    expect(await states(id)).toEqual(["pending"]);
    await settle();
    expect(await states(id)).toEqual(["credited"]);
    expect(await world.wallet(id)).toBe(8_000_000n);
  });

  it("that moves a deposit to another block, and another place in it, restarts its confirmations", async () => {
    const { chain } = world;
    const { id, address } = await world.account();
    const raw = await chain.raw(await chain.transfer(address, 9_000_000n, { from: OTHER_SENDER }));
    await chain.mine(CONFIRMATIONS - 2);
    await world.turn();
    // in a block that was read already, behind another transaction
    await chain.reorg(CONFIRMATIONS - 1, [chain.twice(address, 2_000_000n), raw]);
    await world.turn();
    expect(await states(id)).toEqual(["pending", "pending", "pending"]);
    const [moved] = await world.sql`
      select log_index, position from chain_deposits where account_id = ${id} and micros = 9000000`;
    expect(moved).toEqual({ log_index: 2, position: 0 });
    await settle(1);
    expect(await states(id)).toEqual(["credited", "below_min", "below_min"]);
    expect(await world.wallet(id)).toBe(9_000_000n);
  });
});

it("deposits that two endpoints list in another order are stored by both at the same time", async () => {
  const { sql, usdt } = world;
  const account = await world.account();
  const to = account.address.toLowerCase();
  const depositsOf = (hashes: readonly string[]) =>
    hashes.map((digit, place) => {
      const [txHash, blockHash] = [`0x${digit.repeat(64)}`, `0x${"b".repeat(64)}`] as [`0x${string}`, `0x${string}`];
      const amount = { units: 5_000_000n, micros: 5_000_000n, restUnits: 0n };
      return { txHash, blockHash, blockNumber: BigInt(place), logIndex: 0, position: 0, to, sender: to, ...amount };
    });
  const undone = new Error("undone");
  const save = async (hashes: readonly string[], before = () => Promise.resolve()) => {
    let saved = 0;
    const saving = sql.begin(async (tx) => {
      saved = await saveDeposits(tx, usdt, depositsOf(hashes));
      await before();
      throw undone; // the other tests know nothing of these deposits
    });
    await expect(saving).rejects.toBe(undone);
    return saved;
  };
  const both: Promise<number>[] = [];
  await save(["2"], async () => {
    both.push(save(["1", "2", "3"])); // waits in its middle
    await lockWaits(sql, 1);
    both.push(save(["3", "1"]));
    await lockWaits(sql, 2);
  });
  expect(await Promise.all(both)).toEqual([3, 2]);
});

describe("a reorganisation after the credit", () => {
  it("is noticed and shown to operators, and over once the transaction is on the chain again", async () => {
    const { sql, chain, usdt } = world;
    const { id, address } = await world.account();
    await chain.mine(1);
    const txHash = await chain.transfer(address, 18_000_000n);
    const raw = await chain.raw(txHash);
    expect(await settle()).toMatchObject({ credited: 1 });
    const look = async () => {
      await sql`update credited_deposits set checked_at = null`;
      return world.turn();
    };
    expect(await look()).toMatchObject({ gone: 0 });
    await chain.reorg(CONFIRMATIONS + 1);
    expect(await look()).toMatchObject({ gone: 1, credited: 0 });
    const shown = async () => {
      const found = await depositsPage.show(
        { sql, settings: world.settings } as OpsParts,
        { query: depositsPage.query.parse({ account: String(id) }) } as never,
      );
      return (found as unknown as { data: unknown }).data as {
        rows: { state: string; missingSince: Date | null }[];
        problems: string[];
      };
    };
    const during = await shown();
    expect(during.rows).toMatchObject([{ state: "credited", missingSince: expect.any(Date) as Date }]);
    expect(during.problems.join()).toContain(
      `credited to account ${id} (/ops/callers/${id}) with 18.00 USD, is no longer on the chain`,
    );
    for (const configured of [null, { ...usdt, chain: { ...usdt.chain, id: 56n } }]) {
      const texts = (await findUsdtProblems(sql, configured)).map(({ text }) => text).join();
      expect(texts, "an alert stays open whatever is configured").toContain(
        "with 18.00 USD, is no longer on the chain",
      );
    }
    expect(during.problems.join()).not.toContain("@"); // alerts are sent on, to STAFF_WEBHOOK_URL
    await chain.ask("eth_sendRawTransaction", raw);
    await chain.mine(1);
    expect(await look()).toMatchObject({ gone: 0 });
    expect((await shown()).rows).toMatchObject([{ state: "credited", missingSince: null }]);
    expect((await findUsdtProblems(sql, usdt)).filter(({ text }) => text.includes(txHash))).toEqual([]);
    expect(await world.wallet(id)).toBe(18_000_000n);
  });
});

describe("endpoints", () => {
  it("of which one returns what cannot be stored prevent no other deposit from being seen, and are reported", async () => {
    const { sql, chain, first, usdt } = world;
    const big = `0x${"f".repeat(20)}`;
    const lies: [string, Proxy["say"]][] = [
      [
        "a log index",
        (method, result) =>
          method === "eth_getLogs" ? (result as object[]).map((log) => ({ ...log, logIndex: "0x80000000" })) : result,
      ],
      [
        "a hash",
        (method, result) =>
          method === "eth_getLogs" ? (result as object[]).map((log) => ({ ...log, blockHash: "0xno" })) : result,
      ],
      [
        "a block number",
        (method, result, [tag]) =>
          method === "eth_getBlockByNumber" && tag === "latest" ? { ...(result as object), number: big } : result,
      ],
      [
        "a time",
        (method, result, [tag]) =>
          method === "eth_getBlockByNumber" && tag === "latest" ? { ...(result as object), timestamp: big } : result,
      ],
    ];
    for (const [expected, lie] of lies) {
      const { id, address } = await world.account();
      await chain.transfer(address, 19_000_000n);
      first.say = lie;
      expect(await world.turn(), expected).toMatchObject({ unread: 1, credited: 0 });
      const [failing] = await listEndpoints(sql, usdt);
      expect(failing!.lastError).toMatch(
        new RegExp(`^127\\.0\\.0\\.1:\\d+: expected ${expected}|^127\\.0\\.0\\.1:\\d+: .*${expected}`),
      );
      expect(await states(id), "found through the other one").toEqual(["pending"]);
      await sql`update chain_endpoints set failing_since = failing_since - interval '30 seconds'`;
      expect((await findUsdtProblems(sql, usdt)).map(({ subject }) => subject)).toEqual(["endpoint 1"]);
      first.say = null;
      expect(await settle()).toMatchObject({ credited: 1, unread: 0 });
      expect(await findUsdtProblems(sql, usdt)).toEqual([]);
    }
  });

  it("of which one lists each log twice count each deposit once", async () => {
    const { chain, first } = world;
    const { id, address } = await world.account();
    await chain.transfer(address, 20_000_000n);
    first.say = (method, result) =>
      method === "eth_getLogs" ? (result as object[]).flatMap((log) => [log, log]) : result;
    expect(await world.turn()).toMatchObject({ found: 1, unread: 0 });
    expect(await settle()).toMatchObject({ credited: 1 });
    expect(await world.wallet(id)).toBe(20_000_000n);
  });

  it("that differ on a deposit prevent its credit, and an alert is raised", async () => {
    const { sql, chain, second, usdt } = world;
    const lies: [string, Proxy["say"]][] = [
      ["knows no such transfer", (method, result) => (method === "eth_getTransactionReceipt" ? null : result)],
      [
        "knows no such transfer",
        (method, result) => (method === "eth_getTransactionReceipt" ? { ...asReceipt(result), status: "0x0" } : result),
      ],
      [
        "in block",
        (method, result) =>
          method === "eth_getTransactionReceipt" ? { ...asReceipt(result), blockHash: `0x${"ab".repeat(32)}` } : result,
      ],
      [
        "has 99000000 units",
        (method, result) =>
          method === "eth_getTransactionReceipt" ? withAmount(asReceipt(result), 99_000_000n) : result,
      ],
    ];
    const { id, address } = await world.account();
    await chain.transfer(address, 11_000_000n);
    for (const [told, lie] of lies) {
      second.say = lie;
      expect(await settle(), told).toMatchObject({ disputed: 1, credited: 0 });
      const [row] = await world.deposits(id);
      expect(row).toMatchObject({ state: "pending", dispute: expect.stringContaining(told) as string });
    }
    await sql`update chain_deposits set disputed_since = now() - interval '5 minutes' where account_id = ${id}`;
    expect((await findUsdtProblems(sql, usdt)).map(({ text }) => text)).toEqual([
      expect.stringContaining("the endpoints differ: endpoint 1 has 11000000 units in block") as string,
    ]);
    const elsewhere = { ...usdt, chain: { ...usdt.chain, id: 56n } };
    for (const configured of [null, elsewhere]) {
      const texts = (await findUsdtProblems(sql, configured)).map(({ text }) => text).join("\n");
      expect(texts, "an alert stays open whatever is configured").toContain("the endpoints differ: endpoint 1");
    }
    second.say = null;
    expect(await world.turn()).toMatchObject({ disputed: 0, credited: 1 });
    expect(await findUsdtProblems(sql, usdt)).toEqual([]);
    expect(await world.wallet(id)).toBe(11_000_000n);
  });

  it("of which one reports a lower block advance no deposit", async () => {
    const { chain, first, second } = world;
    const { id, address } = await world.account();
    await settle(2 * CONFIRMATIONS);
    await chain.transfer(address, 14_000_000n);
    const lower = (told: unknown) => ({ ...(told as object), blockNumber: hex(block - BigInt(CONFIRMATIONS)) });
    const block = await chain.head();
    second.say = (method, result) => {
      if (method === "eth_getLogs") return (result as unknown[]).map(lower);
      return method === "eth_getTransactionReceipt" ? lower(result) : result;
    };
    first.isAway = true; // so that what is stored comes of the other one
    await world.turn();
    first.isAway = false;
    expect(await world.turn()).toMatchObject({ credited: 0, unread: 0 });
    second.say = null;
    expect(await world.turn()).toMatchObject({ credited: 0 });
    expect(await states(id)).toEqual(["pending"]);
    expect(await settle()).toMatchObject({ credited: 1 });
  });

  it("of which one named another account lose nothing once it is right, though the blocks are not read again", async () => {
    const { chain, first, second, usdt } = world;
    const [own, other] = [await world.account(), await world.account()];
    await chain.transfer(own.address, 15_000_000n);
    second.say = (method, result) => {
      if (method !== "eth_getTransactionReceipt" || result === null) return result;
      const told = result as { logs: { topics: string[] }[] };
      const topic = `0x${other.address.slice(2).toLowerCase().padStart(64, "0")}`;
      return { ...told, logs: told.logs.map((log) => ({ ...log, topics: [...log.topics.slice(0, 2), topic] })) };
    };
    first.isAway = true;
    await world.turn();
    expect(await states(other.id)).toEqual(["pending"]);
    first.isAway = false;
    expect(await settle(2 * usdt.chain.rescan)).toMatchObject({ credited: 0 });
    expect(await states(other.id)).toEqual(["pending"]);
    second.say = null;
    await settle(2 * usdt.chain.rescan);
    expect(await world.turn()).toMatchObject({ credited: 1 });
    expect([await world.wallet(own.id), await world.wallet(other.id)]).toEqual([15_000_000n, 0n]);
  });

  it("that refuse frequent requests, or return nonsense, are unavailable, and requested no more than before", async () => {
    const { sql, chain, first, usdt } = world;
    const { id, address } = await world.account();
    await settle(2 * usdt.chain.rescan);
    await chain.transfer(address, 16_000_000n);
    await sql`update chain_endpoints set range_blocks = 500`;
    const lies: Proxy["say"][] = [
      (method, result) => {
        if (method === "eth_getLogs") throw new NodeRefusal("no more for key-of-the-operator", 429);
        return result;
      },
      (method, result) =>
        method === "eth_getLogs"
          ? (result as object[]).map((log) => ({ ...log, transactionHash: null, blockHash: null }))
          : result,
      (method, result) => (method === "eth_getBlockByNumber" ? { ...(result as object), number: "0x1" } : result),
    ];
    for (const lie of lies) {
      Object.assign(first, { say: lie, asked: [] });
      expect(await world.turn()).toMatchObject({ unread: 1, credited: 0 });
      const [away] = await listEndpoints(sql, usdt);
      expect(away!.lastError).toMatch(/^127\.0\.0\.1:/);
      expect(away!.lastError).not.toContain("key-of-the-operator");
      expect(away!.rangeBlocks).toBe(500);
    }
    expect(await states(id), "found through the other one").toEqual(["pending"]);
    first.say = null;
    expect(await settle()).toMatchObject({ credited: 1, unread: 0 });
  });

  it.each<[string, string, (given: Record<string, unknown>) => Record<string, unknown>]>([
    ["the number of the newest block", "eth_getBlockByNumber", () => ({ number: `0x${"f".repeat(20)}` })],
    ["the time of the newest block", "eth_getBlockByNumber", () => ({ timestamp: `0x${"f".repeat(30)}` })],
    ["the index of a log in its block", "eth_getLogs", () => ({ logIndex: "0xffffffff" })],
    ["the hash of a log's transaction", "eth_getLogs", () => ({ transactionHash: `0x${"a".repeat(100_000)}` })],
    ["the hash of a log's block", "eth_getLogs", () => ({ blockHash: `0x${"z".repeat(64)}` })],
    ["the block of a receipt", "eth_getTransactionReceipt", () => ({ blockNumber: `0x${"f".repeat(20)}` })],
    ["the hash of a receipt's block", "eth_getTransactionReceipt", () => ({ blockHash: `0x${"b".repeat(100_000)}` })],
    [
      "the index of a transfer in its block",
      "eth_getTransactionReceipt",
      ({ logs }) => ({ logs: (logs as object[]).map((log) => ({ ...log, logIndex: "0xffffffff" })) }),
    ],
    [
      "the sender of a transfer",
      "eth_getTransactionReceipt",
      ({ logs }) => ({
        logs: (logs as { topics: string[] }[]).map((log) => ({
          ...log,
          topics: log.topics.map((topic, at) => (at === 1 ? `0x${"\0".repeat(64)}` : topic)),
        })),
      }),
    ],
    [
      "the amount of a transfer",
      "eth_getTransactionReceipt",
      ({ logs }) => ({ logs: (logs as object[]).map((log) => ({ ...log, data: `0x${"z".repeat(64)}` })) }),
    ],
  ])(
    "[NUMBERS] that answer with %s as no column holds it are at fault, and stop nothing",
    async (_, method, change) => {
      const { sql, chain, first, usdt } = world;
      const { id, address } = await world.account();
      await settle();
      await chain.transfer(address, 16_000_000n);
      first.say = (asked, result) => {
        if (asked !== method || result === null) return result;
        const lie = (one: object) => ({ ...one, ...change(one as Record<string, unknown>) });
        return Array.isArray(result) ? (result as object[]).map(lie) : lie(result as object);
      };
      expect(await world.turn()).toMatchObject({ unread: 1, credited: 0 });
      const [away] = await listEndpoints(sql, usdt);
      expect(away!.lastError).toMatch(/^127\.0\.0\.1:/);
      expect(await states(id), "found through the other one").toEqual(["pending"]);
      first.say = null;
      expect(await settle()).toMatchObject({ credited: 1, unread: 0 });
    },
  );

  it("[NUMBERS] that name a log twice bring its deposit once", async () => {
    const { chain, first, second } = world;
    const { id, address } = await world.account();
    await settle();
    await chain.transfer(address, 16_000_000n);
    second.isAway = true;
    first.say = (asked, result) => (asked === "eth_getLogs" ? [result, result].flat() : result);
    expect(await world.turn()).toMatchObject({ found: 1, unread: 1 });
    expect(await states(id)).toEqual(["pending"]);
    Object.assign(second, { isAway: false });
    first.say = null;
    expect(await settle()).toMatchObject({ credited: 1 });
  });

  it("[TEXTS] that refuse with a megabyte and zero bytes are noted in a short sentence", async () => {
    const { sql, first, usdt } = world;
    first.say = () => {
      throw new NodeRefusal(`\0no\0 ${"x\0".repeat(500_000)}`);
    };
    expect(await world.turn()).toMatchObject({ unread: 1 });
    const [away] = await listEndpoints(sql, usdt);
    expect(away!.lastError!.length).toBeLessThanOrEqual(300);
    first.say = null;
    expect(await world.turn()).toMatchObject({ unread: 0 });
  });

  it("that omitted a deposit are read again from its block when an operator requests it", async () => {
    const { sql, chain, first, second, settings, usdt } = world;
    const { id, address } = await world.account();
    await chain.transfer(address, 17_000_000n);
    const block = await chain.head();
    for (const proxy of [first, second]) {
      proxy.say = (method, result) => (method === "eth_getLogs" ? [] : result);
    }
    await settle(2 * usdt.chain.rescan);
    for (const proxy of [first, second]) proxy.say = null;
    expect([await settle(), await states(id)]).toMatchObject([{ found: 0, unread: 0 }, []]);
    const visitor = { email: "op@example.com", role: "operator", address: "127.0.0.1", requestId: "r-1" } as Visitor;
    const readAgain = (typed: string) => {
      const sent = { visitor, params: {}, form: readDepositsAgainAction.form.parse({ block: typed }) };
      return readDepositsAgainAction.run({ sql, settings } as OpsParts, sent);
    };
    expect(await readAgain(String(block))).toMatchObject({ ok: true });
    expect(await sql`select after from audit_log where action = 'deposits.read-again'`).toMatchObject([
      { after: { block: String(block), endpoints: 2 } },
    ]);
    expect(await world.turn()).toMatchObject({ credited: 1 });
    expect(await world.wallet(id)).toBe(17_000_000n);
    expect(await readAgain(String(await chain.head()))).toMatchObject({ ok: false });
    expect(await readAgain("1")).toMatchObject({ ok: true });
    expect(await world.turn()).toMatchObject({ credited: 0, unread: 0 });
    expect(await world.wallet(id)).toBe(17_000_000n);
  });

  it("that agree that the transaction failed give the deposit up, and take it back once they say otherwise", async () => {
    const { id, address } = await world.account();
    await world.chain.transfer(address, 12_000_000n);
    await world.turn();
    for (const proxy of [world.first, world.second]) {
      proxy.say = (method, result) =>
        method === "eth_getTransactionReceipt" ? { ...asReceipt(result), status: "0x0", logs: [] } : result;
    }
    await settle();
    expect(await states(id)).toEqual(["orphaned"]);
    expect(await world.wallet(id)).toBe(0n);
    for (const proxy of [world.first, world.second]) proxy.say = null;
    expect(await settle()).toMatchObject({ credited: 1 });
  });

  it("that are behind or unavailable are waited for: the deposit is shown from the other one, and nothing is lost", async () => {
    const { sql, chain, second, usdt } = world;
    const { id, address } = await world.account();
    const held = await chain.head();
    second.say = (method, result, params) => {
      if (method === "eth_getBlockByNumber" && params[0] === "latest")
        return { ...(result as object), number: hex(held) };
      return method === "eth_getTransactionReceipt" ? null : result;
    };
    await chain.transfer(address, 13_000_000n);
    expect(await settle(CONFIRMATIONS * 2)).toMatchObject({ credited: 0, orphaned: 0, disputed: 0, unread: 0 });
    expect(await states(id)).toEqual(["pending"]);
    Object.assign(second, { say: null, isAway: true });
    expect(await world.turn()).toMatchObject({ credited: 0, unread: 1 });
    const [, away] = await listEndpoints(sql, usdt);
    expect(away).toMatchObject({
      failingSince: expect.any(Date) as Date,
      lastError: expect.stringContaining("127.0.0.1") as string,
    });
    expect(
      JSON.stringify(away, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
    ).not.toContain("key-of-the-operator");
    await sql`update chain_endpoints set failing_since = now() - interval '6 minutes' where place = 2`;
    expect((await findUsdtProblems(sql, usdt)).map(({ subject }) => subject)).toEqual(["endpoint 2"]);
    second.isAway = false;
    expect(await world.turn()).toMatchObject({ credited: 1, unread: 0 });
    expect(await findUsdtProblems(sql, usdt)).toEqual([]);
    await sql`update chain_endpoints set looked_at = now() - interval '6 minutes' where place = 1`;
    expect((await findUsdtProblems(sql, usdt)).map(({ text }) => text)).toEqual([
      expect.stringContaining("chain 31337 was not polled") as string,
    ]);
  });

  it("of another chain or token are refused at the start and before anything is read", async () => {
    const { sql, first, variables, turn } = world;
    const { context } = testContext(sql);
    const wrong = { ...variables, USDT_DECIMALS: "18" };
    await expect(requireUsdt(sql, loadSettings(wrong), context.log)).rejects.toThrow(
      /expected a token of 18 decimals at 0x.* got one of 6/,
    );
    const empty = { ...variables, USDT_TOKEN: "0x00000000000000000000000000000000000000bb" };
    await expect(requireUsdt(sql, loadSettings(empty), context.log)).rejects.toThrow(/without a contract/);
    const mistyped = { ...variables, USDT_TOKEN: "0xdAC17F958D2ee523a2206206994597C13D831Ec7" };
    await expect(requireUsdt(sql, loadSettings(mistyped), context.log)).rejects.toThrow(/checksum \(EIP-55\)/);
    first.say = (method, result) => (method === "eth_chainId" ? "0x1" : result);
    await expect(requireUsdt(sql, loadSettings(variables), context.log)).rejects.toThrow(
      /expected chain 31337 .* got chain 1$/m,
    );
    await sql`update chain_endpoints set verified_at = null`;
    expect(await turn()).toMatchObject({ unread: 1 });
    first.say = null;
    await turn();
    first.isAway = true;
    const away = testContext(sql);
    await requireUsdt(sql, loadSettings(variables), away.context.log);
    expect(away.lines.map(({ msg }) => msg)).toEqual([
      expect.stringMatching(/^an endpoint of chain 31337 is not checked yet/),
    ]);
  });

  it("are read from the last position, in ranges as small as they require", async () => {
    const { sql, chain, first, second, usdt } = world;
    const { id, address } = await world.account();
    const before = await chain.head();
    for (const units of [21_000_000n, 22_000_000n, 23_000_000n]) {
      await chain.transfer(address, units);
      await chain.mine(150);
    }
    for (const proxy of [first, second]) {
      proxy.asked.length = 0;
      proxy.say = (method, result, params) => {
        const [asked] = params as { fromBlock: string; toBlock: string }[];
        if (method === "eth_getLogs" && asked !== undefined && BigInt(asked.toBlock) - BigInt(asked.fromBlock) > 99n) {
          throw new NodeRefusal("query exceeds max block range 100");
        }
        return result;
      };
    }
    expect(await world.turn()).toMatchObject({ unread: 0, credited: 3 });
    expect(await world.wallet(id)).toBe(66_000_000n);
    const [one] = await listEndpoints(sql, usdt);
    expect(one).toMatchObject({ settledTo: (await chain.head()) - BigInt(usdt.chain.rescan), failingSince: null });
    expect(one!.rangeBlocks).toBeLessThanOrEqual(100 + 13); // at most 100 were read, and the next poll tries an eighth more
    expect(one!.settledTo! - before).toBeGreaterThan(300n);
    expect(first.asked.filter((method) => method === "eth_getLogs").length).toBeLessThan(25);
  });
});

describe("a process that is killed", () => {
  const statements = ["insert on chain_deposits", "update on chain_endpoints", "insert on topups", "insert on mails"];
  const stops = Object.fromEntries(statements.map((statement) => [statement, stopAt(statement)]));
  stops["credit of chain_deposits"] = `${stopAt("update on chain_deposits")} when (new.state = 'credited')`;
  let victims: Map<string, Victim>;
  beforeAll(async () => {
    const script = join(import.meta.dirname, "usdt-process.ts");
    victims = await makeVictims(world, script, stops, world.variables);
  });

  it.each(Object.keys(stops))(
    "at the %s leaves nothing half done, and the next turn does it once",
    async (statement) => {
      const { chain, sql } = world;
      const { id, address } = await world.account();
      await chain.transfer(address, 31_000_000n);
      await chain.mine(CONFIRMATIONS);
      await victims.get(statement)!.killIn({});
      expect((await states(id)).filter((state) => state !== "pending")).toEqual([]);
      expect(await world.wallet(id)).toBe(0n);
      expect(await sql`select from topups where account_id = ${id}`).toHaveLength(0);
      await Promise.all([world.turn(), world.turn()]);
      expect(await world.deposits(id)).toMatchObject([{ state: "credited", micros: 31_000_000n }]);
      expect(await world.wallet(id)).toBe(31_000_000n);
      const mails = await sql`select from mails where recipient = (select email from accounts where id = ${id})`;
      expect(mails).toHaveLength(1);
    },
  );
});

describe("the pages", () => {
  /** A page as its surface writes it. */
  async function page(surface: "console" | "ops", shown: Shown | FileInParts | null): Promise<string> {
    if (shown === null || !("template" in shown)) throw new Error("expected a page");
    const html = renderPage({ template: `${surface}/${shown.template}`, layout: `${surface}/layout` }, shown.data, {
      title: shown.title,
      url: "/x",
      visitor: {
        email: "a@example.com",
        role: "viewer",
        person: { email: "a@example.com" },
        holder: { isSuspended: false },
      },
      flash: "",
      crumbs: shown.crumbs ?? [],
      refreshSeconds: shown.refreshSeconds ?? null,
      nav: [],
      assets: { style: "/s", script: "/j" },
    });
    expect(Buffer.byteLength(html)).toBeLessThan(100_000);
    return html;
  }
  const asHolder = (accountId: bigint, settings = world.settings) => {
    const { log } = testContext(world.sql).context;
    const parts = { sql: world.sql, settings, log } as ConsoleParts;
    return usdtPage.show(parts, { holder: { accountId } as Holder, params: {}, query: {} });
  };
  const atOps = async (path: string, query: Record<string, string> = {}, settings = world.settings) => {
    const found = [depositsPage, depositAddressesPage].find((one) => one.path === path)!;
    const parts = { sql: world.sql, settings } as OpsParts;
    return page(
      "ops",
      await found.show(parts, { visitor: {} as Visitor, params: {}, query: found.query.parse(query) }),
    );
  };

  it("show a holder the address with its QR code and the network, and deposits as their confirmations grow", async () => {
    const { chain } = world;
    const { id, address } = await world.account();
    const other = await world.account();
    const before = await page("console", await asHolder(id));
    expect(before).toContain(`value="${address}"`);
    expect(before).toContain('src="data:image/svg+xml;base64,');
    expect(before).toContain("<strong>USDT on chain 31337</strong> and nothing else");
    expect(before).toContain("5.00 USDT");
    await chain.transfer(address, 30_500_000n);
    await chain.transfer(other.address, 1_230_000n);
    for (const confirmed of [2, 3, 4]) {
      await world.turn();
      const shown = await page("console", await asHolder(id));
      expect(shown).toMatch(new RegExp(`30\\.50</td>[^]*pending[^]*${confirmed} of 5 confirmations`));
      expect(shown).not.toContain("1.23");
      await chain.mine(1);
    }
    await settle();
    expect(await page("console", await asHolder(id))).toMatch(/30\.50<\/td>[^]*credited/);
    expect(await page("console", await asHolder(other.id))).toMatch(
      /Kept until the minimum is reached: <strong>1\.23 USDT/,
    );
  });

  it("show holders and operators a credited deposit as reversed once its credit was reversed", async () => {
    const { id, address } = await world.account();
    await world.chain.transfer(address, 21_000_000n);
    await settle();
    const [topup] = await world.sql<{ id: bigint; transactionId: bigint }[]>`
      select id, transaction_id as "transactionId" from topups where account_id = ${id}`;
    const reversed = { accountId: id, micros: -21_000_000n, side: "cash_onchain" } as const;
    const first = await takeBack(world.sql, { ...reversed, transactionId: topup!.transactionId });
    const own = await page("console", await asHolder(id));
    expect(own).toMatch(/21\.00<\/td>[^]*>reversed<[^]*taken back from your balance/);
    expect(own).not.toContain(">credited<");
    expect(await atOps("/deposits", { account: String(id) })).toMatch(/>credited<[^]*>reversed</);

    const second = await takeBack(world.sql, { ...reversed, micros: 21_000_000n, transactionId: first });
    const restored = await page("console", await asHolder(id));
    expect(restored).toContain(">credited<");
    expect(restored).not.toContain(">reversed<");
    expect(await atOps("/deposits", { account: String(id) })).not.toContain(">reversed<");
    const reversedAt = async () => (await findTopup(world.sql, id, topup!.id))?.reversedAt;
    expect(await reversedAt()).toBeNull();
    await takeBack(world.sql, { ...reversed, transactionId: second });
    expect(await page("console", await asHolder(id))).toContain(">reversed<");
    expect(await reversedAt()).toBeInstanceOf(Date);
  });

  it("show no address if the key is another one, and are missing if USDT is not configured", async () => {
    const { id, address } = await world.account();
    expect(await asHolder(id, loadSettings({}))).toBeNull();
    const USDT_XPUB = mnemonicToAccount(OTHER_WORDS, { path: "m/44'/60'/0'" }).getHdKey().publicExtendedKey;
    const changed = loadSettings({ ...world.variables, USDT_XPUB });
    const html = await page("console", await asHolder(id, changed));
    expect(html).toContain("No address can be shown at the moment");
    expect(html).not.toContain(address);
    expect(await atOps("/deposits", {}, changed)).toContain("set the former key again");
  });

  it("show operators deposits by state and account, endpoints without their keys, and whose each address is", async () => {
    const { id, address, index } = await world.account();
    const txHash = await world.chain.transfer(address, 40_000_000n);
    await settle();
    const all = await atOps("/deposits", { account: String(id) });
    expect(all).toContain(txHash);
    expect(all).toContain("40.00");
    expect(all).toContain(new URL(world.first.url).host);
    expect(all).not.toContain("key-of-the-operator");
    expect(all).not.toContain(XPUB);
    expect(await atOps("/deposits", { account: String(id), state: "pending" })).not.toContain(txHash);
    expect(await atOps("/deposits", {}, loadSettings({}))).toContain("USDT is not offered");
    const addresses = await atOps("/deposits/addresses", index === 0 ? {} : { after: String(index - 1) });
    expect(addresses).toMatch(new RegExp(`${index}</th>[^]*${address}[^]*40\\.00`));
  });
});

it("more addresses than fit into one question are asked for in parts, and the last of them gets its deposit", async () => {
  const { sql, chain, first } = world;
  await sql`
    with made as (
      insert into accounts (email) select 'crowd-' || n || '@example.com' from generate_series(1, 1200) n returning id
    )
    insert into deposit_addresses (account_id, address_index, address, xpub_fingerprint)
    select id, 1000 + row_number() over (), '0x' || lpad(to_hex(id), 40, 'c'), xpub_fingerprint
    from made, (select xpub_fingerprint from deposit_addresses limit 1) of_ours`;
  const { id, address, index } = await world.account();
  expect(index).toBe(2201);
  await chain.transfer(address, 50_000_000n);
  await world.turn();
  first.asked.length = 0;
  expect(await settle()).toMatchObject({ credited: 1 });
  expect(await world.wallet(id)).toBe(50_000_000n);
  expect(first.asked.filter((method) => method === "eth_getLogs")).toHaveLength(3);
});
