import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { suspendAccount } from "../../src/callers/account-store.ts";
import { checkKey } from "../../src/callers/key.ts";
import type { ConsolePage } from "../../src/console/contract.ts";
import * as successor from "../../src/callers/successor-name.ts";
import * as state from "../../src/console/dashboard/state.ts";
import { connect } from "../../src/db/client.ts";
import * as csv from "../../src/csv.ts";
import * as sums from "../../src/console/usage/sums.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import { forgetUsedCodes, totp } from "../ops/totp.ts";
import { openConsoleWorld, PASSWORD, type ConsoleWorld, type Holding } from "./world.ts";

let world: ConsoleWorld;
beforeAll(async () => {
  world = await openConsoleWorld({
    before: async (sql) => {
      await applyHouses(sql, [houseEntry({ tables: [tableEntry(), tableEntry({ game: "dice", market: "eu" })] })]);
    },
  });
});
afterAll(() => world.close());

const pageOf = async (client: CookieClient, path: string) => {
  const response = await client.get(path);
  expect(response.status).toBe(200);
  return response.text();
};
const call = (key: string, path = "/api/v1/games") => fetch(world.url + path, { headers: { "x-api-key": key } });
/** The text of a page, without its markup. */
const words = (text: string) =>
  text
    .slice(text.indexOf("<main"))
    .replaceAll(/<svg[\s\S]*?<\/svg>/g, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ");
/** The key that a page shows once. */
const keyIn = (text: string) => /value="(rh_live_\w+)"/.exec(text)?.[1] ?? "";

/** Keys of an account as the page lists them, by name. */
async function keysOf({
  accountId,
}: Holding): Promise<Map<string, { id: string; works: boolean; hours: number | null }>> {
  const rows = await world.sql<{ id: bigint; name: string; works: boolean; hours: number | null }[]>`
    select
      id,
      name || case when replaced_by is null then '' else ' (old)' end as name,
      revoked_at is null and (expires_at is null or expires_at > now()) as works,
      round(extract(epoch from expires_at - now()) / 3600)::integer as hours
    from keys
    where account_id = ${accountId}
    order by id`;
  return new Map(rows.map(({ name, id, ...key }) => [name, { ...key, id: String(id) }]));
}

describe("the dashboard", () => {
  it("shows a newcomer the next step, one by one, and stops once all are done", async () => {
    const nina = await world.as("nina");
    const done = async () =>
      [
        ...(await pageOf(nina, "/console")).matchAll(/<li><a href="([^"]+)">[^<]+<\/a> <span class="badge good">done/g),
      ].map(([, href]) => href);
    const first = words(await pageOf(nina, "/console"));
    expect(first).toContain("Get started Top up your balance Buy a plan from it Create a key Make your first call");
    expect(first).toContain("Plan none yet");
    expect(first).toContain("Balance 0.00 USD");
    expect(await done()).toEqual([]);
    await world.giveMoney(nina.accountId, 31_500_000n);
    expect(await done()).toEqual(["/console/top-up"]);
    await world.givePlan(nina.accountId, "Starter", 30);
    const { key } = await world.giveKey(nina.accountId, "first");
    expect(await done()).toEqual(["/console/top-up", "/console/plans", "/console/keys"]);
    expect((await call(key)).status).toBe(200);
    const last = words(await pageOf(nina, "/console"));
    expect(last).not.toContain("Get started");
    expect(last).toContain("Balance 31.50 USD");
    expect(last).toMatch(/Plan Starter 29 days( 23 hours)? left/);
    expect(last).toMatch(/Calls today 1 of [\d,]+ \(0 %\) 1 /);
    expect(last).toMatch(/Calls this month 1 of [\d,]+ \(0 %\) 1 /);
  });

  it("shows when a plan ends soon, when it is over, what follows it, and why an account is suspended", async () => {
    const ed = await world.as("ed");
    await world.givePlan(ed.accountId, "Pro", 2.5);
    await world.sql`update entitlements set starts_at = starts_at - interval '9 days' where account_id = ${ed.accountId}`;
    expect(words(await pageOf(ed, "/console"))).toMatch(/Your plan Pro ends at .* Plan Pro 2 days 1[12] hours left/);
    await world.sql`
      insert into entitlements (account_id, plan, starts_at, ends_at)
      select account_id, 'Starter', ends_at, ends_at + interval '30 days' from entitlements where account_id = ${ed.accountId}`;
    const followed = words(await pageOf(ed, "/console"));
    expect(followed).not.toContain("Your plan Pro ends");
    expect(followed).toContain("left, then Starter");
    await world.sql`
      update entitlements
      set starts_at = starts_at - interval '99 days', ends_at = ends_at - interval '99 days'
      where account_id = ${ed.accountId}`;
    const over = words(await pageOf(ed, "/console"));
    expect(over).toMatch(/Your plan Starter ended at .* Buy plan/);
    expect(over).toMatch(/Calls today 0 Resets/); // what a plan allowed that is over is no limit now
    await world.sql.begin((tx) => suspendAccount(tx, ed.accountId, { by: "test", reason: "a <reason> of ours" }));
    const suspended = await pageOf(ed, "/console");
    expect(suspended).toContain("a &lt;reason&gt; of ours");
    expect(await pageOf(ed, "/console/keys")).not.toContain('id="create"');
    expect(await pageOf(ed, "/console/first-call")).not.toContain('name="secret_key"');
  });

  it("has functions with examples that hold", () => {
    const files = [
      ["src/console/dashboard/state.ts", { ...state }],
      ["src/callers/successor-name.ts", { ...successor }],
      ["src/console/usage/sums.ts", { ...sums }],
      ["src/csv.ts", { ...csv }],
    ] as const;
    for (const [file, scope] of files) {
      const claims = listExamples(file).flatMap((example) => runExample(example, scope));
      expect(claims.length).toBeGreaterThan(0);
      for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
    }
  });
});

