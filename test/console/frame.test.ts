import { globSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { z } from "zod";
import { legalText } from "../../src/accounts/legal.ts";
import { suspendAccount } from "../../src/callers/account-store.ts";
import type { ConsoleAction, ConsolePage } from "../../src/console/contract.ts";
import { actions, pages } from "../../src/console/index.ts";
import { connect } from "../../src/db/client.ts";
import { promisesIn } from "../forecasts/words.ts";
import { eventually } from "../support/eventually.ts";
import type { CookieClient } from "../support/cookie-client.ts";
import {
  SIGN_IN_ROUTES,
  EVERY_METHOD,
  FIELD_SAMPLES,
  FORMS,
  NO_IDS,
  OWN_ROUTES,
  OWN_SAMPLES,
  PATH_SAMPLES,
  type Sample,
  SHARED,
} from "./samples.ts";
import { type ConsoleWorld, countFromFar, type Holding, openConsoleWorld, PASSWORD } from "./world.ts";

/** Says that it did something, and wrote nothing down. */
const forgets: ConsoleAction = {
  name: "test.forgets",
  path: "/test/forgets",
  needs: [],
  form: z.object({}),
  run: () => Promise.resolve({ ok: true, message: "", location: "/console" }),
};

let world: ConsoleWorld;
let ann: CookieClient & Holding;
let bob: CookieClient & Holding;
beforeAll(async () => {
  world = await openConsoleWorld({
    isDemo: true,
    variables: EVERY_METHOD,
    lists: { pages, actions: [...actions, forgets] },
  });
  await countFromFar(world.sql);
  [ann, bob] = [await world.as("ann"), await world.as("bob")];
  for (const { accountId } of [ann, bob]) {
    await world.giveMoney(accountId, 1_000_000_000n);
    await world.givePlan(accountId, "Pro", 20);
    await world.giveKey(accountId, "server");
  }
});
afterAll(() => world.close());

const LARGEST_PAGE = 100_000;
/** A path with something in the place of each parameter. */
const filled = (path: string, ids: Record<string, string> = {}) =>
  `/console${path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] ?? "1")}`.replace(/\/$/, "");
const filledNot = (path: string) => (path === "/" ? "/console" : `/console${path}`);
const paramsOf = (path: string) => [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
const named = (list: readonly ConsoleAction[]) => list.map((action) => [action.name, action] as const);
const byPath = (list: readonly ConsolePage[]) => list.map((page) => [page.path, page] as const);

/** Reads all rows of an account from each table in one statement: `$1` is the account, `$2` its user. */
async function ownedStatement(): Promise<string> {
  const tables = await world.sql<{ table: string; column: string }[]>`
    select table_schema || '.' || table_name as table, column_name as column
    from information_schema.columns
    join information_schema.tables using (table_schema, table_name)
    where table_type = 'BASE TABLE'
      and table_schema in ('public', 'auth')
      and table_name not like 'call_minutes%' -- counted calls of earlier tests arrive there late
      and (column_name in ('account_id', 'owner_id') and data_type = 'bigint' or column_name = 'user_id')
    order by 1, 2`;
  return tables
    .map(
      ({ table, column }) => `
        select '${table}' || (to_jsonb(t) - 'seen_at')::text as row -- it changes with each visit
        from ${table} t
        where ${column}::text = ${column === "user_id" ? "$2" : "$1"}`,
    )
    .join(" union all ");
}

let owned: Promise<string> | undefined;

/** Everything there is of an account, as text. */
async function everythingOf({ accountId, userId }: Holding): Promise<string> {
  owned ??= ownedStatement();
  const rows = await world.sql.unsafe<{ row: string }[]>(
    `${await owned} order by 1`.replaceAll("$1", `'${accountId}'`).replaceAll("$2", `'${userId}'`),
  );
  return rows.map(({ row }) => row).join("\n");
}

/** The fields of a form or query that would take an id. */
function idFields(schema: z.ZodType): string[] {
  if (!(schema instanceof z.ZodObject))
    throw new Error("expected forms and queries to be objects, whose fields have names");
  const shape = schema.shape as Record<string, z.ZodType>;
  const IDS = ["17", "730000001", "3f0c9a52-6f2e-4f0e-9d0a-0d8c5a1f2b3c"];
  return Object.keys(shape).filter((name) => IDS.some((id) => shape[name]!.safeParse(id).success));
}

describe("every action", () => {
  it("has a separate path, and a name in the form of the log", () => {
    expect(new Set(actions.map(({ path }) => path)).size).toBe(actions.length);
    for (const { name } of actions) expect(name).toMatch(/^[a-z]+(-[a-z]+)*(\.[a-z]+(-[a-z]+)*)+$/);
  });

  it.each(named(actions))("is refused without a sign-in, and without an account: %s", async (_, action) => {
    expect((await world.stranger().post(filled(action.path))).status).toBe(401);
    expect((await (await withoutAccount()).post(filled(action.path))).status).toBe(401);
  });

  it.each(named(actions))("is not sent by a page of another site, nor asked for with GET: %s", async (_, { path }) => {
    for (const headers of [
      { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "cross-site", origin: "null" },
    ]) {
      const refused = await ann.post(filled(path), {}, headers);
      expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining("another site")]);
    }
    if (pages.some((page) => page.path === path)) return;
    const { status } = await ann.get(filled(path));
    expect([404, 405]).toContain(status);
  });

  it.each(named(actions.filter(({ needs }) => needs.includes("terms"))))(
    "that requires the terms asks for them, keeps the form, and then does what it states: %s",
    async (_, { path }) => {
      const tom = await freshHolder({ hasAgreed: false });
      const before = await everythingOf(tom);
      const referer = `${world.url}/console/keys?x=1`;
      const typed = { name: 'typed <"before">', overlap: "1h" };
      for (const version of ["", "2020-01-01"]) {
        const asked = await tom.post(filled(path), { ...typed, _terms: version }, { referer });
        expect(asked.status).toBe(403);
        const text = await asked.text();
        checkPage(text);
        expect(text).toContain(legalText("terms").sha256);
        expect(text).toContain(`<form method="post" action="${filled(path)}">`);
        expect(text).toContain('name="name" value="typed &lt;&quot;before&quot;&gt;"');
        expect(text).toContain('<a class="button quiet" href="/console/keys?x=1">Cancel</a>');
        expect(text).not.toMatch(/name="_terms"[^>]* checked/);
      }
      expect(await everythingOf(tom)).toBe(before);
      const done = await tom.post(filled(path), { ...typed, _terms: legalText("terms").version }, { referer });
      expect(await done.text()).not.toContain("I accept these terms");
      expect(await everythingOf(tom)).toContain('"kind": "terms"');
    },
  );

  it("goes through with what was typed once the terms are accepted with it, and never asks again", async () => {
    const tia = await holder("tia", { hasAgreed: false });
    const form = { name: "kept" };
    expect((await tia.post("/console/keys", form)).status).toBe(403);
    const made = await tia.post("/console/keys", { ...form, _terms: legalText("terms").version });
    expect([made.status, await made.text()]).toEqual([200, expect.stringContaining('value="rh_live_')]);
    expect((await tia.post("/console/keys", { name: "second" })).status).toBe(200);
  });

  it("that changes something and leaves no audit entry is a fault, and what changes nothing leaves none", async () => {
    expect((await ann.post("/console/test/forgets")).status).toBe(500);
    expect(world.lines.some((line) => line.includes("test.forgets was done and left nothing"))).toBe(true);
    const { id, key } = await world.giveKey(ann.accountId, "audited");
    const entries = await auditEntries();
    await ann.post("/console/first-call", { endpoint: "usage", secret_key: key });
    expect(await auditEntries()).toBe(entries);
    for (const _ of ["once", "twice"]) expect((await ann.post(`/console/keys/${id}/revoke`)).status).toBe(303);
    expect(await auditEntries()).toBe(entries + 1n);
  });

  it.each(named(actions))(
    "that changes something is refused to a suspended account, with the reason: %s",
    async (_, action) => {
      const sue = await holder("sue");
      await world.sql.begin((tx) => suspendAccount(tx, sue.accountId, { by: "test", reason: "calls for <others>" }));
      const sent = await sue.post(filled(action.path));
      if (action.name === "key.revoke") return expect(sent.status).toBe(404); // there is no such key; with one it is done
      expect([sent.status, await sent.text()]).toEqual([403, expect.stringContaining("calls for &lt;others&gt;")]);
    },
  );
});

