import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { OPERATIONS } from "../../src/api/operations.ts";
import * as consoleLists from "../../src/console/index.ts";
import { assertPosting, type LedgerSide, type Posting } from "../../src/ledger/posting.ts";
import * as opsLists from "../../src/ops/index.ts";
import { openTestDatabase } from "../support/database.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");
/** What would take money back out, or take it by card. */
const ABSENT =
  /re-?fund|withdraw|pay-?outs?\b|cash-?(?:out|back)|charge-?back|money-?back|\bcards?\b|card[-_]?(?:number|holder|no\b)|\bcc-|\bcv[cv]2?\b|mastercard|\bvisa\b|paypal|stripe/i;

const { sql } = await openTestDatabase({ max: 1 });

const read = (file: string) => readFileSync(path.join(ROOT, file), "utf8");
/** A template without names that no reader sees: classes, files that it includes, the kind of a link's preview. */
const readPage = (file: string) => read(file).replaceAll(/ class="[^"]*"|include\("[^"]*"|"twitter:card"/g, "");
const sources = globSync("src/{api,site,console,ops,frame}/**/*.ts", { cwd: ROOT });
const templates = globSync("src/**/*.eta", { cwd: ROOT });

it("no route of the API, the site, the console or /ops gives money back or takes a card", () => {
  const lists = [OPERATIONS, consoleLists.pages, consoleLists.actions, opsLists.pages, opsLists.actions];
  const listed = lists.flatMap((list) => list.map((one) => one.path));
  const named = [...consoleLists.actions, ...opsLists.actions].map(({ name }) => name);
  const written = sources.flatMap((file) =>
    [...read(file).matchAll(/(?:\bpath: |\.(?:get|post|put|all|use|route)\(\s*)["`](\/[^"`]*)["`]/g)].map(
      ([, route = ""]) => route,
    ),
  );
  expect(listed).toEqual(expect.arrayContaining(["/plans/:plan/buy", "/api/v1/games", "/callers/:id"]));
  expect(written).toEqual(expect.arrayContaining(["/plans/:plan/buy", "/callers/:id/suspend"]));
  expect([...listed, ...named, ...written].filter((route) => ABSENT.test(route))).toEqual([]);
});

it("no form has a field for it, and no link or button leads to it", () => {
  const places = [...templates, ...sources].flatMap((file) =>
    [...readPage(file).matchAll(/\b(?:name|action|formaction|href|id|for|autocomplete|value)="([^"]*)"/g)].map(
      ([, value = ""]) => `${file}: ${value}`,
    ),
  );
  expect(places.length).toBeGreaterThan(100);
  expect(places.filter((place) => ABSENT.test(place.slice(place.indexOf(": "))))).toEqual([]);
});

it("no page mentions it", () => {
  const words = templates.flatMap((file) =>
    readPage(file)
      .split("\n")
      .filter((line) => ABSENT.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  );
  expect(words).toEqual([]);
});

it("the ledger has no kind for it, and none of its kinds but a correction takes from a wallet to anywhere but revenue", async () => {
  const [checks] = await sql<{ kinds: string; sides: string }[]>`
    select
      pg_get_constraintdef((select oid from pg_constraint where conname = 'ledger_transaction_kind_is_known')) as kinds,
      pg_get_constraintdef((select oid from pg_constraint where conname = 'ledger_kind_is_known')) as sides`;
  const listOf = (text = "") => [...text.matchAll(/'(\w+)'::text/g)].map(([, word = ""]) => word).toSorted();
  expect(listOf(checks?.kinds)).toEqual(["placement", "purchase", "reversal", "suspense", "topup"]);
  expect(listOf(checks?.sides)).toEqual([
    "cash_bank",
    "cash_demo",
    "cash_onchain",
    "cash_payapp",
    "revenue",
    "suspense",
    "wallet",
  ]);
  const wallet: LedgerSide = { kind: "wallet", owner: 1n };
  const others = ["cash_bank", "cash_demo", "cash_onchain", "cash_payapp", "revenue", "suspense"] as const;
  const ways = (["topup", "purchase", "suspense", "placement"] as const).flatMap((kind) =>
    others.flatMap((to) => {
      const legs: Posting["legs"] = [
        { side: wallet, micros: -1n },
        { side: { kind: to }, micros: 1n },
      ];
      try {
        assertPosting({ kind, key: "a test", legs });
        return [`${kind} to ${to}`];
      } catch {
        return [];
      }
    }),
  );
  expect(ways).toEqual(["purchase to revenue"]);
});

it("the database keeps nothing for it: no table, no column", async () => {
  const names = await sql<{ name: string }[]>`
    select table_name || '.' || column_name as name
    from information_schema.columns
    where table_schema in ('public', 'auth')
    order by name`;
  expect(names.length).toBeGreaterThan(100);
  expect(names.map(({ name }) => name).filter((name) => ABSENT.test(name))).toEqual([
    "payment_app_orders.refund_reported_at", // by the provider: whoever paid it has the money back
    "purchases.no_withdrawal_version", // that somebody knows there is none
  ]);
});
