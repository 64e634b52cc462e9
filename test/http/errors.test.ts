import { expect, it } from "vitest";
import { FAILURES } from "../../src/http/errors.ts";

const ABOUT_THE_CALLER = [401, 402, 403, 429];

it.each(
  Object.entries(FAILURES)
    // this one is complete: what is expected is what to do
    .filter(([code, { status }]) => ABOUT_THE_CALLER.includes(status) && code !== "missing_api_key"),
)("the message of %s states what to do", (_, { message }) => {
  expect(message).toMatch(/; \w+/);
});
