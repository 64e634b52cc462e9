import { afterAll, beforeAll, expect, it } from "vitest";
import { checkHouse } from "../../src/cli/houses/house-check.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { fixture } from "../houses/adapters/fixtures.ts";
import { respondWith, startBadHouse, type BadHouse } from "../support/bad-house.ts";
import { createDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { makeRound } from "../support/make.ts";
import { housesFile } from "./world.ts";

let server: BadHouse;
let database: Awaited<ReturnType<typeof createDatabase>>;
let sql: Sql;
beforeAll(async () => {
  server = await startBadHouse();
  database = await createDatabase();
  sql = connect(database.url, { name: "test" });
});
afterAll(async () => {
  await sql.end();
  await database.drop();
  await server.close();
});

/** What `house check` finds at a house with one table for each of these adapters. */
async function check(
  tables: { adapter: string; feed?: object; opaque?: boolean }[],
  options = {},
  databaseUrl?: string,
) {
  const { entry, settings } = houseEntry({
    base_url: server.url,
    tables: tables.map(({ adapter, feed = {}, opaque = false }, place) =>
      tableEntry({ game: `g${place}`, adapter, feed, round_ids: opaque ? "opaque" : "consecutive" }),
    ),
    ...options,
  });
  if (databaseUrl !== undefined) await applyHouses(sql, [{ entry, settings }]);
  const env = loadSettings({ HOUSES_FILE: await housesFile([entry]), ALLOW_PRIVATE_HOUSES: "1" });
  const checks = await checkHouse({ settings: env, databaseUrl, redisUrl: undefined, running: null }, "alpha");
  return checks.map((one) => ({ ...one, ids: one.rounds.map((round) => round.round_id) }));
}

it("sends each adapter's request and shows the request, the response, the rounds and refused items", async () => {
  const now = new Date();
  server.on(
    "/_api/graphql",
    respondWith(fixture("stake/list.json").replaceAll(/Sat, 21 [^"]*/g, now.toUTCString()), {
      server: "edge",
      "set-cookie": "a=b",
    }),
  );
  server.on("/crash/recentNumbers", respondWith('[{"id":1,"crashPoint":2},{"id":2,"points":3}]'));
  server.on("/game/5.json", respondWith('{"game_crash":0}'));
  server.on("/history", respondWith(fixture("lucky-jet/history.json")));
  const [stake, roobet, page, jet] = await check(
    [
      { adapter: "stake", opaque: true },
      { adapter: "roobet", opaque: true },
      { adapter: "ethcrash-io", feed: { first_round_id: 5 } },
      { adapter: "lucky-jet", opaque: true },
    ],
    { headers: { "customer-id": "secret", "session-id": "secret" } },
  );
  expect(stake).toMatchObject({
    ok: true,
    items: 4,
    exchange: {
      method: "POST",
      request_headers: { "user-agent": expect.stringMatching(/^roundhouse\//), "customer-id": "[redacted]" },
      request_body: expect.stringContaining("crashGameList"),
      response_headers: { "content-type": "application/json", server: "edge" },
    },
  });
  expect(JSON.stringify(stake)).not.toMatch(/secret|set-cookie/);
  expect(roobet).toMatchObject({
    ok: true,
    ids: ["1"],
    refused: [{ round_id: "2", code: "missing_multiplier", item: { points: 3 } }],
  });
  expect(page).toMatchObject({ ok: true, rounds: [{ round_id: "5", multiplier: 1, color: "blue" }] });
  expect(jet).toMatchObject({ ok: true, readable: 3 });
});

it("names the setting to change for a round that was not played yet, and the proxy in front of a house that failed", async () => {
  server.on("/crash/recentNumbers", respondWith("forbidden", { server: "edge", "retry-after": "9" }, 403));
  const [page, roobet] = await check([
    { adapter: "bustabit", feed: { first_round_id: 999 } },
    { adapter: "roobet", opaque: true },
  ]);
  expect(page).toMatchObject({
    ok: false,
    status: 404,
    reason: expect.stringContaining("no round 999; set feed.first_round_id"),
  });
  expect(roobet).toMatchObject({
    ok: false,
    status: 403,
    exchange: { response_headers: { server: "edge", "retry-after": "9" } },
  });
});

it("if each round has its own page requests the newest stored one, because the next may not be played yet", async () => {
  const tables = [{ adapter: "ethcrash-io", feed: { first_round_id: 5 } }];
  await check(tables, {}, database.url);
  const [table] = await sql<{ id: number }[]>`select id from tables`;
  await makeRound(sql, { id: table?.id ?? 0 }, { roundId: "41" });
  server.on("/game/41.json", respondWith('{"game_crash":187}'));
  expect(await check(tables, {}, database.url)).toMatchObject([{ ok: true, ids: ["41"] }]);
  expect(await sql`select from payloads`).toHaveLength(0);
  expect(await sql`select from rounds`).toHaveLength(1);
});

it("refuses a disabled house whose variables are not set, before it asks", async () => {
  await expect(
    check([{ adapter: "roobet", opaque: true }], { enabled: false, headers: { x: "${NOT_SET_ANYWHERE}" } }),
  ).rejects.toThrow(/NOT_SET_ANYWHERE is not set/);
});
