import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/environment.ts";
import { usdtOf } from "../../src/config/usdt.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { ROLES } from "../../src/db/roles/role-grants.ts";
import { withRole } from "../../src/db/roles/take-role.ts";
import type { OpsParts, Visitor } from "../../src/ops/contract.ts";
import { readDepositsAgainAction } from "../../src/ops/deposits/deposits.ts";
import { listEndpoints, saveEndpoints, saveHead } from "../../src/topups/usdt/endpoints/endpoint-store.ts";
import { XPUB } from "../support/chain.ts";
import { createDatabase } from "../support/database.ts";

const settings = loadSettings({ USDT_XPUB: XPUB, USDT_RPC_URLS: "https://one.example,https://two.example" });
const usdt = usdtOf(settings)!;
const HEAD = 20_000_000n;
/** Where reading is before any request. */
const SETTLED = HEAD - BigInt(usdt.chain.rescan);

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
});
