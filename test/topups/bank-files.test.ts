import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { accessibilityFaults, openBrowser, overflow, waitForToast } from "../support/browser.ts";
import { PASSWORD } from "../ops/world.ts";
import { openBankWorld, problemOf, type BankWorld } from "./bank-world.ts";

let bank: BankWorld;
let browser: Browser;

beforeAll(async () => {
  [bank, browser] = await Promise.all([openBankWorld(), openBrowser()]);
});
afterAll(async () => {
  await browser.close();
  await bank.world.close();
});

const HEADER = "Bank reference;Date;Amount;Currency;Payer;Purpose";

function formOf(
  content: string | Uint8Array<ArrayBuffer>,
  fields: Record<string, string> = {},
  name = "statement.csv",
): FormData {
  const form = new FormData();
  for (const [field, value] of Object.entries({ bank: "Main", statement: "", ...fields })) form.set(field, value);
  form.set("file", new Blob([content]), name);
  return form;
}

/** Uploads a file; returns the path of its preview. */
async function upload(content: string | Uint8Array<ArrayBuffer>, as = bank.ann): Promise<string> {
  const response = await as.upload("/ops/bank/import", formOf(content));
  const location = response.headers.get("location");
  if (location === null) throw new Error(`${response.status}: ${await problemOf(response)}`);
  return location;
}

const textOf = async (path: string) =>
  (await (await bank.ann.get(path)).text()).replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");
const count = async () => (await bank.sql<{ n: number }[]>`select count(*)::integer as n from bank_lines`)[0]!.n;

