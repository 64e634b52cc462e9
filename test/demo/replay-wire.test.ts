import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { wireFormats } from "../../src/demo/replay/formats.ts";
import { createReplayHouse, type ReplayHouse } from "../../src/demo/replay/house.ts";
import { houseSettings } from "../../src/houses/settings/settings.ts";
import { pageText } from "../../src/demo/replay/wire.ts";

const FIXTURES = path.join(import.meta.dirname, "../fixtures/replay");
const START_MS = Date.parse("2026-11-21T04:00:00.000Z");
const SESSION = {
  "customer-id": "00000000-0000-4000-8000-000000000001",
  "session-id": "00000000-0000-4000-8000-000000000002",
};

const clock = { nowMs: START_MS };
const houses = new Map<string, ReplayHouse>();
beforeAll(async () => {
  for (const as of wireFormats.keys()) houses.set(as, await start(as));
});
beforeEach(() => void (clock.nowMs = START_MS));
afterAll(() => Promise.all([...houses.values()].map((house) => house.close())));

function start(as: string, changed: Partial<Parameters<typeof createReplayHouse>[0]> = {}): Promise<ReplayHouse> {
  const file = path.join(FIXTURES, `${as}.csv`);
  return createReplayHouse({ file, as, host: "127.0.0.1", port: 0, speed: 1, now: () => clock.nowMs, ...changed });
}

function houseAs(as: string): ReplayHouse {
  const house = houses.get(as);
  if (house === undefined) throw new Error(`there is no replay as ${as}`);
  return house;
}

/** Goes to the moment at which the round at this place is told. */
function playTo(as: string, place: number): void {
  clock.nowMs = houseAs(as).publishedAtMs(place);
}

