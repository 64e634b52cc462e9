import { mkdirSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { connect } from "../../src/db/client.ts";
import { runWaitingCalibration } from "../../src/calibration/manual-calibration.ts";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import type { MadeTable } from "../support/make.ts";
import { makeLearnedTable, playTurns, work } from "./data-world.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "./world.ts";

/** A folder for screenshots, to be looked at; none are made without it. */
const { SHOTS } = process.env;
const COUNT = 1500;
let people = 0;

let world: OpsWorld;
let browser: Browser;
let table: MadeTable;

beforeAll(async () => {
  [world, browser] = await Promise.all([openOpsWorld(), openBrowser()]);
  table = await makeLearnedTable(world.sql, COUNT);
  await playTurns(world.sql, table, [150, 320, 1200, 101, 250]);
  await createAccount(world.sql, "ann@callers.example");
  await createKey(world.sql, { email: "ann@callers.example", plan: "Pro" });
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
});
afterAll(async () => {
  await browser.close();
  await world.close();
});

/** Looks at a page in both themes and at the narrowest width: no fault for a screen reader, nothing to scroll sideways. */
async function look(page: Page, name: string): Promise<void> {
  const wide = page.viewportSize() ?? { width: 1280, height: 800 };
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" }), `${name}, ${colorScheme}`).toEqual(
      [],
    );
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(page), `${name} at 320 px`).toBe(0);
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-320.png`, fullPage: true });
  await page.setViewportSize(wide);
}

/** A person who is signed in, in a window whose console must stay silent. */
async function enter(role: "data" | "operator", path: string, options: { javaScriptEnabled: boolean }) {
  people += 1;
  const email = `${role}-${people}@example.com`;
  await world.makeOperator(email, role);
  const address = `203.0.113.${people}`;
  const context = await browser.newContext({ ...options, extraHTTPHeaders: { "x-forwarded-for": address } });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${world.url}${path}`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: email }).waitFor();
  return { page, errors, email };
}

/** Lets runs send twenty heartbeats and holds them at the next, until they are released. */
async function holdRuns({ sql, databaseUrl }: OpsWorld): Promise<() => Promise<void>> {
  await sql.unsafe(`
    create sequence signs_of_life;
    create function hold_run() returns trigger language plpgsql as $$
    begin
      if nextval('signs_of_life') > 20 then
        perform pg_advisory_xact_lock_shared(42);
      end if;
      return null;
    end $$;
    create trigger run_is_held before update of at_seq on calibration_runs
      for each statement execute function hold_run()`);
  const holder = connect(databaseUrl, { name: "holder", max: 1 });
  await holder`select pg_advisory_lock(42)`;
  return () => holder.end();
}

const numberIn = (text: string, before: string) => new RegExp(`${before}(\\d+)`).exec(text)?.[1] ?? "";

