import { expect, it } from "vitest";
import { z } from "zod";
import { problemOf } from "../../src/frame/routes.ts";

const form = z.object({
  take: z.enum(["kept", "other"]),
  reason: z.string().max(3, "expected at most 3 characters"),
  revision: z.string().regex(/^\d+$/, "the form is of another page"),
});

it.each([
  [{ take: "all", reason: "why", revision: "1" }, "Result: choose one of its values"],
  [{ take: "kept", revision: "1" }, "Reason: it is missing"],
  [{ take: "kept", reason: "because", revision: "1" }, "Reason: expected at most 3 characters"],
  [{ take: "kept", reason: "why", revision: "x" }, "the form is of another page"],
])("the problem of %j names the label and says what to do", (sent, problem) => {
  expect(problemOf(form.safeParse(sent).error!)).toBe(problem);
});
