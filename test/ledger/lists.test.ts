import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { statementFile, statementPages } from "../../src/console/statement/statement.ts";
import { renderPage } from "../../src/frame/render.ts";
import { post, walletMicros, type Posting } from "../../src/ledger/store.ts";
import * as words from "../../src/ledger/statement-text.ts";
import { roundhouse } from "../cli/world.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "../ops/world.ts";
import { withoutDocuments } from "../support/fund.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { placement, purchase, suspense, topup } from "./world.ts";

let world: OpsWorld;
let admin: CookieClient;
let operator: CookieClient;
let viewer: CookieClient;
let owner: bigint;
let other: bigint;
let guardAgain: () => Promise<void>;

beforeAll(async () => {
  world = await openOpsWorld();
  guardAgain = await withoutDocuments(world.sql);
  [admin, operator, viewer] = [await world.as("admin"), await world.as("operator"), await world.as("viewer")];
  await world.sql`update auth.users set two_factor_enabled = true where email in ('admin@example.com', 'operator@example.com')`;
  [owner, other] = [await account("ana@example.com"), await account("ben@example.com")];
});
afterAll(async () => {
  await guardAgain();
  await world.close();
});

async function account(email: string): Promise<bigint> {
  const [row] = await world.sql<{ id: bigint }[]>`insert into accounts (email) values (${email}) returning id`;
  return row?.id ?? 0n;
}
async function booked(posting: Posting): Promise<bigint> {
  const posted = await world.sql.begin((tx) => post(tx, posting));
  if (!posted.ok) throw new Error(posted.message);
  return posted.transactionId;
}
const text = async (response: Response) => (await response.text()).replaceAll(/\s+/g, " ");
const page = async (path: string, as: CookieClient = viewer) => {
  const response = await as.get(path);
  const body = await text(response);
  expect([path, response.status]).toEqual([path, 200]);
  expect(body).not.toMatch(/undefined|NaN|\[object/);
  return body;
};
const propose = (id: bigint, as: CookieClient, reason = "credited twice by the bank") =>
  as.post(`/ops/ledger/transactions/${id}/reversal`, { reason });
const proposalOf = async (id: bigint) => {
  const [row] = await world.sql<{ id: bigint; state: string }[]>`
    select id, state from reversal_proposals where transaction_id = ${id} order by id desc limit 1`;
  return row;
};
const decide = async (id: bigint, as: CookieClient, how: "approve" | "decline") =>
  as.post(`/ops/ledger/proposals/${(await proposalOf(id))?.id}/${how}`, { reason: "looked at the bank's line" });

describe("/ops/ledger", () => {
  it("shows what each side holds, that all of it is 0, and what moved last", async () => {
    await booked(topup(owner, 120_500_000n, "bank:one"));
    const bought = await booked(purchase(owner, 99_000_000n, "bought"));
    await booked(suspense(1_000_000n, "bank:unknown"));
    const body = await page("/ops/ledger");
    expect(body).toMatch(/Cash: bank<\/th>.*?−121\.50/);
    expect(body).toMatch(/Wallets<\/a><\/th>.*?21\.50/);
    expect(body).toMatch(/Total .*?balanced.*?0\.00/);
    expect(body).toContain("to assign");
    expect(body).toContain(`Wallet of account ${owner} −99.00; Revenue 99.00`);
    expect(await page("/ops/ledger?kind=topup")).not.toContain(`transactions/${bought}"`);
    expect(await page(`/ops/ledger?owner=${other}`)).toContain("No transactions match");
    expect(await page(`/ops/ledger?before=${bought}`)).not.toContain(`transactions/${bought}"`);
    expect(await page("/ops/ledger/wallets")).toMatch(/ana@example\.com<\/a><\/th>.*?21\.50/);
    const one = await page(`/ops/ledger/transactions/${bought}`);
    expect(one).toContain("ana@example.com");
    expect(one).not.toContain("Propose reversal"); // a viewer only looks
    expect((await viewer.get("/ops/ledger/transactions/999999")).status).toBe(404);
  });
});

describe("a reversal", () => {
  it("takes two people: the one who proposed it is refused, by the database too", async () => {
    const id = await booked(topup(owner, 7_000_000n, "bank:twice"));
    const before = await walletMicros(world.sql, owner);
    expect((await propose(id, viewer)).status).toBe(403);
    expect((await propose(id, operator)).status).toBe(303);
    expect(await text(await propose(id, admin))).toContain(`transaction ${id} has a proposal already`);
    expect(await page("/ops/ledger")).toContain("credited twice by the bank");
    expect(await page(`/ops/ledger/transactions/${id}`, operator)).toContain("You proposed this");
    expect(await text(await decide(id, operator, "approve"))).toContain("someone else must look at it");
    await expect(
      world.sql`
        update reversal_proposals
        set state = 'approved', decided_by = proposed_by, decided_at = now(), decided_why = 'mine', reversal_id = ${id}
        where transaction_id = ${id}`,
    ).rejects.toThrow(/reversal_is_approved_by_another/);
    expect(await walletMicros(world.sql, owner)).toBe(before);

    const answers = await Promise.all([decide(id, admin, "approve"), decide(id, admin, "approve")]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 422]);
    expect(await walletMicros(world.sql, owner)).toBe(before - 7_000_000n);
    expect(await page(`/ops/ledger/transactions/${id}`)).toContain("Reversed by");
    expect(await text(await propose(id, operator))).toMatch(/was taken back by \d+ already/);
    await expect(world.sql`update reversal_proposals set reason = 'another'`).rejects.toThrow(/was decided/);
    await expect(world.sql`delete from reversal_proposals`).rejects.toThrow(/never deleted/);
    const logged = await world.sql`
      select action, actor, target, reason from audit_log where action like 'reversal.%' order by seq`;
    expect(logged).toEqual([
      {
        action: "reversal.propose",
        actor: "operator@example.com",
        target: `transaction ${id}`,
        reason: "credited twice by the bank",
      },
      {
        action: "reversal.approve",
        actor: "admin@example.com",
        target: `transaction ${id}`,
        reason: "looked at the bank's line",
      },
    ]);
  });

  it("that would overdraw a wallet is refused with the reason, and stays open until it is declined", async () => {
    const id = await booked(topup(other, 30_000_000n, "bank:spent"));
    await booked(purchase(other, 29_000_000n, "spent"));
    await propose(id, operator);
    const refused = await decide(id, admin, "approve");
    expect([refused.status, await text(refused)]).toEqual([
      422,
      expect.stringContaining(`wallet ${other} holds 1.00 USD, and 30.00 USD were to be taken from it`),
    ]);
    expect(await proposalOf(id)).toMatchObject({ state: "proposed" });
    expect((await decide(id, operator, "decline")).status).toBe(303);
    expect(await proposalOf(id)).toMatchObject({ state: "declined" });
    expect((await propose(id, operator)).status).toBe(303); // another may be made
    expect(await walletMicros(world.sql, other)).toBe(1_000_000n);
  });

  it("is not for money in suspense, nor for what is not there", async () => {
    const id = await booked(suspense(2_000_000n, "bank:whose"));
    expect(await text(await propose(id, operator))).toContain("money in suspense is placed or sent back");
    expect(await text(await propose(999_999n, operator))).toContain("there is no transaction 999999");
    expect((await operator.post("/ops/ledger/proposals/x/approve", { reason: "what for" })).status).toBe(404);
  });
});

