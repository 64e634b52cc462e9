import { mkdirSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkLedger } from "../../src/ledger/check.ts";
import { totp } from "../ops/totp.ts";
import { openBrowser } from "../support/browser.ts";
import { eventually } from "../support/eventually.ts";
import { CONFIRMATIONS, type NewcomerWorld, openNewcomerWorld } from "./newcomer-world.ts";

/** A folder for screenshots of the way, to be looked at; none are made without it. */
const { SHOTS } = process.env;
const PASSWORD = "five rare green kettles";

let world: NewcomerWorld;
let browser: Browser;
beforeAll(async () => {
  [world, browser] = await Promise.all([openNewcomerWorld(), openBrowser()]);
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
});
afterAll(async () => {
  await browser.close();
  await world.close();
});

/** A new window at the first page; what is refused or fails is logged to its console. */
async function openWindow(
  options: { javaScriptEnabled?: boolean } = {},
): Promise<{ page: Page; errors: string[]; click: Click }> {
  const page = await (await browser.newContext(options)).newPage();
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(world.url);
  return { page, errors, click: clicker(page) };
}

/** Clicks the link or button of a name, in the navigation or in the page itself. */
type Click = (kind: "link" | "button", name: string, within?: "banner" | "navigation" | "main") => Promise<void>;

function clicker(page: Page): Click {
  return (kind, name, within = "main") => {
    const part = within === "navigation" ? page.getByRole(within, { name: "Main" }) : page.getByRole(within);
    return part.getByRole(kind, { name, exact: true }).click();
  };
}

