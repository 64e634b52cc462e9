import { describe, expect, it } from "vitest";
import { reasonOf } from "../src/errors.ts";
import { withoutPassword } from "../src/log.ts";

describe("what is logged", () => {
  it("never holds the password of a server's URL", () => {
    expect(withoutPassword("postgres://app:hunter2@db:5432/x")).toBe("postgres://app:***@db:5432/x");
    expect(withoutPassword("redis://:hunter2@cache:6379")).toBe("redis://:***@cache:6379");
    expect(withoutPassword("postgres://db/x")).toBe("postgres://db/x");
  });

  it("names the causes of an error on one line", () => {
    const error = new Error("the feed cannot be read", { cause: new Error("unexpected end of JSON input") });
    expect(reasonOf(error)).toBe("the feed cannot be read: unexpected end of JSON input");
    expect(reasonOf("plain")).toBe("plain");
  });
});
