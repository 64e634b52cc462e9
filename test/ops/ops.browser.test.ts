import { mkdirSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { OpsPage } from "../../src/ops/contract.ts";
import { actions, pages } from "../../src/ops/index.ts";
import { eventually } from "../support/eventually.ts";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import { forgetUsedCodes, totp } from "./totp.ts";
import { openOpsWorld, type OpsWorld, PASSWORD } from "./world.ts";

/** A folder for screenshots, to be looked at; none are made without it. */
const { SHOTS } = process.env;

const NEXT = "six odd blue kettles";

let world: OpsWorld;
let browser: Browser;

/** A page that shows how often it was requested, and reloads itself every second. */
let shown = 0;
const livePage: OpsPage = {
  path: "/counter",
  query: z.object({}),
  show() {
    shown += 1;
    return Promise.resolve({
      template: "frame/problem-page",
      title: "Counter",
      data: { message: `shown ${shown} times`, fields: [], requestId: "none" },
      refreshSeconds: 1,
    });
  },
};

beforeAll(async () => {
  const lists = { pages: [...pages, livePage], actions };
  [world, browser] = await Promise.all([openOpsWorld({ lists }), openBrowser()]);
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
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-${colorScheme}.png` });
  }
  await page.setViewportSize({ width: 320, height: 800 });
  expect(await overflow(page), `${name} at 320 px`).toBe(0);
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}-320.png`, fullPage: true });
  await page.setViewportSize(wide);
}

/** A new window whose console must stay silent: what the content policy refuses is logged there. */
async function openPage(options: {
  javaScriptEnabled?: boolean;
  address: string;
}): Promise<{ page: Page; errors: string[] }> {
  const context = await browser.newContext({ ...options, extraHTTPHeaders: { "x-forwarded-for": options.address } });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  return { page, errors };
}

async function signIn(page: Page, email: string): Promise<void> {
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in" }).click();
}

describe("an admin in a browser", () => {
  it("signs in, makes and changes an operator, is asked again, and finds all of it in the audit log", async () => {
    await world.makeOperator("ann@example.com", "admin");
    const { page, errors } = await openPage({ address: "203.0.113.1" });
    await page.goto(`${world.url}/ops/people`);
    await look(page, "sign-in");
    await signIn(page, "ann@example.com");
    expect(page.url()).toBe(`${world.url}/ops/people`);
    expect(errors).toEqual([]);

    await page.getByLabel("E-mail").fill("bob@example.com");
    await page.getByLabel("Role").selectOption("operator");
    await page.getByRole("button", { name: "Add operator" }).click();
    expect(await page.locator("pre").textContent()).toMatch(/^[0-9a-f-]{35}$/);
    await look(page, "password-once");
    await page.getByRole("link", { name: "Back to people" }).click();
    await look(page, "people");

    await page.getByRole("link", { name: "Change bob@example.com" }).click();
    await look(page, "person");
    await world.sql`update auth.sessions set created_at = created_at - interval '11 minutes'`;
    await page.getByLabel("New role").selectOption("data");
    await page.getByLabel("Reason", { exact: true }).first().fill("moves to the data staff");
    await page.getByRole("button", { name: "Change role" }).click();
    await page.getByRole("heading", { name: "Confirm that it is you" }).waitFor();
    await look(page, "confirm");
    await page.getByLabel("Password of ann@example.com").fill("not it at all");
    await page.getByRole("button", { name: "Continue" }).click();
    expect(await page.getByRole("alert").textContent()).toBe("the password is not right");
    await page.getByLabel("Password of ann@example.com").fill(PASSWORD);
    await page.getByRole("button", { name: "Continue" }).click();
    await waitForToast(page, "bob@example.com is data now");

    await page.getByRole("link", { name: "Audit log" }).click();
    await page.getByLabel("Action").selectOption("operator.role");
    await page.getByRole("button", { name: "Filter" }).click();
    await page
      .getByText(
        "ann@example.com changed the role of operator bob@example.com from operator to data: moves to the data staff",
      )
      .waitFor();
    await page.getByText("Changes and details").click();
    expect(await page.getByRole("row", { name: "role operator data" }).count()).toBe(1);
    await look(page, "audit");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download as CSV" }).click(),
    ]);
    expect(file.suggestedFilename()).toBe("audit.csv");

    await page.goto(`${world.url}/ops/audit?from=yesterday`);
    expect(await page.getByRole("alert").textContent()).toContain("expected a time");
    await look(page, "trouble");
    await page.getByRole("button", { name: "ann@example.com" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(`${world.url}/ops/sign-in`);
    await page.goBack();
    await page.reload();
    expect(page.url()).toContain("/ops/sign-in");
    expect(errors.filter((line) => !/40[013]|422/.test(line))).toEqual([]);
    await page.context().close();
  });
});

