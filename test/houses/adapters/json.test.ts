import fc from "fast-check";
import { describe, expect, test } from "vitest";
import json, { type JsonFeed } from "../../../src/houses/adapters/json.ts";
import type { HouseItem } from "../../../src/houses/contract.ts";

const NOW = "2026-11-21T04:00:00Z";
const HASH = "c1cfa8e28fc38999eaa888487e443bad50a65e0b710f649affa6718cfbfada4d";
const feed: JsonFeed = {
  path: "/rounds?limit=50",
  items: "rounds",
  round_id: "id",
  multiplier: "multiplier",
  scale: 1,
  instant: [],
  occurred_at: "created_at",
  hash: "hash",
  history: "/rounds?before={id}&limit={limit}",
  order: "auto",
};

function read(body: string | Buffer, changed: Partial<JsonFeed> = {}) {
  return json.read({ ...feed, ...changed }, Buffer.from(body), NOW);
}

function readItems(items: unknown, changed: Partial<JsonFeed> = {}): HouseItem[] {
  const result = read(typeof items === "string" ? `{"rounds":${items}}` : JSON.stringify({ rounds: items }), changed);
  if (!result.ok) throw new Error(result.reason);
  return result.items;
}

function readItem(item: unknown, changed: Partial<JsonFeed> = {}): HouseItem {
  const [only] = readItems(typeof item === "string" ? `[${item}]` : [item], changed);
  if (only === undefined) throw new Error("the item is lost");
  return only;
}

describe("a response", () => {
  test("becomes rounds in the order they were sent, with ids as text and values exact", () => {
    const items = [
      { id: 8812346, multiplier: "1,87x", created_at: "2026-11-21T03:59:58.250Z", hash: HASH.toUpperCase() },
      { id: "8812345", multiplier: 2.04 },
    ];
    expect(readItems(items)).toEqual([
      {
        ok: true,
        round: {
          roundId: "8812346",
          hundredths: 187,
          rawValue: "1,87x",
          occurredAt: "2026-11-21T03:59:58.250Z",
          hash: HASH,
        },
        raw: items[0],
      },
      {
        ok: true,
        round: { roundId: "8812345", hundredths: 204, rawValue: "2.04", occurredAt: null, hash: null },
        raw: items[1],
      },
    ]);
  });

  test("may be a list itself, nested, filtered, or of lists", () => {
    const list = '[[7,"1.5",true],[6,"2.5",false]]';
    const changed = { round_id: "[0]", multiplier: "[1]", occurred_at: "[9]", hash: "[9]" };
    const ids = (body: string, items: string) => {
      const result = read(body, { ...changed, items });
      return result.ok && result.items.map((item) => item.ok && item.round.roundId);
    };
    expect(ids(list, "@")).toEqual(["7", "6"]);
    expect(ids(`{"data":{"list":${list}}}`, "data.list")).toEqual(["7", "6"]);
    expect(ids(list, "[?@[2]]")).toEqual(["7"]);
  });

  test("with an empty list is a good response without rounds", () => {
    expect(read('{"rounds":[]}')).toEqual({ ok: true, items: [] });
  });

  test("may begin with a byte order mark", () => {
    expect(read('\uFEFF{"rounds":[{"id":1,"multiplier":2}]}')).toMatchObject({ ok: true, items: [{ ok: true }] });
  });

  test("keeps repeats, which the pass handles", () => {
    const item = { id: 1, multiplier: 2 };
    expect(readItems([item, item, { id: 1, multiplier: 3 }])).toHaveLength(3);
  });

  test.each([
    ["an empty body", ""],
    ["an empty body", " \n "],
    [
      "HTML or XML, beginning with: <!doctype html> <title>Back soon</title>",
      "<!doctype html>\n<title>Back soon</title>",
    ],
    ["incomplete JSON", '{"rounds":[{"id":1,"multiplier":1.5},{"id":2,"mult'],
    ["incomplete JSON", '{"rounds":[{"id":1'],
    ["a text that is not JSON, beginning with: Too many requests", "Too many requests"],
    ["a text that is not JSON", '{"rounds":[1,]}'],
    ["a text that is not JSON", '{"rounds":NaN}'],
    ["an object there, beginning with", '{"rounds":{"1":{}}}'],
    ['null there, beginning with: {"error":"maintenance"}', '{"error":"maintenance"}'],
    ["null there", '{"rounds":null}'],
    ['"none" there', '{"rounds":"none"}'],
    ["null there", "[]"],
    ["null there", "17"],
    ["JSON nested deeper than 100 levels", "[".repeat(100_000) + "]".repeat(100_000)],
    ["JSON nested deeper than 100 levels", '{"rounds":'.repeat(101) + "1" + "}".repeat(101)],
  ])("that cannot be read is refused, stating what was found: %s", (what, body) => {
    const result = read(body);
    expect(result).toMatchObject({ ok: false });
    expect(!result.ok && result.reason).toContain(`expected JSON with a list at \`rounds\`, found ${what}`);
    expect(!result.ok && result.reason).toMatch(/; check feed\.path and feed\.items/);
  });

  test("that is not UTF-8 is refused with what can be shown of it", () => {
    const result = read(Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x41]));
    expect(result).toMatchObject({ ok: false, reason: expect.stringContaining("bytes that are not UTF-8") });
  });

  test("is quoted by at most 80 printable characters", () => {
    const result = read(`\u0007\u2028oh ${"a".repeat(1_000)}`);
    expect(!result.ok && result.reason).toContain("beginning with: \\u0007\\u2028oh aaa");
    expect(!result.ok && result.reason.length).toBeLessThan(300);
  });

  test("with more than 5,000 items is refused whole", () => {
    const items = Array.from({ length: 5_001 }, (_, id) => ({ id, multiplier: 2 }));
    expect(read(JSON.stringify({ rounds: items }))).toMatchObject({
      ok: false,
      reason: "expected at most 5000 items, found 5001; request fewer in feed.path",
    });
    expect(read(JSON.stringify({ rounds: items.slice(1) }))).toMatchObject({ ok: true });
  });

  test("on which the expression itself fails is refused, not thrown", () => {
    expect(read('{"rounds":1}', { items: "sort_by(rounds, &id)" })).toMatchObject({
      ok: false,
      reason: expect.stringContaining("`sort_by(rounds, &id)` fails"),
    });
  });
});

