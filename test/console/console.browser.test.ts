import { mkdirSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pages } from "../../src/console/index.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { EVERY_METHOD, PATH_SAMPLES, SHARED } from "./samples.ts";
import { type ConsoleWorld, type Holding, openConsoleWorld, PASSWORD } from "./world.ts";

/** A folder for screenshots, to be looked at; none are made without it. */
const { SHOTS } = process.env;

let world: ConsoleWorld;
let browser: Browser;
beforeAll(async () => {
  const houses = [houseEntry({ tables: [tableEntry(), tableEntry({ game: "dice", market: "eu" })] })];
  const options = {
    isDemo: true,
    variables: EVERY_METHOD,
    before: async (sql: ConsoleWorld["sql"]) => void (await applyHouses(sql, houses)),
  };
  [world, browser] = await Promise.all([openConsoleWorld(options), openBrowser()]);
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
    const faults = await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" });
    expect(faults, `${name}, ${colorScheme}`).toEqual([]);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(page), `${name} at 320 px`).toBe(0);
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-320.png`, fullPage: true });
  await page.setViewportSize(wide);
}

/** A window whose holder is signed in; what the content policy refuses is logged to its console. */
async function openPage(
  { email }: Holding,
  options: { javaScriptEnabled?: boolean; address: string },
): Promise<{ page: Page; errors: string[] }> {
  const { address, ...context } = options;
  const opened = await browser.newContext({ ...context, extraHTTPHeaders: { "x-forwarded-for": address } });
  const page = await opened.newPage();
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${world.url}/console`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  return { page, errors };
}

const nameOf = (path: string) => path.replaceAll(/[^a-z]+/g, "-").replaceAll(/^-|-$/g, "") || "dashboard";

describe("a holder in a browser", () => {
  it(
    "finds every page without a fault for a screen reader, in both themes, and none wider than a small phone",
    { timeout: 240_000 },
    async () => {
      const eve = await world.as("eve");
      await world.giveMoney(eve.accountId, 1_000_500_000n);
      await world.givePlan(eve.accountId, "Pro", 3);
      const { key } = await world.giveKey(eve.accountId, "a server with quite a long name of its own");
      await eve.post(`/console/keys/${(await world.giveKey(eve.accountId, "old")).id}/rotate`, { overlap: "24h" });
      await eve.post(`/console/keys/${(await world.giveKey(eve.accountId, "gone")).id}/revoke`);
      for (let n = 0; n < 3; n += 1) await fetch(`${world.url}/api/v1/games`, { headers: { "x-api-key": key } });
      const { page, errors } = await openPage(eve, { address: "203.0.113.1" });
      for (const { path } of pages) {
        if (/\.(?:csv|json)$/.test(path)) continue;
        let filled = path;
        for (const [, name] of path.matchAll(/:(\w+)/g)) {
          const place = `${path} ${name}`;
          const id = SHARED[place] ?? (await PATH_SAMPLES[place]?.(world, eve));
          if (id === undefined) throw new Error(`no sample for ${place}: add one to test/console/samples.ts`);
          filled = filled.replace(`:${name}`, id);
        }
        const response = await page.goto(`${world.url}/console${filled === "/" ? "" : filled}`);
        expect([path, response?.status()]).toEqual([path, 200]);
        await look(page, nameOf(path));
      }
      for (const own of ["security", "terms"]) {
        await page.goto(`${world.url}/console/${own}`);
        await look(page, own);
      }
      expect(errors).toEqual([]);
      await page.goto(`${world.url}/console/nothing`);
      await look(page, "trouble");
      await page.context().close();
    },
  );

  it("accepts new terms, makes the key that was asked for, copies it, and calls with it from the console", async () => {
    const amy = await world.makeHolder("amy@example.com", { hasAgreed: false });
    const { page, errors } = await openPage(amy, { address: "203.0.113.2" });
    await look(page, "newcomer");
    await world.givePlan(amy.accountId, "Starter", 30);
    await page.getByRole("link", { name: "Create a key" }).click();
    await page.getByLabel("Name of the new key").fill("laptop");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel("I accept these terms.").waitFor();
    await look(page, "agree");
    await page.getByLabel("I accept these terms.").check();
    await page.getByRole("button", { name: "Accept and continue" }).click();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const key = await page.getByLabel("Your key").inputValue();
    await page.getByRole("button", { name: "Copy" }).first().click();
    await page.getByText("copied").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(key);
    await look(page, "key-once");
    await page.getByRole("link", { name: "Back to keys" }).click();
    await page.getByRole("heading", { name: "Active keys" }).waitFor();
    await expect(page.goBack()).rejects.toThrow("ERR_CACHE_MISS"); // that page is not cached, so there is no way back to it
    await page.waitForURL("chrome-error://chromewebdata/");
    await page.goto(`${world.url}/console/first-call`);
    await page.getByLabel("Key", { exact: true }).fill(key);
    await page.getByRole("button", { name: "Make call" }).click();
    await page.getByRole("heading", { name: "Response" }).waitFor();
    expect(await page.content()).not.toContain(key);
    await look(page, "response");
    await page.getByLabel("Key", { exact: true }).fill("rh_live_none");
    await page.getByRole("button", { name: "Make call" }).click();
    expect(await page.getByRole("alert").textContent()).toContain("not a key of your account");
    expect(errors).toEqual([expect.stringContaining("403")]); // the terms that came first
    await page.context().close();
  });
});

describe("without JavaScript", () => {
  it("a key is made, rotated and revoked by keyboard alone", async () => {
    const joe = await world.as("joe");
    const { page } = await openPage(joe, { javaScriptEnabled: false, address: "203.0.113.3" });
    await page.goto(`${world.url}/console/keys`);
    await page.keyboard.press("Tab");
    expect(await page.locator(":focus").textContent()).toBe("Skip to content");
    await page.getByLabel("Name of the new key").focus();
    await page.keyboard.type("laptop");
    await page.keyboard.press("Enter");
    expect(await page.getByLabel("Your key").inputValue()).toMatch(/^rh_live_/);
    expect(await page.getByRole("button", { name: "Copy" }).count()).toBe(0); // hidden
    await page.getByRole("link", { name: "Back to keys" }).press("Enter");
    await page.locator("summary", { hasText: "Rotate the key laptop" }).press("Enter");
    await page.getByRole("button", { name: /^Rotate key/ }).press("Enter");
    expect(await page.getByLabel("Your key").inputValue()).toMatch(/^rh_live_/);
    await page.getByRole("link", { name: "Back to keys" }).press("Enter");
    await page.locator("summary", { hasText: "Revoke the key laptop" }).first().press("Enter");
    await page
      .getByRole("button", { name: /^Revoke key/ })
      .first()
      .press("Enter");
    await waitForToast(page, "is revoked");
    await page.context().close();
  });
});
