import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { pages } from "../../src/ops/index.ts";
import { accessibilityFaults, openBrowser, overflow } from "../support/browser.ts";
import { testContext } from "../support/context.ts";
import { makeGap, makeItem, makePayload, makeTable } from "../support/make.ts";
import { passesTo } from "../support/passes-to.ts";
import { calibrateRolling, playTurns } from "./data-world.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "./world.ts";

let world: OpsWorld;
let browser: Browser;
let page: Page;
/** What each parameter of a path is in this world; a page is opened only if all of its parameters are known. */
let params: Record<string, string>;
const errors: string[] = [];

beforeAll(async () => {
  [world, browser] = await Promise.all([
    openOpsWorld({ settings: { TRUSTED_PROXIES: [] } }), // the style guide is for this machine alone
    openBrowser(),
  ]);
  const { sql } = world;
  const table = await makeTable(sql);
  const at = await makePayload(sql, table, { second: 0, items: [makeItem(2, 1.5), makeItem(1, 0)] });
  await makePayload(sql, table, { second: 1, items: [makeItem(3, 2.5), makeItem(2, 1.75)] });
  const { context } = testContext(sql, { passes: passesTo(world.databaseUrl) });
  await normalizeRounds.run({ house: table.house }, context);
  await makeGap(sql, table, 70n, 74n);
  const other = await makeTable(sql, { house_edge: 0.01 }, { id: "beta" });
  await playTurns(sql, other, [150, 320, 1200, 101, 250]);
  const calibration = await calibrateRolling(sql, other.id);
  await createAccount(sql, "ann@callers.example");
  await createKey(sql, { email: "ann@callers.example", plan: "Pro" });
  const [house = "", game = "", market = ""] = table.name.split("/");
  params = { house, game, market, table: String(table.id), at, id: calibration, plan: "Pro" };
  await world.makeOperator("ann@example.com", "admin");
  page = await (await browser.newContext()).newPage();
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  await page.goto(`${world.url}/ops/me`);
  await page.getByLabel("E-mail").fill("ann@example.com");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
});
afterAll(async () => {
  await browser.close();
  await world.close();
});

/** The address of a page, with the parameters of this world; files are no pages. */
function addressOf(path: string): string | null {
  if (path.endsWith(".csv") || path.endsWith("/body") || path === "/payloads/:table/:at/body") return null;
  const names = [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  if (names.some((name) => params[name] === undefined)) return null;
  return `/ops${path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""))}`;
}

/**
 * Tables that are cut off without a sign: neither fits, nor is inside of a container that scrolls and draws a shadow where
 * there is more.
 */
const CUT_TABLES = `[...document.querySelectorAll("main table")].flatMap((table) => {
  const name = table.closest("[aria-label]")?.getAttribute("aria-label") ?? table.innerText.slice(0, 40);
  const box = table.closest(".wide, .diff");
  if (box === null) return table.scrollWidth > table.parentElement.clientWidth ? [name + ": has no container that scrolls"] : [];
  if (box.scrollWidth <= box.clientWidth) return [];
  const style = getComputedStyle(box);
  const scrolls = style.overflowX === "auto" || style.overflowX === "scroll";
  const hasCue = (style.backgroundImage.match(/gradient/g) ?? []).length >= 4;
  const isReachable = box.tabIndex >= 0 && box.getAttribute("role") === "region";
  return scrolls && hasCue && isReachable ? [] : [name + ": is cut off without a cue"];
})`;

describe("every page of operations", () => {
  it.each(pages.map(({ path }) => path))(
    "shows whole tables or a cue at 1280 px, fits 320 px, and has no fault for a screen reader: %s",
    async (path) => {
      const address = addressOf(path);
      if (address === null) return;
      errors.length = 0;
      await page.setViewportSize({ width: 1280, height: 800 });
      const response = await page.goto(world.url + address);
      const status = response?.status() ?? 0;
      if (status >= 400) {
        // a page of another object, or one that requires a query: it states this, without a table
        expect([path, status >= 500]).toEqual([path, false]);
        return;
      }
      await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
      expect(await page.evaluate(CUT_TABLES)).toEqual([]);
      expect(await overflow(page), "at 1280 px").toBe(0);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" }), colorScheme).toEqual([]);
      }
      await page.setViewportSize({ width: 320, height: 800 });
      expect(await overflow(page), "at 320 px").toBe(0);
      expect(errors).toEqual([]);
    },
  );

  it("recognizes a table that is cut off", async () => {
    await page.setViewportSize({ width: 320, height: 800 });
    await page.goto(`${world.url}/ops/styleguide`);
    expect(await page.evaluate(CUT_TABLES)).toEqual([]);
    await page.evaluate(`document.querySelector('[aria-label="tables"]').style.backgroundImage = "none"`);
    expect(await page.evaluate(CUT_TABLES)).toEqual(["tables: is cut off without a cue"]);
  });
});

describe("dialogs and toasts", () => {
  it("open from their button, close with Escape, Cancel and give the focus back", async () => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${world.url}/ops/styleguide`);
    const opener = page.getByRole("link", { name: "Open dialog" });
    const dialog = page.getByRole("dialog", { name: "Confirm that it is you" });
    expect(await dialog.isVisible()).toBe(false);
    for (const close of [() => page.keyboard.press("Escape"), () => dialog.getByText("Cancel").click()]) {
      await opener.focus();
      await page.keyboard.press("Enter");
      await dialog.waitFor();
      expect(await page.evaluate("document.querySelector('dialog').contains(document.activeElement)")).toBe(true);
      expect(await accessibilityFaults(page)).toEqual([]);
      await close();
      await dialog.waitFor({ state: "hidden" });
      expect(await page.locator(":focus").textContent()).toBe("Open dialog");
      expect(new URL(page.url()).hash).toBe("");
    }
  });

  it("keep the focus inside of an open dialog", async () => {
    await page.goto(`${world.url}/ops/styleguide`);
    await page.getByRole("link", { name: "Open dialog" }).click();
    for (let presses = 0; presses < 8; presses++) {
      await page.keyboard.press("Tab");
      const place =
        "document.activeElement === document.body || document.querySelector('dialog').contains(document.activeElement)";
      expect(await page.evaluate(place)).toBe(true);
    }
  });

  it("announce the outcome of an action, and are dismissed by a button", async () => {
    await page.goto(`${world.url}/ops/calibrations/new`);
    await page.getByLabel("Tables").fill("beta/crash/global");
    await page.getByLabel("Reason").fill("a toast");
    await page.getByRole("button", { name: "Start run" }).click();
    const toast = page.locator("[data-toast]");
    expect(await toast.getByRole("status").textContent()).toMatch(/^Run \d+ queued$/);
    await toast.getByRole("button", { name: "Dismiss" }).click();
    expect(await toast.count()).toBe(0);
    await page.reload();
    expect(await toast.count()).toBe(0);
  });
});