describe("keys", () => {
  let kim: CookieClient & Holding;
  beforeAll(async () => {
    kim = await world.as("kim");
    await world.givePlan(kim.accountId, "Pro", 20);
  });

  it("are shown once when they are made, work with the very next call, and are stored nowhere", async () => {
    world.lines.length = 0;
    const made = await kim.post("/console/keys", { name: " Server <1> " });
    expect([made.status, made.headers.get("cache-control")]).toEqual([200, "no-store"]);
    const text = await made.text();
    const key = keyIn(text);
    expect(checkKey(key)).toBe(true);
    expect(text).toContain("Server &lt;1&gt;");
    expect((await call(key)).status).toBe(200);
    const list = await pageOf(kim, "/console/keys");
    expect(list).toContain(`rh_live_…${key.slice(-4)}`);
    expect(list).not.toContain(key);
    expect(world.lines.join("")).not.toContain(key);
    const [audit] = await world.sql<{ target: string; all: string }[]>`
      select target, to_jsonb(a)::text as all from audit_log a where action = 'key.create' order by seq desc limit 1`;
    expect(audit?.target).toBe(`account ${kim.accountId}`);
    expect(audit?.all).not.toMatch(new RegExp(`${key}|example.com|Server`));
  });

  it("have unique names, so that a form that is sent twice makes one", async () => {
    const again = await kim.post("/console/keys", { name: "Server <1>" });
    expect([again.status, await again.text()]).toEqual([
      422,
      expect.stringContaining("already; give this one another name"),
    ]);
    for (const name of ["", "  ", "n".repeat(61), "a\u202Eb", "a\u200Db", "a\u2028b"]) {
      expect([name, (await kim.post("/console/keys", { name })).status]).toEqual([name, 400]);
    }
    const emoji = await kim.post("/console/keys", { name: "👩‍💻 خادم" });
    expect([emoji.status, await emoji.text()]).toEqual([200, expect.stringContaining("the key “👩‍💻 خادم” where")]);
    await kim.post(`/console/keys/${(await keysOf(kim)).get("👩‍💻 خادم")?.id}/revoke`);
    const both = await Promise.all([1, 2, 3].map(() => kim.post("/console/keys", { name: "twin" })));
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 422, 422]);
  });

  it("are five at most, also if forms are concurrent, and one may be made after another was revoked", async () => {
    const many = await Promise.all([1, 2, 3, 4, 5].map((n) => kim.post("/console/keys", { name: `more ${n}` })));
    expect(many.filter(({ status }) => status === 200)).toHaveLength(3);
    const refused = many.find(({ status }) => status === 422)!;
    expect(await refused.text()).toContain("you have 5 active keys, the most there may be; revoke one first");
    expect(await pageOf(kim, "/console/keys")).not.toContain('action="/console/keys"');
    const { id } = (await keysOf(kim)).get("twin")!;
    expect((await kim.post(`/console/keys/${id}/revoke`)).status).toBe(303);
    expect(await pageOf(kim, "/console/keys")).toContain("is revoked. Its next call is refused.");
    expect((await kim.post("/console/keys", { name: "twin" })).status).toBe(200);
  });

  it("are revoked immediately, and twice has the effect of once", async () => {
    const rae = await world.as("rae");
    await world.givePlan(rae.accountId, "Pro", 20);
    const { id, key } = await world.giveKey(rae.accountId, "leaked");
    expect((await call(key)).status).toBe(200);
    await rae.post(`/console/keys/${id}/revoke`);
    expect((await call(key)).status).toBe(401);
    expect((await rae.post(`/console/keys/${id}/revoke`)).status).toBe(303);
    expect(await pageOf(rae, "/console/keys")).toContain("was revoked before");
    const [audits] = await world.sql<[{ n: number }]>`
      select count(*)::integer as n from audit_log where action = 'key.revoke' and target = ${`account ${rae.accountId}`}`;
    expect(audits.n).toBe(1);
    for (const wrong of ["0", "abc", "9".repeat(30), "-1"]) {
      expect([wrong, (await rae.post(`/console/keys/${wrong}/revoke`)).status]).toEqual([wrong, 404]);
    }
  });

  it.each([
    ["0", null],
    ["1h", 1],
    ["24h", 24],
    ["7d", 168],
  ] as const)(
    "are rotated with an overlap of %s: the new one works immediately, the old one for as long",
    async (overlap, hours) => {
      const rob = await world.as(`rob${overlap}`);
      await world.givePlan(rob.accountId, "Pro", 20);
      const old = await world.giveKey(rob.accountId, "server");
      const done = await rob.post(`/console/keys/${old.id}/rotate`, { overlap });
      expect(done.status).toBe(200);
      const key = keyIn(await done.text());
      expect((await call(key)).status).toBe(200);
      expect((await call(old.key)).status).toBe(hours === null ? 401 : 200);
      const listed = await keysOf(rob);
      expect(listed.get("server 2")).toMatchObject({ works: true, hours: null });
      expect(listed.get("server (old)")).toMatchObject(hours === null ? { works: false } : { works: true, hours });
      const again = await rob.post(`/console/keys/${old.id}/rotate`, { overlap });
      expect(again.status).toBe(422);
      expect((await rob.post(`/console/keys/${old.id}/rotate`, { overlap: "2d" })).status).toBe(400);
    },
  );

  it("want the second factor of those who have one, once its proof is old, and the form is kept", async () => {
    const tim = await world.as("tim");
    const enroll = await tim.post("/console/security/two-factor/enable", { password: PASSWORD });
    const secret = /<code[^>]*>([A-Z2-7]{16,})<\/code>/.exec(await enroll.text())?.[1] ?? "";
    expect(secret).not.toBe("");
    await tim.post("/console/security/two-factor/verify", { code: totp(secret) });
    await forgetUsedCodes(world.sql);
    await world.sql`
      update auth.sessions
      set created_at = created_at - interval '11 minutes', confirmed_at = null
      where user_id = ${tim.userId}`;
    const asked = await tim.post("/console/keys", { name: "kept <name>" });
    const form = await asked.text();
    expect(asked.status).toBe(403);
    expect(form).toContain("Confirm that it is you");
    expect(form).toContain('name="name" value="kept &lt;name&gt;"');
    expect((await keysOf(tim)).size).toBe(0);
    const proof = { name: "kept <name>", _password: PASSWORD };
    expect((await tim.post("/console/keys", proof)).status).toBe(403);
    const made = await tim.post("/console/keys", { ...proof, _code: totp(secret) });
    expect([made.status, keyIn(await made.text())]).toEqual([200, expect.stringMatching(/^rh_live_/)]);
  });
});

