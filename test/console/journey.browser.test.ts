import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { makeFolder, startRoundhouse, untilReady } from "../cli/world.ts";
import { openBrowser } from "../support/browser.ts";

/** A folder for screenshots of the way, to be looked at; none are made without it. */
const { SHOTS } = process.env;
const MOST_SCREENS = 12;
/** What the way of a newcomer may take, the start of the instance not included. */
const WITHIN_MS = 180_000;

async function openStockInstance(): Promise<string> {
  const dataDir = join(await makeFolder(), "data");
  const started = startRoundhouse(["up", "--json"], { env: { DATA_DIR: dataDir, PORT: "0" } });
  const { url } = await untilReady(started);
  onTestFinished(async () => {
    started.kill("SIGTERM");
    await started.ended;
  });
  return url;
}

it(
  `a newcomer goes from the first page of a stock start to the first counted call, in the browser alone and in at most ${MOST_SCREENS} screens`,
  { timeout: 2 * WITHIN_MS },
  async () => {
    const [url, browser] = await Promise.all([openStockInstance(), openBrowser()]);
    onTestFinished(() => browser.close());
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    page.setDefaultTimeout(WITHIN_MS / MOST_SCREENS);
    const screens: string[] = [];
    const faults: string[] = [];
    page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("framenavigated", (frame) => {
      const { pathname } = new URL(frame.url());
      if (frame === page.mainFrame() && screens.at(-1) !== pathname) screens.push(pathname);
    });
    if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
    const shoot = async (at: Page) => {
      if (SHOTS === undefined) return;
      await at.screenshot({ path: `${SHOTS}/journey-${String(screens.length).padStart(2, "0")}.png`, fullPage: true });
    };
    const main = page.getByRole("main");

    await page.goto(url);
    await page.getByRole("banner").getByRole("link", { name: "Get an API key" }).click();
    await page.getByLabel("E-mail").fill("newcomer@example.com");
    await page.getByLabel("Password").fill("five rare green kettles");
    await page.getByLabel("I accept the terms.").check();
    await page.getByLabel("I am 18 years old or older.").check();
    await shoot(page);
    await main.getByRole("button", { name: "Sign up" }).click();
    await shoot(page);
    await main.getByRole("link", { name: "Confirm newcomer@example.com" }).click();
    await shoot(page);
    await main.getByRole("button", { name: "Open account" }).click();
    await shoot(page);
    await main.getByRole("link", { name: "Top up your balance" }).click();
    await main.getByText("not real money").first().waitFor();
    await shoot(page);
    await main.getByRole("button", { name: "Add demo money" }).click();
    await shoot(page);
    await main.getByRole("link", { name: "Buy Starter" }).click();
    const pay = main.getByRole("button", { name: /^Pay [\d.]+ USD from my balance$/ });
    await pay.waitFor(); // it follows the boxes
    for (const box of await main.getByRole("checkbox").all()) await box.check();
    await shoot(page);
    await pay.click();
    await shoot(page);
    await main.getByRole("button", { name: "Create key" }).click();
    await shoot(page);
    await main.getByRole("button", { name: "Make a call with this key" }).click();
    await main.getByText("This call was counted.").waitFor();
    expect(await main.getByLabel("body of the response").textContent()).toContain('"ok": true');
    await shoot(page);
    await main.getByRole("link", { name: "See it on the dashboard" }).click();
    const today = main.getByRole("region", { name: "Calls today" });
    expect(await today.locator("p").first().textContent()).toMatch(/^1 of [\d,]+/);
    await shoot(page);
    expect(screens.length, screens.join(" ")).toBeLessThanOrEqual(MOST_SCREENS);
    expect(faults).toEqual([]);
  },
);
