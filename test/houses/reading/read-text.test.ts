import { expect, test } from "vitest";
import { decodeJson, forgetParsed, shareParsing } from "../../../src/houses/reading/read-text.ts";

const EXPECTED = { what: "a list", advice: "check feed.path" };

test("parses a body that several tables read once, and again after it was forgotten", () => {
  const body = Buffer.from('{"rounds":[{"id":7}]}');
  shareParsing(body);
  const first = decodeJson(body, EXPECTED);
  expect(decodeJson(body, EXPECTED)).toBe(first);
  forgetParsed(body);
  const again = decodeJson(body, EXPECTED);
  expect(again).not.toBe(first);
  expect(again).toEqual(first);
  expect(decodeJson(body, EXPECTED)).toBe(again);
});

test("keeps nothing of a body that one table reads", () => {
  const body = Buffer.from("[1]");
  const first = decodeJson(body, EXPECTED);
  forgetParsed(body);
  const second = decodeJson(body, EXPECTED);
  expect(second).not.toBe(first);
  expect(decodeJson(body, EXPECTED)).not.toBe(second);
});
