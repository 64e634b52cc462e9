import type { Page } from "playwright-core";
import { eventually } from "../support/eventually.ts";
import type { Instance } from "./instance.ts";

/** The holder whose console is photographed. */
const HOLDER = { email: "ann@example.org", password: "a rather long passphrase of ann" };

/** Signs the holder up by the link that is printed where no mail is sent. */
export async function signUp(page: Page, own: Instance): Promise<void> {
  await page.goto(`${own.url}/console/sign-up`);
  await page.getByLabel("E-mail").fill(HOLDER.email);
  const passwords = page.locator('input[type="password"]');
  for (const password of await passwords.all()) await password.fill(HOLDER.password);
  for (const box of await page.getByRole("checkbox").all()) await box.check();
  await page.getByRole("main").getByRole("button").last().click();
  await page.goto(await own.printedLink("/console/confirm"));
  for (const password of await passwords.all()) await password.fill(HOLDER.password);
  await page.getByRole("main").getByRole("button").last().click();
}

/**
 * Takes the way of a newcomer, so that the pages show a bought plan, a key with a call, a receipt and a pending transfer.
 * Returns the key and the reference of the transfer.
 */
export async function useConsole(page: Page, own: Instance): Promise<{ key: string; reference: string }> {
  const { url } = own;
  const main = page.getByRole("main");
  await page.goto(`${url}/console/top-up`);
  await main.getByRole("button", { name: "Add demo money" }).click();
  await main.getByRole("link", { name: "Buy Starter" }).click();
  for (const box of await main.getByRole("checkbox").all()) await box.check();
  await main.getByRole("button", { name: /^Pay / }).click();
  await main.getByRole("button", { name: "Create key" }).click();
  const key = await main.getByLabel("Your key").inputValue();
  await main.getByRole("button", { name: "Make a call with this key" }).click();
  await main.getByText("This call was counted.").waitFor();
  await page.goto(`${url}/console/top-up/bank`);
  await main.getByLabel(/^Amount/).fill("250.00");
  await main.getByRole("button").last().click();
  await main.getByText("Write the reference into the transfer exactly.").waitFor();
  const reference = await main.getByLabel("Reference").inputValue();
  await page.goto(`${url}/console/top-up/binance-pay`);
  await main.getByLabel(/^Amount/).fill("1250.00");
  await main.getByRole("button", { name: "Create order" }).click();
  await main.getByRole("link", { name: "Pay at Binance Pay" }).waitFor();
  await depositUsdt(page, own);
  return { key, reference };
}

/** Sends one deposit to the holder's address and waits until it shows. */
async function depositUsdt(page: Page, own: Instance): Promise<void> {
  const address = await eventually(async () => {
    await page.goto(`${own.url}/console/top-up/usdt`);
    const shown = page.locator("#usdt-address");
    return (await shown.count()) > 0 && shown.inputValue();
  });
  await own.sendUsdt(address, 1_250_003_349n);
  await eventually(async () => {
    await page.goto(`${own.url}/console/top-up/usdt`);
    return (await page.getByText("of 12 confirmations").count()) > 0;
  });
}

/** Lowers the limit of the holder's plan and calls until it refuses; waits until the dashboard shows the refused calls. */
export async function exhaust(page: Page, own: Instance, key: string): Promise<void> {
  await own.command(["plan", "set", "Starter", "--day", "3"]);
  await eventually(async () => {
    await fetch(`${own.url}/api/v1/games`, { headers: { "X-Api-Key": key } });
    await page.goto(`${own.url}/console`);
    return (await page.getByRole("region", { name: "refused calls" }).getByText("day_quota_exceeded").count()) > 0;
  });
}
