import { mkdirSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/environment.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { startWorkers, type Workers } from "../../src/queue/worker.ts";
import { gate, makeJob, readableLog } from "../queue/world.ts";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import { NO_PASSES } from "../support/context.ts";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "./world.ts";

/** A folder for screenshots to look at; without it none are made. */
const { SHOTS } = process.env;

const { log } = readableLog();
let world: OpsWorld;
let browser: Browser;
let queues: Queues;
let sql: Sql;
let workers: Workers;

const failing = makeJob({
  name: "backfill-gap",
  retry: { attempts: 2, firstMs: 1, maxMs: 1 },
  run: ({ house }) => Promise.reject(new Error(`the history of ${house}: expected status 200, found 503`)),
});
const resting = makeJob({ name: "compare-calibrations" });
const hung = gate();
const hanging = makeJob({
  name: "normalize-rounds",
  timeoutMs: 3_600_000,
  async run() {
    await hung.passed;
    return { done: 1 };
  },
});
const ticking = makeJob({
  name: "poll-house",
  schedule: async () => [{ payload: { house: "alpha/0" }, everyMs: 3_600_000, offsetMs: 5 }],
});

beforeAll(async () => {
  const redis = await createRedis();
  const jobs = [ticking, failing, resting, hanging];
  queues = await openQueues(jobs, redis.url, log);
  [world, browser] = await Promise.all([openOpsWorld({ queues }), openBrowser()]);
  sql = connect(world.databaseUrl, { name: "worker", max: 4 });
  workers = await startWorkers({
    jobs,
    sql,
    passes: NO_PASSES,
    redisUrl: redis.url,
    settings: loadSettings({}),
    variables: () => undefined,
    http: { fetch: () => Promise.reject(new Error("no house is polled here")), close: () => Promise.resolve() },
    log,
    version: "1.2.3",
    onFatal: (error) => log.fatal(error),
    tickMs: 500,
  });
  await queues.enqueue(resting, { house: "alpha" });
  for (let n = 0; n < 20; n++) await queues.enqueue(hanging, { house: `house-${n}` });
  await eventually(async () => (await queues.get("poll-house").getJobSchedulersCount()) === 1);
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
});
afterAll(async () => {
  hung.open();
  await browser.close();
  await workers.stop(0);
  await sql.end({ timeout: 1 });
  await world.close();
  await queues.close();
});

beforeEach(async () => {
  // not `obliterate`, which pauses the queue first: the reconciler of the workers resumes it
  const queue = queues.get("backfill-gap");
  const areDone = async () => (await queue.getJobCountByTypes("waiting", "prioritized", "active", "delayed")) === 0;
  await eventually(areDone);
  await queue.clean(0, 0, "failed");
  for (const house of ["alpha", "beta", "gamma"]) await queues.enqueue(failing, { house });
  await eventually(async () => (await queue.getFailedCount()) === 3);
});

/** Checks a page in both themes and at the narrowest width: accessible, and no wider than the window. */
async function check(page: Page, name: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" }), `${name}, ${colorScheme}`).toEqual(
      [],
    );
    if (SHOTS !== undefined)
      await page.screenshot({ path: `${SHOTS}/queues-${name}-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(page), `${name} at 320 px`).toBe(0);
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/queues-${name}-320.png`, fullPage: true });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: "light" });
}

