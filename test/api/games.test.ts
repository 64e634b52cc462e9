import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { setPlan } from "../../src/callers/plan-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { eventually } from "../support/eventually.ts";
import { addRounds, countedRounds, gamesBody, makeKey, makeWorld, secondsAgo, type World } from "./world.ts";

const FIELDS = [
  "house",
  "game",
  "market",
  "continuity_notice",
  "continuity_text",
  "status",
  "last_round_at",
  "buffered_rounds",
];

let world: World;

beforeAll(async () => {
  world = await makeWorld({ BUFFER_ROUNDS: 30 });
});
afterAll(() => world.close());

async function games(query = "", key = world.key) {
  const response = await world.get(`/api/v1/games${query}`, { headers: { "X-Api-Key": key } });
  expect(response.status).toBe(200);
  return gamesBody.parse(await response.json()).games;
}

async function tagOf(one: World): Promise<string | null> {
  const response = await one.get("/api/v1/games");
  await response.arrayBuffer();
  return response.headers.get("etag");
}

const namesOf = (tables: { house: string; game: string; market: string }[]) =>
  tables.map(({ house, game, market }) => `${house}/${game}/${market}`);

/** Each look at what was announced looks at the houses too. */
async function statuses(query = ""): Promise<string[]> {
  await world.sql`select pg_notify('roundhouse_published', '')`;
  return (await games(query)).map(({ status }) => status);
}

describe("/games", () => {
  it("lists tables in the order of a changed houses file, with the same ETag in every process", async () => {
    const own = await makeWorld();
    await applyHouses(own.sql, [
      houseEntry({ tables: [tableEntry({ game: "dice", market: "eu" }), tableEntry()] }),
      houseEntry({ id: "gamma", name: "Gamma", tables: [tableEntry({ game: "rocket", market: "one" })] }),
    ]);
    const restarted = await makeWorld({}, { on: own });
    const expected = await tagOf(restarted);
    await restarted.close();
    await eventually(async () => expect(await tagOf(own)).toBe(expected));
    await own.close();
  });

  it("[API3] has exactly three fields, and eight for each table of the plan, before any round", async () => {
    const response = await world.get("/api/v1/games");
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    const text = await response.text();
    expect(text.startsWith(`{"ok":true,"plan":"Pro","games":[{"house":"alpha","game":"crash","market":"global",`)).toBe(
      true,
    );
    const body = gamesBody.parse(JSON.parse(text));
    expect(body.games.map((game) => Object.keys(game))).toEqual([FIELDS, FIELDS, FIELDS, FIELDS]);
    expect(namesOf(body.games)).toEqual(["alpha/crash/global", "alpha/dice/eu", "beta/crash/eu", "gamma/rocket/one"]);
    expect(body.games[3]).toEqual({
      house: "gamma",
      game: "rocket",
      market: "one",
      continuity_notice: false,
      continuity_text: null,
      status: "offline",
      last_round_at: null,
      buffered_rounds: 0,
    });
  });

  it("states when the last round was received to the microsecond, with seven digits", async () => {
    await addRounds(world.sql, "gamma/rocket/one", [
      { id: "1", receivedAt: "2025-11-21T04:00:12.123456Z", source: "import" },
    ]);
    await eventually(async () =>
      expect((await games("?house=gamma"))[0]?.last_round_at).toBe("2025-11-21T04:00:12.1234560Z"),
    );
  });

  it("counts the rounds that are held, never more than the buffer takes", async () => {
    await addRounds(world.sql, "alpha/dice/eu", countedRounds(1, 12));
    await eventually(async () => expect((await games("?game=dice"))[0]?.buffered_rounds).toBe(12));
    await addRounds(world.sql, "alpha/dice/eu", countedRounds(13, 90));
    await eventually(async () => expect((await games("?game=dice"))[0]?.buffered_rounds).toBe(30));
    await addRounds(world.sql, "alpha/dice/eu", countedRounds(91, 93));
    await eventually(async () => (await (await world.get("/api/v1/rounds?game=dice&limit=1")).text()).includes('"93"'));
    expect((await games("?game=dice"))[0]?.buffered_rounds).toBe(30);
  });

  it("shows an open notice with its text", async () => {
    const text = 'rounds 4 to 7 are missing since 04:00 UTC: "the house" lost them';
    await world.sql`
      with opened as (
        insert into notices (table_id, kind, text, opened_at)
        select id, 'gap', ${text}, now()
        from tables
        where house_id = 'beta'
        returning table_id
      )
      update table_heads
      set version = version + 1, changed_at = clock_timestamp()
      where table_id in (select table_id from opened)`;
    await world.sql`select pg_notify('roundhouse_published', '')`;
    await eventually(async () =>
      expect((await games("?house=beta"))[0]).toMatchObject({
        continuity_notice: true,
        continuity_text: `R${text.slice(1)}`,
      }),
    );
  });
});