describe("usage", () => {
  it("is shown by day, key and endpoint, exact, and as a file", async () => {
    const uma = await world.as("uma");
    await world.givePlan(uma.accountId, "Pro", 20);
    const [one, two] = [await world.giveKey(uma.accountId, "=one"), await world.giveKey(uma.accountId, "two")];
    for (const path of ["/api/v1/games", "/api/v1/games", "/api/v1/rounds"])
      expect((await call(one.key, path)).status).toBe(200);
    expect((await call(two.key)).status).toBe(200);
    await world.sql`
      insert into usage_counts (account_id, day, key_id, endpoint, n)
      values
        (${uma.accountId}, (now() at time zone 'UTC')::date - 1, ${one.id}, 'rounds', 40),
        (${uma.accountId}, (now() at time zone 'UTC')::date - 91, ${two.id}, 'accuracy', 7)`;
    const day = words(await pageOf(uma, "/console/usage?days=1"));
    expect(day).toContain(`By key Key Calls =one (…${one.key.slice(-4)}) 3 two (…${two.key.slice(-4)}) 1`);
    expect(day).toContain("By endpoint Endpoint Calls games 3 rounds 1");
    expect(words(await pageOf(uma, "/console/usage"))).toContain("By endpoint Endpoint Calls rounds 41 games 3");
    const all = await uma.get("/console/usage/usage.csv?days=92");
    expect(all.headers.get("content-disposition")).toBe('attachment; filename="usage.csv"');
    const lines = (await all.text()).trim().split("\r\n");
    expect(lines[0]).toBe("utc_day,key,key_last4,endpoint,calls");
    expect(lines).toHaveLength(6);
    expect(lines[4]).toContain(",'=one,");
    expect(lines[5]).toContain(",accuracy,7");
    for (const days of ["0", "93", "x", "1.5"])
      expect([days, (await uma.get(`/console/usage?days=${days}`)).status]).toEqual([days, 400]);
    // calls of another account are not in the list
    expect(await pageOf(await world.as("uno"), "/console/usage?days=92")).not.toContain("…" + one.key.slice(-4));
  });

  it("of 92 full days with many keys stays below 100 kB, and the file has all of it", async () => {
    const max = await world.as("max");
    await world.sql`
      with made as (
        insert into keys (account_id, name, sha256, last4, revoked_at)
        select ${max.accountId}, repeat('<', 59) || n, sha256(('max ' || n)::bytea), lpad(n::text, 4, '0'), now()
        from generate_series(1, 60) n
        returning id
      )
      insert into usage_counts (account_id, day, key_id, endpoint, n)
      select ${max.accountId}, (now() at time zone 'UTC')::date - d, made.id, endpoint, 100000 + d
      from made, generate_series(1, 91) d, unnest(array['games', 'rounds', 'forecasts']) endpoint`;
    await world.sql`
      insert into quotas (account_id, period, used)
      select ${max.accountId}, to_char((now() at time zone 'UTC')::date - d, 'YYYY-MM-DD'), 123456 + d
      from generate_series(1, 91) d`;
    for (const path of ["/console/usage?days=92", "/console/keys", "/console"]) {
      expect([path, (await pageOf(max, path)).length < 100_000]).toEqual([path, true]);
    }
    const file = await (await max.get("/console/usage/usage.csv?days=92")).text();
    expect(file.trim().split("\r\n")).toHaveLength(1 + 60 * 91 * 3);
  });
});

