import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as sums from "../../src/console/requests/sums.ts";
import { sparkline } from "../../src/frame/text/sparkline.ts";
import * as money from "../../src/money.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { houseEntry } from "../support/houses.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import { mailsTo } from "./mails.ts";
import { EVERY_METHOD } from "./samples.ts";
import { type ConsoleWorld, openConsoleWorld } from "./world.ts";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await openConsoleWorld({
    variables: EVERY_METHOD,
    before: async (sql) => {
      await applyHouses(sql, [houseEntry()]);
      await sql`update plans set day_limit = 5, burst_per_second = 1000, burst = 1000 where name = 'Starter'`;
    },
  });
});
afterAll(() => world.close());

async function textOf(client: CookieClient, path: string): Promise<string> {
  const response = await client.get(path);
  expect(response.status).toBe(200);
  const text = await response.text();
  return text
    .slice(text.indexOf("<main"))
    .replaceAll(/<svg[\s\S]*?<\/svg>/g, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ");
}

async function call(key: string, times = 1, path = "/api/v1/games"): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    await (await fetch(world.url + path, { headers: { "x-api-key": key } })).arrayBuffer();
  }
}

describe("the dashboard", () => {
  it("warns from 80 % of a limit, is red at 100 %, and shows refused calls by reason within seconds", async () => {
    const ulf = await world.as("ulf");
    await world.givePlan(ulf.accountId, "Starter", 30);
    const { key } = await world.giveKey(ulf.accountId, "server");
    await call(key, 1, "/api/v1/games?nonsense=1");
    await call(key, 3);
    expect(await textOf(ulf, "/console")).not.toContain("Calls today: ");
    await call(key);
    const near = await textOf(ulf, "/console");
    expect(near).toMatch(/Calls today: 80 % used\. 4 of 5\. At 100 %, calls are refused with day_quota_exceeded/);
    await call(key, 3);
    const full = await (await ulf.get("/console")).text();
    expect(full).toMatch(/class="banner bad"[^>]*>\s*<p><strong>Calls today: all used\./);
    expect(full).toContain("Upgrade plan");
    await eventually(async () =>
      expect(await textOf(ulf, "/console")).toMatch(
        /day_quota_exceeded 429 .*? 2 \d+ (?:s|min) ago unknown_parameter 400/,
      ),
    );
  });

  it("advises to renew or upgrade only what can be bought", async () => {
    const uli = await world.as("uli");
    await world.givePlan(uli.accountId, "Starter", 3);
    const { key } = await world.giveKey(uli.accountId, "server");
    await call(key, 5);
    const bought = await textOf(uli, "/console");
    expect(bought).toContain("A larger plan takes effect immediately. Upgrade plan");
    expect(bought).toContain("Nothing renews by itself. Renew plan");
    await world.sql`update plans set on_sale = false`;
    const offSale = await textOf(uli, "/console");
    await world.sql`update plans set on_sale = true`;
    expect(offSale).not.toMatch(/larger plan|Upgrade plan|Renew plan/);
    expect(offSale).toContain("You cannot buy a plan now; ask the operator of this service.");
    await world.sql`update plans set on_sale = false where name = 'Starter'`;
    const replaced = await textOf(uli, "/console");
    await world.sql`update plans set on_sale = true`;
    expect(replaced).toContain("Starter is no longer on sale, so it cannot be renewed. See plans");
    await world.sql`update entitlements set ends_at = null where account_id = ${uli.accountId}`;
    const endless = await textOf(uli, "/console");
    expect(endless).toContain("Calls today: all used.");
    expect(endless).not.toMatch(/larger plan|Upgrade plan/);
  });

  it("advises a plan that takes effect immediately, not the next one of the list", async () => {
    const ulm = await world.as("ulm");
    await world.givePlan(ulm.accountId, "Starter", 20);
    const { key } = await world.giveKey(ulm.accountId, "server");
    await call(key, 5);
    await world.sql`update plans set position = 1 where name <> 'Starter'`;
    const equal = await textOf(ulm, "/console");
    await world.sql`update plans set position = case name when 'Pro' then 2 else 3 end where name <> 'Starter'`;
    expect(equal).toContain("Calls today: all used.");
    expect(equal).not.toMatch(/larger plan|Upgrade plan/);
    expect(await textOf(ulm, "/console")).toContain("A larger plan takes effect immediately. Upgrade plan");
  });

  it("advises nobody to renew or buy who was granted a later plan without an end", async () => {
    const ugo = await world.as("ugo");
    await world.givePlan(ugo.accountId, "Starter", 3);
    await world.sql`
      insert into entitlements (account_id, plan, starts_at, ends_at)
      select account_id, 'Starter', ends_at, ends_at + interval '1 day' from entitlements where account_id = ${ugo.accountId}`;
    await world.sql`
      insert into entitlements (account_id, plan, starts_at)
      select account_id, 'Pro', max(ends_at) from entitlements where account_id = ${ugo.accountId} group by account_id`;
    const { key } = await world.giveKey(ugo.accountId, "server");
    await call(key, 5);
    const followed = await textOf(ugo, "/console");
    expect(followed).toContain("Calls today: all used.");
    expect(followed).toContain("left, then Pro");
    expect(followed).not.toMatch(/Renew plan|Upgrade plan|Buy plan|ends at/);
    await world.sql`delete from entitlements where account_id = ${ugo.accountId} and plan = 'Starter' and starts_at > now()`;
    await world.sql`
      update entitlements set starts_at = starts_at - interval '9 days', ends_at = ends_at - interval '9 days'
      where account_id = ${ugo.accountId} and plan = 'Starter'`;
    const between = await textOf(ugo, "/console");
    expect(between).toMatch(/Your plan Starter ended at .* refused with plan_expired \(402\) until Pro begins, at \d/);
    expect(between).not.toMatch(/Renew plan|Upgrade plan|Buy plan/);
  });

  it("warns of the end of a plan when its reminder is sent: of a short one not from its first day", async () => {
    const ute = await world.as("ulrich"); // bank transfers are offered
    const lasting = async (days: number, left: number) => {
      await world.sql`delete from entitlements where account_id = ${ute.accountId}`;
      await world.sql`
        insert into entitlements (account_id, plan, starts_at, ends_at)
        values (
          ${ute.accountId}, 'Pro', now() - ${days - left}::float8 * interval '1 day', now() + ${left}::float8 * interval '1 day'
        )`;
      return (await textOf(ute, "/console")).includes("Your plan Pro ends at");
    };
    expect(await lasting(14, 13.9)).toBe(false);
    expect(await lasting(14, 3.1)).toBe(false);
    expect(await lasting(14, 2.9)).toBe(true);
    expect(await lasting(30, 10.1)).toBe(false);
    expect(await lasting(30, 9.9)).toBe(true);
    expect(await lasting(3, 1)).toBe(false);
  });

  it("states the ceiling of a plan without a daily limit, and that it refused calls today", async () => {
    const udo = await world.as("udo");
    await world.givePlan(udo.accountId, "Max", 30);
    const { key } = await world.giveKey(udo.accountId, "server");
    await call(key);
    const before = await textOf(udo, "/console");
    expect(before).toContain("no fixed number");
    expect(before).toContain("A technical ceiling per day, far above fair use");
    expect(before).not.toContain("without a limit");
    expect(before).not.toContain("the technical ceiling was reached");
    await world.sql`update plans set day_ceiling = 1 where name = 'Max'`;
    await eventually(async () => {
      await call(key);
      return expect(await textOf(udo, "/console")).toMatch(
        /Calls today: the technical ceiling was reached\. .* refused with service_ceiling_reached \(429\) until \d[^]*service_ceiling_reached 429/,
      );
    });
    await world.sql`update plans set day_ceiling = 1000000 where name = 'Max'`;
    expect(await textOf(udo, "/console")).not.toContain("the technical ceiling was reached");
    await world.sql`update plans set day_ceiling = null where name = 'Max'`;
    const [dashboard, plans] = [await textOf(udo, "/console"), await textOf(udo, "/console/plans")];
    await world.sql`update plans set day_ceiling = 1000000 where name = 'Max'`;
    for (const text of [dashboard, plans]) expect(text).not.toContain("A technical ceiling");
    expect(await textOf(udo, "/console/plans")).toContain("A technical ceiling, far above fair use");
  });

  it("shows the last use of a key within seconds, and top-ups that are pending", async () => {
    const ute = await world.as("ute");
    await world.givePlan(ute.accountId, "Pro", 30);
    const { key } = await world.giveKey(ute.accountId, "server");
    expect(await textOf(ute, "/console")).toContain("active never");
    await call(key);
    await eventually(async () => /active \d+ (?:s|min) ago/.test(await textOf(ute, "/console")));
    expect(await textOf(ute, "/console")).not.toContain("Pending top-ups");
    await ute.post("/console/top-up/bank", { amount: "100.00", currency: "USD" });
    const text = await textOf(ute, "/console");
    expect(text).toContain("1 top-up pending");
    expect(text).toMatch(/Pending top-ups .* Bank transfer 100\.00 USD pending/);
  });

  it("disables mails about used calls and enables them again", async () => {
    const uwe = await world.as("uwe");
    const isOn = async () => (await (await uwe.get("/console/account")).text()).includes('value="yes" checked');
    expect(await isOn()).toBe(true);
    expect((await uwe.post("/console/account/mails")).status).toBe(303);
    expect(await isOn()).toBe(false);
    await uwe.post("/console/account/mails", { quota_mails: "yes" });
    expect(await isOn()).toBe(true);
  });

  const mailEntries = async ({ accountId }: { accountId: bigint }) =>
    world.sql`select after from audit_log where actor = ${`account ${accountId}`} and action = 'account.mails'`;

  it("writes nothing if mails about used calls are on or off already, and says so", async () => {
    const ulla = await world.as("ulla");
    await ulla.post("/console/account/mails", { quota_mails: "yes" });
    expect(await textOf(ulla, "/console/account")).toContain("Mails about used calls were on before.");
    expect(await mailEntries(ulla)).toEqual([]);
    await ulla.post("/console/account/mails");
    expect(await textOf(ulla, "/console/account")).toContain("Mails about used calls are off.");
    await ulla.post("/console/account/mails");
    expect(await textOf(ulla, "/console/account")).toContain("Mails about used calls were off before.");
    expect(await mailEntries(ulla)).toEqual([{ after: { quota_mails: false } }]);
  });

  it("refuses the 21st change of the mails about used calls within a day, so that no account fills the audit log", async () => {
    const [uli, other] = [await world.as("uli"), await world.as("ulrike")];
    for (let n = 0; n < 20; n += 1) {
      const sent = await uli.post("/console/account/mails", n % 2 === 0 ? {} : { quota_mails: "yes" });
      expect(sent.status).toBe(303);
    }
    const refused = await uli.post("/console/account/mails");
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain("The mails were changed 20 times within a day, the most there may be");
    expect(await mailEntries(uli)).toHaveLength(20);
    expect(await (await uli.get("/console/account")).text()).toContain('value="yes" checked');
    expect((await uli.post("/console/account/mails", { quota_mails: "yes" })).status).toBe(303); // nothing to change
    expect((await other.post("/console/account/mails")).status).toBe(303);
  });
});