describe("the status of a table", () => {
  it("is live, stale, then offline, by the newest polled round of its house", async () => {
    await addRounds(world.sql, "beta/crash/eu", [{ id: "a", receivedAt: secondsAgo(3_700) }]);
    await eventually(async () => expect((await games("?house=beta"))[0]?.last_round_at).not.toBeNull());
    expect(await statuses("?house=beta")).toEqual(["offline"]);
    await addRounds(world.sql, "beta/crash/eu", [{ id: "b", receivedAt: secondsAgo(310) }]);
    await eventually(async () => expect(await statuses("?house=beta")).toEqual(["stale"]));
    await addRounds(world.sql, "beta/crash/eu", [{ id: "c", receivedAt: secondsAgo(10) }]);
    await eventually(async () => expect(await statuses("?house=beta")).toEqual(["live"]));
  });

  it("is that of the house: a table without rounds is live if another one has them, and an import makes none live", async () => {
    await addRounds(world.sql, "alpha/dice/eu", [{ id: "94" }]);
    await eventually(async () =>
      expect((await games("?house=alpha")).map(({ status, buffered_rounds }) => [status, buffered_rounds])).toEqual([
        ["live", 0],
        ["live", 30],
      ]),
    );
    await addRounds(world.sql, "gamma/rocket/one", [{ id: "2", source: "import" }]);
    await eventually(async () =>
      expect(await games("?house=gamma")).toMatchObject([{ buffered_rounds: 2, status: "offline" }]),
    );
  });

  it("is paused while an operator paused the house, and offline while it is disabled", async () => {
    await world.sql`update houses set paused_at = now(), paused_by = 'ann', pause_reason = 'test' where id = 'alpha'`;
    await world.sql`update tables set enabled = false where house_id = 'beta'`;
    await eventually(async () => expect(await statuses()).toEqual(["paused", "paused", "offline", "offline"]));
    await world.sql`update houses set paused_at = null, paused_by = null, pause_reason = null`;
    await world.sql`update tables set enabled = true`;
    await eventually(async () => expect(await statuses()).toEqual(["live", "live", "live", "offline"]));
  });

  it("can be asked for, several with commas between", async () => {
    expect(namesOf(await games("?status=offline,paused"))).toEqual(["gamma/rocket/one"]);
    expect(await games("?status=stale")).toEqual([]);
  });
});

describe("filters", () => {
  it.each([
    ["?house=alpha", ["alpha/crash/global", "alpha/dice/eu"]],
    ["?house=beta,alpha", ["alpha/crash/global", "alpha/dice/eu", "beta/crash/eu"]],
    ["?game=crash", ["alpha/crash/global", "beta/crash/eu"]],
    ["?market=eu&game=crash", ["beta/crash/eu"]],
    ["?market=eu,one", ["alpha/dice/eu", "beta/crash/eu", "gamma/rocket/one"]],
    ["?house=alpha&game=rocket", []],
    ["?house=alpha,alpha", ["alpha/crash/global", "alpha/dice/eu"]],
  ])("%s chooses %j", async (query, expected) => {
    expect(namesOf(await games(query))).toEqual(expected);
  });

  it("that name something unknown are 404, even next to known names", async () => {
    for (const query of ["?house=nowhere", "?house=alpha,nowhere", "?game=crash,nothing", "?market=none"]) {
      expect(await world.refused(`/api/v1/games${query}`)).toMatchObject({ status: 404, code: "table_not_found" });
    }
    expect((await world.refused("/api/v1/games?house=nowhere")).message).toBe("there is no house nowhere");
  });
});

describe("the plan of a key", () => {
  it("decides which tables there are, and what is outside of it is 403", async () => {
    await setPlan(world.sql, "Starter", { houses: ["beta"] });
    const key = await makeKey(world.sql, "starter@example.com", "Starter");
    const headers = { "X-Api-Key": key };
    expect(namesOf(await games("", key))).toEqual(["beta/crash/eu"]);
    expect(namesOf(await games("?game=crash", key))).toEqual(["beta/crash/eu"]);
    for (const query of [
      "?house=alpha",
      "?house=beta,alpha",
      "?game=rocket",
      "?market=global",
      "?game=crash&market=one",
    ]) {
      const refusal = await world.refused(`/api/v1/games${query}`, { headers });
      expect(refusal).toMatchObject({ status: 403, code: "table_not_in_plan" });
      expect(refusal.message).toMatch(/^the plan Starter does not include the (house|game|market) /);
    }
    expect(await world.refused("/api/v1/games?house=alpha,nowhere", { headers })).toMatchObject({ status: 404 });
  });

  it("may change while it is used: the next responses have the new tables", async () => {
    const key = await makeKey(world.sql, "max@example.com", "Max");
    expect(await games("", key)).toHaveLength(4);
    await setPlan(world.sql, "Max", { houses: ["gamma"] });
    await eventually(async () => expect(namesOf(await games("", key))).toEqual(["gamma/rocket/one"]));
    await setPlan(world.sql, "Max", { houses: "all" });
    await eventually(async () => expect(await games("", key)).toHaveLength(4));
  });
});
