import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { queueMail } from "../../src/mail/outbox-store.ts";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import { testContext } from "../support/context.ts";
import { passesTo } from "../support/passes-to.ts";
import { makeGap, makeItem, makePayload, makeTable } from "../support/make.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "./world.ts";

/** A folder for screenshots, to be looked at; none are made without it. */
const { SHOTS } = process.env;

let tableId: number;
let receivedAt: string;
let world: OpsWorld;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  [world, browser] = await Promise.all([openOpsWorld(), openBrowser()]);
  const table = await makeTable(world.sql);
  tableId = table.id;
  // more than one page of payloads, with everything that an operator has to check
  for (let second = 0; second < 55; second++) {
    receivedAt = await makePayload(world.sql, table, { second, items: [makeItem(2 + second, 1.5 + second / 100)] });
  }
  await makePayload(world.sql, table, { second: 60, items: [makeItem(56, 9.5), makeItem(55, 9.25), makeItem(54, 9)] });
  await makePayload(world.sql, table, { second: 61, items: [makeItem(58, 0), makeItem(57, 1.75), makeItem(53, 8)] });
  await makePayload(world.sql, table, { second: 62, body: `{"rounds":${JSON.stringify("x".repeat(300))}}` });
  await normalizeRounds.run(
    { house: "alpha" },
    testContext(world.sql, { passes: passesTo(world.databaseUrl) }).context,
  );
  await makeGap(world.sql, table, 70n, 74n);
  for (const subject of ["Confirm your address", "Your password was changed, on a Saturday, from somewhere"]) {
    await queueMail(world.sql, {
      kind: "security",
      recipient: "someone@a-rather-long-host.example",
      subject,
      body: "x",
    });
  }
  await world.sql`
    update mails
    set given_up_at = clock_timestamp(), last_error = '550 5.1.1 there is no such mailbox here', attempts = 1
    where id = 2`;
  await world.makeOperator("ann@example.com", "operator");
  page = await (await browser.newContext()).newPage();
  await page.goto(`${world.url}/ops/payloads`);
  await page.getByLabel("E-mail").fill("ann@example.com");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
});
afterAll(async () => {
  await browser.close();
  await world.close();
});

/** In both themes no fault for a screen reader, and at the narrowest width nothing to scroll sideways. */
async function look(name: string): Promise<void> {
  await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" }), `${name}, ${colorScheme}`).toEqual(
      [],
    );
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-${colorScheme}.png` });
  }
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(page), `${name} at 320 px`).toBe(0);
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-320.png`, fullPage: true });
  await page.setViewportSize({ width: 1280, height: 800 });
}

describe("the pages of evidence", () => {
  it("are without a fault for a screen reader and fit a narrow screen", async () => {
    const pages = {
      payloads: "payloads",
      payload: `payloads/${tableId}/${receivedAt}`,
      reread: "payloads/reread?of=alpha&from=2026-01-01",
      quarantine: "quarantine",
      item: "quarantine/1",
      conflicts: "conflicts",
      conflict: "conflicts/1",
      revise: "conflicts/revise?table=alpha%2Fcrash%2Fglobal&round=56",
      gaps: "gaps",
      notices: "notices",
      mails: "mails",
      mail: "mails/2",
    };
    for (const [name, path] of Object.entries(pages)) {
      const response = await page.goto(`${world.url}/ops/${path}`);
      expect(`${name} ${response?.status()}`).toBe(`${name} 200`);
      await look(name);
    }
  });

  it("let several conflicts be chosen, shown with their number, and decided", async () => {
    await page.goto(`${world.url}/ops/conflicts?of=alpha%2Fcrash%2Fglobal`);
    await page.getByLabel("conflict 2").check();
    await page.getByLabel("conflict 3").check();
    await page.getByRole("button", { name: "Decide selected" }).click();
    expect(await page.locator("main").textContent()).toContain("2 conflicts of alpha/crash/global will be decided");
    await look("several");
    await page.getByLabel("keep the stored result of each").check();
    await page.getByLabel("Reason").fill("a second feed was mixed in");
    await page.getByRole("button", { name: "Decide 2 conflicts" }).click();
    await waitForToast(page, "2 conflicts are decided");
    await look("decided");
  });
});
