import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeRows } from "../../src/accounts/holders/close-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { checkLedger } from "../../src/ledger/check.ts";
import { walletMicros } from "../../src/ledger/store.ts";
import { isDemoInstance } from "../../src/topups/demo/method.ts";
import { mailsTo } from "../console/mails.ts";
import { type ConsoleWorld, openConsoleWorld } from "../console/world.ts";
import { EVERY_METHOD } from "../console/samples.ts";
import { houseEntry } from "../support/houses.ts";
import { lockWaits } from "../support/lock-waits.ts";

const demo = houseEntry({ demo: true });
const real = houseEntry({ id: "real" });
const off = houseEntry({ id: "off", enabled: false });
const local = { HOST: "127.0.0.1", PUBLIC_URL: undefined, TRUSTED_PROXIES: [] };

describe("an instance", () => {
  it.each([
    ["on loopback with demo houses", local, [demo], true],
    ["on loopback with demo houses and one that is not polled", local, [demo, off], true],
    ["on ::1", { ...local, HOST: "::1" }, [demo], true],
    ["with a public URL on loopback", { ...local, PUBLIC_URL: "http://localhost:3000" }, [demo], true],
    ["that others reach", { ...local, HOST: "0.0.0.0" }, [demo], false],
    ["with a public URL", { ...local, PUBLIC_URL: "https://example.com" }, [demo], false],
    ["behind a proxy", { ...local, TRUSTED_PROXIES: ["127.0.0.1"] }, [demo], false],
    ["with one real house", local, [demo, real], false],
    ["without a house", local, [], false],
    ["without a house that is polled", local, [off], false],
  ])("%s", (_, settings, houses, isDemo) => expect(isDemoInstance(settings, houses)).toBe(isDemo));
});

describe("the demo payment", () => {
  let world: ConsoleWorld;
  beforeAll(async () => {
    world = await openConsoleWorld({
      isDemo: true,
      before: async (sql) => void (await applyHouses(sql, [houseEntry({ demo: true })])),
    });
  });
  afterAll(() => world.close());

  const referenceIn = (text: string) => /name="reference" value="(DEMO-\d{12})"/.exec(text)?.[1] ?? "";
  async function openForm(holder: Awaited<ReturnType<ConsoleWorld["as"]>>): Promise<string> {
    return referenceIn(await (await holder.get("/console/top-up")).text());
  }

  it("credits the balance by the steps of any top-up, once for a form that is sent twice, and states that it is no money", async () => {
    const dan = await world.as("dan");
    const reference = await openForm(dan);
    const sent = () => dan.post("/console/top-up/demo", { amount: "120.50", reference });
    const first = await sent();
    expect([first.status, first.headers.get("location")]).toEqual([303, "/console/plans"]);
    expect((await sent()).status).toBe(303);
    expect(await walletMicros(world.sql, dan.accountId)).toBe(120_500_000n);
    const [row] = await world.sql`
      select t.kind, a.kind as cash, e.amount, u.state, u.method
      from topups u
      join ledger_transactions t on t.id = u.transaction_id
      join ledger_entries e on e.transaction_id = t.id
      join ledger_accounts a on a.id = e.account_id and a.kind <> 'wallet'
      where u.account_id = ${dan.accountId}`;
    expect(row).toEqual({ kind: "topup", cash: "cash_demo", amount: -120_500_000n, state: "credited", method: "demo" });
    expect((await checkLedger(world.sql)).differences).toEqual([]);
    const [mail] = await mailsTo(world.sql, dan.email);
    expect(mail!.body).toContain("not real money");
    expect(await (await dan.get("/console/statement")).text()).toContain("Top-up by demo payment");
    const audits = await world.sql`
      select from audit_log where action = 'topup.demo' and target = ${`account ${dan.accountId}`}`;
    expect(audits).toHaveLength(1);
  });

  it.each(["0.99", "10000.01", "-5", "1e3", "", "ten"])("refuses %j", async (amount) => {
    const dora = await world.as("dora");
    const response = await dora.post("/console/top-up/demo", { amount, reference: await openForm(dora) });
    expect(response.status).toBe(422);
    expect(await walletMicros(world.sql, dora.accountId)).toBe(0n);
  });

  it("is refused if the account is closed meanwhile", async () => {
    const doug = await world.as("doug");
    const reference = await openForm(doug);
    const { sent } = await world.sql.begin(async (tx) => {
      await closeRows(tx, doug.accountId);
      const sending = doug.post("/console/top-up/demo", { amount: "5", reference });
      await lockWaits(world.sql, 1);
      return { sent: sending };
    });
    expect((await sent).status).toBe(403);
    expect(await walletMicros(world.sql, doug.accountId)).toBe(0n);
  });

  it("is refused once the database has a house that is not a demo", async () => {
    const dave = await world.as("dave");
    const reference = await openForm(dave);
    await applyHouses(world.sql, [houseEntry({ demo: true }), houseEntry({ id: "real" })]);
    expect((await dave.post("/console/top-up/demo", { amount: "5", reference })).status).toBe(404);
    expect(await walletMicros(world.sql, dave.accountId)).toBe(0n);
  });
});

describe("without a demo instance", () => {
  it("there is no demo payment, whatever is configured", async () => {
    const world = await openConsoleWorld({
      variables: EVERY_METHOD,
      before: async (sql) => void (await applyHouses(sql, [houseEntry({ demo: true })])),
    });
    try {
      const eve = await world.as("eve");
      expect((await (await eve.get("/console/top-up")).text()).toLowerCase()).not.toContain("demo");
      expect((await eve.get("/console/top-up/demo")).status).toBe(404);
      const sent = await eve.post("/console/top-up/demo", { amount: "5.00", reference: "DEMO-123456789012" });
      expect(sent.status).toBe(404);
      expect(await walletMicros(world.sql, eve.accountId)).toBe(0n);
    } finally {
      await world.close();
    }
  });
});