async function shoot(page: Page, name: string): Promise<void> {
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}.png`, fullPage: true });
}

/** The mail with a subject that an address received. */
function mailWith(subject: string, address: string) {
  return eventually(() =>
    world.mail.received.find(({ to, headers }) => to.includes(address) && headers.get("subject") === subject),
  );
}

/** From the first page to an account: both boxes, the mail, its link, the password. */
async function signUp(page: Page, click: Click, email: string): Promise<void> {
  await click("link", "Get an API key", "banner");
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  for (const box of [page.getByLabel("I accept the terms."), page.getByLabel("I am 18 years old or older.")]) {
    expect(await box.isChecked()).toBe(false);
    await click("button", "Sign up"); // which the browser does not send
    await box.check();
  }
  await click("button", "Sign up");
  await page.getByText("We sent a mail to").waitFor();
  await page.goto(await eventually(() => world.mail.linkFor(email)));
  await click("button", "Open account");
  await page.getByRole("heading", { name: "Dashboard" }).waitFor();
}

/** Buys a plan from the balance by the plans' page, and returns the text of the receipt. */
async function buy(page: Page, click: Click, email: string, plan: { name: string; price: string }): Promise<string> {
  await click("link", "Plans", "navigation");
  await click("link", `Buy ${plan.name}`);
  const pay = `Pay ${plan.price} USD from my balance`;
  await page.getByRole("button", { name: pay }).waitFor(); // it follows the boxes
  await shoot(page, `buy-${plan.name}`);
  const boxes = page.getByRole("checkbox");
  expect(await boxes.count()).toBe(2);
  for (const box of await boxes.all()) {
    expect(await box.isChecked()).toBe(false);
    await box.check();
  }
  await click("button", pay);
  await page.getByText("What you agreed to").waitFor();
  await shoot(page, `bought-${plan.name}`);
  const receipt = await eventually(() =>
    world.mail.received.find(({ to, headers }) => to.includes(email) && headers.get("subject")?.startsWith("Receipt")),
  );
  expect(receipt.headers.get("subject")).toContain(`${plan.name}, ${plan.price} USD`);
  return receipt.text;
}

/** Makes a key and calls with it, once from the page for that and once as a program does. */
async function callTwice(page: Page, click: Click): Promise<void> {
  await click("link", "Keys", "navigation");
  await page.getByLabel("Name of the new key").fill("my server");
  await click("button", "Create key");
  const key = await page.getByLabel("Your key").inputValue();
  await click("link", "Back to keys");
  expect(await page.content()).not.toContain(key);
  await click("link", "First call", "navigation");
  const body = page.getByLabel("body of the response");
  await eventually(async () => {
    await page.getByLabel("Key", { exact: true }).fill(key);
    await click("button", "Make call");
    // on a busy machine a new key may not be found in time, which the API reports and does not count
    return (await body.textContent())?.includes("temporarily_unavailable") === false;
  });
  expect(await body.textContent()).toContain('"house": "alpha"');
  await shoot(page, "first-call");
  expect(await callsToday(page, click)).toMatch(/^1 of /);
  const called = await fetch(`${world.url}/api/v1/rounds`, { headers: { "X-Api-Key": key } });
  expect([called.status, await called.text()]).toEqual([200, expect.stringContaining('"multiplier":12.5')]);
  expect(await callsToday(page, click)).toMatch(/^2 of /);
}

async function callsToday(page: Page, click: Click): Promise<string> {
  await click("link", "Dashboard", "navigation");
  const card = page.getByRole("region", { name: "Calls today", exact: true });
  return (await card.locator("p").first().textContent()) ?? "";
}

/** A member of staff at the bank desk, signed in with the second factor that approving requires, in a new window. */
async function openOperator(email: string): Promise<{ page: Page; click: Click }> {
  await world.makeOperator(email, PASSWORD);
  const page = await (await browser.newContext()).newPage();
  const click = clicker(page);
  await page.goto(`${world.url}/ops/me`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await click("button", "Sign in");
  const factor = page.locator("section", { hasText: "Two-factor authentication" });
  await factor.getByLabel("Password").fill(PASSWORD);
  await click("button", "Turn on");
  const secret = (await page.locator("ol code").first().textContent()) ?? "";
  await page.getByLabel("Code from the app").fill(totp(secret));
  await click("button", "Turn on");
  await page.getByText("Two-factor authentication is on").waitFor();
  await click("link", "Bank", "navigation");
  return { page, click };
}

describe("a newcomer", () => {
  it("goes without JavaScript from the first page by a bank transfer, which two people credit, to calls that are paid", async () => {
    const email = "nina@example.com";
    const [{ page, errors, click }, ann, ben] = await Promise.all([
      openWindow({ javaScriptEnabled: false }),
      openOperator("ann@example.com"),
      openOperator("ben@example.com"),
    ]);
    await signUp(page, click, email);
    await shoot(page, "welcome");
    await click("link", "Top up your balance");
    await click("link", "Top up by bank transfer");
    await page.getByLabel("Amount").fill("120");
    await page.getByLabel("Currency").selectOption("USD");
    await click("button", "Get reference");
    const reference = await page.getByLabel("Reference").inputValue();
    expect(reference).toMatch(/^RF\d\d/);
    await shoot(page, "reference");

    await ann.click("link", "Enter a transfer");
    await ann.page.getByLabel("Bank reference").fill("2026-000123");
    await ann.page.getByLabel("Value date").fill("2026-11-20");
    await ann.page.getByLabel("Amount").fill("120.00");
    await ann.page.getByLabel("Sender").fill("Nina Newcomer");
    await ann.page.getByLabel("Text").fill(`top up ${reference.toLowerCase()} thank you`);
    await ann.click("button", "Enter transfer");
    await ann.click("link", `Choose ${reference}`);
    await ann.click("button", "Match transfer");
    await ann.page.getByText("another person has to approve it").waitFor();
    await shoot(ann.page, "matched");
    // the button is not there, and sending what it would send is refused
    const match = await ann.page.locator('input[name="match"]').first().inputValue();
    const refused = await ann.page.request.post(`${ann.page.url()}/approve`, {
      form: { match },
      headers: { origin: world.url },
    });
    expect([refused.status(), await refused.text()]).toEqual([
      422,
      expect.stringContaining("another person has to approve it"),
    ]);
    await page.reload();
    expect(await page.getByText("120.00 USD were added").count()).toBe(0);

    await ben.page.reload();
    await shoot(ben.page, "queue");
    await ben.click("link", "main 2026-000123");
    await ben.click("button", "Approve transfer of 120.00 USD");
    await shoot(ben.page, "approved");
    const credited = await mailWith("Your balance was credited: 120.00 USD", email);
    expect(credited.text).toContain(reference);
    await page.reload();
    await page.getByText("120.00 USD were added to your balance").waitFor();

    const receipt = await buy(page, click, email, { name: "Pro", price: "99.00" });
    expect(receipt).toContain("When you bought it you agreed to these two texts");
    await callTwice(page, click);
    await page
      .getByRole("main")
      .filter({ hasText: /Balance\s*21\.00 USD/ })
      .waitFor();
    await shoot(page, "dashboard");
    expect(errors).toEqual([]);
    for (const window of [page, ann.page, ben.page]) await window.context().close();
  });

  it("watches a deposit being confirmed, sees a reorganisation take it back, gets it once, and calls with what it paid for", async () => {
    const email = "olga@example.com";
    const { chain } = world;
    const { page, errors, click } = await openWindow();
    await signUp(page, click, email);
    await click("link", "Top up your balance");
    await click("link", "Top up by USDT on-chain");
    const address = await page.getByLabel("Your address on").inputValue();
    await shoot(page, "address");
    const deposits = page.getByRole("region", { name: "your deposits" });
    const shows = (text: string) =>
      eventually(async () => {
        await click("link", "Reload");
        return (await deposits.textContent())?.includes(text);
      });
    const confirmed = (blocks: number) => shows(`${blocks} of ${CONFIRMATIONS} confirmations`);

    const txHash = await chain.transfer(address, 30_000_000n);
    await confirmed(1);
    await chain.mine(1);
    await confirmed(2);
    await chain.mine(1);
    await confirmed(3);
    await shoot(page, "three-confirmations");
    const signed = await chain.raw(txHash);
    await chain.reorg(3);
    await shows("the network took its block back");
    await shoot(page, "taken-back");
    expect(await deposits.textContent()).not.toContain("credited");
    await chain.ask("eth_sendRawTransaction", signed);
    await confirmed(1);
    await chain.mine(CONFIRMATIONS - 1);
    await shows("credited");
    await shoot(page, "credited");
    await chain.mine(CONFIRMATIONS);
    const credited = await mailWith("Your balance was credited: 30.00 USD", email);
    expect(credited.text).toContain("USDT on-chain");

    await buy(page, click, email, { name: "Starter", price: "29.00" });
    await callTwice(page, click);
    await click("link", "Statement", "navigation");
    await page
      .getByRole("main")
      .filter({ hasText: /Balance\s*1\.00\s*USD/ })
      .waitFor();
    const entries = page.getByRole("region", { name: "entries" }).locator("tbody tr");
    await entries.first().waitFor();
    await page.waitForLoadState();
    expect(await entries.count()).toBe(2); // the deposit once, and the plan
    expect((await checkLedger(world.sql)).differences).toEqual([]);
    await shoot(page, "statement");
    expect(errors).toEqual([]);
    await page.context().close();
  });
});
