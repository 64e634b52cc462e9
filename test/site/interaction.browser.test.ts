import type { Browser, BrowserContext, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import { type ConsoleWorld, openConsoleWorld } from "../console/world.ts";
import { openBrowser } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { makeTable } from "../support/make.ts";

let world: ConsoleWorld;
let browser: Browser;
let context: BrowserContext;
let page: Page;
let key: string;

beforeAll(async () => {
  [world, browser] = await Promise.all([openConsoleWorld(), openBrowser()]);
  await makeTable(world.sql);
  await createAccount(world.sql, "ann@callers.example");
  const made = await createKey(world.sql, { email: "ann@callers.example", plan: "Pro" });
  if (!made.ok) throw new Error("expected a key");
  ({ key } = made);
});
beforeEach(async () => {
  context = await browser.newContext();
  page = await context.newPage();
});
afterEach(() => context.close());
afterAll(async () => {
  await browser.close();
  await world.close();
});

/** The first form to try an endpoint on the docs page, opened. */
async function openTry() {
  await page.goto(`${world.url}/docs`);
  const form = page.locator("form[data-try='/api/v1/games']");
  await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
  await form.waitFor();
  return form;
}

/** Calls until the response is not the 503 of a call that could not be counted in time on a busy machine. */
const responseOf = (form: Locator) =>
  eventually(async () => {
    await form.getByRole("button").click();
    const output = form.locator("output").filter({ hasText: /^\d+ in \d+ ms/ });
    const text = (await output.textContent()) ?? "";
    return !text.startsWith("503") && text;
  });

describe("trying an endpoint in the docs", () => {
  it("calls it with the reader's key, which stays in this tab", async () => {
    const form = await openTry();
    await form.getByLabel(/key/i).fill(key);
    const [call, text] = await Promise.all([page.waitForRequest(/\/api\/v1\/games/), responseOf(form)]);
    expect(call.headers()["x-api-key"]).toBe(key);
    expect(text).toMatch(/^200 in \d+ ms\n\{/);
    await page.reload();
    expect(await (await openTry()).getByLabel(/key/i).inputValue()).toBe(key);
    expect(await context.cookies()).toEqual([]);
    expect(await page.evaluate("JSON.stringify(localStorage)")).not.toContain(key);
    const other = await context.newPage();
    await other.goto(`${world.url}/docs`);
    expect(await other.evaluate("sessionStorage.length")).toBe(0);
  });

  it("shows the error of a wrong key", async () => {
    const form = await openTry();
    await form.getByLabel(/key/i).fill("not a key");
    expect(await responseOf(form)).toMatch(/^401 in \d+ ms\n[^]*invalid_api_key/);
  });
});

describe("the language of code examples", () => {
  const chosen = (of: Page) =>
    of.evaluate("[...new Set([...document.querySelectorAll('.languages input:checked')].map((one) => one.value))]");

  it("is chosen once for all examples and remembered on the next page and the next visit", async () => {
    await page.goto(`${world.url}/docs`);
    expect(await chosen(page)).toEqual(["curl"]);
    await page.locator(".languages").first().getByText("Python").click();
    expect(await chosen(page)).toEqual(["Python"]);
    await page.goto(`${world.url}/docs/quick-start`);
    await page.goto(`${world.url}/docs`);
    expect(await chosen(page)).toEqual(["Python"]);
    const later = await context.newPage();
    await later.goto(`${world.url}/docs`);
    expect(await chosen(later)).toEqual(["Python"]);
  });

  it("lasts for the page if the browser refuses storage", async () => {
    await page.addInitScript(
      "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } })",
    );
    await page.goto(`${world.url}/docs`);
    await page.locator(".languages").first().getByText("JavaScript").click();
    expect(await chosen(page)).toEqual(["JavaScript"]);
  });
});

describe("with forced colors", () => {
  it.each(["active", "none"] as const)(
    "%s: the current page is underlined exactly if its fill is not drawn",
    async (forcedColors) => {
      await page.emulateMedia({ forcedColors });
      await page.goto(`${world.url}/docs/quick-start`);
      const lines = await page.evaluate(
        "[...document.querySelectorAll('nav [aria-current]')].map((link) => getComputedStyle(link).textDecorationLine)",
      );
      const line = forcedColors === "active" ? "underline" : "none";
      expect([...new Set(lines as string[])]).toEqual([line]);
    },
  );

  it("rounds keep their colors", async () => {
    await page.emulateMedia({ forcedColors: "active" });
    await page.goto(`${world.url}/docs`);
    const colors = await page.evaluate(`["c-red", "c-blue"].map((name) => {
      const chip = document.body.appendChild(Object.assign(document.createElement("span"), { className: "chip " + name }));
      return getComputedStyle(chip).backgroundColor;
    })`);
    expect(new Set(colors as string[]).size).toBe(2);
  });
});
