import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { findWithin } from "../../src/ops/search/search-store.ts";
import * as term from "../../src/ops/search/term.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { makeJob, readableLog } from "../queue/world.ts";
import { openBankWorld, type BankWorld } from "../topups/bank-world.ts";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { houseEntry } from "../support/houses.ts";
import { makeItem, makePayload } from "../support/make.ts";
import type { CookieClient } from "./world.ts";

let bank: BankWorld;
let queues: Queues;
let viewer: CookieClient;
let admin: CookieClient;
let account: bigint;
let receivedAt: string;
let tableId: number;

beforeAll(async () => {
  const redis = await createRedis();
  queues = await openQueues(
    [makeJob({ name: "poll-house" }), makeJob({ name: "backfill-gap" })],
    redis.url,
    readableLog().log,
  );
  bank = await openBankWorld({ queues });
  const { sql, world } = bank;
  [viewer, admin] = [await world.as("viewer"), await world.as("admin")];
  await applyHouses(sql, [houseEntry(), houseEntry({ id: "beta", name: "Beta & <Sons>" })]);
  await createAccount(sql, "cleo@example.com");
  await createKey(sql, { email: "cleo@example.com", name: "robot of Cleo", plan: "Pro" });
  const [row] = await sql<{ id: bigint }[]>`select id from accounts where email = 'cleo@example.com'`;
  account = row!.id;
  const [table] = await sql<{ id: number }[]>`select id from tables where house_id = 'alpha'`;
  tableId = table!.id;
  await makePayload(sql, { id: tableId }, { second: 0, items: [makeItem(1, 1.5)] });
  const [payload] = await sql<{ at: string }[]>`select utc_text(received_at) as at from payloads`;
  receivedAt = payload!.at;
});
afterAll(async () => {
  await bank.world.close();
  await queues.close();
});

type Found = string | { groups: string[]; links: string[]; page: string };

/** What a search leads to, again until a busy machine stops no part of it. */
function search(text: string, as = viewer): Promise<Found> {
  return eventually(async () => {
    const found = await searchOnce(text, as);
    return (typeof found === "string" || !found.page.includes("took too long")) && found;
  });
}

/** What a search leads to: another page, or the headings and links of its results. */
async function searchOnce(text: string, as = viewer): Promise<Found> {
  const response = await as.get(`/ops/search?q=${encodeURIComponent(text)}`);
  if (response.status === 302) return response.headers.get("location") ?? "";
  expect(response.status).toBe(200);
  const page = await response.text();
  const main = page.slice(page.indexOf("<main"), page.indexOf("</main>"));
  const groups = [...main.matchAll(/<h2>([^<]+)<\/h2>/g)].map(([, label = ""]) => label);
  const links = [...main.matchAll(/<li><a href="([^"]+)"/g)].map(([, href = ""]) => href);
  return { groups, links, page: main };
}

