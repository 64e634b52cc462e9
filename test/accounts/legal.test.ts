import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import * as legal from "../../src/accounts/legal.ts";
import * as letters from "../../src/accounts/letters.ts";
import { listExamples, runExample } from "../support/examples.ts";

/** Words that promise, or press; the notice at the end of a mail has one of them. */
const PROMISES = /\b(?:sure|win|wins|winning|winner|profit\w*|risk-free|predictor|due|guarantee\w*|refund\w*)\b/i;
const NOTICE = /Information only\. Rounds come[^]*$/;

describe("a text that is agreed to", () => {
  // a changed word is another agreement: it needs a new version here, and every holder is asked again
  it.each([
    ["terms", "2026-11-29", "aedd64b9fdd53c4cea7787514f6b464cacda8e2af3b17e6cb05a99dcfe033d82"],
    ["adult", "2026-11-21", "f584fb7ecc831ced14d0682dbdc31859e31dd56993a8b2f9cf91bc35a6edaa64"],
    ["start-now", "2026-11-25", "31d2e86b6017d73ea3775691d3f5870918f62cce8cb11b9c1a85d09078fcc493"],
    ["no-withdrawal", "2026-11-21", "5f175c57b101bc2eebb275dbca525743c47c76d25a6487e0efe6bd2dd4b27188"],
  ] as const)("reads as it did in its version: %s of %s", (kind, version, sha256) => {
    const text = legal.legalText(kind);
    expect([text.version, text.sha256]).toEqual([version, sha256]);
    expect(createHash("sha256").update(text.text, "utf8").digest("hex")).toBe(sha256);
    expect(text.text).not.toMatch(PROMISES);
  });

  it("has a heading and a text in each of its paragraphs", () => {
    const paragraphs = legal.paragraphsOf(legal.legalText("terms").text);
    expect(paragraphs.length).toBeGreaterThan(10);
    for (const { heading, text } of paragraphs) {
      expect(heading).toMatch(/^[A-Z][\w ]{2,30}$/);
      expect(text).toMatch(/^[A-Z].*\.$/);
    }
  });

  it("has examples that hold", () => {
    const claims = listExamples("src/accounts/legal.ts").flatMap((example) => runExample(example, { ...legal }));
    expect(claims.length).toBeGreaterThan(0);
    for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
  });
});

describe("a letter about a sign-in", () => {
  const given = {
    site: "https://roundhouse.example",
    token: "T".repeat(43),
    change: "off",
    accountId: 17n,
    surface: "console",
    at: "2026-11-25 03:00 UTC",
    browser: "Firefox on Linux",
    address: "203.0.113.x",
    email: "a member of staff",
    what: "created",
    by: "an admin",
  } as const;
  it.each(Object.entries(letters))("promises nothing and names nobody: %s", (_, write) => {
    const { kind, subject, body } = (write as (values: typeof given) => ReturnType<typeof letters.addressChanged>)(
      given,
    );
    expect(kind).toMatch(/^[a-z-]+$/);
    expect(`${subject} ${body.replace(NOTICE, "")}`).not.toMatch(PROMISES);
    expect(body).toMatch(NOTICE);
    expect(body).not.toContain("@");
    for (const line of body.split("\n")) expect(line.length <= 72 || line.startsWith("https://")).toBe(true);
  });
});