describe("an item", () => {
  test.each([
    ["null", "not_an_item"],
    ["17", "not_an_item"],
    ['"1.87x"', "not_an_item"],
    ['{"multiplier":2}', "missing_id"],
    ['{"id":null,"multiplier":2}', "missing_id"],
    ['{"id":"","multiplier":2}', "missing_id"],
    ['{"id":1.5,"multiplier":2}', "bad_id"],
    ['{"id":-1,"multiplier":2}', "bad_id"],
    ['{"id":9007199254740993,"multiplier":2}', "bad_id"],
    ['{"id":1e400,"multiplier":2}', "bad_id"],
    ['{"id":true,"multiplier":2}', "bad_id"],
    ['{"id":{"a":1},"multiplier":2}', "bad_id"],
    ['{"id":[1],"multiplier":2}', "bad_id"],
    ['{"id":"   ","multiplier":2}', "bad_id"],
    ['{"id":"a\\u0000b","multiplier":2}', "bad_id"],
    ['{"id":"a\\ud800b","multiplier":2}', "bad_id"],
    [`{"id":"${"a".repeat(129)}","multiplier":2}`, "bad_id"],
    ['{"id":1}', "missing_multiplier"],
    ['{"id":1,"multiplier":"∞"}', "not_a_number"],
    ['{"id":1,"multiplier":[2]}', "not_a_number"],
    ['{"id":1,"multiplier":0}', "impossible_multiplier"],
    ['{"id":1,"multiplier":1e308}', "impossible_multiplier"],
    ['{"id":1,"multiplier":1e999}', "impossible_multiplier"],
    ['{"id":1,"multiplier":2,"created_at":"soon"}', "absurd_time"],
    ['{"id":1,"multiplier":2,"created_at":{}}', "absurd_time"],
    ['{"id":1,"multiplier":2,"created_at":"2026-11-22T04:00:01Z"}', "absurd_time"],
    ['{"id":1,"multiplier":2,"created_at":"2026-10-22T03:59:59Z"}', "absurd_time"],
    ['{"id":1,"multiplier":2,"created_at":4102444800}', "absurd_time"],
    ['{"id":1,"multiplier":2,"hash":"c1cf"}', "bad_hash"],
    ['{"id":1,"multiplier":2,"hash":17}', "bad_hash"],
  ])("%s is refused as %s, next to its raw form", (item, code) => {
    const refused = readItem(item);
    expect(refused).toMatchObject({ ok: false, code });
    expect(JSON.stringify(refused.raw)).toBe(item);
    expect(!refused.ok && refused.reason).toMatch(/expected/);
  });

  test("that is refused for its multiplier still has its id", () => {
    expect(readItem({ id: 812, multiplier: "∞" })).toMatchObject({ ok: false, roundId: "812" });
  });

  test("with an id too large for a number reports it", () => {
    expect(readItem('{"id":12345678901234567890,"multiplier":2}')).toMatchObject({
      reason: "the id 12345678901234567890 was sent as a number too large to be exact; expected it as a text",
    });
  });

  test("with the same large id as a text is taken", () => {
    expect(readItem('{"id":"12345678901234567890","multiplier":2}')).toMatchObject({
      round: { roundId: "12345678901234567890" },
    });
  });

  test("keeps the digits of a number as they were sent", () => {
    expect(readItem('{"id":1,"multiplier":1.9999999999999999999}')).toMatchObject({
      round: { hundredths: 199, rawValue: "1.9999999999999999999" },
    });
    const kept = readItem('{"id":1,"multiplier":1.50}');
    expect(kept).toMatchObject({ round: { rawValue: "1.50" } });
    expect(JSON.stringify(kept.raw)).toBe('{"id":1,"multiplier":1.50}');
  });

  test("of a house that sends hundredths, with zero for an instant crash", () => {
    const hundredths = { multiplier: "game_crash", scale: 0.01, instant: [0] };
    expect(readItem({ id: 1, game_crash: 27956 }, hundredths)).toMatchObject({ round: { hundredths: 27_956 } });
    expect(readItem({ id: 1, game_crash: 0 }, hundredths)).toMatchObject({ round: { hundredths: 100, rawValue: "0" } });
  });

  test("may have any time within a day of now", () => {
    const times = ["2026-11-22T04:00:00Z", "2026-11-20T04:00:00Z", 1795233600, "1795233600000"];
    const items = readItems(times.map((at, id) => ({ id, multiplier: 2, created_at: at })));
    expect(items.map(({ ok }) => ok)).toEqual([true, true, true, true]);
  });

  test("of a page of history may be as old as its reader allows", () => {
    const body = Buffer.from('{"rounds":[{"id":1,"multiplier":2,"created_at":"2026-11-01T00:00:00Z"}]}');
    expect(json.read(feed, body, NOW, { oldest: "2026-10-31T00:00:00Z" })).toMatchObject({ items: [{ ok: true }] });
    expect(json.read(feed, body, NOW, { oldest: "2026-11-02T00:00:00Z" })).toMatchObject({ items: [{ ok: false }] });
  });

  test("reads nothing that an object inherits", () => {
    const inherited = { round_id: "constructor.name", multiplier: "multiplier" };
    expect(readItem({ multiplier: 2 }, inherited)).toMatchObject({ ok: false, code: "missing_id" });
    expect(readItem('{"__proto__":{"id":7},"multiplier":2}')).toMatchObject({ ok: false, code: "missing_id" });
  });

  test("on which an expression fails is refused alone", () => {
    const items = readItems(
      [
        { id: 1, multiplier: [2, 3] },
        { id: 2, multiplier: "x" },
      ],
      { multiplier: "max(multiplier)" },
    );
    expect(items).toMatchObject([
      { ok: true, round: { hundredths: 300 } },
      { ok: false, code: "not_a_number", roundId: "2" },
    ]);
  });
});

