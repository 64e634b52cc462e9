import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { KeptEntry } from "../../src/audit/store.ts";
import { diffOf, maskedText } from "../../src/ops/audit/diff.ts";
import { pages } from "../../src/ops/index.ts";
import { linksOf } from "../../src/ops/audit/links.ts";
import { PHRASES, sentenceOf } from "../../src/ops/audit/sentence.ts";

const entry = (changed: Partial<KeptEntry>) => ({
  actor: "ann@example.com",
  action: "house.pause",
  target: "house alpha",
  before: null,
  after: null,
  reason: null,
  ...changed,
});
/** A sentence with its links in angle brackets. */
const written = (changed: Partial<KeptEntry>) =>
  sentenceOf(entry(changed))
    .map(({ text, href }) => (href === null ? text : `<${text}|${href}>`))
    .join("");

describe("a sentence of the audit log", () => {
  it.each([
    [
      { after: { until: "2026-11-21T14:00:00.000Z" }, reason: "maintenance" },
      "ann@example.com paused <house alpha|/ops/houses/alpha> until 2026-11-21 14:00 UTC: maintenance",
    ],
    [{}, "ann@example.com paused <house alpha|/ops/houses/alpha>"],
    [
      {
        action: "bank.match.approve",
        target: "bank line 7 (kcb 123)",
        after: { reference: "RH-12", usd: "50.00", account: "3" },
      },
      "ann@example.com approved top-up RH-12 of 50.00 USD for <account 3|/ops/callers/3> from <bank line 7 (kcb 123)|/ops/bank/lines/7>",
    ],
    [
      { action: "calibration.start", target: "run 12 of a/b/c", after: { model: "k7@1" } },
      "ann@example.com started <run 12|/ops/calibrations/runs/12> of <a/b/c|/ops/tables/a/b/c> with k7@1",
    ],
    [
      { action: "calibration.compare", target: "calibrations 1, 2 and 30 of a/b/c" },
      "ann@example.com compared calibrations <1|/ops/calibrations/1>, <2|/ops/calibrations/2>, <30|/ops/calibrations/30> of <a/b/c|/ops/tables/a/b/c>",
    ],
    [
      { action: "conflict.decide", target: "conflict 4: round 9 of a/b/c", reason: "the house confirms it" },
      "ann@example.com decided <conflict 4: round 9|/ops/conflicts/4> of <a/b/c|/ops/tables/a/b/c>: the house confirms it",
    ],
    [
      {
        action: "operator.role",
        target: "operator bob@example.com",
        before: { role: "viewer" },
        after: { role: "data" },
      },
      "ann@example.com changed the role of <operator bob@example.com|/ops/audit?target=bob%40example.com> from viewer to data",
    ],
    [
      { actor: "account 3", action: "key.create", target: "account 3", after: { key: "7", last4: "wXyZ" } },
      "<Account 3|/ops/callers/3> created key 7, ending in wXyZ",
    ],
    [
      { actor: "account 3", action: "plan.buy", target: "account 3", after: { plan: "Starter" } },
      "<Account 3|/ops/callers/3> bought a plan: Starter",
    ],
    [
      { actor: "account 5", action: "own.two-factor", target: "account 5" },
      "<Account 5|/ops/callers/5> changed the second factor",
    ],
    [{ action: "session.begin", target: "operator ann@example.com" }, "ann@example.com signed in"],
    [
      { actor: "root", action: "quarantine.discard", target: "items 12" },
      "root discarded <item 12|/ops/quarantine/12>",
    ],
    [{ action: "later.added", target: "a thing" }, "ann@example.com did later.added to a thing"],
  ])("names who did what to which object, and why: %#", (changed, sentence) => {
    expect(written(changed)).toBe(sentence);
  });

  it("links nothing that is not an object, whatever a target holds", () => {
    for (const target of ["", "house ../people", "house a/b", "run 1x of a/b/c", "javascript:alert(1)", "items 1"]) {
      expect(linksOf(target).filter(({ href }) => href !== null && !/^\/ops\/[\w/?=.%-]+$/.test(href))).toEqual([]);
    }
    expect(linksOf("house ../people")).toEqual([{ text: "house ../people", href: null }]);
  });

  it("links each kind of object to a page that exists", () => {
    const paths = pages.map(({ path }) => new RegExp(`^/ops${path.replaceAll(/:\w+/g, "[^/]+")}$`));
    const targets = [
      "house a",
      "table a/b/c",
      "run 1",
      "calibration 1",
      "account 1",
      "operator a@b.c",
      "queue poll-house",
    ];
    const more = [
      "bank line 1",
      "bank import 1",
      "transaction 1",
      "plan Pro",
      "mail 1",
      "conflict 1: round 2",
      "items 1, 2",
    ];
    for (const target of [...targets, ...more]) {
      const found = linksOf(target).flatMap(({ href }) => href ?? []);
      expect([target, found.length]).not.toEqual([target, 0]);
      for (const href of found) {
        const [path = ""] = href.split("?");
        expect([target, path, paths.some((pattern) => pattern.test(path))]).toEqual([target, path, true]);
      }
    }
  });

  it("exists for every action that the code writes", () => {
    const prefixes = [...new Set(Object.keys(PHRASES).map((action) => action.split(".")[0]))].join("|");
    const names = globSync("src/**/*.ts").flatMap((file) => [
      ...readFileSync(file, "utf8").matchAll(new RegExp(`["\`]((?:${prefixes})(?:\\.[a-z-]+)+)["\`]`, "g")),
    ]);
    // names of forms, whose entries have other names, and a file
    const others = /^(key\.pem|quarantine\.decide|topup\.bank\..*|topup\.binance-pay)$/;
    const missing = new Set(
      names.map(([, name = ""]) => name).filter((name) => !(name in PHRASES) && !others.test(name)),
    );
    expect([...missing]).toEqual([]);
  });

  it("does not exist for an action that the code never writes", () => {
    const files = globSync("src/**/*.ts").filter((file) => !file.endsWith("audit/sentence.ts"));
    const code = files.map((file) => readFileSync(file, "utf8")).join("\n");
    const isWritten = (action: string) => action.endsWith(".refused") || code.includes(`"${action}"`);
    const byKind = /^plan\.(downgrade|renew|upgrade)$/; // made of the kind of a purchase, as refusals are of actions
    expect(Object.keys(PHRASES).filter((action) => !isWritten(action) && !byKind.test(action))).toEqual([]);
  });
});