describe("/ops/payment-app", () => {
  it("shows the payment app's response for each order, and has one requested immediately by permitted roles", async () => {
    expect(await page("/ops/payment-app")).toContain("No orders.");
    const [made] = await world.sql<{ id: bigint }[]>`
      insert into topups (account_id, method, reference, amount_micros)
      values (${owner}, 'binance-pay', 'RHONE', 5000000)
      returning id`;
    const id = made?.id ?? 0n;
    await world.sql`
      insert into payment_app_orders (
        topup_id, trade_no, amount_micros, state, prepay_id, checkout_url, expires_at, provider_status, ask_at, last_error
      )
      values (
        ${id}, 'RHONE1', 5000000, 'strange', '77', 'https://pay.example/77', now(), 'PAID', now() + interval '1 hour',
        'expected 5000000 micro-units, came 4.00'
      )`;
    const body = await page("/ops/payment-app?state=strange");
    for (const fact of ["ana@example.com", "5.00 USDT", "RHONE1", "PAID", "came 4.00"]) expect(body).toContain(fact);
    expect((await viewer.post(`/ops/payment-app/${id}/ask`)).status).toBe(403);
    expect((await operator.post(`/ops/payment-app/${id}/ask`)).status).toBe(303);
    expect(await world.sql`select 1 from payment_app_orders where ask_at <= now()`).toHaveLength(1);
    expect((await operator.post("/ops/payment-app/999/ask")).status).toBe(422);
    expect(await world.sql`select 1 from audit_log where action = 'order.ask'`).toHaveLength(1);
  });
});