const get = (as: string, pathname: string, init: RequestInit = {}) => fetch(houseAs(as).url + pathname, init);
const post = (as: string, pathname: string, body: unknown, headers: Record<string, string> = {}) =>
  get(as, pathname, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

describe("rounds appear as they were played", () => {
  test("the newest first, each from its moment on", async () => {
    const ids = async () =>
      z.object({ rounds: z.array(z.object({ id: z.string() })) }).parse(await (await get("json", "/rounds")).json());
    expect((await ids()).rounds).toEqual([{ id: "70001" }]);
    playTo("json", 1);
    expect((await ids()).rounds).toEqual([{ id: "70002" }, { id: "70001" }]);
    clock.nowMs -= 1;
    expect((await ids()).rounds).toEqual([{ id: "70001" }]);
    clock.nowMs += 1e9;
    expect((await ids()).rounds).toHaveLength(30);
  });

  test("an unchanged list is a 304 for a client with its ETag, a changed one is not", async () => {
    const first = await get("blaze", "/api/crash_games/recent");
    const condition = { headers: { "if-none-match": first.headers.get("etag") ?? "" } };
    expect((await get("blaze", "/api/crash_games/recent", condition)).status).toBe(304);
    playTo("blaze", 1);
    expect((await get("blaze", "/api/crash_games/recent", condition)).status).toBe(200);
  });

  test("at the speed and from the round that were chosen, with those before it as history", async () => {
    const house = await start("json", { speed: 1000, from: "70010" });
    const answer = async () =>
      z
        .object({ rounds: z.array(z.object({ id: z.string(), created_at: z.iso.datetime() })) })
        .parse(await (await fetch(`${house.url}/rounds`)).json());
    const [newest, ...history] = (await answer()).rounds;
    expect([newest, history.length]).toEqual([{ id: "70010", created_at: "2026-11-21T04:00:00.000Z" }, 9]);
    clock.nowMs += 1_000;
    expect((await answer()).rounds).toHaveLength(30);
    await house.close();
  });

  test("numbers rows if ids are missing, because page by page no client could continue", async () => {
    const house = await start("ethercrash", { file: path.join(FIXTURES, "json.csv"), numbered: true });
    clock.nowMs += 1e9;
    const statuses = await Promise.all(
      [1, 13, 29, 30].map(async (id) => (await fetch(`${house.url}/game/${id}`)).status),
    );
    expect(statuses).toEqual([200, 200, 200, 404]); // 30 rounds, one of them without a value
    await house.close();
  });

  test("the front page shows what is served and which entry of houses.yaml reads it", async () => {
    playTo("blaze", 4);
    const text = await (await get("blaze", "/")).text();
    for (const part of [
      "5 of the 30 rounds",
      "adapter: blaze",
      "colors: blaze",
      "round_ids: opaque",
      "private: true",
    ]) {
      expect(text).toContain(part);
    }
    expect(await (await get("lucky-jet", "/")).text()).toContain("session-id:");
    expect(await (await get("json", "/")).text()).toContain("round_id: id");
    expect(await (await get("bustabit", "/")).text()).toContain("first_round_id: 400103");
  });

  test.each([...wireFormats.keys()])("that entry is one that houses.yaml may have: %s", async (as) => {
    const text = await (await get(as, "/")).text();
    const { houses: entries } = z
      .object({ houses: z.array(z.unknown()) })
      .parse(parse(text.slice(text.indexOf("houses:\n"))));
    const [settings] = entries.map((entry) => houseSettings.parse(entry));
    expect(settings).toMatchObject({ base_url: houseAs(as).url, private: true, tables: [{ adapter: as }] });
  });

  test("any other path is 404, and names those that exist", async () => {
    for (const as of wireFormats.keys()) {
      const answer = await get(as, "/wp-login.php");
      expect(answer.status).toBe(404);
      expect(await answer.text()).toContain("nothing is served there; expected ");
    }
  });

  test.each([
    [{ as: "rollbit" }, "expected one of the formats json, bustabit"],
    [{ speed: 0 }, "expected a speed from 0.01 to 1000, got 0"],
    [{ from: "1" }, 'got "1"'],
  ])("a wrong start is refused: %j", async (changed, expected) => {
    await expect(start("json", changed)).rejects.toThrow(expected);
  });
});

describe("json", () => {
  test("pages back from a round, in pages of bounded size, digits as in the file", async () => {
    playTo("json", 29);
    const before = await (await get("json", "/rounds?before=70010&limit=2")).text();
    expect(before).toMatch(
      /^\{"rounds":\[\{"id":"70009","multiplier":1234567\.89,"created_at":"2026-[^"]+"\},\{"id":"70008",/,
    );
    expect(await (await get("json", "/rounds?limit=5000")).text()).toContain('"id":"70024","multiplier":null');
    expect((await get("json", "/rounds?before=71000")).status).toBe(404);
    for (const query of ["limit=0", "limit=5001", "limit=ten", "page=1"]) {
      expect((await get("json", `/rounds?${query}`)).status).toBe(400);
    }
    expect((await post("json", "/rounds", {})).status).toBe(405);
  });
});

describe("blaze", () => {
  test("has the newest as a list, pages as records, and one round, below each of its bases", async () => {
    playTo("blaze", 29);
    const record = z.strictObject({
      id: z.string().regex(/^[A-Za-z0-9]{10}$/),
      created_at: z.iso.datetime(),
      crash_point: z.string(),
      status: z.literal("complete"),
    });
    const recent = async (base: string) => z.array(record).parse(await (await get("blaze", base)).json());
    const list = await recent("/api/crash_games/recent");
    expect(list).toHaveLength(20);
    expect(await recent("/crash_games/recent")).toEqual(list);
    expect(await recent("/api/singleplayer-originals/originals/crash_games/recent/4")).toEqual(list);
    const page = async (pathname: string) =>
      z.strictObject({ records: z.array(record) }).parse(await (await get("blaze", pathname)).json()).records;
    expect(await page("/api/crash_games/recent/history?page=1")).toEqual(list);
    const second = await page("/crash_games/recent/history?page=2");
    expect(second).toHaveLength(10);
    expect(await page("/crash_games/recent/history?page=3")).toEqual([]);
    const [newest] = second;
    const one = await (await get("blaze", `/api/crash_games/${newest?.id}`)).json();
    expect(one).toEqual(newest);
    const span = new URLSearchParams({
      page: "1",
      startDate: second.at(-1)?.created_at ?? "",
      endDate: newest?.created_at ?? "",
    });
    expect(await page(`/api/singleplayer-originals/originals/crash_games/recent/history/4?${span.toString()}`)).toEqual(
      second,
    );
    expect(second.map(({ crash_point }) => crash_point)).toContain("0");
    expect((await get("blaze", "/api/crash_games/recent/history?page=0")).status).toBe(400);
    expect((await get("blaze", "/api/crash_games/aaaaaaaaaa")).status).toBe(404);
  });
});

describe("stake", () => {
  const query =
    "query CrashGameListHistory($limit: Int, $offset: Int) { crashGameList(limit: $limit, offset: $offset) { id startTime crashpoint hash { id hash } } }";
  const ask = (variables: unknown) =>
    post("stake", "/_api/graphql", { operationName: "CrashGameListHistory", query, variables });
  const game = z.strictObject({
    id: z.uuid(),
    startTime: z.string().regex(/^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/),
    crashpoint: z.number(),
    hash: z.null(),
  });
  const body = z.strictObject({ data: z.strictObject({ crashGameList: z.array(game) }) });

  test("serves the query, newest first, by offset and in pages of at most 50", async () => {
    playTo("stake", 29);
    const list = async (variables: unknown) => body.parse(await (await ask(variables)).json()).data.crashGameList;
    const all = await list({ limit: 50, offset: 0 });
    expect(all).toHaveLength(30);
    expect(await list({ limit: 4, offset: 27 })).toEqual(all.slice(27));
    expect(all.map(({ crashpoint }) => crashpoint)).toContain(1.9999);
    expect(all.map(({ crashpoint }) => crashpoint)).toContain(2.0000001);
  });

  test("returns errors in a list, some of them with status 200", async () => {
    const refused = z.looseObject({ errors: z.array(z.looseObject({ message: z.string() })).min(1) });
    const tooMany = await ask({ limit: 51, offset: 0 });
    expect(tooMany.status).toBe(200);
    refused.parse(await tooMany.json());
    for (const answer of [
      await post("stake", "/_api/graphql", "{"),
      await post("stake", "/_api/graphql", { variables: {} }),
      await post("stake", "/_api/graphql", { query: "{ me }" }),
      await post("stake", "/_api/graphql", { query }, { "content-type": "text/plain" }),
      await get("stake", "/_api/graphql"),
    ]) {
      expect(answer.status).toBe(400);
      refused.parse(await answer.json());
    }
  });
});

describe("bcgame", () => {
  const ask = (page: unknown, pageSize: unknown, gameUrl = "crash") =>
    post("bcgame", "/api/game/bet/multi/history", { gameUrl, page, pageSize });
  const detail = z.object({
    hash: z.string(),
    rate: z.string(),
    prepareTime: z.int(),
    beginTime: z.int(),
    endTime: z.int(),
  });
  const body = z.object({
    code: z.literal(0),
    data: z.object({ total: z.int(), list: z.array(z.object({ gameId: z.string(), gameDetail: z.string() })) }),
  });

  test("has its games as JSON text inside JSON, by pages", async () => {
    playTo("bcgame", 29);
    const { data } = body.parse(await (await ask(2, 20)).json());
    expect(data.total).toBe(30);
    expect(data.list.map(({ gameId }) => gameId)).toEqual(
      Array.from({ length: 10 }, (_, step) => String(810_010 - step)),
    );
    const details = data.list.map(({ gameDetail }) => detail.parse(JSON.parse(gameDetail)));
    expect(details.map(({ rate }) => rate)).toContain("20310.6");
    for (const { prepareTime, beginTime, endTime } of details)
      expect([prepareTime, beginTime, endTime]).toEqual([prepareTime, beginTime, endTime].toSorted((a, b) => a - b));
    expect(body.parse(await (await ask(9, 50)).json()).data.list).toEqual([]);
  });

  test("returns errors by a code, with status 200", async () => {
    for (const answer of [
      await ask(0, 50),
      await ask(1, 51),
      await ask("1", 50),
      await ask(1, 50, "limbo"),
      await post("bcgame", "/api/game/bet/multi/history", "page=1"),
    ]) {
      expect(answer.status).toBe(200);
      expect(z.looseObject({ code: z.int().positive(), data: z.null() }).parse(await answer.json())).toBeDefined();
    }
  });
});

describe("pages of single games", () => {
  test("show whole numbers without decimals and thousands with a comma on bustabit", async () => {
    playTo("bustabit", 29);
    const shown = async (id: number) =>
      /<span class="bust">(.*)<\/span>/.exec(await (await get("bustabit", `/game/${id}`)).text())?.[1];
    expect(await Promise.all([400_103, 400_107, 400_112, 400_120].map(shown))).toEqual([
      "1x",
      "1,000x",
      "2x",
      "12,345.67x",
    ]);
  });

  test("show two decimals always, and a time with the zone of the reader, on ethercrash", async () => {
    playTo("ethercrash", 29);
    const text = await (await get("ethercrash", "/game/500107")).text();
    expect(text).toMatch(/<h4 class="lb-title[^"]*"> Game 500107 \| Crashed @1,000\.00x<\/h4>/);
    expect(text).toMatch(/ago on [A-Z][a-z]{2} Nov 21 2026 \d\d:\d\d:\d\d GMT\+0000 \(Coordinated Universal Time\)/);
    expect(await (await get("ethercrash", "/game/500103")).text()).toContain("Crashed @0.00x");
    const links = [...(await (await get("ethercrash", "/play")).text()).matchAll(/href="\/game\/(\d+)"/g)];
    expect(links.map(([, id]) => Number(id))).toEqual(Array.from({ length: 25 }, (_, step) => 500_130 - step));
  });

  test("are whole hundredths on ethcrash.io, 0 for an instant crash", async () => {
    playTo("ethcrash-io", 29);
    const games = await Promise.all(
      ["1", "6"].map(async (id) => (await get("ethcrash-io", `/game/${id}.json`)).json()),
    );
    expect(games).toEqual([{ game_crash: 127 }, { game_crash: 0 }]);
  });

  test.each([
    ["bustabit", "/game/400102"],
    ["ethercrash", "/game/500102"],
    ["ethcrash-io", "/game/2.json"],
  ])("%s returns 404 for a game that was not played yet, and the page once it was", async (as, pathname) => {
    expect((await get(as, pathname)).status).toBe(404);
    playTo(as, 1);
    expect((await get(as, pathname)).status).toBe(200);
  });

  test.each([
    [100, "1x"],
    [18_504, "185.04x"],
    [1_050, "10.50x"],
    [99_999, "999.99x"],
    [100_000, "1,000x"],
    [123_456_789, "1,234,567.89x"],
  ])("write %i hundredths as %s", (hundredths, text) => {
    expect(pageText(hundredths)).toBe(text);
  });
});

describe("lists without a way back", () => {
  test("roobet has ids and numbers", async () => {
    playTo("roobet", 29);
    const list = z
      .array(z.strictObject({ id: z.string(), crashPoint: z.number().min(1) }))
      .parse(await (await get("roobet", "/crash/recentNumbers")).json());
    expect(list).toHaveLength(30);
    expect(list[0]?.id).toBe("600130");
  });

  test("lucky-jet wants the two ids of a session, each a UUID", async () => {
    playTo("lucky-jet", 29);
    const list = await get("lucky-jet", "/history", { headers: SESSION });
    expect(
      z.array(z.strictObject({ hash: z.string(), topCoefficient: z.number() })).parse(await list.json()),
    ).toHaveLength(30);
    const state = await get("lucky-jet", "/state", { headers: SESSION });
    expect(
      z.strictObject({ stopCoefficients: z.array(z.number()) }).parse(await state.json()).stopCoefficients,
    ).toHaveLength(30);
    for (const headers of [{}, { ...SESSION, "session-id": "me" }, { "customer-id": SESSION["customer-id"] }]) {
      expect((await get("lucky-jet", "/history", { headers })).status).toBe(401);
    }
  });
});
