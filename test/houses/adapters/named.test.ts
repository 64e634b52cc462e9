import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { z } from "zod";
import { adapters, type AdapterName } from "../../../src/houses/adapters/index.ts";
import { fixture, inShort, itemsOf, NOW, withOptions } from "./fixtures.ts";

/** The rounds of each house's document, and its request. */
const HOUSES: {
  name: AdapterName;
  options?: Record<string, unknown>;
  document: string;
  path?: string;
  ask: object;
  rounds: string[];
}[] = [
  {
    name: "blaze",
    document: "blaze/recent.json",
    ask: { method: "GET", path: "/crash_games/recent" },
    rounds: [
      "V1eKqWyelo 201 2026-11-21T03:59:15.580Z",
      "2l4GnB7vkn 100 2026-11-21T03:58:50.001Z",
      "b7Tq91XcVd 185 2026-11-21T03:58:25.400Z",
      "hU2zL5rMwe 1200 2026-11-21T03:58:01.090Z",
    ],
  },
  {
    name: "blaze",
    options: { api: "originals" },
    document: "blaze/history.json",
    ask: { method: "GET", path: "/singleplayer-originals/originals/crash_games/recent/4" },
    rounds: ["hU2zL5rMwe 1200 2026-11-21T03:58:01.090Z", "q8Rk2NdYsa 100 2026-11-21T03:57:30.000Z"],
  },
  {
    name: "stake",
    document: "stake/list.json",
    ask: { method: "POST", path: "/_api/graphql", headers: { "content-type": "application/json" } },
    rounds: [
      "7d0f3a51-1111-4c2b-9a00-000000000003 664 2026-11-21T03:59:36Z",
      "7d0f3a51-1111-4c2b-9a00-000000000002 199 2026-11-21T03:59:12Z",
      "7d0f3a51-1111-4c2b-9a00-000000000001 100 2026-11-21T03:58:48Z",
      "7d0f3a51-1111-4c2b-9a00-000000000000 100 2026-11-21T03:58:24Z",
    ],
  },
  {
    name: "bcgame",
    document: "bcgame/history.json",
    ask: {
      method: "POST",
      path: "/api/game/bet/multi/history",
      body: '{"gameUrl":"crash","page":1,"pageSize":50}',
    },
    rounds: ["9313905 416 2026-11-21T03:59:17.219Z", "9313904 2031060 2026-11-21T03:58:40.000Z", "9313903 100"],
  },
  {
    name: "roobet",
    document: "roobet/recent.json",
    ask: { method: "GET", path: "/crash/recentNumbers" },
    rounds: ["5f6c3d2e 845", "1922627 100", "5f6c3d00 123400"],
  },
  {
    name: "lucky-jet",
    document: "lucky-jet/history.json",
    ask: { method: "GET", path: "/history" },
    rounds: ["c0ffee00aa 187", "c0ffee00bb 200", "c0ffee00cc 100"],
  },
  {
    name: "bustabit",
    options: { first_round_id: 12639999 },
    document: "bustabit/12639999.html",
    path: "/game/12639999",
    ask: { method: "GET", path: "/game/12639999", roundId: "12639999" },
    rounds: ["12639999 118500"],
  },
  {
    name: "ethercrash",
    options: { first_round_id: "7217785" },
    document: "ethercrash/7217785.html",
    path: "/game/7217785",
    ask: { method: "GET", path: "/game/7217785", roundId: "7217785" },
    rounds: ["7217785 6725 2026-11-20T21:56:01Z"],
  },
  {
    name: "ethercrash",
    document: "ethercrash/play.html",
    path: "/play",
    ask: { method: "GET", path: "/play" },
    rounds: ["7217785 6725", "7217784 100", "7217783 123400"],
  },
  {
    name: "ethcrash-io",
    options: { first_round_id: 88889 },
    document: "ethcrash-io/88889.json",
    path: "/game/88889.json",
    ask: { method: "GET", path: "/game/88889.json", roundId: "88889" },
    rounds: ["88889 27956"],
  },
];