describe("requests", () => {
  it("are plotted as successful only if they returned 200", async () => {
    const [vic, other] = [await world.as("val"), await world.as("vito")];
    for (const { accountId } of [vic, other]) await world.givePlan(accountId, "Pro", 30);
    const [{ key }, { key: first }] = [
      await world.giveKey(vic.accountId, "one"),
      await world.giveKey(other.accountId, "one"),
    ];
    const of = (used: string, headers: Record<string, string> = {}) =>
      fetch(`${world.url}/api/v1/games`, { headers: { "x-api-key": used, ...headers } });
    const etag = (await of(first)).headers.get("etag") ?? "";
    expect((await of(key, { "if-none-match": etag })).status).toBe(304);
    const lineOn = async (client: CookieClient, shown: string) => {
      await eventually(async () => (await textOf(client, "/console/requests")).includes(shown));
      const page = await (await client.get("/console/requests")).text();
      return /aria-label="successful .*?class="line" d="([^"]*)"/s.exec(page)?.[1];
    };
    const none = sparkline(Array.from({ length: 60 }, () => 0)).line;
    expect(await lineOn(vic, "Not modified (304) 1 ")).toBe(none);
    expect(await lineOn(other, "Successful (200) 1 ")).not.toBe(none);
  });

  it("are counted by status, endpoint, key and minute, can be filtered, and are shown to no other account", async () => {
    const [vic, other] = [await world.as("vic"), await world.as("vera")];
    await world.givePlan(vic.accountId, "Pro", 30);
    const [one, two] = [await world.giveKey(vic.accountId, "one"), await world.giveKey(vic.accountId, "two")];
    await call(one.key, 3);
    await call(two.key, 2, "/api/v1/rounds");
    await call(two.key, 1, "/api/v1/rounds?limit=0");
    const page = await eventually(async () => {
      const text = await textOf(vic, "/console/requests");
      return text.includes("invalid_parameter") && text.includes("Successful (200) 5") ? text : false;
    });
    expect(page).toMatch(/Refused \(4xx, 5xx\) 1 free/);
    expect(page).toMatch(new RegExp(`invalid_parameter 400 rounds two \\(…${two.key.slice(-4)}\\) 1 `));
    expect(page).toMatch(/requests by status|ok 200 5 /);
    expect(page).toMatch(/By endpoint .*games 3 .*rounds 3 /);
    const filtered = await textOf(vic, `/console/requests?key=${one.id}&minutes=15`);
    expect(filtered).toContain("Successful (200) 3");
    expect(filtered).not.toContain("invalid_parameter 400");
    expect(await textOf(other, "/console/requests?minutes=1440")).toContain("No requests in the last 24 hours");
    expect(await textOf(other, `/console/requests?key=${one.id}`)).toContain("No requests in the last hour");
    expect((await vic.get("/console/requests?minutes=7")).status).toBe(400);
  });
});

describe("mails", () => {
  it("are written when a key is created, rotated and revoked, without the key", async () => {
    const wim = await world.as("wim");
    const made = await (await wim.post("/console/keys", { name: "server" })).text();
    const key = /value="(rh_live_\w+)"/.exec(made)?.[1] ?? "";
    const ids = async () =>
      (await world.sql<{ id: bigint }[]>`select id from keys where account_id = ${wim.accountId} order by id`).map(
        ({ id }) => id,
      );
    const [first] = await ids();
    await wim.post(`/console/keys/${first}/rotate`, { overlap: "1h" });
    const [, second] = await ids();
    await wim.post(`/console/keys/${second}/revoke`);
    await wim.post(`/console/keys/${second}/revoke`); // twice is once
    const mails = await mailsTo(world.sql, wim.email);
    expect(mails.map(({ subject }) => subject)).toEqual([
      "A key was created: server",
      "A key was rotated: server",
      "A key was revoked: server 2",
    ]);
    for (const { body } of mails) {
      expect(body).toContain(`${world.url}/console/keys`);
      expect(body).not.toContain(key);
    }
    expect(mails[0]!.body).toContain(`ends in ${key.slice(-4)}`);
  });

  it("repeat the target of a bank transfer: IBAN, reference and amount", async () => {
    const wes = await world.as("wes");
    await wes.post("/console/top-up/bank", { amount: "1250.5", currency: "USD" });
    const [topup] = await world.sql<[{ reference: string }]>`
      select reference from topups where account_id = ${wes.accountId}`;
    const [mail] = await mailsTo(world.sql, wes.email);
    expect(mail!.body).toContain("Amount: 1250.50 USD");
    expect(mail!.body).toContain(`Reference: ${topup.reference}`);
    expect(mail!.body.replaceAll(" ", "")).toContain("IBAN:DE89370400440532013000");
  });
});

describe("payment methods", () => {
  it("are listed the fastest first", async () => {
    const text = await textOf(await world.as("xia"), "/console/top-up");
    const places = ["Top up by Binance Pay", "Top up by USDT on-chain", "Top up by bank transfer"].map((name) =>
      text.indexOf(name),
    );
    expect(places.every((place) => place > 0)).toBe(true);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });
});

/** Deposits of an account on a chain that is configured or not: all of one state. */
async function addDeposits(accountId: bigint, { n, micros, state }: { n: number; micros: bigint; state: string }) {
  await world.sql`
    insert into deposit_addresses (account_id, address_index, address, xpub_fingerprint)
    values (${accountId}, ${1_000 + Number(accountId)}, ${`0x${String(accountId).padStart(40, "0")}`}, 'f')
    on conflict do nothing`;
  const hashes = Array.from({ length: n }, () => `0x${randomBytes(32).toString("hex")}`);
  await world.sql`
    insert into chain_deposits (
      chain_id, tx_hash, position, account_id, token, sender, units, micros, rest_units, block_number, block_hash,
      log_index, state
    )
    select 1, hash, 0, ${accountId}, 't', ${`0x${"5e".repeat(20)}`}, 1, ${micros}, 0, 1, hash, 0, ${state}
    from unnest(${hashes}::text[]) as hash`;
}

describe("money that is pending", () => {
  it("is listed with what becomes of it before an account is closed", async () => {
    const yan = await world.as("yan");
    const none = await textOf(yan, "/console/account");
    expect(none).toContain("no balance is lost, since there is none");
    await yan.post("/console/top-up/bank", { amount: "100.00", currency: "USD" });
    await yan.post("/console/top-up/binance-pay", { amount: "25" });
    await addDeposits(yan.accountId, { n: 2, micros: 6_000_000n, state: "pending" });
    await addDeposits(yan.accountId, { n: 1, micros: 500_001n, state: "below_min" });
    await addDeposits(yan.accountId, { n: 1, micros: 9_000_000n, state: "orphaned" });
    const text = await textOf(yan, "/console/account");
    expect(text).not.toContain("no balance is lost");
    expect(text).toMatch(
      /your bank transfer RF[\w ]+ of 100\.00 USD is not credited any more: money that arrives is held until our staff return it/,
    );
    expect(text).toMatch(/your Binance Pay order \w+ of 25\.00 USD: what is paid for it is lost/);
    expect(text).toContain("2 USDT deposits of 12.00 USDT together, which are not credited yet, are lost");
    expect(text).toContain("1 USDT deposit of 0.500001 USDT, which is below the minimum, is lost");
    expect(text).not.toContain("9.00 USDT");
  });

  it("is counted on the dashboard beyond the ten that are listed", async () => {
    const yui = await world.as("yui");
    await addTopups(yui.accountId, 12, "bank");
    expect(await textOf(yui, "/console")).toContain("12 top-ups pending");
  });

  it("of one method is listed whatever there is of others, with a note if there is more", async () => {
    const zoe = await world.as("zoe");
    await addTopups(zoe.accountId, 1, "binance-pay");
    await addTopups(zoe.accountId, 50, "bank");
    const one = await (await zoe.get("/console/top-up/binance-pay")).text();
    expect(one.match(/<th scope="row">/g)).toHaveLength(1);
    expect(one).not.toContain("The newest 50.");
    await addTopups(zoe.accountId, 50, "binance-pay");
    const many = await (await zoe.get("/console/top-up/binance-pay")).text();
    expect(many.match(/<th scope="row">/g)).toHaveLength(50);
    expect(many).toContain('The newest 50. <a href="/console/statement">The statement</a> has every credit.');
    await addDeposits(zoe.accountId, { n: 50, micros: 6_000_000n, state: "pending" });
    expect(await textOf(zoe, "/console/top-up/usdt")).not.toContain("The newest 50.");
    await addDeposits(zoe.accountId, { n: 1, micros: 6_000_000n, state: "pending" });
    expect(await textOf(zoe, "/console/top-up/usdt")).toContain("The newest 50. The statement has every credit.");
  });
});

async function addTopups(accountId: bigint, n: number, method: string): Promise<void> {
  await world.sql`
    insert into topups (account_id, method, reference)
    select ${accountId}, ${method}, ${`TEST ${accountId} ${method}`} || ' ' || gen_random_uuid()
    from generate_series(1, ${n})`;
}

it("functions have examples that hold", () => {
  for (const [file, scope] of [
    ["src/console/requests/sums.ts", { ...sums }],
    ["src/money.ts", { ...money }],
  ] as const) {
    const claims = listExamples(file).flatMap((example) => runExample(example, scope));
    expect(claims.length).toBeGreaterThan(0);
    for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
  }
});
