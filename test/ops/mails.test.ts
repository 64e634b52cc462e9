import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { queueMail } from "../../src/mail/outbox-store.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "./world.ts";

let world: OpsWorld;
let withServer: OpsWorld;
let [admin, operator, viewer]: CookieClient[] = [];
beforeAll(async () => {
  [world, withServer] = await Promise.all([
    openOpsWorld(),
    openOpsWorld({ settings: { SMTP_URL: "smtp://127.0.0.1:1" } }),
  ]);
  admin = await world.as("admin");
  operator = await world.as("operator");
  viewer = await world.as("viewer");
});
beforeEach(async () => {
  for (const { sql } of [world, withServer]) await sql`truncate mails restart identity`;
});
afterAll(() => Promise.all([world.close(), withServer.close()]));

const SECRET = "https://rounds.example/verify?token=abc";

const write = (recipient: string, subject = "Hello", { sql } = world) =>
  queueMail(sql, { kind: "verify", recipient, subject, body: `Open ${SECRET}` });

const giveUp = (id: number) => world.sql`
  update mails
  set given_up_at = clock_timestamp(), last_error = '550 <b>no such user</b>', attempts = 3, is_refused = true
  where id = ${id}`;

async function page(client: CookieClient | undefined, path: string): Promise<string> {
  const response = await client?.get(path);
  expect(`${path} ${response?.status}`).toBe(`${path} 200`);
  return (await response?.text()) ?? "";
}

describe("mails", () => {
  it("are listed with their state and by what is in the URL, page after page, without their text", async () => {
    for (let n = 1; n <= 53; n++) await write(`n${n}@example.com`, `Mail <i>${n}</i>`);
    await giveUp(2);
    await world.sql`update mails set sent_at = clock_timestamp(), body = null where id = 3`;
    const all = await page(viewer, "/ops/mails");
    expect(all).toContain("n53@example.com");
    expect(all).toContain("Mail &lt;i&gt;53&lt;/i&gt;");
    expect(all).toContain("51 pending");
    expect(all).not.toContain("verify?token");
    expect(all).not.toContain("n2@example.com");
    const next = /rel="next" href="([^"]+)"/.exec(all)?.[1] ?? "";
    const rest = await page(viewer, next.replaceAll("&amp;", "&"));
    expect(rest).toContain("n2@example.com");
    expect(rest).toContain("550 &lt;b&gt;no such user");
    expect(await page(viewer, "/ops/mails?state=given-up")).not.toContain("n3@example.com");
    expect(await page(viewer, "/ops/mails?state=sent")).toContain("n3@example.com");
    expect(await page(viewer, "/ops/mails?recipient=N41@")).toContain("n41@example.com");
    expect(await page(viewer, "/ops/mails?kind=nothing")).toContain("No mails match");
    expect((await page(viewer, "/ops/mails?sort=oldest")).indexOf(">n1@")).toBeGreaterThan(0);
    expect((await viewer?.get("/ops/mails?state=lost"))?.status).toBe(400);
    expect((await viewer?.get("/ops/mails/99"))?.status).toBe(404);
  });

  it("show an admin their text while there is no mail server, and no one once one has been tried", async () => {
    await write("ann@example.com");
    expect(await page(admin, "/ops/mails")).toContain("No mail server is set");
    expect(await page(admin, "/ops/mails/1")).toContain("verify?token=abc");
    for (const other of [operator, viewer, await world.as("data")]) {
      expect(await page(other, "/ops/mails/1")).not.toContain("token");
    }
    const read = await world.sql`select actor, target from audit_log where action = 'mail.read'`;
    expect(read).toEqual([{ actor: admin?.email, target: "mail 1" }]); // its link opens a caller's account
    await write("ben@example.com");
    await giveUp(2);
    for (const path of ["/ops/mails/1", "/ops/mails/2"]) expect(await page(admin, path)).not.toContain("token");
    await write("ann@example.com", "Hello", withServer);
    const other = await withServer.as("admin");
    expect(await page(other, "/ops/mails/1")).not.toContain("token");
    expect(await page(other, "/ops/mails")).not.toContain("No mail server is set");
  });

  it("that were given up are sent again when an operator asks for it, with an entry in the audit log", async () => {
    for (const name of ["ann", "ben", "cat"]) await write(`${name}@example.com`);
    for (const id of [1, 2]) await giveUp(id);
    const reason = "the server is back";
    expect((await viewer?.post("/ops/mails/retry", { ids: "1", reason }))?.status).toBe(403);
    expect((await operator?.post("/ops/mails/retry", { ids: ["1", "3"], reason }))?.status).toBe(303);
    const unfit = await operator?.post("/ops/mails/retry", { ids: ["1", "3"], reason });
    expect([unfit?.status, await unfit?.text()]).toEqual([
      422,
      expect.stringContaining("none of these mails is given up"),
    ]);
    expect((await operator?.post("/ops/mails/retry-all", { reason }))?.status).toBe(303);
    const waiting = await world.sql`
      select id::integer, attempts
      from mails
      where given_up_at is null and body is not null and next_try_at <= clock_timestamp()
      order by id`;
    expect(waiting).toEqual([1, 2, 3].map((id) => ({ id, attempts: 0 })));
    const entries = await world.sql`
      select action, target, reason from audit_log where action like 'mail.retry%' order by seq`;
    expect(entries).toEqual([
      { action: "mail.retry", target: "mail 1", reason },
      { action: "mail.retry-all", target: "mail 2", reason },
    ]);
    expect(await page(admin, "/ops/mails/1")).not.toContain("token");
  });

  it("show the error of the mail server", async () => {
    await world.sql`
      insert into mail_failures (next_try_at, reason) values (clock_timestamp() + interval '5 minutes', '535 <who> are you')`;
    expect(await page(viewer, "/ops/mails")).toContain("535 &lt;who&gt; are you");
    await world.sql`delete from mail_failures`;
  });
});