describe("each named adapter", () => {
  it.each(HOUSES)("$name reads $document", ({ name, options, document, path, ask, rounds }) => {
    const house = withOptions(name, options);
    expect(house.poll()).toMatchObject(ask);
    expect(itemsOf(house.read(fixture(document), path === undefined ? {} : { path }))).toEqual(rounds);
  });

  it("keeps the raw value of what it floors, and the hash that proves a round", () => {
    const stake = withOptions("stake").read(fixture("stake/list.json"));
    expect(stake).toMatchObject({ items: [{ round: { rawValue: "6.6402817", hash: /^1f93980a/ } }, {}, {}, {}] });
    expect(stake).toMatchObject({ items: [{}, {}, {}, { round: { rawValue: "1.0000000", hash: null } }] });
    expect(withOptions("bcgame").read(fixture("bcgame/history.json"))).toMatchObject({
      items: [{ round: { hash: `34f43fdc${"0".repeat(54)}aa` } }, { round: { rawValue: "20310.6", hash: null } }, {}],
    });
    expect(
      Object.values(adapters)
        .filter((one) => one.hasHash({ hash: "h" } as never))
        .map(({ name }) => name),
    ).toEqual(["json", "bcgame", "blaze", "stake"]);
  });

  it("reads each spelling of an instant crash of its house", () => {
    const blaze = (point: unknown) =>
      itemsOf(withOptions("blaze").read(JSON.stringify([{ id: "a", crash_point: point }])));
    expect([0, "0", "0.00", "1", 1, "1.00"].map((point) => blaze(point)[0])).toEqual(Array(6).fill("a 100"));
    const page = (result: string) =>
      itemsOf(withOptions("ethercrash").read(`<h4>Game 5 | Crashed @${result}x</h4>`, { path: "/game/5" }));
    expect(["0", "0.00", "1", "1.00"].map((result) => page(result)[0])).toEqual(Array(4).fill("5 100"));
    const document = (crash: unknown) =>
      itemsOf(
        withOptions("ethcrash-io", { first_round_id: 5 }).read(`{"game_crash":${String(crash)}}`, {
          path: "/game/5.json",
        }),
      );
    expect([document(0), document(100)]).toEqual([["5 100"], ["5 100"]]);
  });

  it("refuses a zero of a house that shows none", () => {
    expect(
      itemsOf(withOptions("stake").read(JSON.stringify({ data: { crashGameList: [{ id: "a", crashpoint: 0 }] } }))),
    ).toEqual(["impossible_multiplier a"]);
  });

  it.each(["1x", "2x", "1,234x", "1,234.56x", "12,345,678x", "185.04x"])(
    "loses no %s on a page: whole numbers and thousands are exactly the instant crashes and the highest results",
    (text) => {
      const expected = Math.round(Number(text.replaceAll(/[,x]/g, "")) * 100);
      const bustabit = withOptions("bustabit", { first_round_id: 7 }).read(`<i>Busted at:</i> <b>${text}</b>`, {
        path: "/game/7",
      });
      expect(itemsOf(bustabit)).toEqual([`7 ${expected}`]);
      const ethercrash = withOptions("ethercrash").read(`Game 7 | Crashed @${text}`, { path: "/game/7" });
      expect(itemsOf(ethercrash)).toEqual([`7 ${expected}`]);
    },
  );

  it("never counts a result through a binary fraction", () => {
    const value = "1.9999999999999999999999";
    expect(itemsOf(withOptions("roobet").read(`[{"id":1,"crashPoint":${value}}]`))).toEqual(["1 199"]);
    expect(itemsOf(withOptions("stake").read(`{"data":{"crashGameList":[{"id":"a","crashpoint":8.29}]}}`))).toEqual([
      "a 829",
    ]);
  });

  it("asks on from the newest known round, and not before a first one that was set higher", () => {
    const house = withOptions("bustabit", { first_round_id: 500 });
    expect([house.poll(null), house.poll(10n), house.poll(499n), house.poll(812n)].map(({ path }) => path)).toEqual([
      "/game/500",
      "/game/500",
      "/game/500",
      "/game/813",
    ]);
    expect(withOptions("ethercrash").poll(812n).path).toBe("/game/813");
  });

  it("pages back as its house does, or states that it cannot", () => {
    const history = (name: AdapterName, options = {}, page = 2) => {
      const { adapter, feed } = withOptions(name, options);
      return adapter.history(feed, { beforeId: "812", page, limit: 100, now: NOW });
    };
    expect(history("blaze")?.path).toBe("/crash_games/recent/history?page=3");
    expect(history("blaze", { api: "originals" }, 0)?.path).toBe(
      "/singleplayer-originals/originals/crash_games/recent/history/4?page=1&startDate=2026-10-22T04%3A00%3A00.000Z&endDate=2026-11-21T04%3A00%3A00.000Z",
    );
    expect(JSON.parse(history("stake")?.body ?? "")).toMatchObject({ variables: { limit: 50, offset: 100 } });
    expect(JSON.parse(history("bcgame", { game_url: "trenball" })?.body ?? "")).toEqual({
      gameUrl: "trenball",
      page: 3,
      pageSize: 50,
    });
    expect(history("bustabit", { first_round_id: 1 })?.path).toBe("/game/811");
    expect(history("ethcrash-io", { first_round_id: 1 })?.path).toBe("/game/811.json");
    expect([history("roobet"), history("lucky-jet")]).toEqual([null, null]);
  });
});

