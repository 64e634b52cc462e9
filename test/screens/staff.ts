import type { Page } from "playwright-core";
import { z } from "zod";
import { jobs } from "../../jobs/index.ts";
import { createLog } from "../../src/log.ts";
import { openQueues } from "../../src/queue/queues.ts";
import { eventually } from "../support/eventually.ts";
import type { Scene } from "./camera.ts";
import type { Instance } from "./instance.ts";

const PASSWORD = "a rather long passphrase of kim";
const ADMIN = "kim@example.net";
const VIEWER = "vera@example.net";
/** A sign-in is fresh for ten minutes; after that dangerous actions ask for the password again. */
export const FRESH_MS = 600_000;
/** How long the faulty house may take to make each of its faults. */
const FAULTS_WITHIN_MS = 120_000;

/** The list of manual calibrations. */
const MANUAL = "/ops/calibrations?kind=manual&of=bustabit/crash/global";

const ids = z.array(z.object({ id: z.coerce.string() }));

/** Makes an admin and a viewer, and signs them in. */
export async function signInStaff(admin: Page, viewer: Page, own: Instance): Promise<void> {
  for (const [page, email, role] of [
    [admin, ADMIN, "admin"],
    [viewer, VIEWER, "viewer"],
  ] as const) {
    await own.command(["ops-user", "create", email, "--role", role], `${PASSWORD}\n`);
    await signIn(page, own.url, email, PASSWORD);
    await page.waitForURL(`${own.url}/ops`);
  }
}

