import { describe, expect, it } from "vitest";
import { itemReason } from "../../src/ops/quarantine/reason.ts";

describe("the reason of a quarantined item", () => {
  it.each([
    [
      "impossible_multiplier",
      "expected 1.00 or more, came 0.42 (sent as 42)",
      { expected: "1.00 or more", found: "0.42 (sent as 42)", advice: null },
    ],
    [
      "impossible_multiplier",
      "expected 1.00 or more, came 0; where this is an instant crash, list it under feed.instant",
      { expected: "1.00 or more", found: "0", advice: "where this is an instant crash, list it under feed.instant" },
    ],
    [
      "not_a_number",
      'expected a multiplier such as 1.87 or "1,87x", found "a; b"',
      { expected: 'a multiplier such as 1.87 or "1,87x"', found: '"a; b"', advice: null },
    ],
    [
      "stuck_feed",
      "the result 1.5 came 6 times in a row",
      { expected: null, found: null, advice: "the result 1.5 came 6 times in a row" },
    ],
  ])("is split into what was expected, found and to do: %s", (code, reason, parts) => {
    const { meaning, ...rest } = itemReason(code, reason);
    expect(rest).toEqual(parts);
    expect(meaning).toMatch(/^The [^.]+\.$/);
  });

  it("of an unknown code is shown as stored", () => {
    expect(itemReason("later", "something else").meaning).toBe("something else");
  });
});