describe("an uploaded bank file", () => {
  it("shows for each row what importing would do, and imports what it announced", async () => {
    const cleo = await bank.account("cleo@example.com");
    const gone = await bank.account("gone@example.com");
    const [known, typo, closed] = [await bank.announce(cleo), await bank.announce(cleo), await bank.announce(gone)];
    await bank.sql`update accounts set closed_at = now(), email = 'closed' || id || '@example.invalid' where id = ${gone}`;
    await bank.enter({ bank_ref: "dup", amount: "5.00", sender: "Dora", remittance: "", value_date: "2026-11-20" });
    const mistyped = typo.reference.replace(/(.)(.)$/, "$2$1");
    const before = await count();
    const file = [
      HEADER,
      `u-1;22.11.2026;1.234,50;EUR;Cleo Caller;top-up ${known.reference}`,
      `u-2;22.11.2026;10.00;USD;Cleo Caller;${mistyped === typo.reference ? `${typo.reference.slice(0, -1)}Z` : mistyped}`,
      "u-3;22.11.2026;10.00;USD;Pat;RF924000H01",
      "u-4;22.11.2026;10.00;USD;Pat;for the plan",
      `u-5;22.11.2026;10.00;USD;Gus;${closed.reference}`,
      "dup;20.11.2026;5.00;USD;Dora;",
      "dup2;31.02.2026;5.00;USD;Dora;",
      "u-7;22.11.2026;-5.00;USD;Dora;",
    ].join("\r\n");
    const path = await upload(file);
    const preview = await textOf(path);
    expect(preview).toContain("file statement.csv uploaded by ann@example.com");
    expect(preview).toContain("5 transfers to import: 2 with a top-up, 2 without, 1 of a closed account");
    expect(preview).toContain("1 duplicate, left out");
    expect(preview).toContain("2 refused rows, left out");
    expect(preview).toContain(`2026-11-22 1,234.50 EUR Cleo Caller top-up ${known.reference} u-1`);
    expect(preview).toContain("of cleo@example.com, announced 100.00 USD");
    expect(preview).toContain("the reference has a typo, check it");
    expect(preview).toContain("unknown reference RF92 4000 H01 belongs to no top-up");
    expect(preview).toContain("no reference an operator matches it");
    expect(preview).toContain("cannot be credited the account was closed by its holder");
    expect(preview).toContain("expected a value date such as 2026-11-20 or 20.11.2026, got 2026-02-31");
    expect(preview).toContain("-5.00 is below zero");
    expect(preview).toContain("Import 5 transfers");
    expect(await count()).toBe(before);

    const done = await bank.ann.post(`${path}/import`);
    const list = done.headers.get("location") ?? "";
    const shown = await textOf(list);
    expect(shown).toContain("Imported 5 transfers. Left out: 1 duplicate, 2 refused rows.");
    expect(shown).toContain("5 transfers of statement");
    expect(shown).toContain("1–5 of 5");
    expect(await count()).toBe(before + 5);
    const entries = await bank.sql`
      select action, actor, after ->> 'duplicates' as duplicates from audit_log
      where action like 'bank.import.%' order by seq`;
    expect(entries).toEqual([
      { action: "bank.import.preview", actor: "ann@example.com", duplicates: null },
      { action: "bank.import.run", actor: "ann@example.com", duplicates: "1" },
    ]);
  });

  it("leads to the same preview when it is sent twice, and imports once when confirmed twice at a time", async () => {
    const file = `${HEADER}\ntwice;22.11.2026;1.00;USD;Ann;`;
    const path = await upload(file);
    expect(await upload(file)).toBe(path);
    const before = await count();
    const both = await Promise.all([bank.ann.post(`${path}/import`), bank.ann.post(`${path}/import`)]);
    expect(both.map(({ status }) => status)).toEqual([303, 303]);
    expect(await count()).toBe(before + 1);
    expect(await upload(file, bank.ben)).toBe(path);
    const imports = await bank.sql`
      select action from audit_log where target = ${`bank import ${path.slice(18)}`} order by seq`;
    expect(imports).toEqual([{ action: "bank.import.preview" }, { action: "bank.import.run" }]);
  });

  it("may be in Windows-1252, UTF-8 with a byte order mark, or UTF-16", async () => {
    const row = (ref: string) => `${HEADER}\n${ref};22.11.2026;1.00;EUR;Jürgen Größe;`;
    const utf16 = Buffer.from(`\uFEFF${row("enc-3")}`, "utf16le");
    for (const bytes of [Buffer.from(row("enc-1"), "latin1"), Buffer.from(`\uFEFF${row("enc-2")}`), utf16]) {
      expect(await textOf(await upload(new Uint8Array(bytes)))).toContain("Jürgen Größe");
    }
  });

  it("is refused if it is too large, binary, missing, in another field, or sent together with a pasted text", async () => {
    const refused = async (form: FormData) => {
      const response = await bank.ann.upload("/ops/bank/import", form);
      return `${response.status} ${await problemOf(response)}`;
    };
    expect(await refused(formOf("x".repeat(1_048_577)))).toBe("413 expected a file of at most 1024 KiB");
    expect(await refused(formOf("x".repeat(3_000_000)))).toContain("413 expected a form of at most 1088 KiB");
    expect(await refused(formOf(new Uint8Array([80, 75, 3, 4, 0, 0])))).toContain("415 expected a text file");
    expect(await refused(formOf(""))).toContain("expected a file or a pasted text");
    expect(await refused(formOf("a;b\n1;2", { statement: "a;b" }))).toContain("and not both");
    expect(await refused(formOf("a;b\n1;2"))).toContain("422 the header has no column for bank_ref");
    const other = new FormData();
    other.set("bank", new Blob(["x"]), "x");
    expect(await refused(other)).toContain("400 expected a file in file alone");
    const form = formOf("a;b\n1;2");
    form.append("file", new Blob(["a;b\n3;4"]), "second.csv");
    expect(await refused(form)).toContain("expected one file");
    const broken = await fetch(`${bank.world.url}/ops/bank/import`, {
      method: "POST",
      body: "--b\r\nno form",
      headers: {
        "content-type": "multipart/form-data; boundary=b",
        origin: bank.world.url,
        cookie: [...bank.ann.cookies].map(([name, value]) => `${name}=${value}`).join("; "),
      },
    });
    expect([broken.status, await problemOf(broken)]).toEqual([400, "expected a complete multipart form"]);
    expect((await (await bank.world.as("viewer")).upload("/ops/bank/import", formOf("a"))).status).toBe(403);
  });

  it("can be sent again from the page of a problem, as a pasted text of almost 1 MiB", async () => {
    const statement = "a;b\n1;2\n".repeat(100_000);
    const response = await bank.ann.upload("/ops/bank/import", formOf("", { statement }));
    expect(response.status).toBe(422);
    expect(await response.text()).toContain('action="/ops/bank/import" enctype="multipart/form-data"');
    const urlencoded = await bank.ann.post("/ops/bank/import", { bank: "Main", statement });
    expect(urlencoded.status).toBe(413);
  });

  it("is refused as multipart by every other action", async () => {
    const response = await bank.ann.upload("/ops/bank/lines/new", formOf("x"));
    expect(response.status).toBe(415);
  });

  it("may have more than 64 KiB", async () => {
    const rows = Array.from({ length: 500 }, (_, n) => `k-${n};22.11.2026;1.00;EUR;Kai;${"x".repeat(130)}`);
    const content = [HEADER, ...rows].join("\n");
    expect(content.length).toBeGreaterThan(65_536);
    expect(await textOf(await upload(content))).toContain("500 transfers to import");
  });

  it.each([
    ["another action", "/ops/bank/lines/new", 415],
    ["a form of the current account", "/ops/me/password", 415],
    ["no action", "/ops/nothing/here", 404],
  ])("at the path of %s is refused after 64 KiB, before the rest of it arrives", async (_, path, small) => {
    expect((await bank.ann.upload(path, formOf("x"))).status).toBe(small);
    const sending = request(bank.world.url + path, {
      method: "POST",
      signal: AbortSignal.timeout(20_000),
      headers: {
        cookie: [...bank.ann.cookies].map((cookie) => cookie.join("=")).join("; "),
        origin: bank.world.url,
        "sec-fetch-site": "same-origin",
        "content-type": "multipart/form-data; boundary=b",
        "content-length": 1_000_000,
      },
    });
    sending.write("-".repeat(65_537));
    const [response] = (await once(sending, "response")) as [IncomingMessage];
    sending.destroy();
    expect(response.statusCode).toBe(413);
  });

  it.each([true, false])(
    "is chosen, previewed and imported in a browser (JavaScript: %s)",
    async (javaScriptEnabled) => {
      const name = javaScriptEnabled ? "eva" : "kim";
      await bank.world.makeOperator(`${name}@example.com`, "operator");
      const context = await browser.newContext({ javaScriptEnabled, viewport: { width: 1280, height: 800 } });
      const page = await context.newPage();
      /** No fault for a screen reader in either theme, nothing to scroll sideways. axe needs scripts. */
      const look = async () => {
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme });
          if (javaScriptEnabled)
            expect(await accessibilityFaults(page, { colorsAlone: colorScheme === "dark" })).toEqual([]);
        }
        await page.setViewportSize({ width: 320, height: 800 });
        expect(await overflow(page)).toBe(0);
        await page.setViewportSize({ width: 1280, height: 800 });
      };
      await page.goto(`${bank.world.url}/ops/bank`);
      await page.getByLabel("E-mail").fill(`${name}@example.com`);
      await page.getByLabel("Password").fill(PASSWORD);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("link", { name: "Import a statement" }).click();
      await page.waitForURL(`${bank.world.url}/ops/bank/import`);
      await look();
      await page.getByLabel("Statement file").setInputFiles({
        name: "november.csv",
        mimeType: "text/csv",
        buffer: Buffer.from(`${HEADER}\n${name}-1;22.11.2026;1.00;USD;Ann;\n${name}-2;22.11.2026;2.00;USD;Bob;`),
      });
      await page.getByRole("button", { name: "Preview" }).click();
      await page.waitForURL(/imports/);
      await look();
      await page.getByRole("button", { name: "Import 2 transfers" }).click();
      await waitForToast(page, "Imported 2 transfers.");
      expect(await page.getByRole("region", { name: "transfers", exact: true }).getByRole("row").count()).toBe(3);
      await look();
      await context.close();
    },
  );
});