/** A document with one thing changed in its text. */
const changed = (document: string, from: string | RegExp, to: string): string => {
  const text = fixture(document);
  const mangled = text.replace(from, to);
  if (mangled === text) throw new Error(`${document} has no ${String(from)}`);
  return mangled;
};

describe("a mangled field is refused with the reason, and the other items are read", () => {
  const first = (name: AdapterName, text: string) => {
    const result = withOptions(name).read(text);
    const bad = result.ok ? result.items.filter((item) => !item.ok) : [];
    const [item] = bad;
    return {
      bad: bad.length,
      short: item === undefined ? null : inShort(item),
      reason: item?.ok === false ? item.reason : "",
    };
  };
  it.each([
    [
      "blaze",
      "recent.json",
      '"id": "V1eKqWyelo", ',
      "",
      "missing_id -",
      "expected a text or a number as `id`, found nothing; the item has",
    ],
    ["blaze", "recent.json", '"id": "V1eKqWyelo"', '"id": {}', "bad_id -", "found an object"],
    [
      "blaze",
      "recent.json",
      '"crash_point": "2.01"',
      '"point": "2.01"',
      "missing_multiplier V1eKqWyelo",
      "the house renamed the field, or this is the list of another game",
    ],
    [
      "blaze",
      "recent.json",
      '"crash_point": "2.01"',
      '"crash_point": [2.01]',
      "not_a_number V1eKqWyelo",
      "found a list of 1",
    ],
    [
      "blaze",
      "recent.json",
      '"crash_point": "2.01"',
      '"crash_point": "1e400"',
      "impossible_multiplier V1eKqWyelo",
      "at most 1000000000x",
    ],
    [
      "blaze",
      "recent.json",
      '"crash_point": "2.01"',
      '"crash_point": "2.01 1.29"',
      "not_a_number V1eKqWyelo",
      '"2.01 1.29"',
    ],
    [
      "blaze",
      "recent.json",
      "2026-11-21T03:59:15.580Z",
      "2031-01-01T00:00:00Z",
      "absurd_time V1eKqWyelo",
      "expected a time from",
    ],
    [
      "blaze",
      "recent.json",
      '"created_at": "2026-11-21T03:59:15.580Z"',
      '"created_at": {"at": 1}',
      "absurd_time V1eKqWyelo",
      "found an object",
    ],
    ["blaze", "recent.json", "16fcfdf80", "not hex 0", "bad_hash V1eKqWyelo", "64 hexadecimal digits"],
    [
      "blaze",
      "recent.json",
      '"complete", "crash_point": "2.01"',
      '"finished", "crash_point": "2.01"',
      "not_an_item V1eKqWyelo",
      "expected complete, waiting or graphing",
    ],
    [
      "stake",
      "list.json",
      '"crashpoint": 6.6402817',
      '"payout": 6.6402817',
      "missing_multiplier 7d0f3a51-1111-4c2b-9a00-000000000003",
      "crashpoint",
    ],
    [
      "stake",
      "list.json",
      '"crashpoint": 6.6402817',
      '"crashpoint": true',
      "not_a_number 7d0f3a51-1111-4c2b-9a00-000000000003",
      "found true",
    ],
    ["stake", "list.json", '"id": "7d0f3a51-1111-4c2b-9a00-000000000003"', '"id": ""', "missing_id -", "an empty text"],
    [
      "stake",
      "list.json",
      "Sat, 21 Nov 2026 03:59:36 GMT",
      "yesterday",
      "absurd_time 7d0f3a51-1111-4c2b-9a00-000000000003",
      "yesterday",
    ],
    [
      "stake",
      "list.json",
      '"hash": { "id": "a", "hash"',
      '"hash": { "id": "a", "seed": "x" }, "other": { "hash"',
      null,
      "",
    ],
    [
      "bcgame",
      "history.json",
      '\\"rate\\": \\"4.16\\"',
      '\\"odds\\": \\"4.16\\"',
      "missing_multiplier 9313905",
      "gameDetail.rate",
    ],
    ["bcgame", "history.json", '"{\\"hash\\"', '"{{\\"hash\\"', "not_an_item 9313905", "expected JSON as text"],
    ["bcgame", "history.json", '"gameId": "9313905"', '"gameId": null', "missing_id -", "found null"],
    ["bcgame", "history.json", "1795233557219", "17952335572190000", "absurd_time 9313905", "expected a time"],
    ["roobet", "recent.json", '"crashPoint": 8.45', '"crash_point": 8.45', "missing_multiplier 5f6c3d2e", "crashPoint"],
    [
      "roobet",
      "recent.json",
      '"crashPoint": 8.45',
      '"crashPoint": -1',
      "impossible_multiplier 5f6c3d2e",
      "1.00 or more",
    ],
    ["roobet", "recent.json", '"id": "5f6c3d2e"', '"id": 1.5', "bad_id -", "1.5"],
    [
      "lucky-jet",
      "history.json",
      '"topCoefficient": 1.87',
      '"coefficient": 1.87',
      "missing_multiplier c0ffee00aa",
      "topCoefficient",
    ],
    ["lucky-jet", "history.json", '"hash": "c0ffee00aa"', '"id": "c0ffee00aa"', "missing_id -", "hash"],
  ] as const)("%s %s: %s → %s", (name, document, from, to, short, reason) => {
    const found = first(name, changed(`${name}/${document}`, from, to));
    expect(found.short).toBe(short);
    expect(found.bad).toBe(short === null ? 0 : 1);
    expect(found.reason).toContain(reason);
  });

  it("that is two values glued by a line separator is no number", () => {
    const glued = JSON.stringify([{ id: 1, crashPoint: "2.29\u20281.29" }]);
    expect(first("roobet", glued)).toMatchObject({
      short: "not_a_number 1",
      reason: expect.stringContaining("\\u2028"),
    });
  });

  it.each([
    ["ethcrash-io", '{ "game_crash": 279.56 }', "not_a_number 5", "whole hundredths"],
    ["ethcrash-io", '{ "game_crash": null }', "missing_multiplier 5", "found null"],
    ["ethcrash-io", '{ "game_crash": "279x" }', "not_a_number 5", "279x"],
    ["ethcrash-io", '{ "game_crash": 99 }', "impossible_multiplier 5", "1.00 or more"],
  ] as const)("on a document of %s: %s", (name, text, short, reason) => {
    const [item] = itemsFrom(name, text, "/game/5.json");
    expect(item === undefined ? "" : inShort(item)).toBe(short);
    expect(item?.ok === false && item.reason).toContain(reason);
  });

  it.each([
    ["bustabit", "<i>Busted at:</i><b>1.2.3.4x</b>", "not_a_number 5", "1.2.3.4x"],
    ["bustabit", "<i>Busted at:</i><b>0.50x</b>", "impossible_multiplier 5", "1.00 or more"],
    [
      "bustabit",
      "<h5>Game 5</h5><b>2.00x</b><i>3.00x</i>",
      "impossible_multiplier 5",
      "highest of the page, found 3.00x",
    ],
    ["ethercrash", "<h4>Game 5 | Crashed @0.5x</h4>", "impossible_multiplier 5", "1.00 or more"],
    ["ethercrash", "<h4>Game 5 | Crashed @2.00x</h4><p>1 day ago on some day</p>", "absurd_time 5", "some day"],
  ] as const)("on a page of %s: %s", (name, text, short, reason) => {
    const [item] = itemsFrom(name, text, "/game/5");
    expect(item === undefined ? "" : inShort(item)).toBe(short);
    expect(item?.ok === false && item.reason).toContain(reason);
  });

  function itemsFrom(name: AdapterName, text: string, path: string) {
    const result = withOptions(name, { first_round_id: 5 }).read(text, { path });
    if (!result.ok) throw new Error(result.reason);
    return result.items;
  }
});