async function signIn(page: Page, url: string, email: string, password: string): Promise<void> {
  await page.goto(`${url}/ops/sign-in`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Waits until the faulty house has made gaps, conflicts and quarantined items; then decides on one of each that is open. */
export async function decideOnFaults({ command }: Instance): Promise<void> {
  const list = (kind: string, least: number) =>
    eventually(
      async () => {
        const found = ids.parse(JSON.parse(await command([kind, "list", "--house", "airport", "--json"])));
        return found.length >= least && found;
      },
      { timeoutMs: FAULTS_WITHIN_MS },
    );
  await list("gap", 1);
  const why = ["--reason", "the house confirmed its mistake"];
  await command(["quarantine", "discard", (await list("quarantine", 2)).at(-1)?.id ?? "", ...why]);
  await command(["conflict", "decide", (await list("conflict", 2)).at(-1)?.id ?? "", "--take", "kept", ...why]);
}

/** Adds a run that fails, since its payload is of another job. */
export async function failRun(own: Instance): Promise<void> {
  const { redis_url: redisUrl } = await own.servers();
  const queues = await openQueues(jobs, redisUrl, createLog("silent", false));
  await queues.get("backfill-gap").add("backfill-gap", { house: "airport" }, { attempts: 1 });
  await queues.close();
}

/** Notices, a paused queue, a suspended account, manual calibrations and their comparison. */
export async function workAtOps(page: Page, own: Instance): Promise<void> {
  const { command, url } = own;
  const why = ["--reason", "announced by the house"];
  await command(["notice", "write", "The house moves its servers until noon UTC.", "--house", "airport", ...why]);
  await command(["queue", "pause", "remind-holders", "--for", "2h", "--reason", "the mail server is being moved"]);
  await command(["account", "create", "bob@example.org"]);
  await command(["key", "create", "--account", "bob@example.org", "--plan", "Pro", "--name", "crawler"]);
  await command(["account", "suspend", "bob@example.org", "--reason", "its key was published"]);
  for (const changed of [{}, { Share: "0.001" }, { "Theory half-lives": "100, 1000" }]) {
    await startRun(page, url, { changed, tables: "bustabit/crash/global" });
  }
  await startRun(page, url, { changed: {}, tables: "demo-simulated" });
  await eventually(
    async () => {
      await page.goto(url + MANUAL);
      return (await page.getByRole("checkbox").count()) >= 3;
    },
    { timeoutMs: 60_000 },
  );
}

async function startRun(
  page: Page,
  url: string,
  { changed, tables }: { changed: Record<string, string>; tables: string },
): Promise<void> {
  const main = page.getByRole("main");
  await page.goto(`${url}/ops/calibrations/new`);
  await main.getByLabel("Tables").fill(tables);
  await main.getByText("Change parameters of the model").click();
  for (const [label, value] of Object.entries(changed)) await main.getByLabel(label).fill(value);
  await main.getByLabel("Tags").fill("edge-2026");
  await main.getByLabel("Reason").fill("Compare half-lives before the next release");
  await main.getByRole("button", { name: "Start run" }).click();
  await page.waitForURL(/runs|batches/);
}

/** A statement with a transfer of the holder, one without a reference, a duplicate and a refused row. */
const statementOf = (reference: string) => `bank_ref;value_date;amount;currency;sender;remittance
2026-4711;22.11.2026;250,00;USD;Ann Example;${reference}
2026-4712;22.11.2026;1.234,50;EUR;Müller & Söhne Nordhandelsgesellschaft mbH;Rechnung 2026-118 vom 3. November
2026-4711;22.11.2026;250,00;USD;Ann Example;${reference}
2026-4713;23.11.2026;-12,00;USD;Bob;refund
`;

/** The list of bank transfers, without that of announced ones. */
const transfersOn = (page: Page) => page.getByRole("region", { name: "transfers", exact: true });

/** Scenes of operations that are reached by forms, in an order that can be repeated. */
export function formScenes(url: string, reference: string): Record<string, Scene> {
  const preview = async (page: Page) => {
    const main = page.getByRole("main");
    await page.goto(`${url}/ops/bank/import`);
    await main.getByLabel("Bank", { exact: true }).fill("Main bank");
    await main.getByText("Paste the text instead").click();
    await main.getByLabel("Statement text").fill(statementOf(reference));
    await main.getByRole("button", { name: "Preview" }).click();
    await page.waitForURL(/imports/);
  };
  return {
    "ops-bank-import-preview": preview,
    "ops-calibrations-compared": async (page) => {
      await page.goto(url + MANUAL);
      for (const box of (await page.getByRole("checkbox").all()).slice(0, 3)) await box.check();
      await page.getByRole("button", { name: "Compare selected" }).click();
      const compare = page.getByRole("button", { name: "Compare on the same rounds" });
      if ((await compare.count()) === 0) return;
      await compare.click();
      await eventually(async () => {
        await page.reload();
        return (await page.getByText("done", { exact: true }).count()) >= 2;
      });
    },
    "ops-plan-preview": async (page) => {
      await page.goto(`${url}/ops/plans/Starter`);
      await page.getByLabel("Price, USD").fill("39");
      await page.getByLabel("Calls per UTC day").fill("5000");
      await page.getByRole("button", { name: "Preview" }).click();
    },
    "ops-audit-diff": async (page) => {
      await page.goto(`${url}/ops/audit`);
      const entries = page.getByText("Changes and details");
      for (const at of [0, 1, 2]) await entries.nth(at).click();
    },
    "ops-two-factor": async (page) => {
      await page.goto(`${url}/ops/me`);
      await page.locator("#enable-password").fill(PASSWORD);
      await page.getByRole("button", { name: "Turn on" }).click();
      await page.getByText("Scan with your authenticator app.").waitFor();
    },
    "ops-bank-line-preview": async (page) => {
      await page.goto(`${url}/ops/bank?state=new`);
      if ((await transfersOn(page).getByRole("link").count()) === 0) {
        await preview(page);
        await page.getByRole("button", { name: /^Import / }).click();
        await page.waitForURL(/bank\?import/);
        await page.goto(`${url}/ops/bank?state=new`);
      }
      await transfersOn(page).getByRole("row", { name: "Ann Example" }).getByRole("link").first().click();
      await page.getByRole("link", { name: "Choose" }).click();
      await page.getByRole("heading", { name: "Preview" }).waitFor();
    },
    "ops-bank-line-matched": async (page) => {
      const match = page.getByRole("button", { name: "Match", exact: false }).last();
      await page.goto(`${url}/ops/bank`);
      await transfersOn(page).getByRole("row", { name: "Ann Example" }).getByRole("link").first().click();
      const choose = page.getByRole("link", { name: "Choose" });
      if ((await choose.count()) === 0) return;
      await choose.click();
      await match.click();
      await page.getByText("Pending approval").first().waitFor();
    },
  };
}

/** The dialogs that ask staff to prove who they are; `stale` ones are shown only when the sign-in is no longer fresh. */
export function stepUpScenes(url: string): Record<"fresh" | "stale", Record<string, Scene>> {
  const dialog = (page: Page) => page.getByRole("dialog");
  return {
    fresh: {
      "ops-dialog-enroll": async (page) => {
        await page.goto(`${url}/ops/bank?state=matched`);
        await transfersOn(page).getByRole("link").first().click();
        await page.getByRole("button", { name: /^Approve/ }).click();
        await dialog(page).waitFor();
      },
    },
    stale: {
      "ops-dialog-step-up": async (page) => {
        await page.goto(`${url}/ops/people`);
        await page.getByRole("link", { name: `Change ${VIEWER}` }).click();
        await page.locator("#state-reason").fill("left the company");
        await page.getByRole("button", { name: "Disable" }).click();
        await dialog(page).waitFor();
      },
      "ops-dialog-step-up-wrong": async (page) => {
        await dialog(page).getByLabel("Password").fill("not the password");
        await dialog(page).getByRole("button", { name: "Continue" }).click();
        await page.getByText("password is not right").waitFor();
      },
    },
  };
}

/** Pages that refuse a viewer. */
export function errorScenes(url: string): Record<string, Scene> {
  const script = `{ const form = document.createElement("form"); form.method = "post";
    form.action = "/ops/houses/bustabit/probe"; document.body.append(form); form.submit(); }`;
  return {
    "ops-forbidden": "/ops/settings",
    "ops-forbidden-action": async (page) => {
      await page.goto(`${url}/ops/houses/bustabit`);
      await page.evaluate(script);
      await page.waitForURL(/probe/);
    },
  };
}

/** The sign-in page after too many wrong passwords. */
export function tooManyScenes(url: string): Record<string, Scene> {
  return {
    "ops-too-many": async (page) => {
      for (let attempt = 0; attempt < 6; attempt += 1) await signIn(page, url, VIEWER, "not the password");
    },
  };
}