describe("a statement", () => {
  const [statement] = statementPages;
  const parts = () => ({ sql: world.sql }) as Parameters<NonNullable<typeof statement>["show"]>[0];
  const holder = (accountId: bigint) =>
    ({ accountId, userId: "u", email: "", isSuspended: false, address: "", userAgent: "", requestId: "" }) as const;
  const ask = async (accountId: bigint, query: Record<string, string> = {}) => {
    const shown = await statement?.show(parts(), {
      holder: holder(accountId),
      params: {},
      query: statement.query.parse(query),
    });
    if (shown === null || shown === undefined || !("template" in shown)) throw new Error("expected a page");
    const names = { template: `console/${shown.template}`, layout: "ops/layout" };
    const frame = {
      title: shown.title,
      url: "/console/statement",
      visitor: null,
      flash: "",
      crumbs: [],
      refreshSeconds: null,
      nav: [],
      assets: { style: "", script: "" },
    };
    return renderPage(names, shown.data, frame).replaceAll(/\s+/g, " ");
  };

  it("lists everything that moved one's own balance in plain words, newest first, page after page", async () => {
    const caller = await account("cleo@example.com");
    expect(await ask(caller)).toContain("No entries yet");
    await booked({ ...topup(caller, 200_000_000n, "bank:c"), meta: { method: "bank", reference: "RF18 C" } });
    await booked(placement(caller, 1_000_000n, "placed"));
    const bought = await booked({ ...purchase(caller, 99_000_000n, "c-pro"), meta: { plan: "Pro", purchase: "buy" } });
    const newest = await ask(caller);
    expect(newest).toMatch(
      /Bought Pro.*−99\.00.*102\.00.*Top-up that was on hold.*\+1\.00.*201\.00.*Top-up by bank transfer.*RF18 C.*\+200\.00/,
    );
    const older = await ask(caller, { before: String(bought) });
    expect(older).not.toContain("Bought Pro");
    expect(older).toContain("Top-up by bank transfer");
    expect(await ask(owner)).not.toContain("RF18 C");
    for (let n = 0; n < 51; n += 1) await booked(topup(caller, 1n, `drop ${n}`));
    expect((await ask(caller)).match(/<th scope="row"/g)).toHaveLength(50);
    expect(await ask(caller)).toContain('rel="next"');
  });

  it("is a file to keep, refused rather than cut if it would be too long", async () => {
    const file = await statementFile(100).show(parts(), { holder: holder(owner), params: {}, query: {} });
    if (file === null || !("text" in file)) throw new Error("expected a file");
    const [head, first] = file.text.split("\r\n");
    expect(head).toBe("entry,time_utc,kind,what,reference,amount_usd,balance_after_usd");
    expect(first).toMatch(
      /^\d+,20..-..-.. ..:..:..Z,reversal,Correction of entry \d+: credited twice by the bank,,-7\.00,21\.50$/,
    );
    await expect(statementFile(2).show(parts(), { holder: holder(owner), params: {}, query: {} })).rejects.toThrow(
      /at most 2 entries/,
    );
    const none = await statementFile(2).show(parts(), { holder: holder(owner), params: {}, query: { year: 2001 } });
    expect(none).toMatchObject({ file: "statement-2001.csv", text: `${head}\r\n` });
  });

  it("has words that are as its examples say", () => {
    const claims = listExamples("src/ledger/statement-text.ts").flatMap((example) => runExample(example, { ...words }));
    expect(claims).toHaveLength(4);
    for (const { line, actual, expected } of claims) expect([line, actual]).toEqual([line, expected]);
  });
});

describe("roundhouse ledger check", () => {
  it("ends with 0 on a ledger that checks, and with 1 and the place on one that does not", async () => {
    const env = { DATABASE_URL: world.databaseUrl };
    const good = await roundhouse(["ledger", "check", "--json"], { env });
    expect([good.code, good.stderr]).toEqual([0, ""]);
    expect(JSON.parse(good.stdout)).toMatchObject({ ok: true, suspense: "2.00", differences: [], unlisted: 0 });
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`update ledger_accounts set balance = balance + 5 where kind = 'wallet' and owner_id = ${owner}`;
    });
    const bad = await roundhouse(["ledger", "check"], { env });
    expect(bad.code).toBe(1);
    expect(bad.stdout).toContain(`balance: wallet ${owner}`);
    expect(bad.stdout).toContain("2.00 USD in suspense must be assigned");
  });
});