describe("an unreadable response", () => {
  const PAGES = { bustabit: "/game/5", ethercrash: "/game/5", "ethcrash-io": "/game/5.json" } as const;
  const whole = (name: AdapterName, text: string, path?: string) =>
    withOptions(name, name in PAGES ? { first_round_id: 5 } : {}).read(text, {
      path: path ?? (name in PAGES ? PAGES[name as keyof typeof PAGES] : "/"),
    });
  const NAMES = Object.keys(adapters).filter((name): name is AdapterName => name !== "json");

  it.each(NAMES)("of %s is refused with what to do, whatever the body is", (name) => {
    const error = whole(name, "<!doctype html><title>Just a moment...</title><body>Checking your browser</body>");
    expect(error).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/^expected .*, found .*; wait if the house is down/),
    });
    for (const text of [
      "",
      "null",
      '{"maintenance":true}',
      '"x"',
      "7",
      '{"data":[]}',
      '{"rounds":[{"id":1}]}',
      "[[]",
    ]) {
      expect(whole(name, text), text).toMatchObject({ ok: false, reason: expect.stringMatching(/^expected /) });
    }
    expect(
      adapters[name].read(
        withOptions(name, name in PAGES ? { first_round_id: 5 } : {}).feed as never,
        Buffer.from([0xff, 0xfe, 0x41]),
        NOW,
        { path: PAGES[name as keyof typeof PAGES] ?? "/" },
      ),
    ).toMatchObject({
      ok: false,
      reason: expect.stringContaining("not UTF-8"),
    });
  });

  it("with status 200 that holds the house's own error is refused with that error", () => {
    expect(whole("stake", fixture("stake/errors.json"))).toEqual({
      ok: false,
      reason:
        'the house refused the query: "Invalid session."; check that the headers contain a valid x-access-token; if they do, its schema has changed',
    });
    expect(whole("bcgame", fixture("bcgame/refused.json"))).toEqual({
      ok: false,
      reason:
        'the house refused the request with code 5003 "please log in"; expected code 0: check feed.game_url, and whether it requires a session in headers',
    });
  });

  it("that is an empty list is good and brings nothing", () => {
    for (const [name, text] of [
      ["blaze", "[]"],
      ["blaze", '{"records":[]}'],
      ["stake", '{"data":{"crashGameList":[]}}'],
      ["bcgame", '{"code":0,"data":{"list":[]}}'],
      ["roobet", "[]"],
      ["lucky-jet", "[]"],
    ] as const) {
      expect(whole(name, text)).toEqual({ ok: true, items: [] });
    }
  });

  it("that lists another game is refused item by item, so that the change of format is recognized", () => {
    const double = [{ id: "a", color: 1, roll: 3, created_at: "2026-11-21T03:59:00Z", server_seed: null }];
    expect(itemsOf(whole("blaze", JSON.stringify(double)))).toEqual(["missing_multiplier a"]);
    expect(itemsOf(whole("roobet", JSON.stringify(double)))).toEqual(["missing_multiplier a"]);
    const dice = { code: 0, data: { list: [{ gameId: "7", gameDetail: '{"point": 41}' }] } };
    expect(itemsOf(whole("bcgame", JSON.stringify(dice)))).toEqual(["missing_multiplier 7"]);
  });

  it("that is the page of another game is refused as such", () => {
    const reason = {
      ok: false,
      reason: expect.stringMatching(/^expected .*game 5, found .* of game "?6"?; check base_url$/),
    };
    expect(whole("bustabit", "<h3>Game #6</h3><b>2.00x</b>")).toMatchObject(reason);
    expect(whole("ethercrash", "Game 6 | Crashed @2.00x")).toMatchObject(reason);
    expect(whole("ethcrash-io", '{"game_id":6,"game_crash":200}')).toMatchObject(reason);
    for (const name of ["bustabit", "ethercrash", "ethcrash-io"] as const) {
      expect(whole(name, "x", "/elsewhere")).toMatchObject({
        ok: false,
        reason: expect.stringContaining("another address"),
      });
    }
  });

  it("that is a page of bustabit gives a result only as the one it is named to be, or of the game it names", () => {
    const read = (html: string) => itemsOf(whole("bustabit", html))[0];
    expect(read("<h5>Game 5</h5><p>Aim: 1.01x</p><i>Busted at:</i><b>7.50x</b><p>Aim: 99x</p>")).toBe("5 750");
    expect(read("<a href='/game/4'>Prev</a> Game #<!-- -->5 <div>7.50<!-- -->x</div>")).toBe("5 750");
    expect(read("<i>Busted at:</i><b>1<!-- -->,<!-- -->185.04x</b>")).toBe("5 118504");
    for (const page of [
      "<title>bustabit</title><p>Sign in, and bet on 2x</p>",
      "<h1>Back soon</h1><p>Version 1.2x</p>",
      "Game 50: 2.00x",
      "Game 5 <b>-2x</b>",
      "Game 5 <b>185<i>.</i>04x</b>",
      "Game 5 <b>185.<i>42x</i></b>",
      "Game 5 <i>Busted at:</i><b>-</b><td>2.00x</td>",
    ]) {
      expect(read(page), page).toMatch(/^expected (?:a|the) page /);
    }
  });

  it("that is a listing without links advises to name the first game", () => {
    expect(whole("ethercrash", "<div id=root></div>", "/play")).toMatchObject({
      ok: false,
      reason: expect.stringContaining("set feed.first_round_id to a recent game"),
    });
  });

  it("is read in a moment however it is broken", () => {
    for (const part of ["<!--", "<script>", "<", "<a class='games-log-x' ", "1,2x 3,", "Game 5 | "]) {
      const page = part.repeat(Math.floor(1_000_000 / part.length));
      for (const path of ["/game/5", "/play"]) expect(whole("ethercrash", page, path).ok).toBe(false);
      whole("bustabit", page);
    }
  });
});

