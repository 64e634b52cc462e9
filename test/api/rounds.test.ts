import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { addRounds, countedRounds, makeWorld, roundsBody, type World } from "./world.ts";

const FIELDS = ["round_id", "multiplier", "color", "occurred_at", "received_at", "verified", "late"];

let world: World;

beforeAll(async () => {
  world = await makeWorld({ BUFFER_ROUNDS: 120 });
});
afterAll(() => world.close());

async function tables(query = "") {
  const response = await world.get(`/api/v1/rounds${query}`);
  expect(response.status).toBe(200);
  return roundsBody.parse(await response.json()).tables;
}

const roundsOf = async (query: string) => (await tables(query))[0]?.rounds ?? [];
const idsOf = async (query: string) => (await roundsOf(query)).map(({ round_id }) => round_id);

describe("/rounds", () => {
  it("lists every table of the plan, with an empty list before its first round", async () => {
    const listed = await tables();
    expect(listed).toHaveLength(4);
    expect(listed[0]).toEqual({
      house: "alpha",
      game: "crash",
      market: "global",
      status: "offline",
      last_round_at: null,
      rounds: [],
    });
  });

  it("gives each round with exactly these fields, times to the microsecond, multipliers exact", async () => {
    await addRounds(world.sql, "gamma/rocket/one", [
      {
        id: "1",
        hundredths: 100,
        color: "blue",
        receivedAt: "2026-11-20T04:00:12.000001Z",
        occurredAt: "2026-11-20T04:00:11.5Z",
      },
      { id: "2", hundredths: 187, verified: true, receivedAt: "2026-11-20T04:00:13.999999Z" },
      { id: "3", hundredths: Number.MAX_SAFE_INTEGER, late: true, receivedAt: "2026-11-20T04:00:14Z" },
    ]);
    await eventually(async () => expect(await roundsOf("?house=gamma")).toHaveLength(3));
    const text = await (await world.get("/api/v1/rounds?house=gamma")).text();
    expect(text).toContain('"multiplier":1.00,');
    expect(text).toContain('"multiplier":90071992547409.91,');
    const [third, second, first] = await roundsOf("?house=gamma");
    expect(Object.keys(first ?? {})).toEqual(FIELDS);
    expect(first).toEqual({
      round_id: "1",
      multiplier: 1,
      color: "blue",
      occurred_at: "2026-11-20T04:00:11.5000000Z",
      received_at: "2026-11-20T04:00:12.0000010Z",
      verified: null,
      late: false,
    });
    expect(second).toMatchObject({ multiplier: 1.87, verified: true, received_at: "2026-11-20T04:00:13.9999990Z" });
    expect(third).toMatchObject({ occurred_at: null, late: true });
  });

  it("gives the newest 20, or as many as are asked for up to 100", async () => {
    await addRounds(world.sql, "alpha/crash/global", countedRounds(1, 110));
    await eventually(async () => expect(await idsOf("?house=alpha&game=crash&limit=1")).toEqual(["110"]));
    const newest = countedRounds(11, 110)
      .map(({ id }) => id)
      .toReversed();
    expect(await idsOf("?house=alpha&game=crash")).toEqual(newest.slice(0, 20));
    expect(await idsOf("?house=alpha&game=crash&limit=100")).toEqual(newest);
  });

  it("orders by number if ids are consecutive, whatever order they arrived in, so that 1000 is after 999", async () => {
    await addRounds(world.sql, "alpha/dice/eu", [...countedRounds(990, 995), ...countedRounds(999, 1002)]);
    await addRounds(
      world.sql,
      "alpha/dice/eu",
      countedRounds(996, 998).map((round) => ({ ...round, late: true })),
    );
    const expected = countedRounds(990, 1002)
      .map(({ id }) => id)
      .toReversed();
    await eventually(async () => expect(await idsOf("?house=alpha&game=dice")).toEqual(expected));
    expect(
      (await roundsOf("?house=alpha&game=dice")).filter(({ late }) => late).map(({ round_id }) => round_id),
    ).toEqual(["998", "997", "996"]);
  });

  it("orders opaque ids by when they were played, else received, then by when we took them in", async () => {
    const receivedAt = "2026-11-20T05:00:00Z";
    await addRounds(world.sql, "beta/crash/eu", [
      { id: "x9", occurredAt: "2026-11-20T04:00:02Z", receivedAt },
      { id: "a1", occurredAt: "2026-11-20T04:00:03Z", receivedAt },
      { id: "b7", receivedAt },
      { id: "q2", receivedAt },
    ]);
    await eventually(async () => expect(await idsOf("?house=beta")).toEqual(["q2", "b7", "a1", "x9"]));
    await addRounds(world.sql, "beta/crash/eu", [
      { id: "l8", occurredAt: "2026-11-20T04:00:02.5Z", receivedAt, late: true },
    ]);
    await eventually(async () => expect(await idsOf("?house=beta")).toEqual(["q2", "b7", "a1", "l8", "x9"]));
  });

  it("takes a table that grew by more than the buffer in one piece, as after an import", async () => {
    await addRounds(world.sql, "gamma/rocket/one", countedRounds(1_000, 1_400));
    const expected = countedRounds(1_301, 1_400)
      .map(({ id }) => id)
      .toReversed();
    await eventually(async () => expect(await idsOf("?house=gamma&limit=100")).toEqual(expected));
    await addRounds(
      world.sql,
      "gamma/rocket/one",
      countedRounds(500, 750).map((round) => ({ ...round, late: true })),
    );
    await addRounds(world.sql, "gamma/rocket/one", countedRounds(1_401, 1_401));
    await eventually(async () => expect((await idsOf("?house=gamma"))[0]).toBe("1401"));
    expect((await idsOf("?house=gamma&limit=100")).at(-1)).toBe("1302");
  });

  it("gives the same to a process that was started later", async () => {
    const later = await makeWorld({ BUFFER_ROUNDS: 120 }, { on: world });
    try {
      const [old, young] = await Promise.all([world, later].map((one) => one.get("/api/v1/rounds?limit=100")));
      expect(await young?.text()).toBe(await old?.text());
    } finally {
      await later.close();
    }
  });
});

