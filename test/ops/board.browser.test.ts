import { mkdirSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { startWorkers, type Workers } from "../../src/queue/worker.ts";
import { sumCells } from "../../src/rounds/gaps/cells-store.ts";
import { makeJob, readableLog } from "../queue/world.ts";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import { NO_PASSES, testContext } from "../support/context.ts";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { makeItem, makePayload } from "../support/make.ts";
import { passesTo } from "../support/passes-to.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "./world.ts";

/** A folder for screenshots, to be looked at; none are made without it. */
const { SHOTS } = process.env;

const { log } = readableLog();
let world: OpsWorld;
let browser: Browser;
let queues: Queues;
let own: Sql;
let workers: Workers;

const fragile = makeJob({
  name: "backfill-gap",
  retry: { attempts: 1, firstMs: 1, maxMs: 1 },
  run: ({ house }) => Promise.reject(new Error(`the history of ${house} answered 503, expected 200`)),
});
const ticking = makeJob({
  name: "poll-house",
  schedule: async () => [{ payload: { house: "alpha/0" }, everyMs: 3_600_000, offsetMs: 5 }],
});

beforeAll(async () => {
  const redis = await createRedis();
  const jobs = [ticking, fragile];
  queues = await openQueues(jobs, redis.url, log);
  [world, browser] = await Promise.all([openOpsWorld({ queues }), openBrowser()]);
  const { sql, databaseUrl } = world;
  own = connect(databaseUrl, { name: "worker", max: 4 });
  workers = await startWorkers({
    jobs,
    sql: own,
    passes: NO_PASSES,
    redisUrl: redis.url,
    settings: loadSettings({}),
    variables: () => undefined,
    http: { fetch: () => Promise.reject(new Error("no house is asked here")), close: () => Promise.resolve() },
    log,
    version: "1.2.3",
    onFatal: (error) => log.fatal(error),
    tickMs: 500,
  });
  await applyHouses(sql, [
    houseEntry(),
    houseEntry({ id: "beta", name: "Beta" }),
    houseEntry({ id: "gamma", name: "Gamma", tables: [tableEntry({ market: "one" }), tableEntry({ market: "two" })] }),
  ]);
  const [table] = await sql<{ id: number }[]>`select id from tables where house_id = 'alpha'`;
  const first = { id: table?.id ?? 0 };
  await makePayload(sql, first, { second: 0, items: [makeItem(3, 1.5), makeItem(2, 0), makeItem(1, 1.2)] });
  await makePayload(sql, first, { second: 1, items: [makeItem(4, 2.5), makeItem(3, 1.75)] });
  await makePayload(sql, first, { second: 2, items: [makeItem(9, 3.25)] });
  await normalizeRounds.run({ house: "alpha" }, testContext(sql, { passes: passesTo(databaseUrl) }).context);
  await sql`
    update poll_leases
    set last_poll_at = clock_timestamp() + interval '1 hour', last_ok_at = clock_timestamp(), last_status = 200, recent = repeat('1', 20)`;
  await sql`update table_heads set version = version + 1, last_polled_round_at = clock_timestamp()`;
  await sql`update tables set created_at = created_at - interval '2 days'`;
  await sql`
    update poll_leases
    set
      circuit = 'open', failures_in_row = 7, opened_times = 3, opened_at = clock_timestamp() - interval '10 minutes',
      next_allowed_at = clock_timestamp() + interval '1 hour', last_error = 'crash/global: answered 503, expected 200',
      last_error_at = clock_timestamp(), last_status = 503
    where house_id = 'beta'`;
  await sql`
    insert into polls (house_id, shard, minute, requests, statuses, bytes, latency_ms)
    select
      h.id, 0, date_trunc('minute', now()) - n * interval '1 minute', 30,
      case when h.id = 'beta' and n < 20 then '{"503": 20, "0": 10}' else '{"200": 18, "304": 12}' end::jsonb,
      25000, '{0,4,12,10,3,1,0,0,0,0}'
    from houses h, generate_series(0, 59) n`;
  await sql`
    insert into poll_failures (house_id, status, reason, detail)
    select 'beta', 503, 'status', 'answered 503, expected 200' from generate_series(1, 6)`;
  for (let looks = 0; looks < 60 && (await sumCells(sql)) > 0; looks++); // an hour each
  await sql`
    update round_cells c
    set rounds = (select array_agg(25 + ((n + extract(hour from c.hour)::integer) % 3)) from generate_series(1, cardinality(c.rounds)) n)
    from tables t
    where t.id = c.table_id and t.house_id <> 'beta'`;
  await sql`
    update round_cells set rounds[1:3] = '{0,0,4}' where hour = date_trunc('hour', now() - interval '8 hours', 'UTC')`;
  for (const house of ["alpha", "beta", "gamma"]) await queues.enqueue(fragile, { house });
  await eventually(async () => (await queues.get("backfill-gap").getFailedCount()) === 3);
  await eventually(async () => (await queues.get("poll-house").getJobSchedulersCount()) === 1);
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
});
afterAll(async () => {
  await browser.close();
  await workers.stop(0);
  await own.end({ timeout: 1 });
  await world.close();
  await queues.close();
});

/** Looks at a page in both themes and at the narrowest width: no fault for a screen reader, nothing to scroll sideways. */
async function look(page: Page, name: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" }), `${name}, ${colorScheme}`).toEqual(
      [],
    );
    if (SHOTS !== undefined)
      await page.screenshot({ path: `${SHOTS}/board-${name}-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(page), `${name} at 320 px`).toBe(0);
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/board-${name}-320.png`, fullPage: true });
  await page.setViewportSize({ width: 1280, height: 800 });
}