test("[API10] nothing a house sends makes a named adapter throw", () => {
  const field = fc.oneof(fc.anything({ maxDepth: 2 }), fc.string(), fc.integer(), fc.double());
  const names = [
    "id",
    "crash_point",
    "created_at",
    "crashpoint",
    "crashPoint",
    "hash",
    "gameId",
    "gameDetail",
    "topCoefficient",
    "status",
  ];
  const item = fc.record(Object.fromEntries(names.map((name) => [name, field])), { requiredKeys: [] });
  const houses = Object.keys(adapters).flatMap((name) =>
    name === "json"
      ? []
      : [withOptions(name as AdapterName, name.match(/bustabit|ethcrash/) ? { first_round_id: 5 } : {})],
  );
  fc.assert(
    fc.property(fc.array(item, { maxLength: 4 }), fc.string(), (items, text) => {
      let list: string;
      try {
        list = JSON.stringify(items);
      } catch {
        return; // bigint and the like cannot be sent
      }
      for (const house of houses) {
        for (const body of [list, `{"data":{"crashGameList":${list},"list":${list}}}`, text, `<b>${text}x</b>`]) {
          for (const path of ["/game/5", "/game/5.json", "/play"])
            expect(house.read(body, { path })).toHaveProperty("ok");
        }
      }
    }),
    { numRuns: 60 },
  );
});