describe("every page", () => {
  it.each(byPath(pages))("is shown after the sign-in if it needs one: %s", async (path) => {
    const asked = `${filled(path)}?days=2`;
    const response = await world.stranger().get(asked);
    expect([response.status, response.headers.get("location")]).toEqual([
      302,
      `/console/sign-in?to=${encodeURIComponent(asked)}`,
    ]);
    const lost = await (await withoutAccount()).get(filled(path));
    expect([lost.status, lost.headers.get("location")?.split("?")[0]]).toEqual([302, "/console/sign-in"]);
  });

  it.each(byPath(pages.filter(({ path }) => !path.includes(":"))))(
    "[API8] is shown to its holder, with headers that let nothing else in, and is not large: %s",
    async (path, { query }) => {
      const response = await ann.get(filled(path));
      expect(response.status).toBe(query.safeParse({}).success ? 200 : 400);
      checkHeaders(response);
      const text = await response.text();
      expect(text.length).toBeLessThan(LARGEST_PAGE);
      if (response.headers.get("content-type")?.startsWith("text/html") !== true) return;
      checkPage(text);
      expect(text).toContain("ann@example.com");
      expect(text).not.toContain("bob@example.com");
    },
  );

  it("writes nothing when it is opened", async () => {
    const before = [await everythingOf(ann), await auditEntries()];
    for (const { path } of pages) await ann.get(filled(path));
    expect([await everythingOf(ann), await auditEntries()]).toEqual(before);
  });

  it.each(byPath(pages.filter(({ path }) => !path.includes(":"))))(
    "is shown to a suspended account: %s",
    async (path, { query }) => {
      if (!query.safeParse({}).success) return;
      const sue = await holder("sue");
      await world.sql`
      update accounts
      set suspended_at = now(), suspend_reason = 'calls for <others>'
      where id = ${sue.accountId}`;
      const response = await sue.get(filled(path));
      expect(response.status).toBe(200);
      if (response.headers.get("content-type")?.startsWith("text/html") !== true) return;
      expect(await response.text()).toContain("Your account is suspended");
    },
  );
});

