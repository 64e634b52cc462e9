import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAccount } from "../../src/callers/account-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { accessibilityFaults, openBrowser, overflow } from "../support/browser.ts";
import { houseEntry } from "../support/houses.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "./world.ts";

let world: OpsWorld;
let browser: Browser;

beforeAll(async () => {
  [world, browser] = await Promise.all([openOpsWorld(), openBrowser()]);
  await applyHouses(world.sql, [
    houseEntry(),
    houseEntry({ id: "beta", name: "Beta" }),
    houseEntry({ id: "long", name: "A house with a name of many words (on purpose)" }),
  ]);
  await createAccount(world.sql, "cleo@example.com");
  await world.makeOperator("ann@example.com", "viewer");
});
afterAll(async () => {
  await browser.close();
  await world.close();
});

async function openPage(javaScriptEnabled: boolean): Promise<{ page: Page; errors: string[] }> {
  const context = await browser.newContext({ javaScriptEnabled, viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${world.url}/ops`);
  await page.getByLabel("E-mail").fill("ann@example.com");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Board" }).waitFor();
  return { page, errors };
}

describe("the search of the header", () => {
  it("is reached with / from every page, finds, and jumps to what the text names", async () => {
    const { page, errors } = await openPage(true);
    for (const path of ["/ops", "/ops/audit", "/ops/bank"]) {
      await page.goto(world.url + path);
      await page.keyboard.press("/");
      expect(await page.evaluate("document.activeElement.id")).toBe("search");
    }
    await page.keyboard.type("a/b");
    expect(await page.getByRole("searchbox").inputValue()).toBe("a/b");
    await page.getByRole("searchbox").fill("eo@exa");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 2, name: "Callers" }).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" })).toEqual([]);
    }
    await page.setViewportSize({ width: 320, height: 800 });
    expect(await overflow(page)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("banner").getByRole("searchbox").fill("beta");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Beta", exact: true }).waitFor();
    await page.goto(`${world.url}/ops/houses/long`);
    expect(await overflow(page)).toBe(0);
    expect(errors).toEqual([]);
    await page.context().close();
  });

  it("works without JavaScript, and by a link on narrow screens", async () => {
    const { page } = await openPage(false);
    await page.getByRole("searchbox").fill("alpha/crash/global");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${world.url}/ops/tables/alpha/crash/global`);
    await page.setViewportSize({ width: 375, height: 800 });
    await page.getByRole("link", { name: "Search" }).click();
    await page.getByLabel("Search for").fill("nothing of this name");
    await page.getByRole("button", { name: "Search" }).click();
    expect(await page.locator("main").textContent()).toContain("Nothing was found for “nothing of this name”");
    expect(await overflow(page)).toBe(0);
    await page.context().close();
  });
});
