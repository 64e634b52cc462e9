import type { z } from "zod";
import { fieldLabel } from "./text/field-label.ts";

const INCOMPLETE = "the form is incomplete; open its page again";

/**
 * Parses the values of a form or of a page's query.
 * @returns the parsed values, or one problem per wrong value, each with the label of its field; a hidden field is not named.
 */
export function parseForm<Form>(
  schema: z.ZodType<Form>,
  values: unknown,
): { ok: true; form: Form } | { ok: false; problem: string } {
  const read = schema.safeParse(values, { error: messageOf });
  if (read.success) return { ok: true, form: read.data };
  const problems = read.error.issues.map(({ path, message }) => {
    const label = labelOf(path);
    return label === null ? message : `${label}: ${message}`;
  });
  return { ok: false, problem: [...new Set(problems)].join("; ") };
}

/** The label of a value's field, whose place in a list does not matter; null if it is hidden or the form as a whole. */
function labelOf([name]: readonly PropertyKey[]): string | null {
  return name === undefined ? null : fieldLabel(String(name));
}

/** What is expected of a value whose schema does not say it. */
function messageOf(issue: z.core.$ZodRawIssue): string | undefined {
  const { path = [] } = issue;
  if (path.length > 0 && labelOf(path) === null) return INCOMPLETE;
  switch (issue.code) {
    case "invalid_value": {
      const values = issue.values.filter((value) => value !== "").map(String);
      return `expected ${values.length > 1 ? "one of " : ""}${values.join(", ")}`;
    }
    case "invalid_type":
      if (issue.input === undefined) return "expected a value";
      if (Array.isArray(issue.input)) return "expected one value";
      return `expected a ${issue.expected === "int" ? "whole number" : issue.expected}`;
    case "too_small":
      return `expected ${issue.minimum}${unitOf(issue.origin)} or more`;
    case "too_big":
      return `expected at most ${issue.maximum}${unitOf(issue.origin)}`;
    case "invalid_format":
      return issue.format === "email" ? "expected an e-mail address" : "expected another form of text";
    case "unrecognized_keys":
      return `expected no field ${issue.keys.join(", ")}`;
    case "invalid_union":
      return "expected another value";
    default:
      return undefined;
  }
}

function unitOf(origin: string): string {
  return { string: " characters", array: " values" }[origin] ?? "";
}