describe("[API1][V8] the data of another account", () => {
  const items = [...pages, ...actions].map((item) => ["needs" in item ? item.name : item.path, item] as const);
  /** Parameters of a path that name something of an account. */
  const ownParams = (path: string) => paramsOf(path).filter((name) => !(`${path} ${name}` in SHARED));

  /** The ids of a path, all of them of the same holder. */
  async function idsOf(path: string, of: CookieClient & Holding): Promise<Record<string, string>> {
    const ids: Record<string, string> = {};
    for (const name of paramsOf(path)) {
      const place = `${path} ${name}`;
      ids[name] = SHARED[place] ?? (await sampleOf(PATH_SAMPLES, place)(world, of));
    }
    return ids;
  }

  /** Asks for it as Ann. */
  async function asAnn(
    item: ConsolePage | ConsoleAction,
    ids: Record<string, string>,
    fields: Record<string, string> = {},
  ) {
    const path = filled(item.path, ids);
    await ann.get("/console/usage"); // shows the notice of the last action
    const response =
      "needs" in item
        ? await ann.post(path, { ...(await FORMS[item.name]?.(ann)), ...fields })
        : await ann.get(`${path}?${new URLSearchParams(fields).toString()}`);
    return { status: response.status, text: await response.text() };
  }
  const masked = (text: string, ids: readonly string[]) =>
    ids.reduce((left, id) => left.replaceAll(id, "ID"), text).replaceAll(/req_\w+/g, "REQUEST");

  it.each(items.filter(([, { path }]) => ownParams(path).length > 0))(
    "gets the response of what does not exist, and stays unchanged: %s",
    async (_, item) => {
      const theirs = await idsOf(item.path, bob);
      const unknown = Object.fromEntries(ownParams(item.path).map((name) => [name, "987654321"]));
      const before = await everythingOf(bob);
      const ofBob = await asAnn(item, theirs);
      const ofUnknown = await asAnn(item, { ...theirs, ...unknown });
      expect([ofBob.status, ofUnknown.status]).toEqual([404, 404]);
      expect(masked(ofBob.text, Object.values(theirs))).toBe(masked(ofUnknown.text, Object.values(unknown)));
      expect(ofBob.text).not.toContain("bob");
      expect(await everythingOf(bob)).toBe(before);
      // it is the id that was refused: one of her own is found
      expect((await asAnn(item, await idsOf(item.path, ann))).status).not.toBe(404);
    },
  );

  it("is complete: every route is a page, an action, a sign-in route, or about the current account", () => {
    const listed = [
      ...pages.map(({ path }) => `GET ${filledNot(path)}`),
      ...[...actions, forgets].map(({ path }) => `POST ${filledNot(path)}`),
      ...SIGN_IN_ROUTES,
      ...Object.keys(OWN_ROUTES),
    ];
    expect(world.routes.toSorted(), "add what is new to test/console/samples.ts").toEqual(listed.toSorted());
  });

  it.each(Object.entries(OWN_ROUTES))(
    "is not reached by what people do about themselves: %s",
    async (route, sample) => {
      const [method, path = ""] = route.split(" ");
      const zoe = await freshHolder();
      const { userId, accountId, email } = bob;
      const id = sample === null ? String(accountId) : await sample(world, bob);
      const aimed = { id, userId, user_id: userId, accountId: String(accountId), account_id: String(accountId) };
      const fields = { ...aimed, email, address: email, password: PASSWORD, code: "123456", terms: "on", adult: "on" };
      const before = await everythingOf(bob);
      const response = method === "GET" ? await zoe.get(path) : await zoe.post(path, fields);
      const text = await response.text();
      expect(response.status).toBeLessThan(500);
      expect(await everythingOf(bob)).toBe(before);
      expect((await bob.get("/console/keys")).status).toBe(200);
      if (method === "GET") expect(text).not.toContain("bob");
      if (sample === null) return;
      const ofUnknown = await zoe.post(path, { ...fields, id: "987654321" });
      expect([response.status, masked(text, [id])]).toEqual([
        ofUnknown.status,
        masked(await ofUnknown.text(), ["987654321"]),
      ]);
    },
  );

  const fields = [
    ...actions.flatMap((item) => idFields(item.form).map((field) => [`${item.name} ${field}`, item, field] as const)),
    ...pages.flatMap((item) => idFields(item.query).map((field) => [`${item.path} ?${field}`, item, field] as const)),
  ];

  it("is complete: for each field with an id it is known whether it names something", () => {
    const known = (name: string) => NO_IDS.has(name) || name in FIELD_SAMPLES || name in OWN_SAMPLES;
    const unknown = fields.map(([name]) => name).filter((name) => !known(name));
    expect(unknown, "add each of them to test/console/samples.ts").toEqual([]);
    const all = new Set<string>(fields.map(([name]) => name));
    for (const name of [...NO_IDS, ...Object.keys(FIELD_SAMPLES), ...Object.keys(OWN_SAMPLES)]) {
      expect(all, "what test/console/samples.ts lists is there").toContain(name);
    }
  });

  it.each(fields.filter(([name]) => name in FIELD_SAMPLES || name in OWN_SAMPLES))(
    "is not reached by a field either: %s",
    async (name, item, field) => {
      const isOwn = name in OWN_SAMPLES;
      const theirs = await sampleOf(isOwn ? OWN_SAMPLES : FIELD_SAMPLES, name)(world, bob);
      const own = await idsOf(item.path, ann);
      const before = await everythingOf(bob);
      const { status, text } = await asAnn(item, own, { [field]: theirs });
      if (!isOwn) expect(status).toBe(404);
      expect(text).not.toContain("bob");
      expect(await everythingOf(bob)).toBe(before);
    },
  );
});