describe("data staff in a browser", () => {
  it("start, cancel, resume, compare and promote a run, and the audit log has each action", async () => {
    const { page, errors, email } = await enter("data", "/ops/calibrations", { javaScriptEnabled: true });
    await page.getByRole("link", { name: "Start run" }).click();
    await page.getByText("Change parameters of the model").click();
    await look(page, "run-new");
    await page.getByLabel("Table").fill(table.name);
    await page.getByLabel("Share").fill("0.0001");
    await page.getByLabel("Reason").fill("last week's, with a larger share");
    await page.getByRole("button", { name: "Start run" }).click();
    await page.getByRole("heading", { name: /^Run \d+$/ }).waitFor();
    const run = numberIn(page.url(), "runs/");
    await look(page, "run-queued");

    // it runs until it is stopped, as with millions of rounds
    const letGo = await holdRuns(world);
    const signal = new AbortController().signal;
    const steps = { roundsPerChunk: 1, roundsPerCheckpoint: 500 };
    const working = runWaitingCalibration(world.sql, run, { signal, steps });
    await page.getByText("running", { exact: true }).waitFor(); // the page looks again by itself
    await page.getByLabel("Reason to cancel").fill("the wrong range?");
    await page.getByRole("button", { name: "Cancel run" }).click();
    await waitForToast(page, "stops at its next chunk");
    await letGo();
    expect(await working).toBe("cancelled");
    await page.reload();
    await look(page, "run-cancelled");
    await page.getByLabel("Reason to resume").fill("no, the right one");
    await page.getByRole("button", { name: "Resume run" }).click();
    await waitForToast(page, "queued; it resumes from its last checkpoint");
    await work(world.sql);
    await page.reload();
    await page.getByRole("link", { name: /^calibration \d+$/ }).click();
    await look(page, "calibration");
    const id = numberIn(page.url(), "calibrations/");

    await page.getByRole("link", { name: /^Compare with live/ }).click();
    await page.getByRole("button", { name: "Compare on the same rounds" }).click();
    await waitForToast(page, "1 comparison queued");
    await work(world.sql);
    await page.reload();
    await page.getByRole("row", { name: /calibration \d+ done/ }).waitFor();
    await look(page, "compare");
    await page.getByRole("link", { name: `Promote calibration ${id}` }).click();
    await look(page, "promote");
    await world.sql`update auth.sessions set created_at = created_at - interval '11 minutes'`;
    await page.getByLabel("Reason").fill("it fits the changed table");
    await page.getByRole("button", { name: `Promote calibration ${id} on ${table.name}` }).click();
    await page.getByLabel(`Password of ${email}`).fill(PASSWORD);
    await page.getByRole("button", { name: "Continue" }).click();
    await waitForToast(page, `calibration ${id} is live on ${table.name}`);
    await page.goto(`${world.url}/ops/calibrations`);
    await look(page, "calibrations");
    for (const box of await page.getByLabel(/^Select calibration/).all()) await box.check();
    await page.getByRole("button", { name: "Compare selected" }).click();
    await page.getByRole("heading", { name: /^Calibrations \d+.* and \d+$/ }).waitFor();
    await look(page, "compare-selected");
    await page.goto(`${world.url}/ops/calibrations/runs/${run}`);
    await page.getByLabel("Tags").fill("candidate, edge-2026");
    await page.getByLabel("Note").fill("fits the changed table better");
    await page.getByRole("button", { name: "Save note and tags" }).click();
    await waitForToast(page, `Note and tags of run ${run} saved`);
    await look(page, "run-labelled");
    await page.goto(`${world.url}/ops/calibrations/runs?tag=candidate`);
    await look(page, "runs");

    await page.goto(`${world.url}/ops/audit?actor=${encodeURIComponent(email)}`);
    const log = (await page.locator("main").textContent()) ?? "";
    for (const action of ["start", "cancel", "resume", "compare", "promote"])
      expect(log).toContain(`calibration.${action}`);
    for (const reason of ["last week's, with a larger share", "the wrong range?", "no, the right one"])
      expect(log).toContain(reason);
    expect(log).toContain("it fits the changed table");
    expect(errors.filter((line) => !line.includes("403"))).toEqual([]);
    await page.context().close();
  }, 180_000);

  it("read the accuracy of a feature, and keep its numbers", async () => {
    const { page, errors } = await enter("data", "/ops/accuracy?period=24h", { javaScriptEnabled: true });
    await look(page, "accuracy");
    await page.getByRole("link", { name: new RegExp(`^${table.name}`) }).click();
    await page.getByRole("img", { name: "Reliability", exact: true }).waitFor();
    await look(page, "accuracy-detail");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download these numbers as CSV" }).click(),
    ]);
    expect(file.suggestedFilename()).toMatch(/^accuracy-.*\.csv$/);
    await page.goto(`${world.url}/ops/callers`);
    await look(page, "callers");
    await page.getByRole("link", { name: "ann@callers.example" }).click();
    await look(page, "caller");
    expect(errors).toEqual([]);
    await page.context().close();
  });
});

describe("an operator without JavaScript", () => {
  it("finds a caller, suspends and restores it", async () => {
    const { page, errors } = await enter("operator", "/ops/callers", { javaScriptEnabled: false });
    await page.getByLabel(/^E-mail, id/).fill("ann@");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("link", { name: "ann@callers.example" }).click();
    await page.getByLabel("Reason", { exact: true }).fill("its key is on a public page");
    await page.getByRole("button", { name: "Suspend account" }).click();
    await waitForToast(page, "is suspended");
    await page.setViewportSize({ width: 320, height: 800 });
    expect(await overflow(page)).toBe(0);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/caller-suspended-320.png`, fullPage: true });
    await page.getByLabel("Reason", { exact: true }).fill("the key was replaced");
    await page.getByRole("button", { name: "Restore account" }).click();
    await waitForToast(page, "is restored");
    expect(errors).toEqual([]);
    await page.context().close();
  });
});
