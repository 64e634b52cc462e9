import { expect, it } from "vitest";
import { FAILURES } from "../../src/http/errors.ts";

it.each(Object.entries(FAILURES).filter(([, { status }]) => [401, 402, 403, 429].includes(status)))(
  "the message of %s states what to do",
  (code, { message }) => {
    // this one is complete: the key is what is expected
    if (code !== "missing_api_key") expect(message).toMatch(/; \w+/);
  },
);
