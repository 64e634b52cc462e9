import { readFileSync, globSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { z } from "zod";
import type { OperatorRole } from "../../src/accounts/operators/roles.ts";
import { appendAudit } from "../../src/audit/store.ts";
import { connect } from "../../src/db/client.ts";
import { ROLES as ROLE_NAMES } from "../../src/db/roles/role-grants.ts";
import { auditEntry } from "../../src/ops/audit-entry.ts";
import { auditFile } from "../../src/ops/audit/pages.ts";
import type { OpsAction, OpsPage, OpsParts } from "../../src/ops/contract.ts";
import { duration, helpersFor } from "../../src/frame/text/format.ts";
import * as csv from "../../src/csv.ts";
import * as format from "../../src/frame/text/format.ts";
import * as paths from "../../src/http/paths.ts";
import { mayDo } from "../../src/ops/routes.ts";
import { actions, pages } from "../../src/ops/index.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { lockWaits } from "../support/lock-waits.ts";
import { openOpsWorld, type OpsWorld, PASSWORD, type CookieClient } from "./world.ts";

const ROLES: readonly OperatorRole[] = ["viewer", "operator", "data", "admin"];

let world: OpsWorld;
beforeAll(async () => {
  world = await openOpsWorld();
});
afterAll(() => world.close());

/** A path with something in the place of each parameter. */
const filled = (path: string) => `/ops${path.replaceAll(/:\w+/g, "1")}`.replace(/\/$/, "");
const auditEntries = async () => (await world.sql<[{ n: bigint }]>`select seq as n from audit_head`)[0].n;

describe("every action", () => {
  it("has a separate path, and the name that the audit log uses", () => {
    expect(new Set(actions.map(({ path }) => path)).size).toBe(actions.length);
    for (const { name } of actions) expect(name).toMatch(/^[a-z]+(\.[a-z]+(-[a-z]+)*)+$/);
  });

  it.each(actions.map((action) => [action.name, action] as const))(
    "[API5][V8] is refused without a sign-in, and to every role without the right: %s",
    async (_, action) => {
      expect((await world.stranger().post(filled(action.path))).status).toBe(401);
      for (const role of ROLES.filter((one) => !mayDo(action, one))) {
        const client = await world.as(role);
        const before = await auditEntries();
        const { status } = await client.post(filled(action.path), { reason: "because it is a test" });
        expect([role, status]).toEqual([role, 403]);
        expect(await auditEntries()).toBe(before);
      }
      expect(mayDo(action, "viewer")).toBe(false);
    },
  );

  it.each(actions.map((action) => [action.name, action] as const))(
    "is not sent by a page of another site, nor asked for with GET: %s",
    async (_, { path }) => {
      const admin = await world.as("admin");
      const headers = { "sec-fetch-site": "cross-site", origin: "https://evil.example" };
      expect((await admin.post(filled(path), {}, headers)).status).toBe(403);
      if (pages.some((page) => page.path === path)) return;
      const { status } = await admin.get(filled(path));
      expect([404, 405]).toContain(status);
    },
  );
});

describe("every page", () => {
  it.each(pages.filter(({ path }) => !path.includes(":")).map((page) => [page.path, page] as const))(
    "[API8] is shown to a viewer, with headers that let nothing else in: %s",
    async (path, { query, roles }) => {
      const viewer = await world.as("viewer");
      if (roles !== undefined) expect((await viewer.get(filled(path))).status).toBe(403);
      const response = await (await world.as(roles?.[0] ?? "viewer")).get(filled(path));
      if (path === "/styleguide") return expect(response.status).toBe(404); // others reach this server through a proxy
      expect(response.status).toBe(query.safeParse({}).success ? 200 : 400); // some want to know about what
      const policy = response.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).not.toContain("unsafe");
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
      expect(response.headers.get("cache-control")).toBe("no-store");
      expect(response.headers.get("referrer-policy")).toBe("same-origin");
      expect(response.headers.get("x-request-id")).toMatch(/^req_/);
      const text = await response.text();
      if (response.headers.get("content-type")?.startsWith("text/html") !== true) return;
      expect(text).toContain("no outcome is guaranteed. 18+.");
      expect(text).not.toMatch(/ style="| on[a-z]+="|<style|<script(?! src="\/frame\.js)/);
    },
  );

  it.each(pages.filter(({ path }) => path.includes(":")).map(({ path }) => path))(
    "about something that is not there is not found: %s",
    async (path) => {
      const unknown = `/ops${path.replaceAll(/:\w+/g, "987654321")}`;
      const response = await (await world.as("viewer")).get(unknown);
      // a server without Redis cannot read queues
      if (response.status === 503) expect(await response.text()).toContain("was given no Redis (REDIS_URL)");
      else expect([404, 400]).toContain(response.status);
    },
  );

  it("leaves no audit entry", async () => {
    const before = await auditEntries();
    const viewer = await world.as("viewer");
    for (const { path } of pages) await viewer.get(filled(path));
    expect(await auditEntries()).toBe(before);
  });
});

describe("a template", () => {
  /** Calls without what they are given: `h.badge("a", it.tone)` is `h.badge‹›`. */
  function collapsed(code: string): string {
    const less = code.replaceAll(/\([^()]*\)/g, "‹›");
    return less === code ? code : collapsed(less);
  }
  // other templates, components, and helpers that escape; `head` is a template's short word for one of them
  const CALL =
    /^(include|head|(it\.)?h\.(time|age|money|badge|orDash|unbroken|sortHead|pager|attributes|highlight|prose)|ui)‹›$/;
  /** Texts of the template itself, with nothing but such calls in them. */
  const isText = (code: string) =>
    /^("[^"]*"|'[^']*'|` data-refresh="\$\{it\.frame\.refreshSeconds\}"`)$/.test(code) ||
    (/^`[^`]*`$/.test(code) && [...code.matchAll(/\$\{([^}]*)\}/g)].every(([, inner]) => CALL.test(inner!)));
  // the page inside the layout, and our own drawing
  const isSafe = (code: string) => ["it.content", "it.figure.svg"].includes(code) || CALL.test(code) || isText(code);
  /** What of a choice is written: neither its condition nor what is not chosen. */
  const written = (code: string) =>
    collapsed(code)
      .split(" : ")
      .map((part) => part.split(" ? ").at(-1)!);

  it.each(globSync("src/{ops,console,frame}/**/*.eta"))(
    "writes without escaping only what helpers made: %s",
    (file) => {
      const raw = [...readFileSync(file, "utf8").matchAll(/<%~\s*([\s\S]*?)%>/g)].map(([, code]) => code!.trim());
      expect(raw.flatMap(written).filter((code) => !isSafe(code))).toEqual([]);
    },
  );

  it("shows a query that it cannot use with what was typed, escaped", async () => {
    const viewer = await world.as("viewer");
    const response = await viewer.get(`/ops/audit?from=${encodeURIComponent('"><script>alert(1)</script>')}`);
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(text).toContain("expected a time such as 2026-11-21");
    expect(text).toContain("&quot;&gt;&lt;script&gt;");
    expect(text).not.toContain("<script>alert");
  });
});

describe("a refused form", () => {
  it("is shown with what was typed, and with the choices of its fields", async () => {
    const operator = await world.as("operator");
    const response = await operator.post("/ops/conflicts/1/decide", { take: "other", reason: "" });
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(text).toContain(
      '<select id="typed-0" name="take"><option value="kept">kept</option><option value="other" selected>other</option></select>',
    );
    expect(text).toContain('<input id="typed-1" name="reason" value="">');
  });

  it("that is a query has the choices too", async () => {
    const viewer = await world.as("viewer");
    const text = await (await viewer.get("/ops/gaps?state=given_up&sort=fastest")).text();
    expect(text).toContain('<option value="given_up" selected>given up</option>');
    expect(text).toContain('<option value="">not set</option>');
    expect(text).toContain('<select id="typed-1" name="sort"><option value="newest">newest</option>');
  });
});

describe("the audit log of one object", () => {
  /** The objects of the entries that the link with this text leads to, newest first. */
  async function objectsBehind(page: string, link: string): Promise<string[]> {
    const admin = await world.as("admin");
    const text = await (await admin.get(page)).text();
    const href = new RegExp(`<a href="([^"]*)">${link}</a>`).exec(text)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const list = await (await admin.get(href)).text();
    return [...list.matchAll(/ · object (.*?) · request/g)].map(([, object]) => object!);
  }

  async function addEntries(targets: readonly string[]): Promise<void> {
    const visitor = {
      operatorId: "",
      email: "ann@example.com",
      role: "admin",
      address: "::1",
      requestId: "r",
    } as const;
    for (const target of targets) {
      await world.sql.begin((tx) => appendAudit(tx, auditEntry(visitor, { action: "test.object", target })));
    }
  }

  it("lists the entries of a bank line, and none of a line whose number begins with its number", async () => {
    const by = await world.makeOperator("liner@example.com", "operator");
    const [line] = await world.sql<{ id: bigint }[]>`
      insert into bank_lines (bank, bank_ref, value_date, currency, amount_minor, sender, remittance, entered_by)
      values ('main', 'object', '2026-11-20', 'USD', 2900, 'Ann', '', ${by})
      returning id`;
    await addEntries([`bank line ${line!.id} (main object)`, `bank line ${line!.id}0 (main other)`]);
    expect(await objectsBehind(`/ops/bank/lines/${line!.id}`, "Audit log of this line")).toEqual([
      `bank line ${line!.id} (main object)`,
    ]);
  });

  it("lists the entries of an account and its keys, and none of an account whose number begins with its number", async () => {
    const [account] = await world.sql<{ id: bigint }[]>`
      insert into accounts (email, verified_at) values ('object@example.com', now()) returning id`;
    const id = account!.id;
    await addEntries([`account ${id}`, `account ${id}0`, `key 5 of account ${id}`, `key 6 of account ${id}0`]);
    expect(await objectsBehind(`/ops/callers/${id}`, "Audit log of this account")).toEqual([
      `key 5 of account ${id}`,
      `account ${id}`,
    ]);
  });

  it("states that it lists whole names only, and keeps it in its file and its filters", async () => {
    const admin = await world.as("admin");
    const text = await (await admin.get("/ops/audit?target=account+7&whole=1")).text();
    expect(text).toContain("Filtered by: Object, Whole object name only");
    expect(text).toContain("/ops/audit/audit.csv?target=account+7&amp;whole=1");
    await addEntries(["account 7", "account 71"]);
    const file = await (await admin.get("/ops/audit/audit.csv?target=account+7&whole=1")).text();
    expect(file).toContain(",account 7,");
    expect(file).not.toContain(",account 71,");
    expect((await admin.get("/ops/audit?target=account+7&whole=yes")).status).toBe(400);
  });
});

