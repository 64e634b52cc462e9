import { mkdirSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import { type ConsoleWorld, openConsoleWorld, PASSWORD } from "../console/world.ts";
import { forgetUsedCodes, totp } from "../ops/totp.ts";
import { type BankWorld, openBankWorld } from "../topups/bank-world.ts";

/** A folder for screenshots, to be looked at; none are made without it. */
const { SHOTS } = process.env;

let bank: BankWorld;
let holders: ConsoleWorld;
let browser: Browser;
beforeAll(async () => {
  [bank, holders, browser] = await Promise.all([openBankWorld(), openConsoleWorld(), openBrowser()]);
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
});
afterAll(async () => {
  await browser.close();
  await Promise.all([bank.world.close(), holders.close()]);
});

let pages = 0;

/** A window of somebody who has signed in to a page; `faults` are what the browser's console reports. */
async function openAt(url: string, email: string, javaScriptEnabled: boolean) {
  const { page, faults } = await openWindow(javaScriptEnabled);
  await page.goto(url);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  const signIn = page.getByRole("button", { name: "Sign in" });
  await signIn.click();
  await signIn.waitFor({ state: "detached" }); // a session that starts later would be newer than the tests want it
  return { page, faults };
}

async function openWindow(javaScriptEnabled: boolean) {
  pages += 1;
  const context = await browser.newContext({
    javaScriptEnabled,
    extraHTTPHeaders: { "x-forwarded-for": `203.0.113.${pages}` },
  });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  return { page, faults };
}

/** No fault for a screen reader in both themes, nothing to scroll sideways on a small phone; with scripts alone. */
async function look(page: Page, name: string, hasScript = true): Promise<void> {
  if (!hasScript) {
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}.png`, fullPage: true });
    return;
  }
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" }), `${name}, ${colorScheme}`).toEqual(
      [],
    );
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-${colorScheme}.png` });
  }
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(page), `${name} at 320 px`).toBe(0);
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-320.png` });
  await page.setViewportSize({ width: 1280, height: 800 });
}

const ageSessions = (sql: BankWorld["sql"], email: string) => sql`
  update auth.sessions
  set created_at = created_at - interval '11 minutes', confirmed_at = null
  where user_id = (select id from auth.users where email = ${email})`;

const BOTH = [
  { name: "with JavaScript", hasScript: true },
  { name: "without JavaScript", hasScript: false },
];

describe.each(BOTH)("$name, an action that requires the password again", ({ hasScript }) => {
  const heading = { name: "Confirm that it is you" };

  it("asks for it, keeps what was typed through a wrong one, and is done once", async () => {
    const name = hasScript ? "script" : "plain";
    const { world, sql } = bank;
    const id = await world.makeOperator(`moved-${name}@example.com`, "operator");
    await world.makeOperator(`admin-${name}@example.com`, "admin");
    const path = `${world.url}/ops/people/${id}`;
    const { page, faults } = await openAt(path, `admin-${name}@example.com`, hasScript);
    await ageSessions(sql, `admin-${name}@example.com`);
    await page.getByLabel("New role").selectOption("data");
    await page.locator("#role-reason").fill("moves to the <data> staff");
    await page.locator("form[action$='/role'] button").click();
    await page.getByRole("heading", heading).waitFor();
    await page.waitForURL(hasScript ? path : `${path}/role`);
    expect(await page.getByRole("dialog").count()).toBe(hasScript ? 1 : 0);
    if (!hasScript) expect(await page.locator("dl.facts").textContent()).toContain("moves to the <data> staff");
    await look(page, `step-up-${name}`, hasScript);
    await page.getByLabel(`Password of admin-${name}@example.com`).fill("not it at all");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("the password is not right").waitFor();
    await look(page, `step-up-${name}-wrong`, hasScript);
    await page.getByLabel(`Password of admin-${name}@example.com`).fill(PASSWORD);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText(`moved-${name}@example.com is data now`).waitFor();
    await page.waitForURL(path);
    const entries = await sql`
      select reason from audit_log where action = 'operator.role' and target = ${`operator moved-${name}@example.com`}`;
    expect([...entries]).toEqual([{ reason: "moves to the <data> staff" }]);
    expect(faults.filter((fault) => !fault.includes("403"))).toEqual([]);
    await page.context().close();
  });

  it("asks for the code, too, of those who use two-factor authentication, and a new key is shown", async () => {
    const name = hasScript ? "kay" : "kim";
    const holder = await holders.as(name);
    const enroll = await holder.post("/console/security/two-factor/enable", { password: PASSWORD });
    const secret = /secret: <code>([A-Z2-7]+)</.exec(await enroll.text())?.[1] ?? "";
    await holder.post("/console/security/two-factor/verify", { code: totp(secret) });
    const { page, faults } = await openWindow(hasScript);
    const cookies = [...holder.cookies].map(([cookie, value]) => ({ name: cookie, value, url: holders.url }));
    await page.context().addCookies(cookies);
    await page.goto(`${holders.url}/console/keys`);
    await forgetUsedCodes(holders.sql);
    await ageSessions(holders.sql, holder.email);
    await page.getByLabel("Name of the new key").fill("laptop of mine");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel(`Password of ${holder.email}`).fill(PASSWORD);
    await look(page, `step-up-code-${name}`, hasScript);
    await page.getByLabel("Code from your authenticator app").fill(totp(secret));
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByLabel("Your key").waitFor();
    expect(await page.getByLabel("Your key").inputValue()).toMatch(/^rh_live_/);
    const keys = await holders.sql`select name from keys where account_id = ${holder.accountId}`;
    expect([...keys]).toEqual([{ name: "laptop of mine" }]);
    expect(faults.filter((fault) => !fault.includes("403"))).toEqual([]);
    await page.context().close();
  });
});

describe("with JavaScript, the dialog", () => {
  it("is cancelled by its button and by Escape, and leaves the form as it was typed", async () => {
    const { world, sql } = bank;
    const id = await world.makeOperator("kept@example.com", "operator");
    await world.makeOperator("undecided@example.com", "admin");
    const { page } = await openAt(`${world.url}/ops/people/${id}`, "undecided@example.com", true);
    await ageSessions(sql, "undecided@example.com");
    for (const cancel of [
      () => page.getByRole("link", { name: "Cancel" }).click(),
      () => page.keyboard.press("Escape"),
    ]) {
      await page.locator("#role-reason").fill("perhaps");
      await page.locator("form[action$='/role'] button").click();
      await page.getByRole("dialog").waitFor();
      await cancel();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      expect(await page.locator("#role-reason").inputValue()).toBe("perhaps");
    }
    const entries =
      await sql`select from audit_log where target = 'operator kept@example.com' and action = 'operator.role'`;
    expect(entries).toHaveLength(0);
    await page.context().close();
  });
});

describe("with JavaScript, a form whose check fails", () => {
  it("is sent, and the server's page asks instead", async () => {
    const { world, sql } = bank;
    const id = await world.makeOperator("offline@example.com", "operator");
    await world.makeOperator("cut-off@example.com", "admin");
    const { page } = await openAt(`${world.url}/ops/people/${id}`, "cut-off@example.com", true);
    await ageSessions(sql, "cut-off@example.com");
    await page.route("**/ops/step-up?*", (route) => route.abort());
    await page.locator("#role-reason").fill("moves on");
    await page.getByLabel("New role").selectOption("data");
    await page.locator("form[action$='/role'] button").click();
    await page.waitForURL(/\/role$/);
    expect(await page.getByRole("dialog").count()).toBe(0);
    await look(page, "step-up-page");
    await page.getByLabel("Password of cut-off@example.com").fill(PASSWORD);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("offline@example.com is data now").waitFor();
    await page.context().close();
  });
});

describe.each(BOTH)("$name, approving without two-factor authentication", ({ hasScript }) => {
  it("leads to turning it on and back to the transfer, and approves it with the next click, once", async () => {
    const name = hasScript ? "cara" : "carl";
    const { world, sql } = bank;
    const account = await bank.account(`payer-${name}@example.com`);
    const topup = await bank.announce(account);
    const path = await bank.enter({ remittance: topup.reference });
    await bank.match(path, topup.reference, account);
    await world.makeOperator(`${name}@example.com`, "operator");
    const { page, faults } = await openAt(world.url + path, `${name}@example.com`, hasScript);
    await page.getByRole("button", { name: /^Approve/ }).click();
    await page.getByRole("heading", { name: "Two-factor authentication is required" }).waitFor();
    await look(page, `enroll-first-${name}`, hasScript);
    await page.getByRole("link", { name: "Turn on two-factor authentication" }).click();
    await page.waitForURL(`${world.url}/ops/me?to=${encodeURIComponent(path)}#two-factor`);
    await look(page, `enroll-me-${name}`, hasScript);
    await page.locator("#enable-password").fill(PASSWORD);
    await page.getByRole("button", { name: "Turn on" }).click();
    const secret = (await page.locator("ol code").first().textContent()) ?? "";
    await look(page, `enroll-${name}`, hasScript);
    await page.getByLabel("Code from the app").fill("000000");
    await page.getByRole("button", { name: "Turn on" }).click();
    await page.getByRole("alert").waitFor(); // a wrong code does not lose the way back
    await page.getByLabel("code").fill(totp(secret));
    await page.getByRole("button", { name: "Try again" }).click();
    await page.waitForURL(world.url + path);
    await waitForToast(page, "Two-factor authentication is on");
    expect(await bank.stateOf(path)).toBe("matched");
    await page.getByRole("button", { name: /^Approve/ }).click();
    await expect.poll(() => bank.stateOf(path)).toBe("credited");
    const entries = await sql`
      select action from audit_log where actor = ${`${name}@example.com`} and action like 'bank.%'`;
    expect([...entries]).toEqual([{ action: "bank.match.approve" }]);
    expect(faults.filter((fault) => !/403|422/.test(fault))).toEqual([]);
    await page.context().close();
  });
});