describe("values as they were found in public clients", () => {
  const found = z
    .array(z.looseObject({ house: z.string(), kind: z.string(), raw: z.unknown(), centi: z.number().optional() }))
    .parse(JSON.parse(fixture("raw_formats.json")));
  const entries = (house: string, kind: string) => found.filter((one) => one.house === house && one.kind === kind);

  it("become the hundredths that belong to them", () => {
    for (const { raw, centi } of entries("blaze", "socket payload")) {
      expect(withOptions("blaze").read(JSON.stringify([raw]))).toMatchObject({
        items: [{ round: { hundredths: centi } }],
      });
    }
    for (const { raw, centi } of entries("ethcrash.io", "json field")) {
      const document = withOptions("ethcrash-io", { first_round_id: 5 });
      expect(itemsOf(document.read(JSON.stringify(raw), { path: "/game/5.json" }))).toEqual([`5 ${centi}`]);
    }
    for (const { raw, centi, ...more } of entries("ethercrash", "page text")) {
      const id = String(more["round_id"]);
      const page = withOptions("ethercrash").read(`<h4>${String(raw)}</h4>`, { path: `/game/${id}` });
      expect(itemsOf(page)).toEqual([`${id} ${centi}`]);
    }
    for (const { raw, ...more } of entries("stake", "saved row")) {
      const [id, , value] = String(raw).split(",");
      const list = `{"data":{"crashGameList":[{"id":"${id}","crashpoint":${value}}]}}`;
      expect(itemsOf(withOptions("stake").read(list))).toEqual([`${id} ${String(more["centi_floor"])}`]);
    }
  });

  it("become the times that belong to them", () => {
    for (const { raw, centi, ...more } of entries("bcgame", "history item")) {
      const item = z.looseObject({ gameId: z.string(), gameDetail: z.string() }).parse(raw);
      // that client's hash and salt are placeholders
      const gameDetail = item.gameDetail.replace('"hash": "h", ', "");
      const { adapter, feed } = withOptions("bcgame");
      const body = Buffer.from(JSON.stringify({ code: 0, data: { list: [{ ...item, gameDetail }] } }));
      expect(itemsOf(adapter.read(feed, body, NOW, { oldest: "2020-01-01T00:00:00Z" }))).toEqual([
        `${item.gameId} ${centi} ${String(more["occurred_at"])}`,
      ]);
    }
    for (const { raw, ...more } of entries("ethercrash", "page time")) {
      const page = `<h4>Game 5 | Crashed @2.00x</h4><p>${String(raw)}</p>`;
      const read = withOptions("ethercrash").read(page, { path: "/game/5", oldest: "2020-01-01T00:00:00Z" });
      expect(itemsOf(read)).toEqual([`5 200 ${String(more["occurred_at"])}`]);
    }
  });
});