describe("the difference of an entry", () => {
  it("has a row for each field, with those of objects and lists by their path", () => {
    expect(diffOf({ state: "open", tags: ["a", "b"], at: { x: 1 } }, { state: "closed", tags: [], n: 2 })).toEqual({
      rows: [
        { name: "state", before: "open", after: "closed" },
        { name: "tags", before: "a, b", after: "" },
        { name: "at.x", before: "1", after: null },
        { name: "n", before: null, after: "2" },
      ],
      more: 0,
    });
    expect(diffOf("open", "released").rows).toEqual([{ name: "value", before: "open", after: "released" }]);
    expect(diffOf(null, [{ a: 1 }, { a: 2 }]).rows.map(({ name }) => name)).toEqual(["0.a", "1.a"]);
  });

  it("masks secrets wherever they are, on the page and in the file", () => {
    const value = { password: "hunter2", deep: [{ api_key: "rk_live_1" }], tokens: ["t1"], token_count: 3, name: "x" };
    const { rows } = diffOf(null, value);
    expect(rows).toEqual([
      { name: "password", before: null, after: "••••••" },
      { name: "deep.0.api_key", before: null, after: "••••••" },
      { name: "tokens", before: null, after: "••••••" },
      { name: "token_count", before: null, after: "3" },
      { name: "name", before: null, after: "x" },
    ]);
    for (const secret of ["hunter2", "rk_live_1", "t1"]) expect(maskedText(value)).not.toContain(secret);
    expect(maskedText(value)).toContain('"name":"x"');
  });

  it("is bounded, whatever an entry holds", () => {
    const wide = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`f${i}`, i]));
    expect(diffOf(null, wide)).toMatchObject({ more: 150 });
    expect(diffOf(null, "x".repeat(10_000)).rows[0]?.after).toHaveLength(501);
  });
});