describe("a response of /rounds", () => {
  it("has at most 200,000 rounds, by tables and limit: a larger limit is refused, the default is lowered", async () => {
    const many = await makeWorld();
    try {
      const markets = Array.from({ length: 5_001 }, (_, n) => tableEntry({ market: `m${n}` }));
      const houses = ["many", "more"].map((id) => houseEntry({ id, name: id, tables: markets }));
      await applyHouses(many.sql, houses);
      await addRounds(many.sql, "many/crash/m0", countedRounds(1, 30));
      const listed = await eventually(
        async () => {
          const response = await many.get("/api/v1/rounds?house=many,more");
          const all = response.ok ? roundsBody.parse(await response.json()).tables : [];
          return all.length === 10_002 && all.some(({ rounds }) => rounds.length > 0) && all;
        },
        { timeoutMs: 60_000, everyMs: 500 },
      );
      expect(listed.find(({ rounds }) => rounds.length > 0)?.rounds).toHaveLength(19);
      expect(await many.refused("/api/v1/rounds?house=many,more&limit=20")).toMatchObject({
        status: 400,
        code: "invalid_parameter",
        message:
          "limit: expected at most 200,000 rounds in a response, found 20 for each of 10,002 tables; choose fewer tables or a limit of at most 19",
        details: { parameter: "limit" },
      });
      for (const fits of ["house=many,more&limit=19", "house=alpha&limit=100", ""]) {
        expect((await many.get(`/api/v1/rounds?${fits}`)).status).toBe(200);
      }
    } finally {
      await many.close();
    }
  });
});

describe("what is not a way to ask for rounds", () => {
  it.each(["cursor", "offset", "page", "before", "after", "since", "from", "to"])(
    "%s is an unknown parameter: there is no paging",
    async (name) => {
      const refusal = await world.refused(`/api/v1/rounds?${name}=5&limit=3`);
      expect(refusal).toMatchObject({ status: 400, code: "unknown_parameter" });
      expect(refusal.message).toBe(`unknown parameter "${name}"; allowed: house, game, market, limit`);
      expect(refusal.details).toEqual({ unknown: [name], allowed: ["house", "game", "market", "limit"] });
    },
  );

  it.each(["0", "101", "1e3", "1e1", "+5", "-1", "05", " 5", "5.0", "0x10", "", "ten", "٣", "9".repeat(400)])(
    "a limit of %j is refused",
    async (limit) => {
      const refusal = await world.refused(`/api/v1/rounds?limit=${encodeURIComponent(limit)}`);
      expect(refusal).toMatchObject({ status: 400, code: "invalid_parameter", details: { parameter: "limit" } });
      expect(refusal.message).toMatch(/^limit: expected a whole number from 1 to 100, found "/);
    },
  );

  it.each([
    ["house=alpha&house=beta", "house: expected it once; separate several values with commas"],
    ["limit=5&limit=5", "limit: expected it once; separate several values with commas"],
    ["house=", 'house: expected ids of lower case letters, digits, - and _, separated by commas, found ""'],
    ["house=alpha,", 'house: expected ids of lower case letters, digits, - and _, separated by commas, found "alpha,"'],
    ["house=Alpha", 'house: expected ids of lower case letters, digits, - and _, separated by commas, found "Alpha"'],
    ["game=a%20b", 'game: expected ids of lower case letters, digits, - and _, separated by commas, found "a b"'],
    [
      "market=%E0%A4%A",
      'market: expected ids of lower case letters, digits, - and _, separated by commas, found "\ufffd%A"',
    ],
    [`house=${Array.from({ length: 21 }, () => "a").join(",")}`, 'house: expected at most 20 values, found "a,a'],
    ["__proto__=1", 'unknown parameter "__proto__"; allowed: house'],
    ["constructor=1", 'unknown parameter "constructor"; allowed: house'],
    ["house[]=alpha", 'unknown parameter "house[]"; allowed: house'],
    ["HOUSE=alpha", 'unknown parameter "HOUSE"; allowed: house'],
    ["=1", 'unknown parameter ""; allowed: house'],
  ])("%s", async (query, message) => {
    const refusal = await world.refused(`/api/v1/rounds?${query}`);
    expect(refusal.status).toBe(400);
    expect(refusal.message.slice(0, message.length)).toBe(message);
  });

  it("is validated before the tables: a bad value next to an unknown house is 400", async () => {
    expect(await world.refused("/api/v1/rounds?house=nowhere&limit=0")).toMatchObject({ status: 400 });
    expect(await world.refused("/api/v1/rounds?house=nowhere")).toMatchObject({ status: 404, code: "table_not_found" });
  });
});
