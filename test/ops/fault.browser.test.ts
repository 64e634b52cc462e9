import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import pollHouse from "../../jobs/poll-house.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { connect, openPipeline, type Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { startWorkers, type Workers } from "../../src/queue/worker.ts";
import { readableLog } from "../queue/world.ts";
import { type BadHouse, page as rounds, respondWith, startBadHouse, badResponses } from "../support/bad-house.ts";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { feedEntry, houseEntry, tableEntry } from "../support/houses.ts";
import { postponeProbe } from "./postpone-probe.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "./world.ts";

let world: OpsWorld;
let browser: Browser;
let house: BadHouse;
let own: Sql;
let pipeline: ReturnType<typeof openPipeline>;
let http: ReturnType<typeof createHouseClient>;
let workers: Workers;
let newest = 100;

/** A worker that polls a real server every 200 ms; a slow machine answers within the time limit. */
beforeAll(async () => {
  [world, browser, house] = await Promise.all([openOpsWorld(), openBrowser(), startBadHouse()]);
  respond();
  const base = { id: "demo", name: "Demo", base_url: house.url, poll_every_ms: 200, timeout_ms: 2000 };
  await applyHouses(world.sql, [houseEntry({ ...base, tables: [tableEntry({ feed: feedEntry() })] })]);
  const { log } = readableLog();
  const redis = await createRedis();
  own = connect(world.databaseUrl, { name: "worker", max: 6 });
  pipeline = openPipeline(world.databaseUrl, { name: "worker" });
  http = createHouseClient({ version: "0.0.0" });
  workers = await startWorkers({
    jobs: [pollHouse, normalizeRounds],
    sql: own,
    passes: createPasses(pipeline),
    redisUrl: redis.url,
    settings: loadSettings({ ALLOW_PRIVATE_HOUSES: "1" }),
    variables: () => undefined,
    http,
    log,
    version: "1.2.3",
    onFatal: (error) => log.fatal(error),
    tickMs: 500,
  });
  await world.makeOperator("ann@example.com", "operator");
});
afterAll(async () => {
  await workers.stop(0);
  await http.close();
  await browser.close();
  await own.end({ timeout: 1 });
  await pipeline.end({ timeout: 1 });
  await house.close();
  await world.close();
});

function respond(): void {
  house.on("/rounds", (request, response) => respondWith(rounds((newest += 1)))(request, response));
}

async function openBoard(javaScriptEnabled: boolean): Promise<Page> {
  const context = await browser.newContext({ javaScriptEnabled, viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(`${world.url}/ops`);
  await page.getByLabel("E-mail").fill("ann@example.com");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Board" }).waitFor();
  return page;
}

/** The next probe is postponed: the circuit does not close by itself between two clicks. */
const LONG_WAIT = /circuit open: probe \d+ in \d+ min/;

/** The open problem of the house itself; its table may have others. */
const ofDemo = (page: Page) =>
  page
    .getByRole("list", { name: "open problems" })
    .getByRole("listitem")
    .filter({ has: page.getByRole("link", { name: "demo", exact: true }) });

describe("a house that stops responding", () => {
  it.each([
    ["hangs", true, badResponses.silence],
    ["fails, without JavaScript", false, respondWith("no", {}, 503)],
  ])(
    "%s is led from the board to its cause and to the action in at most four clicks",
    async (_, hasScript, fault) => {
      respond();
      const page = await openBoard(hasScript);
      const isOpen = async () => {
        await page.goto(`${world.url}/ops`);
        return (await ofDemo(page).filter({ hasText: LONG_WAIT }).count()) === 1;
      };
      const isWell = async () => {
        await page.goto(`${world.url}/ops`);
        return (await ofDemo(page).count()) === 0;
      };
      await eventually(isWell, { timeoutMs: 60_000, everyMs: 250 });
      house.on("/rounds", fault);
      await eventually(() => postponeProbe(world.sql, "demo"), { timeoutMs: 90_000 });
      await eventually(isOpen, { timeoutMs: 90_000, everyMs: 250 });

      let clicks = 0;
      const click = async (role: "link" | "button", name: string | RegExp) => {
        clicks += 1;
        await page.getByRole(role, { name }).first().click();
      };
      await click("link", /^Open house\s+demo$/); // the problem
      await page.getByRole("heading", { level: 1, name: "Demo", exact: true }).waitFor();
      const failures = page.getByRole("region", { name: "failed polls" });
      expect(await failures.textContent()).toMatch(hasScript ? /timeout|no response|2 s|time/i : /503/); // the cause
      await click("link", "Probe now"); // the action
      await page.getByLabel("Reason").fill("the house reports it is repaired");
      respond(); // it is
      await click("button", "Probe demo");
      await waitForToast(page, "demo is probed with its next poll");
      expect(clicks).toBeLessThanOrEqual(4);
      await eventually(isWell, { timeoutMs: 60_000, everyMs: 250 });
      await page.context().close();
    },
    300_000,
  );

  it("is snoozed on the board, and listed on the page of alerts", async () => {
    await world.sql`insert into alerts (kind, subject, text) values ('disk', 'host-1', 'the disk is 96 % full')`;
    const page = await openBoard(true);
    const disk = page.getByRole("list", { name: "open problems" }).getByRole("listitem").filter({ hasText: "host-1" });
    await disk.locator("summary").click();
    await disk.getByLabel("Reason").fill("a larger disk is ordered");
    await disk.getByLabel("For").selectOption("8h");
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.setViewportSize({ width: 320, height: 800 });
    expect(await overflow(page)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 800 });
    await disk.getByRole("button", { name: "Snooze" }).click();
    await waitForToast(page, "Snoozed 1 problem for 8 h.");
    await page.getByRole("link", { name: "1 snoozed" }).click();
    for (const state of ["snoozed", "open", "closed"]) {
      await page.goto(`${world.url}/ops/alerts?state=${state}`);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" }), state).toEqual([]);
      }
      await page.setViewportSize({ width: 320, height: 800 });
      expect(await overflow(page), state).toBe(0);
      await page.setViewportSize({ width: 1280, height: 800 });
    }
    await page.context().close();
  });
});