describe("the search of the ops pages", () => {
  it("reads a text as its examples show", () => {
    const claims = listExamples("src/ops/search/term.ts").flatMap((example) => runExample(example, { ...term }));
    expect(claims.length).toBeGreaterThan(4);
    for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
  });

  it("redirects to the page of the one thing that the whole text names", async () => {
    expect(await search("beta")).toBe("/ops/houses/beta");
    expect(await search("ALPHA/crash/global")).toBe("/ops/tables/alpha/crash/global");
    expect(await search("Cleo@Example.com")).toBe(`/ops/callers/${account}`);
    expect(await search(`account ${account}`)).toBe(`/ops/callers/${account}`);
    expect(await search(`${tableId}/${receivedAt}`)).toBe(`/ops/payloads/${tableId}/${receivedAt}`);
    expect(await search(`${bank.world.url}/ops/payloads/${tableId}/${receivedAt}`)).toBe(
      `/ops/payloads/${tableId}/${receivedAt}`,
    );
    expect(await search(`f${tableId}-9`)).toBe("/ops/tables/alpha/crash/global#forecasts");
    const { id, reference } = await bank.announce(account);
    const typed = reference.toLowerCase().replaceAll(/(.{4})/g, "$1 ");
    expect(await search(typed)).toBe(`/ops/top-ups/${id}`);
    const page = await (await viewer.get(`/ops/top-ups/${id}`)).text();
    expect(page).toContain(reference);
    expect(page).toContain("cleo@example.com");
    const line = await bank.enter({ bank_ref: "BANK-77" });
    expect(await search("bank-77")).toBe(line);
    const [run] = await bank.sql<{ id: bigint }[]>`
      insert into calibration_runs (table_id, kind, model, from_seq, to_seq)
      values (${tableId}, 'manual', 'k7@1', 1, 1)
      returning id`;
    expect(await search(`run ${run!.id}`)).toBe(`/ops/calibrations/runs/${run!.id}`);
  });

  it("groups what a part of the text matches, and shows the same id of several kinds", async () => {
    expect(await search("lph")).toMatchObject({ groups: ["Houses", "Tables"] });
    expect(await search("cleo")).toMatchObject({ groups: ["Callers", "Keys"] });
    expect(await search("robot")).toMatchObject({ groups: ["Keys"], links: [`/ops/callers/${account}`] });
    const [key] = await bank.sql<{ last4: string }[]>`select last4 from keys`;
    expect(await search(key!.last4)).toMatchObject({ groups: ["Keys"] });
    const { id, reference } = await bank.announce(account);
    expect(await search(reference.slice(0, 6))).toMatchObject({ groups: ["Top-ups"] });
    await bank.sql`insert into calibration_runs (id, table_id, kind, model, from_seq, to_seq)
      overriding system value values (${id}, ${tableId}, 'manual', 'k7@1', 1, 1) on conflict do nothing`;
    const several = await search(String(id));
    expect(several).toMatchObject({
      links: expect.arrayContaining([`/ops/top-ups/${id}`, `/ops/calibrations/runs/${id}`]) as unknown,
    });
    expect(await search("nothing of this name")).toMatchObject({ groups: [] });
  });

  it("searches only the ending of a whole key and does not repeat the key", async () => {
    const whole = "rh_live_0123456789abcdefghijklmnopqrstuv";
    const found = await search(whole);
    expect(found).toMatchObject({ page: expect.stringContaining("That was a whole key.") as unknown });
    expect((found as { page: string }).page).not.toContain(whole);
  });

  it("finds jobs by id in every queue", async () => {
    await queues.enqueue(queues.jobs[0]!, { house: "beta" });
    const [job] = await queues.get("poll-house").getJobs();
    expect(await search(`job ${job!.id}`)).toBe(`/ops/queues/poll-house/runs/${job!.id}`);
  });

  it("finds no job under a name that the queue itself uses", async () => {
    const keys = ["events", "meta", "failed", "completed", "id", "marker", "repeat"];
    for (const key of keys) expect(await search(key), key).toMatchObject({ groups: [] });
  });

  it("finds settings for admins alone", async () => {
    expect(await search("BANK_IBAN", admin)).toBe("/ops/settings#BANK_IBAN");
    expect(await search("BANK_IBAN")).toMatchObject({ groups: [] });
  });

  it("shows eight rows of a kind, and a link to all of them", async () => {
    await bank.sql`insert into accounts (email) select 'many-' || n || '@example.com' from generate_series(1, 20) n`;
    const found = await search("many-");
    expect(found).toMatchObject({ groups: ["Callers"] });
    expect((found as { links: string[] }).links).toHaveLength(8);
    expect((found as { page: string }).page).toContain('href="/ops/callers?q=many-"');
  });

  it("stops a search that takes too long and reports it as not done", async () => {
    const found = await findWithin(bank.sql, (sql) => sql<never[]>`select pg_sleep(60)`, term.readTerm("x"), 1);
    expect(found).toBeNull();
  });

  it("refuses a text that is too long, and escapes what was typed", async () => {
    expect((await viewer.get(`/ops/search?q=${"x".repeat(201)}`)).status).toBe(400);
    const found = await search("<b>&");
    expect((found as { page: string }).page).toContain("&lt;b&gt;&amp;");
    expect(await search("50%_\\")).toMatchObject({ groups: [] });
  });
});