describe("a request", () => {
  it("of another site is refused wherever it goes, before anybody is asked who they are", async () => {
    for (const path of [
      "",
      "/sign-in",
      "/sign-up",
      "/sign-out",
      "/terms",
      "/step-up",
      "/security/password",
      "/nothing",
    ]) {
      const headers = { "sec-fetch-site": "cross-site", origin: "https://evil.example" };
      for (const client of [ann, world.stranger()]) {
        const refused = await client.post(`/console${path}`, {}, headers);
        expect([path, refused.status]).toEqual([path, 403]);
        checkHeaders(refused);
      }
    }
    expect((await ann.get("/console")).status).toBe(200); // no session was ended
  });

  it("for an unknown path is 404, with another method 405 and the allowed ones", async () => {
    expect((await ann.get("/console/nothing/here")).status).toBe(404);
    expect((await ann.post("/console/keys/%zz/revoke")).status).toBe(400);
    expect((await ann.post("/console/keys/%00/revoke")).status).toBe(404);
    for (const path of ["refund", "refunds", "withdraw", "withdrawal", "payout", "card", "cards", "transfer"]) {
      expect([path, (await ann.get(`/console/${path}`)).status]).toEqual([path, 404]);
      expect([path, (await ann.post(`/console/${path}`)).status]).toEqual([path, 404]);
    }
    const wrong = await ann.post("/console/usage");
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    checkHeaders(wrong);
  });

  it("with a form that is too large, no form, or holds what no text does is refused", async () => {
    const cookie = [...ann.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const send = async (body: string, type = "application/x-www-form-urlencoded") => {
      const headers = { cookie, "content-type": type, "sec-fetch-site": "same-origin" };
      return (await fetch(`${world.url}/console/keys`, { method: "POST", body, headers, redirect: "manual" })).status;
    };
    expect(await send(`name=${"a".repeat(70_000)}`)).toBe(413);
    expect(await send("a=1&".repeat(1_500))).toBe(413);
    expect(await send('{"name":"server"}', "application/json")).toBe(415);
    expect(await send("name=a%00b")).toBe(400);
    expect(await send("")).toBe(400);
  });

  it("leaves one line in the log, with the account's number and never an address of a person", async () => {
    const { id } = await world.giveKey(ann.accountId, "logged");
    world.lines.length = 0;
    expect((await ann.post(`/console/keys/${id}/revoke`)).status).toBe(303);
    const acted = world.lines.filter((line) => line.includes("action done"));
    expect(acted).toEqual([expect.stringContaining(`"account":"${ann.accountId}","action":"key.revoke"`)]);
    expect(world.lines.filter((line) => line.includes("@example.com"))).toEqual([]);
  });

  it("is written to the log without its form, whatever it holds", async () => {
    world.lines.length = 0;
    const { key } = await world.giveKey(ann.accountId, "pasted");
    await ann.post("/console/first-call", { endpoint: "games", secret_key: key });
    await ann.post("/console/first-call", { endpoint: "none", secret_key: key });
    await ann.post("/console/keys", { name: "n".repeat(99), _password: PASSWORD, more: key });
    await world.stranger().post("/console/sign-in", { email: "ann@example.com", password: `${PASSWORD}!` });
    expect(world.lines.length).toBeGreaterThan(3);
    expect(world.lines.filter((line) => line.includes(key) || line.includes(PASSWORD))).toEqual([]);
  });
});

describe("while PostgreSQL is unavailable", () => {
  it("pages report it, with the effect on calls, and recover by themselves", async () => {
    const { key } = await world.giveKey(ann.accountId, "known");
    const call = () => fetch(`${world.url}/api/v1/games`, { headers: { "x-api-key": key } });
    expect((await call()).status).toBe(200);
    const name = new URL(world.databaseUrl).pathname.slice(1);
    const admin = connect(inject("databaseUrl"), { name: "test", max: 1 });
    try {
      await admin`alter database ${admin(name)} with allow_connections false`;
      await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
      for (const path of ["/console", "/console/keys", "/console/terms", "/console/usage/usage.csv"]) {
        const away = await ann.get(path);
        expect([path, away.status, away.headers.get("retry-after")]).toEqual([path, 503, "5"]);
        const text = await away.text();
        checkPage(text);
        expect(text).toContain("get temporarily_unavailable (503) and cost nothing");
      }
      const sent = await ann.post("/console/keys", { name: "while away" });
      expect([sent.status, (await world.stranger().get("/console/sign-in")).status]).toEqual([503, 200]);
      const refused = await call(); // a call that cannot be counted gets no data: the page states the same
      expect([refused.status, await refused.text()]).toEqual([503, expect.stringContaining("temporarily_unavailable")]);
      expect((await fetch(`${world.url}/healthz`)).status).toBe(200);
    } finally {
      await admin`alter database ${admin(name)} with allow_connections true`;
      await admin.end();
    }
    await eventually(async () => (await ann.get("/console/keys")).status === 200 && (await call()).status === 200);
    expect(await (await ann.get("/console/keys")).text()).not.toContain("while away");
  });
});

describe("the words of the console", () => {
  /** What people read of a template: its text, without code and attributes that are not read. */
  const textOf = (template: string) => template.replaceAll(/<%[\s\S]*?%>/g, " ").replaceAll(/<[^>]*>/g, " ");
  const templates = globSync("src/{console,frame}/**/*.eta");

  it.each(templates)("promise nothing, and offer no card, no refund and no withdrawal: %s", (file) => {
    const source = readFileSync(file, "utf8");
    expect(promisesIn(source, ["en"])).toEqual([]);
    const offers = textOf(source).replaceAll(
      /\b(?:no|not|never|nor|neither|without|cannot)\b[^.;:]*?\b(?:cards?|refund\w*|withdraw\w*|paid out|given back|pay-?outs?)/gi,
      "",
    );
    expect(offers.match(/\b(?:cards?|refund\w*|withdraw\w*|pay-?outs?|chargeback\w*)\b.*/gi)).toBeNull();
  });

  it("are the same as in the code", () => {
    const literals = globSync("src/{console,accounts,mail,purchases,topups,ledger}/**/*.ts").flatMap((file) =>
      [
        ...readFileSync(file, "utf8")
          .replaceAll(/\/\*.*?\*\/|^\s*\/\/.*$/gms, "")
          .matchAll(/"(?:[^"\\\n]|\\.)*"|`[^`]*`/g),
      ]
        .filter(([literal]) => literal.includes(" "))
        .flatMap(([literal]) => promisesIn(literal, ["en"]).map((one) => `${file} ${one}`)),
    );
    expect(literals).toEqual([]);
    for (const { path } of [...pages, ...actions]) expect(path).not.toMatch(/card|refund|withdraw|payout|cash-?out/i);
  });
});

