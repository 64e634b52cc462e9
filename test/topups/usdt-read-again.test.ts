import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/environment.ts";
import { usdtOf } from "../../src/config/usdt.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import type { OpsParts, Visitor } from "../../src/ops/contract.ts";
import { readDepositsAgainAction } from "../../src/ops/deposits/deposits.ts";
import { listEndpoints, saveEndpoints, saveHead, saveSettled } from "../../src/topups/usdt/endpoints/endpoint-store.ts";
import { XPUB } from "../support/chain.ts";
import { createDatabase } from "../support/database.ts";

const settings = loadSettings({ USDT_XPUB: XPUB, USDT_RPC_URLS: "https://one.example,https://two.example" });
const usdt = usdtOf(settings)!;
const HEAD = 20_000_000n;
/** Where reading is before any request. */
const SETTLED = HEAD - BigInt(usdt.chain.rescan);
/** 30 days of Ethereum, with a block every twelve seconds. */
const MOST_BLOCKS = 216_000n;

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
let opsSql: Sql;
beforeAll(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test", max: 2 });
  opsSql = connect(withRole(database.url, ROLES.ops), { name: "ops", max: 2 });
});
afterAll(async () => {
  await Promise.all([sql.end(), opsSql.end()]);
  await database.drop();
});
beforeEach(async () => {
  await sql`delete from chain_endpoints`;
  await saveEndpoints(
    sql,
    usdt,
    [1, 2].map((place) => ({ place, host: `${place}.example` })),
  );
  await Promise.all([1, 2].map((place) => reportHead(place, HEAD)));
});

async function reportHead(place: number, number: bigint) {
  await saveHead(sql, usdt, { place }, { number, at: new Date(), finalized: null });
}

const positions = async () => (await listEndpoints(sql, usdt)).map(({ settledTo }) => settledTo);

/** Sends the form of the page with the rights of the ops pages. */
async function readAgain(block: bigint) {
  const visitor = { email: "op@example.com", role: "operator", address: "127.0.0.1", requestId: "r-1" } as Visitor;
  const sent = { visitor, params: {}, form: readDepositsAgainAction.form.parse({ block: String(block) }) };
  return readDepositsAgainAction.run({ sql: opsSql, settings } as OpsParts, sent);
}

describe("the request of an operator to read blocks again", () => {
  it("moves every endpoint back to before the block, and is in the audit log", async () => {
    expect(await readAgain(SETTLED - 9n)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([SETTLED - 10n, SETTLED - 10n]);
    expect(await sql`select after from audit_log where action = 'deposits.read-again'`).toMatchObject([
      { after: { block: String(SETTLED - 9n), endpoints: 2 } },
    ]);
  });

  it("is refused for a block that is more than 30 days back, with the lowest that is allowed", async () => {
    const lowest = SETTLED - MOST_BLOCKS;
    for (const block of [0n, SETTLED / 10n, lowest - 1n]) {
      expect(await readAgain(block)).toEqual({
        ok: false,
        problem: expect.stringMatching(
          new RegExp(`block from ${lowest} on .*30 days.*got ${block};.*only if neither it`),
        ) as string,
      });
    }
    expect(await positions()).toEqual([SETTLED, SETTLED]);
    expect(await readAgain(lowest)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([lowest - 1n, lowest - 1n]);
  });

  it("is refused for a block that was not read yet, with the highest that is allowed", async () => {
    for (const block of [SETTLED + 1n, SETTLED + 2n, HEAD]) {
      expect(await readAgain(block)).toEqual({
        ok: false,
        problem: expect.stringContaining(`block up to ${SETTLED}, got ${block}`) as string,
      });
    }
    expect(await positions()).toEqual([SETTLED, SETTLED]);
  });

  it("never moves an endpoint forward, so that a later request cancels no earlier one", async () => {
    await saveSettled(sql, usdt, 2, { from: SETTLED + 1n, to: SETTLED + 7n, held: [] });
    await readAgain(SETTLED - 100_000n);
    expect(await readAgain(SETTLED - 10n)).toEqual({
      ok: false,
      problem: expect.stringContaining("has not been read yet") as string,
    });
    expect(await positions()).toEqual([SETTLED - 100_001n, SETTLED - 100_001n]);
    expect(await readAgain(SETTLED - 100_010n)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([SETTLED - 100_011n, SETTLED - 100_011n]);
  });

  it("moves only the endpoints that were read up to the block", async () => {
    await saveSettled(sql, usdt, 2, { from: SETTLED + 1n, to: SETTLED + 7n, held: [] });
    expect(await readAgain(SETTLED + 5n)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([SETTLED, SETTLED + 4n]);
  });

  it("keeps the held blocks of an endpoint", async () => {
    await saveSettled(sql, usdt, 1, { from: SETTLED + 1n, to: SETTLED + 7n, held: [SETTLED + 2n] });
    await readAgain(SETTLED - 10n);
    expect((await listEndpoints(sql, usdt))[0]).toMatchObject({ heldBlocks: [SETTLED + 2n] });
  });

  it("skips nothing if a poll that began before it ends after it", async () => {
    await readAgain(SETTLED - 100_000n);
    await saveSettled(sql, usdt, 1, { from: SETTLED + 1n, to: HEAD, held: [] });
    expect(await positions()).toEqual([SETTLED - 100_001n, SETTLED - 100_001n]);
  });

  it("is bounded by the lowest endpoint, so that a false newest block of one refuses no real block", async () => {
    await reportHead(1, 100n * HEAD);
    await saveSettled(sql, usdt, 1, { from: SETTLED + 1n, to: 99n * HEAD, held: [] });
    expect(await readAgain(SETTLED - 10n)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([SETTLED - 11n, SETTLED - 11n]);
  });
});

it("an endpoint counts as polled also while its position stays", async () => {
  await sql`update chain_endpoints set looked_at = looked_at - interval '1 hour'`;
  await saveSettled(sql, usdt, 1, { from: SETTLED + 1n, to: SETTLED, held: [] });
  const [first] = await listEndpoints(sql, usdt);
  expect(Date.now() - first!.lookedAt.getTime()).toBeLessThan(60_000);
  expect(first!.settledTo).toBe(SETTLED);
});

it("an endpoint that is read for the first time also reads the held blocks of the other", async () => {
  await saveSettled(sql, usdt, 1, { from: SETTLED + 1n, to: SETTLED + 7n, held: [SETTLED + 2n] });
  await sql`delete from chain_endpoints where place = 2`;
  await saveEndpoints(sql, usdt, [{ place: 2, host: "2.example" }]);
  await reportHead(2, HEAD);
  expect((await listEndpoints(sql, usdt))[1]).toMatchObject({ settledTo: SETTLED + 7n, heldBlocks: [SETTLED + 2n] });
});