async function openAs(email: string, options: { javaScriptEnabled?: boolean } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${world.url}/ops`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Board" }).waitFor();
  return { page, errors };
}

describe("an operator in a browser", () => {
  it("sees what is wrong, follows it, acts on a house, and finds it in the audit log", async () => {
    await world.makeOperator("ann@example.com", "operator");
    const { page, errors } = await openAs("ann@example.com");
    await look(page, "board");
    const first = page.getByRole("list", { name: "open problems" }).getByRole("listitem").first();
    expect(await first.textContent()).toMatch(/beta[\s\S]*answered 503[\s\S]*circuit open: probe 3 in \d\d min/);
    await first.getByRole("link", { name: "beta", exact: true }).click();
    await look(page, "house");
    await page.getByRole("link", { name: "Probe now" }).click();
    await look(page, "act");
    await page.getByLabel("Reason").fill("they report they are back");
    await page.getByRole("button", { name: "Probe beta" }).click();
    await waitForToast(page, "beta is probed with its next poll");
    await page.goto(`${world.url}/ops/tables/alpha/crash/global`);
    await look(page, "table");

    await page.getByRole("link", { name: "Workers", exact: true }).click();
    await look(page, "workers");
    expect(errors).toEqual([]);

    const [audit] = await world.sql<{ actions: string[] }[]>`
      select array_agg(action order by seq) as actions from audit_log where actor = 'ann@example.com' and action !~ '^session'`;
    expect(audit?.actions).toEqual(["house.probe"]);
    await page.context().close();
  });
});

describe("a page that refreshes itself", () => {
  it("keeps what is open, closed and focused, and is refreshed meanwhile", async () => {
    await world.makeOperator("eva@example.com", "viewer");
    const addChange = () => world.sql`insert into circuit_changes (house_id, shard, state) values ('beta', 0, 'open')`;
    await world.sql`delete from circuit_changes`;
    await addChange();
    const { page, errors } = await openAs("eva@example.com");
    await page.goto(`${world.url}/ops/houses/beta`);
    const refreshedWith = async (failures: number) => {
      await world.sql`update poll_leases set failures_in_row = ${failures} where house_id = 'beta'`;
      await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
      await page.locator("#circuit + .wide td:nth-child(4)", { hasText: String(failures) }).waitFor();
    };
    const openSummaries = () => page.locator("details[open] > summary").allTextContents();
    expect(await openSummaries()).toEqual(["When it opened and closed, 30 days (1)"]);
    await refreshedWith(8);

    await page.getByText("When it opened and closed").click();
    await page.getByText("The last hour by minute").click();
    await addChange();
    await refreshedWith(9);
    await page.getByText("30 days (2)").waitFor();
    expect(await openSummaries()).toEqual(["The last hour by minute"]);
    expect(await page.locator(":focus").textContent()).toBe("The last hour by minute");
    expect(errors).toEqual([]);
    await page.context().close();
  });

  it("states on the first screen that it is not live, and no longer that all is well", async () => {
    await world.makeOperator("nora@example.com", "viewer");
    const { page } = await openAs("nora@example.com");
    let isDown = true;
    await page.route("**/ops", (route) => (isDown ? route.fulfill({ status: 503 }) : route.continue()));
    await page.evaluate(`
      const verdict = "<p class='verdict-bar good'><strong>All parts of the service work.</strong></p>";
      document.querySelector("section").insertAdjacentHTML("beforeend", verdict);
      document.dispatchEvent(new Event("visibilitychange"));`);
    const note = page.getByText(/Not live, updated .* ago.*the server returned 503/);
    await note.waitFor();
    expect((await note.boundingBox())?.y).toBeLessThan(300);
    await look(page, "not-live");
    expect(await page.locator(".verdict-bar.warn").textContent()).toMatch(/^Unknown since 20.*Z\.$/);
    isDown = false;
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByText("Live, updated").waitFor();
    expect(await page.getByText("All parts of the service work.").count()).toBe(0);
    await page.context().close();
  });

  it("shows no good verdict once it has been paused for a minute", async () => {
    await world.makeOperator("sam@example.com", "viewer");
    const { page } = await openAs("sam@example.com");
    await page.clock.install();
    await page.reload({ waitUntil: "load" });
    await page.evaluate(`
      const verdict = "<p class='verdict-bar good'><strong>All parts of the service work.</strong></p>";
      document.querySelector("section").insertAdjacentHTML("beforeend", verdict);
      document.getSelection().selectAllChildren(document.querySelector("h1"));
      document.dispatchEvent(new Event("visibilitychange"));`);
    await page.getByText("paused while text is selected").waitFor();
    expect(await page.locator(".verdict-bar.good").count()).toBe(1);
    await page.clock.fastForward(61_000);
    await page.locator(".verdict-bar.warn", { hasText: "Unknown since" }).waitFor();
    expect(await page.locator(".verdict-bar.good").count()).toBe(0);
    await page.context().close();
  });

  it("is loaded again as a whole once one of its live parts is gone", async () => {
    await world.makeOperator("rita@example.com", "viewer");
    const { page } = await openAs("rita@example.com");
    await page.evaluate(`
      document.querySelector("main").insertAdjacentHTML("beforeend", "<section id='ended' data-refresh='3'></section>");
      document.dispatchEvent(new Event("visibilitychange"));`);
    await page.locator("#ended").waitFor({ state: "detached" });
    await page.getByText("Live, updated").waitFor();
    expect(await page.locator("#ended").count()).toBe(0);
    await page.context().close();
  });

  it("shows the newest hours of the heat map on a phone, also after a refresh", async () => {
    await world.makeOperator("pia@example.com", "viewer");
    const { page } = await openAs("pia@example.com");
    await page.setViewportSize({ width: 390, height: 800 });
    await page.reload({ waitUntil: "load" });
    const map = page.getByRole("group", { name: /^last 24 hours of/ }).first();
    const right = async () => Math.round(((await map.boundingBox())?.x ?? 0) + ((await map.boundingBox())?.width ?? 0));
    expect(await right()).toBeLessThanOrEqual(390);
    const shown = await page.locator("time[data-age]").first().getAttribute("datetime");
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await eventually(async () => (await page.locator("time[data-age]").first().getAttribute("datetime")) !== shown);
    expect(await right()).toBeLessThanOrEqual(390);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/board-phone.png`, fullPage: true });
    await page.context().close();
  });

  it("is paused while a form is in use, and says so", async () => {
    await world.makeOperator("olga@example.com", "operator");
    const { page } = await openAs("olga@example.com");
    const form = page.getByRole("list", { name: "open problems" }).getByRole("listitem").first();
    await form.getByText("Snooze").first().click();
    await form.getByLabel("Reason").focus();
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByText("paused while a form is in use").waitFor();
    expect(await page.locator("[data-live]").textContent()).toBe("Not live, updated");
    await page.context().close();
  });
});

describe("without JavaScript", () => {
  it("a viewer sees the board and everything it links to, and is offered nothing to do", async () => {
    await world.makeOperator("kim@example.com", "viewer");
    const { page } = await openAs("kim@example.com", { javaScriptEnabled: false });
    await page.getByLabel("Name").fill("gamma");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=gamma/);
    const links = await page.locator("main a").evaluateAll((all) => all.map((link) => link.getAttribute("href") ?? ""));
    const paths = new Set(links.map((href) => href.split("#")[0] ?? ""));
    const shown = [...paths].filter((href) => /^\/ops(\?|$|\/(houses|tables|gaps|quarantine|conflicts))/.test(href));
    expect(shown.length).toBeGreaterThan(10);
    for (const href of shown) {
      const response = await page.request.get(world.url + href, { maxRedirects: 0 });
      expect([href, response.status()]).toEqual([href, 200]);
    }
    await page.goto(`${world.url}/ops/houses/beta`);
    expect(await page.getByRole("link", { name: "Pause" }).count()).toBe(0);
    await page.context().close();
  });
});