const holders = new Map<string, Promise<CookieClient & Holding>>();

/** A client with its own account, made when first requested. */
function holder(name: string, options: { hasAgreed?: boolean } = {}): Promise<CookieClient & Holding> {
  const known = holders.get(name);
  if (known !== undefined) return known;
  const made = (async () => {
    const holding = await world.makeHolder(`${name}@example.com`, options);
    const { client } = await world.signIn(holding.email);
    return Object.assign(client, holding);
  })();
  holders.set(name, made);
  return made;
}

let fresh = 0;

/** A new client, which tests may change. */
function freshHolder(options: { hasAgreed?: boolean } = {}): Promise<CookieClient & Holding> {
  fresh += 1;
  return holder(`fresh${fresh}`, options);
}

let lost: Promise<CookieClient> | undefined;

/** A person who signed in at the console, and no longer holds an account. */
function withoutAccount(): Promise<CookieClient> {
  lost ??= (async () => {
    const { accountId } = await world.makeHolder("none@example.com");
    const { client } = await world.signIn("none@example.com");
    await world.sql`update accounts set user_id = null, email = 'left@example.com' where id = ${accountId}`;
    return client;
  })();
  return lost;
}

async function auditEntries(): Promise<bigint> {
  const [head] = await world.sql<[{ n: bigint }]>`select seq as n from audit_head`;
  return head.n;
}

function sampleOf(samples: Readonly<Record<string, Sample>>, name: string): Sample {
  const sample = samples[name];
  if (sample === undefined)
    throw new Error(`no sample for ${JSON.stringify(name)}: add one to test/console/samples.ts`);
  return sample;
}

function checkHeaders({ headers }: Response): void {
  const policy = headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("script-src 'self'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toContain("unsafe");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("referrer-policy")).toBe("same-origin");
  expect(headers.get("x-request-id")).toMatch(/^req_/);
}

function checkPage(text: string): void {
  expect(text).toContain("no outcome is guaranteed. 18+.");
  expect(text).not.toMatch(/ style="| on[a-z]+="|<style|<script(?! src="\/frame\.js)/);
  expect(promisesIn(text, ["en"])).toEqual([]);
}