describe("a page that is live", () => {
  it("keeps what its user typed, ticked or chose, and the outcome of the last action", async () => {
    await world.makeOperator("uma@example.com", "viewer");
    const { page, errors } = await openPage({ address: "203.0.113.5" });
    await page.goto(`${world.url}/ops/counter`);
    await signIn(page, "uma@example.com");
    await page.evaluate(`
      globalThis.loads = 0;
      const { fetch } = globalThis;
      globalThis.fetch = (...given) => (globalThis.loads += 1, fetch(...given));
      document.querySelector("main").insertAdjacentHTML(
        "afterbegin", "<div class='toast' data-toast><span role='status'>done</span></div>"
      );
      document.body.insertAdjacentHTML("beforeend", "<span data-refresh-note></span>");`);
    const before = await page.locator("main .notice").textContent();
    await eventually(async () => (await page.locator("main .notice").textContent()) !== before);
    expect(await page.getByRole("status").allTextContents()).toEqual(["done"]);

    for (const [control, edit] of [
      ["<textarea>a</textarea>", "value = 'b'"],
      ["<input value='a'>", "value = 'b'"],
      ["<input type='checkbox' checked>", "checked = false"],
      ["<select><option>a<option>b</select>", "value = 'b'"],
      ["<select><option>a<option selected>b</select>", "value = 'a'"],
    ] as const) {
      const loads = await page.evaluate(`
        for (const note of document.querySelectorAll("[data-refresh-note]")) note.textContent = "";
        document.querySelector("main").insertAdjacentHTML("beforeend", ${JSON.stringify(`<form id="note">${control}</form>`)});
        document.querySelector("#note").elements[0].${edit};
        const before = globalThis.loads;
        document.dispatchEvent(new Event("visibilitychange")); // loads immediately, unless a part is busy
        globalThis.loads - before;`);
      expect([control, loads]).toEqual([control, 0]);
      await page.locator("[data-refresh-note]", { hasText: "paused while a form has unsaved input" }).last().waitFor();
      await page.evaluate("document.querySelector('#note').reset()");
      await page.locator("#note").waitFor({ state: "detached" });
    }
    expect(errors).toEqual([]);
    await page.context().close();
  });

  it("shows what is new by itself, waits while text is selected, and signs out with the sign-in", async () => {
    await world.makeOperator("eva@example.com", "viewer");
    const { page, errors } = await openPage({ address: "203.0.113.4" });
    await page.goto(`${world.url}/ops/counter`);
    await signIn(page, "eva@example.com");
    const first = await page.locator("main .notice").textContent();
    const isNew = async () => (await page.locator("main .notice").textContent()) !== first;
    await eventually(isNew);
    await page.evaluate("document.getSelection().selectAllChildren(document.querySelector('main h1'))");
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 50))"); // one that was under way is over
    const asked = shown;
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 1500))");
    expect(shown - asked).toBeLessThanOrEqual(1);
    await page.evaluate("document.getSelection().removeAllRanges()");
    await eventually(() => shown > asked + 1);
    expect(await accessibilityFaults(page)).toEqual([]);
    await world.sql`delete from auth.sessions where user_id = (select id from auth.users where email = 'eva@example.com')`;
    await page.waitForURL(/sign-in\?to=%2Fops%2Fcounter/);
    expect(errors.filter((line) => !line.includes("401"))).toEqual([]);
    await page.context().close();
  });
});

describe("without JavaScript", () => {
  it("a second factor is turned on and asked for, also to change the password, by keyboard alone", async () => {
    await world.makeOperator("kim@example.com", "viewer");
    const { page } = await openPage({ javaScriptEnabled: false, address: "203.0.113.2" });
    await page.goto(`${world.url}/ops/me`);
    await page.keyboard.press("Tab");
    expect(await page.locator(":focus").textContent()).toBe("Skip to content");
    await signIn(page, "kim@example.com");
    expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Your sign-in");
    await page.setViewportSize({ width: 320, height: 800 });
    expect(await overflow(page)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 800 });
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/me.png` });
    await page.locator("#enable-password").fill(PASSWORD);
    await page.keyboard.press("Enter");
    const secret = (await page.locator("ol code").first().textContent()) ?? "";
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/enroll.png`, fullPage: true });
    await page.getByLabel("Code from the app").fill(totp(secret));
    await page.keyboard.press("Enter");
    await waitForToast(page, "Two-factor authentication is on");
    await forgetUsedCodes(world.sql);
    await page.getByRole("button", { name: "kim@example.com" }).click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(page, "kim@example.com");
    await page.getByLabel("Code from your authenticator app").fill(totp(secret));
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "kim@example.com" }).waitFor();
    await forgetUsedCodes(world.sql);
    await page.goto(`${world.url}/ops/me`);
    const fields = { "Current password": PASSWORD, Code: totp(secret), "New password": NEXT, "Repeat the": NEXT };
    for (const [label, text] of Object.entries(fields)) await page.getByLabel(label).first().fill(text);
    if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/password.png`, fullPage: true });
    await page.keyboard.press("Enter");
    await waitForToast(page, "The password is changed");
    await page.context().close();
  });

  it("the pages of one's own are without a fault for a screen reader", async () => {
    await world.makeOperator("lee@example.com", "viewer");
    const { page, errors } = await openPage({ address: "203.0.113.3" });
    await page.goto(`${world.url}/ops/me`);
    await signIn(page, "lee@example.com");
    await look(page, "me");
    await page.locator("#enable-password").fill(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Turn on two-factor authentication" }).waitFor();
    await look(page, "enroll");
    expect(errors).toEqual([]);
    await page.context().close();
  });
});