describe("the audit log as a file", () => {
  const asked = { actor: "", action: "test.csv", target: "", text: "", from: null, to: null };

  it("holds no formulas, and is refused if it would not hold all", async () => {
    const admin = await world.as("admin");
    const visitor = {
      operatorId: "",
      email: "=ann@example.com",
      role: "admin",
      address: "::1",
      requestId: "r",
    } as const;
    for (const reason of ["=1+1", "-1", "@x", 'a "quoted", one\r\n', "+SUM(A1)"]) {
      const entry = auditEntry(visitor, { action: "test.csv", target: "\tnothing", reason });
      await world.sql.begin((tx) => appendAudit(tx, entry));
    }
    const text = await (await admin.get("/ops/audit/audit.csv?action=test.csv")).text();
    for (const cell of [
      "'=ann@example.com",
      "'=1+1",
      "-1",
      "'@x",
      '"a ""quoted"", one\r\n"',
      "'+SUM(A1)",
      "'\tnothing",
    ]) {
      expect(text).toContain(`,${cell},`);
    }
    const parts = { sql: world.sql } as OpsParts;
    await expect(auditFile(4).show(parts, { visitor, params: {}, query: asked })).rejects.toThrow(
      "expected at most 4 entries in a file, found more",
    );
  });

  it("is asked for by times that there are", async () => {
    const viewer = await world.as("viewer");
    for (const from of ["0000-01-01", "%2B200000-01-01", "-000001-01-01", "2026-02-30", "Nov 21"]) {
      expect([from, (await viewer.get(`/ops/audit?from=${from}`)).status]).toEqual([from, 400]);
    }
    expect((await viewer.get("/ops/audit?from=2026-11-21T04:00&to=2026-11-22")).status).toBe(200);
    expect((await viewer.get("/ops/audit/audit.csv?to=9999-12-31T23:59")).status).toBe(200);
  });
});

