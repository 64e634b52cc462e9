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
        problem: expect.stringMatching(new RegExp(`block from ${lowest} on .*30 days.*got ${block};`)) as string,
      });
    }
    expect(await positions()).toEqual([SETTLED, SETTLED]);
    expect(await readAgain(lowest)).toMatchObject({ ok: true });
    expect(await readAgain(lowest - 1n), "counted from where reading was before").toMatchObject({ ok: false });
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

  it("is replaced by a later one of a higher block, and reading resumes from that", async () => {
    await readAgain(SETTLED - 100_000n);
    expect(await readAgain(SETTLED - 10n)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([SETTLED - 11n, SETTLED - 11n]);
    await readAgain(SETTLED - 50_000n);
    await saveSettled(sql, usdt, 1, { from: SETTLED - 50_000n, to: SETTLED - 5n, held: [] });
    expect(await readAgain(SETTLED - 10n), "the first endpoint has passed it, and reads it once more").toMatchObject({
      ok: true,
    });
    expect(await positions()).toEqual([SETTLED - 11n, SETTLED - 11n]);
  });

  it("is replaced up to the position before the first one, so that no block is skipped", async () => {
    await saveSettled(sql, usdt, 2, { from: SETTLED + 1n, to: SETTLED + 7n, held: [] });
    await readAgain(SETTLED - 100_000n);
    await readAgain(SETTLED - 90_000n);
    expect(await readAgain(SETTLED + 8n)).toEqual({
      ok: false,
      problem: expect.stringContaining(`block up to ${SETTLED + 7n}, got ${SETTLED + 8n}`) as string,
    });
    expect(await readAgain(SETTLED + 7n)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([SETTLED, SETTLED + 6n]);
  });

  it("skips nothing if a poll that began before it ends after it", async () => {
    await readAgain(SETTLED - 100_000n);
    await saveSettled(sql, usdt, 1, { from: SETTLED + 1n, to: HEAD, held: [] });
    expect(await positions()).toEqual([SETTLED - 100_001n, SETTLED - 100_001n]);
    await readAgain(SETTLED - 10n);
    await saveSettled(sql, usdt, 1, { from: SETTLED - 100_000n, to: SETTLED - 50_000n, held: [] });
    expect(await positions()).toEqual([SETTLED - 11n, SETTLED - 11n]);
  });

  it("leads an endpoint back that was read beyond the chain, and no later one forward to there", async () => {
    await saveSettled(sql, usdt, 1, { from: SETTLED + 1n, to: 2n * HEAD, held: [] }); // while it reported blocks that there are not
    await reportHead(1, HEAD + 10n);
    expect(await readAgain(SETTLED - 10n)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([SETTLED - 11n, SETTLED - 11n]);
    expect(await readAgain(SETTLED)).toMatchObject({ ok: true });
    expect(await positions()).toEqual([SETTLED - 11n, SETTLED - 1n]);
  });
});
