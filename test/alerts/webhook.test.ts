import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import postAlerts from "../../jobs/post-alerts.ts";
import { alertLetter, alertMessage } from "../../src/alerts/letter.ts";
import { closeAlert, openAlert, syncAlerts } from "../../src/alerts/store.ts";
import { postMessage } from "../../src/alerts/webhook.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { testContext } from "../support/context.ts";
import { createDatabase } from "../support/database.ts";
import { listExamples, runExample } from "../support/examples.ts";

let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
let server: Server;
let url: string;
/** What the webhook received, and the status of its responses; 0 sends none. */
let received: { type: string | undefined; body: unknown }[];
let status: number;

beforeEach(async () => {
  database = await createDatabase();
  sql = connect(database.url, { name: "test" });
  received = [];
  status = 200;
  server = createServer((request, response) => void respond(request, response)).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/services/hidden-part`;
});
async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  received.push({ type: request.headers["content-type"], body: JSON.parse(await text(request)) });
  if (status !== 0) response.writeHead(status, { location: "/elsewhere" }).end("ok");
}
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await sql.end({ timeout: 1 });
  await database.drop();
});

const disk = { kind: "disk", subject: "host:/data", text: "the disk is nearly full" };
const env = () => ({ STAFF_WEBHOOK_URL: url, PUBLIC_URL: "https://rounds.example" });
async function post(variables: Record<string, string> = env()) {
  const { context, lines } = testContext(sql, { env: variables });
  const isWork = ((await postAlerts.sweep?.(context)) ?? []).length > 0;
  return { isWork, counts: await postAlerts.run({}, context), lines };
}
const openKinds = async () =>
  (await sql<{ kind: string }[]>`select kind from alerts where closed_at is null order by kind`).map(
    ({ kind }) => kind,
  );
const { context } = testContext(undefined as unknown as Sql);

describe("the staff webhook", () => {
  it("gets one message when an alert opens and one when it closes", async () => {
    await openAlert(sql, context.log, disk);
    expect(await post()).toMatchObject({ isWork: true, counts: { posted: 1 } });
    expect(received).toEqual([
      {
        type: "application/json",
        body: {
          text: expect.stringMatching(
            /^Alert: disk \(host:\/data\)\n\nOPEN since .*\nthe disk is nearly full\n\nBoard: https:\/\/rounds\.example\/ops$/,
          ) as string,
        },
      },
    ]);
    expect((await post()).isWork).toBe(false);
    await closeAlert(sql, context.log, disk);
    expect((await post()).counts).toEqual({ posted: 1 });
    expect(received[1]?.body).toMatchObject({ text: expect.stringMatching(/^Over: disk/) as string });
    expect((await post()).isWork).toBe(false);
  });

  it("gets an alert of another kind in the first message, however many of one kind are older", async () => {
    const tables = Array.from({ length: 120 }, (_, n) => ({ subject: `alpha/crash/m${n}`, text: "not scored" }));
    await syncAlerts(sql, context.log, "unscored", tables);
    await openAlert(sql, context.log, disk);
    await post();
    expect(received[0]?.body).toMatchObject({ text: expect.stringContaining("disk (host:/data)") as string });
  });

  it("gets every alert, in as many messages as they need", async () => {
    const long = "x".repeat(1_400);
    for (let n = 0; n < 12; n += 1)
      await openAlert(sql, context.log, { kind: "disk", subject: `host ${n}:`, text: long });
    const posted: unknown[] = [];
    while ((await post()).isWork) posted.push(received.length);
    const texts = received.map(({ body }) => (body as { text: string }).text);
    expect(texts.length).toBeGreaterThan(1);
    for (const one of texts) expect(one.length).toBeLessThanOrEqual(10_100);
    for (let n = 0; n < 12; n += 1)
      expect(texts.filter((one) => one.includes(`(host ${n}:)\n${long}`))).toHaveLength(1);
  });

  it("gets text of a house as text: no mention of everyone, and no link under other words", async () => {
    const reason = "<!channel> <https://evil.example|Sign in> & @here @Channel, ask ann@all.example";
    await openAlert(sql, context.log, { ...disk, text: reason });
    await post();
    expect(received[0]?.body).toMatchObject({
      text: expect.stringContaining(
        "&lt;!channel&gt; &lt;https://evil.example|Sign in&gt; &amp; @\u200bhere @\u200bChannel, ask ann@all.example",
      ) as string,
    });
  });

  it("is off unless it is set", async () => {
    await openAlert(sql, context.log, disk);
    expect(await post({})).toMatchObject({ isWork: false, counts: { posted: 0 } });
    expect(received).toEqual([]);
  });

  it("that refuses is tried again later, with an alert after the second failure, and loses nothing", async () => {
    status = 500;
    await openAlert(sql, context.log, disk);
    const first = await post();
    expect(first.counts).toEqual({ failed: 1 });
    expect(first.lines.map(({ msg }) => msg).join()).toContain("expected a status of 2xx, found 500");
    expect(JSON.stringify(first.lines)).not.toContain("hidden-part");
    expect((await post({ ...env() })).isWork).toBe(false); // not before its time
    expect(await openKinds()).toEqual(["disk"]);
    await sql`update staff_webhook_failure set since = since - interval '10 seconds', next_try_at = clock_timestamp()`;
    expect(await post()).toMatchObject({ isWork: true, counts: { failed: 1 } });
    expect(await openKinds()).toEqual(["disk", "staff_webhook"]);
    status = 204;
    await sql`update staff_webhook_failure set next_try_at = clock_timestamp()`;
    expect((await post()).counts).toEqual({ posted: 2 });
    expect(await openKinds()).toEqual(["disk"]);
    expect(await sql`select from staff_webhook_failure`).toHaveLength(0);
  });

  it("that redirects, never responds or is unreachable is a failure that does not name its address", async () => {
    const { signal } = new AbortController();
    status = 302;
    expect(await postMessage(url, "hello", signal)).toMatch(/^fetch failed/);
    status = 0;
    expect(await postMessage(url, "hello", signal, { timeoutMs: 100 })).toBe(
      "expected a response within 0.1 s, found none",
    );
    server.closeAllConnections();
    server.close();
    const away = await postMessage(url, "hello", signal);
    expect(away).toContain("ECONNREFUSED");
    expect(away).not.toContain("hidden-part");
    await expect(postMessage(url, "hello", AbortSignal.abort(new Error("stopping")))).rejects.toThrow("stopping");
  });

  it("must be a web address, which no error repeats", () => {
    expect(() => loadSettings({ STAFF_WEBHOOK_URL: "ftp://hidden-part" })).toThrow(/STAFF_WEBHOOK_URL: expected a URL/);
    expect(() => loadSettings({ STAFF_WEBHOOK_URL: "ftp://hidden-part" })).not.toThrow(/hidden-part/);
  });

  it("gets the messages that the examples show", () => {
    const claims = listExamples("src/alerts/letter.ts").flatMap((one) =>
      runExample(one, { alertLetter, alertMessage }),
    );
    expect(claims.length).toBe(3);
    for (const { line, actual, expected } of claims) {
      expect(actual, line).toEqual(expected);
    }
  });
});