async function signIn(email: string, options: { javaScriptEnabled?: boolean } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${world.url}/ops/queues`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Queues" }).waitFor();
  return { page, errors };
}

describe.each([{ javaScriptEnabled: true }, { javaScriptEnabled: false }])("an operator, %j", (options) => {
  const email = `ann-${options.javaScriptEnabled}@example.com`;
  const shoot = async (page: Page, name: string) => options.javaScriptEnabled && check(page, name);

  it("goes from a failing queue to the error of a run, retries it, and discards the others", async () => {
    await world.makeOperator(email, "operator");
    const { page, errors } = await signIn(email, options);
    const tooWide = page
      .getByRole("region", { name: "queues" })
      .evaluate((region) => region.scrollWidth - region.clientWidth);
    expect(await tooWide).toBe(0);
    expect(await page.getByRole("row", { name: /normalize-rounds/ }).textContent()).toMatch(
      /15 waiting runs of normalize-rounds\s*oldest \d+ s\s*5 active runs of normalize-rounds\s*longest \d+ s/,
    );
    await shoot(page, "overview");
    await page.getByRole("link", { name: "3 failed runs of backfill-gap" }).click();
    await shoot(page, "failed");
    await page.getByLabel("Run id, or part of the payload").fill("beta");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("row", { name: /beta/ }).getByRole("link").first().click();
    await page.getByRole("heading", { level: 1, name: /^Run \d+/ }).waitFor();
    await page.waitForLoadState();
    const text = (await page.locator("main").textContent()) ?? "";
    expect(text).toContain("the history of beta: expected status 200, found 503");
    expect(text).toContain("2 of 2");
    expect(
      await page
        .locator("details summary")
        .filter({ hasText: /^attempt \d failed at/ })
        .count(),
    ).toBe(2);
    await shoot(page, "run");
    await page.getByRole("link", { name: "Retry run" }).click();
    await shoot(page, "retry");
    await page.getByLabel("Reason").fill("the house is back");
    await page.getByRole("button", { name: "Retry this run" }).click();
    await waitForToast(page, "1 run of backfill-gap is retried");
    await eventually(async () => (await queues.get("backfill-gap").getFailedCount()) === 3);

    await page.goto(`${world.url}/ops/queues/backfill-gap`);
    await page.getByRole("checkbox").nth(0).check();
    await page.getByRole("checkbox").nth(1).check();
    await page.getByRole("button", { name: "Discard selected" }).click();
    await page.locator("main", { hasText: "2 failed runs of backfill-gap" }).waitFor();
    await shoot(page, "discard");
    await page.getByLabel("Reason").fill("the gaps were closed manually");
    await page.getByRole("button", { name: "Discard exactly these 2" }).click();
    await waitForToast(page, "2 runs of backfill-gap are discarded");
    await page.getByRole("link", { name: "Retry all 1" }).click();
    await page.getByLabel("Reason").fill("once more");
    await page.getByRole("button", { name: "Retry this run" }).click();
    await waitForToast(page, "1 run of backfill-gap is retried");
    expect(errors).toEqual([]);
    await page.context().close();
  });

  it("pauses a queue, starts a delayed run now, and resumes the queue", async () => {
    const { page, errors } = await signIn(email, options);
    await page.getByRole("link", { name: "Pause compare-calibrations" }).click();
    await shoot(page, "pause");
    await page.getByLabel("Reason").fill("the machine is busy");
    await page.getByLabel("Length").selectOption("1h");
    await page.getByRole("button", { name: "Pause compare-calibrations" }).click();
    await waitForToast(page, "compare-calibrations is paused until");
    await eventually(() => queues.get("compare-calibrations").isPaused());
    await queues.get("compare-calibrations").add("compare-calibrations", { house: "alpha" }, { delay: 3_600_000 });
    await page.getByRole("link", { name: /^Delayed/ }).click();
    await shoot(page, "delayed");
    await page.getByRole("row", { name: /alpha/ }).getByRole("link").first().click();
    await page.getByRole("link", { name: "Start run now" }).click();
    await shoot(page, "promote");
    await page.getByLabel("Reason").fill("the house is back");
    await page.getByRole("button", { name: "Start this run now" }).click();
    await waitForToast(page, "1 run of compare-calibrations starts now");
    expect(await queues.get("compare-calibrations").getWaitingCount()).toBe(1);
    await page.getByRole("link", { name: /^Waiting/ }).click();
    await shoot(page, "waiting");
    await page.goto(`${world.url}/ops/queues`);
    await shoot(page, "paused");
    await page.getByRole("link", { name: "Resume compare-calibrations" }).first().click();
    await page.getByLabel("Reason").fill("the machine is idle");
    await page.getByRole("button", { name: "Resume compare-calibrations" }).click();
    await waitForToast(page, "compare-calibrations is resumed");
    await eventually(async () => (await queues.get("compare-calibrations").getWaitingCount()) === 0);
    await page.goto(`${world.url}/ops/queues`);
    await page.getByRole("link", { name: "1 schedule of poll-house" }).click();
    await shoot(page, "schedules");
    await page.getByRole("link", { name: "poll-house" }).click();
    await page.getByRole("row", { name: /alpha/ }).getByRole("link").first().click();
    expect(await page.getByRole("link", { name: "Discard run" }).count()).toBe(0);
    await shoot(page, "scheduled");
    expect(errors).toEqual([]);
    const [audit] = await world.sql<{ actions: string[] }[]>`
      select array_agg(action order by seq) as actions from audit_log where actor = ${email} and action !~ '^session'`;
    expect(audit?.actions).toEqual([
      "queue.retry",
      "queue.discard",
      "queue.retry",
      "queue.pause",
      "queue.promote",
      "queue.resume",
    ]);
    await page.context().close();
  });
});

describe("a viewer", () => {
  it("reads queues and runs and is offered no action", async () => {
    await world.makeOperator("kim@example.com", "viewer");
    const { page, errors } = await signIn("kim@example.com", { javaScriptEnabled: false });
    expect(await page.getByRole("link", { name: /Pause|Retry|Discard/ }).count()).toBe(0);
    await page.getByRole("link", { name: "3 failed runs of backfill-gap" }).click();
    expect(await page.getByRole("checkbox").count()).toBe(0);
    await page.getByRole("row", { name: /gamma/ }).getByRole("link").first().click();
    await page.getByRole("heading", { level: 1, name: /^Run \d+/ }).waitFor();
    expect(await page.getByRole("link", { name: /Pause|Retry|Discard/ }).count()).toBe(0);
    expect(errors).toEqual([]);
    await page.context().close();
  });
});
