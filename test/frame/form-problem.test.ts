import { expect, it } from "vitest";
import { z } from "zod";
import { parseForm } from "../../src/frame/form-problem.ts";

const form = z.strictObject({
  take: z.enum(["", "kept", "other"]),
  reason: z.string().max(3, "expected a short text"),
  text: z.string().min(2).max(9),
  page: z.coerce.number().int().min(1),
  email: z.email(),
  agreed: z.literal("yes"),
  tags: z.array(z.string().max(2)).max(2),
  ids: z.array(z.string().max(2)),
  revision: z.string().regex(/^\d+$/, "the form is of another page"),
});
const right = {
  take: "kept",
  reason: "why",
  text: "text",
  page: "1",
  email: "a@example.com",
  agreed: "yes",
  tags: ["a"],
  ids: ["1"],
  revision: "1",
};

it.each([
  [{ take: "all" }, "Result: expected one of kept, other"],
  [{ reason: undefined }, "Reason: expected a value"],
  [{ reason: "because" }, "Reason: expected a short text"],
  [{ reason: ["a", "b"] }, "Reason: expected one value"],
  [{ text: "x" }, "Text: expected 2 characters or more"],
  [{ text: "x".repeat(10) }, "Text: expected at most 9 characters"],
  [{ page: "x" }, "Page: expected a number"],
  [{ page: "1.5" }, "Page: expected a whole number"],
  [{ page: "0" }, "Page: expected 1 or more"],
  [{ email: "ann" }, "E-mail: expected an e-mail address"],
  [{ agreed: "no" }, "Agreed: expected yes"],
  [{ tags: ["a", "b", "c"] }, "Tags: expected at most 2 values"],
  [{ tags: ["bcd", "efg"] }, "Tags: expected at most 2 characters"],
  [{ ids: ["a", "bcd"] }, "the form is incomplete; open its page again"],
  [{ revision: undefined }, "the form is incomplete; open its page again"],
  [{ revision: "x" }, "the form is of another page"],
  [{ other: "1" }, "expected no field other"],
  [{ take: "all", reason: undefined }, "Result: expected one of kept, other; Reason: expected a value"],
])("a form with %j is refused by the labels of its fields", (changed, problem) => {
  expect(parseForm(form, { ...right, ...changed })).toEqual({ ok: false, problem });
});

it("a right form is parsed", () => {
  expect(parseForm(form, right)).toEqual({ ok: true, form: { ...right, page: 1 } });
});
