import { readFile } from "node:fs/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { within } from "../../src/within.ts";
import { page, respondWith, startBadHouse, badResponses } from "../support/bad-house.ts";
import { feedEntry, houseEntry, tableEntry } from "../support/houses.ts";
import { housesFile, makeFolder, roundhouse } from "./world.ts";

/** A house of its own, named in a houses file, and the environment to check it with; no server of ours runs. */
async function makeHouse(changed: Record<string, unknown> = {}) {
  const house = await startBadHouse();
  onTestFinished(() => house.close());
  const { entry } = houseEntry({ id: "acme", base_url: house.url, timeout_ms: 20_000, ...changed });
  const env = {
    HOUSES_FILE: await housesFile([entry]),
    DATA_DIR: `${await makeFolder()}/none`,
    ALLOW_PRIVATE_HOUSES: "1",
    ACME_TOKEN: "a-secret-token",
  };
  return { house, check: (...args: string[]) => roundhouse(["house", "check", "acme", ...args], { env }), env };
}

describe("house check", () => {
  it("reads a house's response as a poll would, with nothing running and nothing stored", async () => {
    const { house, check, env } = await makeHouse();
    const items = { rounds: [...(JSON.parse(page(812)) as { rounds: object[] }).rounds, { id: 7, multiplier: 0.5 }] };
    house.on("/rounds", respondWith(JSON.stringify(items)));
    const { code, stdout } = await check("--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      house: "acme",
      ok: true,
      tables: [
        {
          table: "acme/crash/global",
          ok: true,
          status: 200,
          reason: null,
          items: 4,
          readable: 3,
          rounds: [
            { round_id: "812", multiplier: 1.5, color: "blue", occurred_at: null },
            { round_id: "811", multiplier: 2.5, color: "purple", occurred_at: null },
            { round_id: "810", multiplier: 3.5, color: "purple", occurred_at: null },
          ],
          refused: [{ round_id: "7", code: "impossible_multiplier" }],
        },
      ],
    });
    await expect(readFile(env.DATA_DIR)).rejects.toThrow("ENOENT");
  });

  it("sends one request for tables that share it, and one for each that does not", async () => {
    const { house, check } = await makeHouse({
      tables: ["m0", "m1", "m2"].map((market) =>
        tableEntry({ market, feed: feedEntry({ path: market === "m2" ? "/other" : "/rounds" }) }),
      ),
    });
    house.on("/rounds", respondWith(page(812)));
    house.on("/other", respondWith(page(9)));
    const { code, stdout } = await check("--json");
    expect(code).toBe(0);
    const { tables } = JSON.parse(stdout) as { tables: { table: string; ok: boolean; items: number }[] };
    expect(tables.map(({ table, ok, items }) => [table, ok, items])).toEqual(
      ["m0", "m1", "m2"].map((market) => [`acme/crash/${market}`, true, 3]),
    );
    expect(house.requests.map(({ path }) => path).toSorted()).toEqual(["/other", "/rounds"]);
  });

  it("gives a request that waits for eight others its whole timeout", async () => {
    const markets = Array.from({ length: 9 }, (_, n) => `m${n}`);
    const timeoutMs = 19_999; // no other timer has this duration
    const { house, check } = await makeHouse({
      timeout_ms: timeoutMs,
      tables: markets.map((market) => tableEntry({ market, feed: feedEntry({ path: `/${market}` }) })),
    });
    const timers = vi.spyOn(globalThis, "setTimeout");
    onTestFinished(() => timers.mockRestore());
    const countDeadlines = () => timers.mock.calls.filter(([, ms]) => ms === timeoutMs).length;
    vi.useFakeTimers({ toFake: ["performance"] }); // its time stands still
    onTestFinished(() => void vi.useRealTimers());
    const held: (() => void)[] = [];
    const eight = Promise.withResolvers<void>();
    for (const market of markets) {
      house.on(`/${market}`, (...request) => {
        const respond = () => respondWith(page(812))(...request);
        if (held.length === 8) return respond();
        if (held.push(respond) === 8) eight.resolve();
      });
    }
    const checked = check("--json");
    await within(20_000, "a house with eight requests", eight.promise);
    expect(countDeadlines()).toBe(8);
    vi.advanceTimersByTime(15_000);
    for (const respond of held) respond();
    const { code, stdout } = await checked;
    const { tables } = JSON.parse(stdout) as { tables: { reason: string | null; elapsed_ms: number }[] };
    expect(tables.map(({ reason }) => reason)).toEqual(markets.map(() => null));
    expect(countDeadlines()).toBe(9);
    expect(tables.map((table) => table.elapsed_ms).toSorted((a, b) => a - b)).toEqual([
      0,
      ...Array<number>(8).fill(15_000),
    ]);
    expect(code).toBe(0);
  });

  it("spaces requests by the budget of the house", async () => {
    const markets = ["m0", "m1", "m2"];
    const { house, check } = await makeHouse({
      requests_per_minute: 240,
      tables: markets.map((market) => tableEntry({ market, feed: feedEntry({ path: `/${market}` }) })),
    });
    const times: number[] = [];
    for (const market of markets) {
      house.on(`/${market}`, (...request) => {
        times.push(performance.now());
        respondWith(page(812))(...request);
      });
    }
    expect((await check()).code).toBe(0);
    const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0));
    expect(gaps).toHaveLength(2);
    for (const gap of gaps) expect(gap).toBeGreaterThan(245);
  });

  it("prints the response and the refused items with their reasons", async () => {
    const { house, check } = await makeHouse();
    house.on("/rounds", respondWith('{"rounds":[{"id":812,"multiplier":"1,87x"},{"id":811,"multiplier":"∞"}]}'));
    const { code, stdout } = await check();
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ok {2}acme\/crash\/global {2}200 in \d+ ms: 2 items, 1 rounds, 1 refused$/m);
    expect(stdout).toMatch(/^ {2}812 +1\.87 +blue/m);
    expect(stdout).toContain('refused 811: expected a multiplier such as 1.87 or "1,87x", found "∞"');
  });

  it("explains the request and the response without their secrets", async () => {
    const { house, check } = await makeHouse({
      headers: { Authorization: "Bearer ${ACME_TOKEN}", "X-Plain": "also-kept" },
      tables: [tableEntry({ feed: feedEntry({ path: "/rounds?token=${ACME_TOKEN}" }) })],
    });
    house.on("/rounds?token=a-secret-token", respondWith(page(9), { etag: '"v1"' }));
    const { stdout, stderr } = await check("--explain");
    expect(house.requests[0]?.headers.authorization).toBe("Bearer a-secret-token");
    expect(stdout).toContain("> GET http://127.0.0.1");
    expect(stdout).toContain("/rounds?token=${ACME_TOKEN}");
    expect(stdout).toContain("> Authorization: [redacted]");
    expect(stdout).toContain('< etag: "v1"');
    expect(stdout + stderr).not.toContain("a-secret-token");
    expect(stdout + stderr).not.toContain("also-kept");
  });

  it.each([
    ["a page of HTML", badResponses.html, "found HTML or XML"],
    ["a reset", badResponses.reset, "connection: "],
    ["silence", badResponses.silence, "timeout: "],
    ["a redirect", badResponses.redirect, "redirects are not followed"],
    ["no readable item", respondWith('{"rounds":[{"id":1}]}'), "found 1 items and not one of them readable"],
  ])("fails on %s with the reason", async (_, listener, expected) => {
    const { house, check } = await makeHouse(listener === badResponses.silence ? { timeout_ms: 500 } : {});
    house.on("/rounds", listener);
    const { code, stdout } = await check();
    expect(code).toBe(1);
    expect(stdout).toMatch(/^failed {2}acme\/crash\/global {2}/);
    expect(stdout).toContain(expected);
  });

  it("reads a disabled house, also if not every table has a feed", async () => {
    const tables = [tableEntry(), tableEntry({ market: "imported", feed: undefined })];
    const { house, check } = await makeHouse({ enabled: false, tables });
    house.on("/rounds", respondWith(page(812)));
    const { code, stdout } = await check("--json");
    expect(JSON.parse(stdout)).toMatchObject({ ok: true, tables: [{ table: "acme/crash/global", readable: 3 }] });
    expect(code).toBe(0);
  });

  it.each([
    ["no base_url", { base_url: undefined }, "the house acme has no base_url; there is nothing to request"],
    ["an unset variable", { headers: { authorization: "Bearer ${UNSET}" } }, "the house cannot be requested: "],
  ])("refuses a disabled house with %s", async (_, changed, expected) => {
    const { check } = await makeHouse({ enabled: false, ...changed });
    const { code, stderr } = await check();
    expect(stderr).toContain(expected);
    expect(code).toBe(2);
  });

  it("names the known houses if another one is requested", async () => {
    const { env } = await makeHouse();
    const { code, stderr } = await roundhouse(["house", "check", "acne"], { env });
    expect(code).toBe(2);
    expect(stderr).toContain('there is no house "acne"');
    expect(stderr).toContain("has acme");
  });

  it("lists every problem of the houses file, as a start would", async () => {
    const entry = { id: "acme", name: "Acme", poll_evry_ms: 5, tables: [tableEntry({ colors: [] })] };
    const env = { HOUSES_FILE: await housesFile([entry]) };
    const { code, stderr } = await roundhouse(["house", "check", "acme"], { env });
    expect(code).toBe(2);
    for (const path of ["houses[0]: ", "houses[0].tables[0].colors: "]) expect(stderr).toContain(path);
  });
});