describe("a request", () => {
  let admin: CookieClient;
  beforeAll(async () => {
    admin = await world.as("admin");
  });

  it("for an unknown path is 404, with another method 405 and the allowed ones", async () => {
    expect((await admin.get("/ops/nothing/here")).status).toBe(404);
    expect((await admin.get("/ops/people/%zz")).status).toBe(400);
    for (const path of ["houses/%00", "tables/a/b/%00", "houses/a%00b/act?do=pause"]) {
      expect([path, (await admin.get(`/ops/${path}`)).status]).toEqual([path, 404]);
    }
    expect((await admin.post("/ops/houses/%00/pause", { reason: "a try" })).status).toBe(404);
    const wrong = await admin.post("/ops/audit");
    expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    const twice = await fetch(`${world.url}/ops/people`, {
      method: "DELETE",
      headers: { cookie: [...admin.cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
    });
    expect([twice.status, twice.headers.get("allow")]).toEqual([405, "GET, HEAD, POST"]);
  });

  it("with a form that is too large, no form, or holds what no text does is refused", async () => {
    const headers = { cookie: [...admin.cookies].map(([name, value]) => `${name}=${value}`).join("; ") };
    const send = async (body: string, type = "application/x-www-form-urlencoded") => {
      const response = await fetch(`${world.url}/ops/people`, {
        method: "POST",
        body,
        headers: { ...headers, "content-type": type, "sec-fetch-site": "same-origin" },
        redirect: "manual",
      });
      return response.status;
    };
    expect(await send(`email=${"a".repeat(70_000)}`)).toBe(413);
    expect(await send("a=1&".repeat(1_500))).toBe(413);
    expect(await send('{"email":"ann@example.com"}', "application/json")).toBe(415);
    expect(await send("email=a%00b&role=admin")).toBe(400);
    expect(await send("email=nobody&role=admin")).toBe(400);
    expect(await send("email=ann@example.com&role=god")).toBe(400);
    expect(await send("email=ann@example.com&role=admin&more=1")).toBe(400);
  });

  it("shows the input again if it was wrong, but no password", async () => {
    const text = await (
      await admin.post("/ops/people", { email: "not <an> address", role: "viewer", token: "hide me" })
    ).text();
    expect(text).toContain('value="not &lt;an&gt; address"');
    expect(text).not.toContain("hide me");
  });

  it("shows its message on the next page that is opened, once", async () => {
    await world.makeOperator("flash@example.com", "viewer");
    const list = await (await admin.get("/ops/people")).text();
    const id = /\/ops\/people\/([\w-]+)">Change<span class="hidden"> flash@/.exec(list)![1]!;
    const done = await admin.post(`/ops/people/${id}/disable`, { reason: "left the team" });
    expect([done.status, done.headers.get("location")]).toEqual([303, `/ops/people/${id}`]);
    expect(await (await admin.get("/ops/people", { "x-refresh": "1" })).text()).not.toContain(
      "cannot sign in any more",
    );
    expect(await (await admin.get("/ops/people")).text()).toContain("flash@example.com cannot sign in any more");
    expect(await (await admin.get("/ops/people")).text()).not.toContain("cannot sign in any more");
  });

  it("returns the stylesheet and the script, which a browser caches", async () => {
    const text = await (await admin.get("/ops/people")).text();
    const assets = [...text.matchAll(/(?:href|src)="(\/frame\.(?:css|js)\?v=\w+)"/g)];
    expect(assets).toHaveLength(2);
    for (const [, path] of assets) {
      const response = await world.stranger().get(path!);
      expect([response.status, response.headers.get("cache-control")]).toEqual([
        200,
        "public, max-age=31536000, immutable",
      ]);
    }
  });
});

describe("people", () => {
  const idOf = async (email: string) =>
    (await world.sql<[{ id: string }]>`select id from auth.users where email = ${email}`)[0].id;

  it("are made with a password that is shown once and written down nowhere", async () => {
    const admin = await world.as("admin");
    const response = await admin.post("/ops/people", { email: "New@example.com", role: "operator" });
    const text = await response.text();
    const password = /<pre[^>]*>([0-9a-f-]{35})<\/pre>/.exec(text)![1]!;
    expect(response.status).toBe(200);
    expect((await world.signIn("new@example.com", password)).response.status).toBe(303);
    const [kept] = await world.sql<[{ n: number }]>`
      select count(*)::integer as n from audit_log where concat(before, after, reason, target) like ${`%${password}%`}`;
    expect(kept.n).toBe(0);
    expect(world.lines.filter((line) => line.includes(password))).toEqual([]);
    expect((await admin.post("/ops/people", { email: "new@EXAMPLE.com", role: "viewer" })).status).toBe(422);
  });

  it("change their role only if it is what the admin saw, and never the last admin's", async () => {
    const admin = await world.as("admin");
    const id = await idOf("new@example.com");
    const change = (who: string, fields: Record<string, string>) =>
      admin.post(`/ops/people/${who}/role`, { reason: "test", ...fields });
    expect((await change(id, { role: "data", was: "operator" })).status).toBe(303);
    const stale = await change(id, { role: "viewer", was: "operator" });
    expect([stale.status, await stale.text()]).toEqual([422, expect.stringContaining("was made data meanwhile")]);
    const last = await change(await idOf("admin@example.com"), { role: "viewer", was: "admin" });
    expect([last.status, await last.text()]).toEqual([422, expect.stringContaining("the last admin")]);
    expect(
      (await admin.post(`/ops/people/${await idOf("admin@example.com")}/disable`, { reason: "test" })).status,
    ).toBe(422);
    expect((await change("nobody", { role: "viewer", was: "admin" })).status).toBe(404);
    const [entry] = await world.sql<
      [{ before: unknown; after: unknown; actor: string; role: string; address: string }]
    >`
      select before, after, actor, role, address from audit_log where action = 'operator.role' order by seq desc limit 1`;
    expect(entry).toMatchObject({
      before: { role: "operator" },
      after: { role: "data" },
      actor: "admin@example.com",
      role: "admin",
    });
    expect(entry.address).toMatch(/^198\.51\.100\./);
  });

  it("are never without an admin, also if two admins take each other's role concurrently", async () => {
    const [a, b] = [await world.as("admin"), "second@example.com"];
    await world.makeOperator(b, "admin");
    const { client: second } = await world.signIn(b);
    const demote = (by: CookieClient, id: string) =>
      by.post(`/ops/people/${id}/role`, { role: "viewer", was: "admin", reason: "test" });
    const [adminId, secondId] = [await idOf("admin@example.com"), await idOf(b)];
    await Promise.all([demote(a, secondId), demote(second, adminId)]);
    const admins = await world.sql`select user_id from operators where role = 'admin' and disabled_at is null`;
    expect(admins).toHaveLength(1);
    await world.sql`update operators set role = 'admin' where user_id in (${adminId}, ${secondId})`;
  });

  it.for([
    ["", { email: "accomplice@example.com", role: "operator" }],
    ["/:id/role", { role: "operator", was: "viewer", reason: "test" }],
    ["/:id/disable", { reason: "test" }],
    ["/:id/reset-password", { reason: "test" }],
  ] as const)("are not changed by an admin who is demoted meanwhile: %s", async ([path, fields], { task }) => {
    const demoted = await world.makeOperator(`${task.id}@example.com`, "admin");
    const target = await world.makeOperator(`of-${task.id}@example.com`, "viewer");
    const { client } = await world.signIn(`${task.id}@example.com`);
    const entries = await auditEntries();
    const { sent } = await world.sql.begin(async (tx) => {
      await tx`update operators set role = 'viewer' where user_id = ${demoted}`;
      const sending = client.post(`/ops/people${path.replace(":id", target)}`, fields);
      await lockWaits(world.sql, 1);
      return { sent: sending };
    });
    expect((await sent).status).toBe(403);
    expect(await auditEntries()).toBe(entries);
    expect(await world.sql`select from auth.users where email = 'accomplice@example.com'`).toEqual([]);
  });

  it("get a mail when their sign-in is disabled or enabled, as does every admin, the disabled one included", async () => {
    const admin = await world.as("admin");
    const ids = {
      chief: await world.makeOperator("chief@example.com", "admin"),
      clerk: await world.makeOperator("clerk@example.com", "viewer"),
    };
    const post = (id: string, what: string) => admin.post(`/ops/people/${id}/${what}`, { reason: "test" });
    const mailsTo = async (recipient: string) => {
      const mails = await world.sql<{ subject: string; body: string }[]>`
        select subject, body from mails where recipient = ${recipient} order by id`;
      return mails.map(({ subject, body }) => `${subject}: ${body}`.replaceAll(/\s+/g, " "));
    };
    const clerkIsDisabled = "The sign-in of clerk@example.com was disabled by admin@example.com";
    const waits = "For 24 hours they cannot approve anything. If";
    const clerkIsEnabled = `The sign-in of clerk@example.com was enabled by admin@example.com. ${waits}`;
    const chiefIsDisabled = "The sign-in of chief@example.com was disabled by admin@example.com";
    const before = (await mailsTo("admin@example.com")).length;
    for (const what of ["disable", "enable"]) expect((await post(ids.clerk, what)).status).toBe(303);
    expect((await post(ids.chief, "disable")).status).toBe(303);
    expect(await mailsTo("clerk@example.com")).toEqual([
      expect.stringMatching(/^Your sign-in was disabled: .* by admin@example\.com/),
      expect.stringMatching(
        /^Your sign-in was enabled: .* by admin@example\.com.*For 24 hours you cannot approve anything\. If/,
      ),
    ]);
    expect(await mailsTo("chief@example.com")).toEqual([
      expect.stringContaining(clerkIsDisabled),
      expect.stringContaining(clerkIsEnabled),
      expect.stringContaining(chiefIsDisabled),
      expect.stringContaining("Your sign-in was disabled: "),
    ]);
    expect((await mailsTo("admin@example.com")).slice(before)).toHaveLength(3);
    expect(await world.sql`select user_id, what, made_by from operator_changes where user_id = ${ids.clerk}`).toEqual([
      { user_id: ids.clerk, what: "enabled", made_by: "admin@example.com" },
    ]);
  });

  it("lose their sign-ins with a new password, and their second factor if it is reset", async () => {
    const admin = await world.as("admin");
    await world.makeOperator("lost@example.com", "viewer");
    const id = await idOf("lost@example.com");
    const { client: lost } = await world.signIn("lost@example.com");
    expect((await lost.get("/ops/me")).status).toBe(200);
    const text = await (await admin.post(`/ops/people/${id}/reset-password`, { reason: "forgot it" })).text();
    const password = /<pre[^>]*>([0-9a-f-]{35})<\/pre>/.exec(text)![1]!;
    expect((await lost.get("/ops/me")).status).toBe(302);
    expect((await world.signIn("lost@example.com")).response.status).toBe(401);
    const { client: back } = await world.signIn("lost@example.com", password);
    expect((await admin.post(`/ops/people/${id}/end-sessions`, { reason: "laptop stolen" })).status).toBe(303);
    expect((await back.get("/ops/me")).status).toBe(302);
    const none = await admin.post(`/ops/people/${id}/reset-two-factor`, { reason: "lost phone" });
    expect([none.status, await none.text()]).toEqual([422, expect.stringContaining("has no second factor")]);
  });
});

describe("[API5][V7] what is dangerous", () => {
  it("requires the password again ten minutes after signing in, and then continues with the submitted form", async () => {
    await world.makeOperator("slow@example.com", "admin");
    await world.makeOperator("target@example.com", "viewer");
    const { client: slow } = await world.signIn("slow@example.com");
    const [{ id, user }] = await world.sql<[{ id: string; user: string }]>`
      update auth.sessions set created_at = clock_timestamp() - interval '11 minutes'
      where user_id = (select id from auth.users where email = 'slow@example.com')
      returning id, (select id from auth.users where email = 'target@example.com') as user`;
    const path = `/ops/people/${user}/disable`;
    const asked = await slow.post(path, { reason: "left <the> team" });
    const text = await asked.text();
    expect(asked.status).toBe(403);
    expect(text).toContain("Confirm that it is you");
    expect(text).toContain('<input type="hidden" name="reason" value="left &lt;the&gt; team">');
    expect((await slow.post(path, { reason: "left", _password: "not it at all" })).status).toBe(403);
    const [{ disabled }] = await world.sql<[{ disabled: boolean }]>`
      select disabled_at is not null as disabled from operators where user_id = ${user}`;
    expect(disabled).toBe(false);
    expect((await slow.post(path, { reason: "left <the> team", _password: PASSWORD })).status).toBe(303);
    expect((await slow.post(`/ops/people/${user}/enable`, { reason: "is back" })).status).toBe(303); // still fresh
    await world.sql`update auth.sessions set confirmed_at = clock_timestamp() - interval '11 minutes' where id = ${id}`;
    expect((await slow.post(path, { reason: "gone again" })).status).toBe(403);
  });
});

describe("the frame", () => {
  it("shows what is shown only once also if the audit log cannot be read after the action", async () => {
    const once: OpsAction = {
      name: "test.once",
      path: "/once",
      roles: ["operator"],
      isDangerous: false,
      form: z.object({}),
      async run({ sql }, { visitor }) {
        await sql.begin((tx) => appendAudit(tx, auditEntry(visitor, { action: "test.once", target: "nothing" })));
        await other.sql`revoke select on audit_log from ${other.sql(ROLE_NAMES.ops)}`;
        const data = { message: "a secret of one page", fields: [], requestId: "none" };
        return {
          ok: true,
          message: "done",
          location: "/ops",
          once: { template: "frame/problem-page", title: "Once", data },
        };
      },
    };
    const other = await openOpsWorld({ lists: { pages: [], actions: [once] } });
    try {
      const response = await (await other.as("operator")).post("/ops/once");
      expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("a secret of one page")]);
      expect(other.lines.join("")).toContain("the audit log could not be checked for this action: permission denied");
    } finally {
      await other.close();
    }
  });

  it("responds with 500 if an action left no audit entry, with a redirect if it did, and with 503 while the database is away", async () => {
    const act = (name: string, isNoted: boolean): OpsAction => ({
      name,
      path: `/${name}`,
      roles: ["operator"],
      isDangerous: false,
      form: z.object({}),
      async run({ sql }, { visitor }) {
        const entry = auditEntry(visitor, { action: name, target: "nothing" });
        if (isNoted) await sql.begin((tx) => appendAudit(tx, entry));
        return { ok: true, message: "done", location: "https://evil.example" };
      },
    });
    const page: OpsPage = {
      path: "/failing",
      query: z.object({}),
      show: () => Promise.reject(new Error("a fault with secrets in it")),
    };
    const slow: OpsPage = {
      path: "/slow",
      query: z.object({}),
      show: ({ sql }) =>
        sql.begin(async (tx) => {
          await tx`set local statement_timeout = 20`;
          await tx`select pg_sleep(20)`;
          return null;
        }),
    };
    const locked: OpsPage = {
      ...slow,
      path: "/locked",
      show: ({ sql }) =>
        sql.unsafe("do $$ begin raise exception 'lock timeout' using errcode = '55P03'; end $$").then(() => null),
    };
    const other = await openOpsWorld({
      lists: { pages: [page, slow, locked], actions: [act("test.silent", false), act("test.noted", true)] },
    });
    try {
      const operator = await other.as("operator");
      expect((await operator.post("/ops/test.silent")).status).toBe(500);
      expect(other.lines.join("")).toContain("left nothing in the audit log");
      const noted = await operator.post("/ops/test.noted");
      expect([noted.status, noted.headers.get("location")]).toEqual([303, "/ops"]);
      const failing = await operator.get("/ops/failing");
      expect([failing.status, await failing.text()]).toEqual([500, expect.not.stringContaining("secrets")]);
      const tooMuch = await operator.get("/ops/slow");
      expect([tooMuch.status, await tooMuch.text()]).toEqual([504, expect.stringContaining("Select less")]);
      const busy = await operator.get("/ops/locked");
      expect([busy.status, await busy.text()]).toEqual([503, expect.stringContaining("Nothing was changed")]);
      expect((await operator.post("/ops/failing")).status).toBe(405);
      expect((await other.stranger().get("/ops/failing")).status).toBe(302);

      const name = new URL(other.databaseUrl).pathname.slice(1);
      const admin = connect(inject("databaseUrl"), { name: "test", max: 1 });
      await admin`alter database ${admin(name)} with allow_connections false`;
      await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`;
      const away = await operator.get("/ops/me");
      expect([away.status, away.headers.get("retry-after")]).toEqual([503, "5"]);
      expect(await away.text()).toContain("PostgreSQL does not respond");
      await admin`alter database ${admin(name)} with allow_connections true`;
      await admin.end();
      await eventually(async () => (await operator.get("/ops/me")).status === 200);
    } finally {
      await other.close();
    }
  });
});

it("a path that only begins like /ops is as unknown as any other path, to every client", async () => {
  const client = await world.as("viewer");
  for (const path of ["/opsx", "/ops.css"]) {
    const response = await client.get(path);
    expect([path, response.status, await response.json()]).toMatchObject([path, 404, { error: { code: "not_found" } }]);
  }
});

describe("helpers", () => {
  it("have examples that hold", () => {
    const claims = [
      ...listExamples("src/frame/text/format.ts").flatMap((example) => runExample(example, { ...format })),
      ...listExamples("src/csv.ts").flatMap((example) => runExample(example, { ...csv })),
      ...listExamples("src/http/paths.ts").flatMap((example) => runExample(example, { ...paths })),
    ];
    expect(claims.length).toBeGreaterThan(9);
    for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
    expect(duration(61)).toBe("1 min 1 s");
  });

  it("keep the rest of the URL in links, begin at page 1 after a change, and escape what they write", () => {
    const h = helpersFor({ now: new Date("2026-11-21T04:00:00Z"), url: "/ops/x?sort=a&page=3&q=%3Cb%3E" });
    expect(h.link({ sort: "-a" })).toBe("/ops/x?sort=-a&q=%3Cb%3E");
    expect(h.link({ page: 4 })).toBe("/ops/x?sort=a&page=4&q=%3Cb%3E");
    expect(h.link({ sort: null, q: null })).toBe("/ops/x");
    expect(h.badge("<b>", "bad")).toBe('<span class="badge bad">&lt;b&gt;</span>');
    expect(h.age(new Date("2026-11-21T03:58:30Z"))).toContain(">1 min 30 s ago</time>");
    expect(h.age(new Date("2026-11-21T04:00:30Z"))).toContain(">in 30 s</time>");
    expect(h.sortHead("a", "A & B", { sort: "a" })).toContain(
      'aria-sort="ascending"><a href="/ops/x?sort=-a&amp;q=%3Cb%3E">A &amp; B</a>',
    );
    expect(h.pager({ page: 3, perPage: 10, total: 25n })).toContain("21–25 of 25");
  });
});