describe("a page that is read", () => {
  it("is one of six concurrent ones with 60 waiting, and refused with 503 beyond that", async () => {
    const gate = Promise.withResolvers<void>();
    let begun = 0;
    const held: ConsolePage = {
      path: "/held",
      query: z.object({}),
      async show() {
        begun += 1;
        await gate.promise;
        return { file: "held.txt", type: "text/plain", text: "held" };
      },
    };
    const own = await openConsoleWorld({ lists: { pages: [held], actions: [] } });
    try {
      const max = await own.as("max");
      const asked = Array.from({ length: 67 }, () => max.get("/console/held"));
      const refused = await Promise.race(asked);
      expect([refused.status, refused.headers.get("retry-after"), begun]).toEqual([503, "5", 6]);
      expect(await refused.text()).toContain("Too many pages are being read");
      gate.resolve();
      const statuses = (await Promise.all(asked)).map(({ status }) => status);
      expect([statuses.filter((status) => status === 200).length, begun]).toEqual([66, 66]);
    } finally {
      gate.resolve();
      await own.close();
    }
  });

  it("ends at the database when its reader leaves", async () => {
    const lea = await world.as("lea");
    await lea.get("/console/usage");
    const cookie = [...lea.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const holder = connect(world.databaseUrl, { name: "holder", max: 1 });
    const running = async () => {
      const [row] = await world.sql<{ n: number }[]>`
        select count(*)::integer as n
        from pg_stat_activity
        where datname = current_database()
          and application_name = 'roundhouse console'
          and wait_event_type = 'Lock'`;
      return row?.n ?? 0;
    };
    try {
      await holder.begin(async (tx) => {
        await tx`lock table quotas in access exclusive mode`;
        const leaving = new AbortController();
        const page = fetch(`${world.url}/console/usage`, { headers: { cookie }, signal: leaving.signal });
        const left = page.catch((error: unknown) => error);
        await eventually(async () => expect(await running()).toBeGreaterThan(0));
        leaving.abort();
        expect(await left).toMatchObject({ name: "AbortError" });
        await eventually(async () => expect(await running()).toBe(0));
      });
    } finally {
      await holder.end();
    }
    const usage = await pageOf(lea, "/console/usage");
    expect(usage).toContain("No calls in these days");
    expect(usage).not.toContain('class="plot'); // an empty plot shows nothing
  });
});

describe("the first call", () => {
  it("is made with a pasted key, shows the live response and its limits, and never the key", async () => {
    const fay = await world.as("fay");
    await world.givePlan(fay.accountId, "Pro", 20);
    const { id, key } = await world.giveKey(fay.accountId, "server");
    expect(words(await pageOf(fay, "/console/first-call"))).toContain(
      `curl -H "X-Api-Key: rh_live_YOUR_KEY" "${world.url}/api/v1/games"`,
    );
    const called = await fay.post("/console/first-call", { endpoint: "games", secret_key: ` ${key} ` });
    const text = await called.text();
    expect(called.status).toBe(200);
    expect(text).toContain('<span class="badge good">200</span>');
    expect(words(text)).toContain('"plan" : "Pro"');
    for (const name of ["ratelimit", "x-quota-month-remaining", "x-request-id"])
      expect(text).toContain(`>${name}</th>`);
    expect(text).not.toContain(key);
    expect(text).not.toContain(key.slice(8, 40));
    expect(words(await pageOf(fay, "/console"))).toMatch(/Calls today 1 /);
    await fay.post(`/console/keys/${id}/revoke`);
    const refused = await (await fay.post("/console/first-call", { endpoint: "rounds", secret_key: key })).text();
    expect(refused).toContain('<span class="badge bad">401</span>');
    expect(refused).toContain("revoked_api_key");
  });

  it("is made with keys of one's own alone, for endpoints that there are", async () => {
    const fay = await world.as("fay");
    const other = await world.giveKey((await world.as("flo")).accountId, "hers");
    const before = world.lines.filter((line) => line.includes("/api/v1/")).length;
    for (const secret of [other.key, "rh_live_0123456789ABCDEFGHIJKLMNOPQRSTUV09MR4J", "nothing", "", "<script>"]) {
      const text = await (await fay.post("/console/first-call", { endpoint: "games", secret_key: secret })).text();
      expect(text).toContain("This is not a key of your account");
      if (secret !== "") expect(text).not.toContain(secret);
    }
    const wrong = await fay.post("/console/first-call", { endpoint: "//evil.example/x", secret_key: other.key });
    expect([wrong.status, await wrong.text()]).toEqual([400, expect.not.stringContaining(other.key)]);
    expect(world.lines.filter((line) => line.includes("/api/v1/")).length).toBe(before);
  });

  it("of every endpoint that is offered works", async () => {
    const all = await world.as("all");
    await world.givePlan(all.accountId, "Max", 20);
    const { key } = await world.giveKey(all.accountId, "server");
    const offered = [...(await pageOf(all, "/console/first-call")).matchAll(/<option value="(\w+)"/g)].map(
      ([, name]) => name!,
    );
    expect(offered).toEqual(["games", "rounds", "forecasts", "readings", "accuracy", "usage"]);
    for (const endpoint of offered) {
      const text = await (await all.post("/console/first-call", { endpoint, secret_key: key })).text();
      expect([endpoint, text.includes('<span class="badge good">200</span>')]).toEqual([endpoint, true]);
    }
  });
});