describe("a request", () => {
  test("asks for what is new by the feed's path", () => {
    expect(json.poll(feed, { newest: null })).toMatchObject({ method: "GET", path: "/rounds?limit=50" });
  });

  test("for history names the id, whatever it is made of", () => {
    expect(json.history(feed, { beforeId: "a b&c/é", limit: 50, page: 0, now: NOW })).toMatchObject({
      path: "/rounds?before=a%20b%26c%2F%C3%A9&limit=50",
    });
  });

  test("for history is null if the house cannot page back", () => {
    const { history: _, ...rest } = feed;
    expect(json.history(rest, { beforeId: "1", limit: 50, page: 0, now: NOW })).toBeNull();
  });
});

test("[API10] nothing a house sends makes the adapter throw", () => {
  const field = fc.oneof(fc.anything({ maxDepth: 2 }), fc.string(), fc.integer(), fc.double());
  const item = fc.record({ id: field, multiplier: field, created_at: field, hash: field }, { requiredKeys: [] });
  fc.assert(
    fc.property(fc.array(fc.oneof(item, fc.anything({ maxDepth: 2 })), { maxLength: 5 }), (items) => {
      let text: string | undefined;
      try {
        text = JSON.stringify({ rounds: items });
      } catch {
        return; // bigint and the like cannot be sent
      }
      const result = read(text);
      expect(result.ok && result.items.length).toBe(items.length);
    }),
  );
  fc.assert(fc.property(fc.uint8Array(), (bytes) => void read(Buffer.from(bytes))));
  fc.assert(fc.property(fc.json(), (text) => void read(text)));
});
