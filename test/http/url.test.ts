import { expect, it } from "vitest";
import { readUrl } from "../../src/http/url.ts";

it("a repeated URL gives the same object, so that cached results are found", () => {
  expect(readUrl("/api/v1/games?house=a")).toBe(readUrl("/api/v1/games?house=a"));
  expect(readUrl("/api/v1/games?house=a")).not.toBe(readUrl("/api/v1/games?house=b"));
});

it("its path is the part before the first question mark, and its parameters are all after it", () => {
  const { path, query, carriesKey } = readUrl("/api/v1/games?house=a?b&game=c%20d");
  expect([path, [...query], carriesKey]).toEqual([
    "/api/v1/games",
    [
      ["house", "a?b"],
      ["game", "c d"],
    ],
    false,
  ]);
});

it.each(["/a?api_key=1", "/a?X-Api-Key=1", "/a?x=rh_live_abcdef", "/rh_live_abcdef", "/a?x=rh%5Flive_abcdef"])(
  "a key in %s is seen, kept nowhere, and not logged",
  (url) => {
    expect(readUrl(url).carriesKey).toBe(true);
    expect(readUrl(url).loggedPath).not.toContain("rh_live_abcdef");
    expect(readUrl(url)).not.toBe(readUrl(url));
  },
);

it("only so many are kept, the newest", () => {
  const first = readUrl("/first");
  for (let n = 0; n < 1_000; n++) readUrl(`/${n}`);
  expect(readUrl("/first")).not.toBe(first);
  expect(readUrl("/999")).toBe(readUrl("/999"));
});

it("long ones are not kept", () => {
  const url = `/a?x=${"y".repeat(200)}`;
  expect(readUrl(url)).not.toBe(readUrl(url));
});
