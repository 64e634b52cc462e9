import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as etags from "../../src/http/etag.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { addRounds, countedRounds, makeKey, makeWorld, type World } from "../api/world.ts";

let world: World;

beforeAll(async () => {
  world = await makeWorld();
  await addRounds(world.sql, "alpha/crash/global", countedRounds(1, 50));
  await eventually(async () => (await (await world.get("/api/v1/rounds")).text()).includes('"50"'));
});
afterAll(() => world.close());

it.each(listExamples("src/http/etag.ts").map((example) => [example.title, example] as const))(
  "the examples of %s hold",
  (_, example) => {
    for (const { actual, ...claim } of runExample(example, etags))
      expect({ ...claim, expected: actual }).toEqual(claim);
  },
);

async function etagOf(path: string): Promise<string> {
  return (await world.get(path)).headers.get("etag") ?? "";
}

describe("an ETag", () => {
  it("spares what the caller has: 304 without a body, also for fetch, which adds no-cache", async () => {
    const etag = await etagOf("/api/v1/rounds");
    expect(etag).toMatch(/^"[\w-]{20,}-(?:br|gzip)"$/);
    const plain = etag.replace(/-(?:br|gzip)"$/, '"');
    for (const given of [etag, `W/${etag}`, `"other", ${etag}`, `"a","b",W/${etag}`, plain]) {
      const response = await world.get("/api/v1/rounds", { headers: { "If-None-Match": given } });
      expect([given, response.status, await response.text()]).toEqual([given, 304, ""]);
      expect(response.headers.get("etag")).toBe(given === plain ? plain : etag);
      expect(response.headers.get("cache-control")).toBe("private, no-cache");
      expect(response.headers.get("vary")).toBe("X-Api-Key, Accept-Encoding");
    }
    for (const given of ['"other"', etag.slice(1, -1), "", "W/*"]) {
      const { status } = await world.get("/api/v1/rounds", { headers: { "If-None-Match": given } });
      expect([given, status]).toEqual([given, 200]);
    }
  });

  it("is another for each way of writing the same contents, and each of them spares them", async () => {
    const ask = (headers: Record<string, string>) => world.get("/api/v1/rounds", { headers });
    const encodings = ["identity", "gzip", "br"];
    // again where something was read into memory meanwhile, which is other contents
    await eventually(async () => {
      const tags: string[] = [];
      for (const encoding of encodings)
        tags.push((await ask({ "Accept-Encoding": encoding })).headers.get("etag") ?? "");
      expect(new Set(tags).size).toBe(3);
      for (const etag of tags) {
        const again = await ask({ "Accept-Encoding": "br", "If-None-Match": etag });
        expect([again.status, again.headers.get("etag")]).toEqual([304, etag]);
      }
      return true;
    });
  });

  it("is never reached without a good key", async () => {
    const headers = { "If-None-Match": "*", "X-Api-Key": "wrong" };
    expect((await world.get("/api/v1/rounds", { headers })).status).toBe(401);
  });

  it("identifies the response: another limit, filter or round has another", async () => {
    const paths = ["/api/v1/rounds", "/api/v1/rounds?limit=3", "/api/v1/rounds?house=alpha", "/api/v1/games"];
    const before = await Promise.all(paths.map(etagOf));
    expect(new Set(before).size).toBe(4);
    expect(await Promise.all(paths.map(etagOf))).toEqual(before);
    await addRounds(world.sql, "alpha/crash/global", countedRounds(51, 51));
    for (const [at, path] of paths.entries()) {
      await eventually(async () => expect(await etagOf(path)).not.toBe(before[at]));
    }
  });
});

describe("contents that were not paid for", () => {
  const ask = (by: World, given: string, key = by.key, method = "GET") =>
    by.get("/api/v1/rounds", { method, headers: { "If-None-Match": given, "X-Api-Key": key } });

  it.each(["GET", "HEAD"])(
    "[ETAG] are not shown by a star, however it is written: %s gets a counted 200",
    async (method) => {
      let left = Number((await world.get("/api/v1/rounds")).headers.get("x-quota-day-remaining"));
      for (const star of ["*", " * ", "*, *", '*, "a"', '"*"', "W/*", 'W/"*"']) {
        const response = await ask(world, star, world.key, method);
        expect([star, response.status]).toEqual([star, 200]);
        expect(Number(response.headers.get("x-quota-day-remaining"))).toBe(--left);
      }
    },
  );

  it("[ETAG] cannot be guessed from an ETag, which is keyed: the same in all processes with one secret", async () => {
    const [same, other] = await Promise.all([
      makeWorld({}, { on: world }),
      makeWorld({}, { on: world, secret: "another" }),
    ]);
    try {
      const etag = await etagOf("/api/v1/rounds");
      expect([(await ask(same, etag)).status, (await ask(other, etag)).status]).toEqual([304, 200]);
    } finally {
      await Promise.all([same.close(), other.close()]);
    }
  });

  it("[ETAG] are not compared for an account whose quota is used up, in any process", async () => {
    await world.sql`update plans set day_limit = 2 where name = 'Starter'`;
    const key = await makeKey(world.sql, "spent@example.com", "Starter");
    const spend = async () =>
      (await world.get("/api/v1/rounds", { headers: { "X-Api-Key": key } })).headers.get("etag");
    const etag = (await spend()) ?? "";
    expect((await ask(world, etag, key)).status).toBe(304);
    await spend();
    expect((await ask(world, etag, key)).status).toBe(429);
    const other = await makeWorld({}, { on: world });
    try {
      expect((await ask(other, etag, key)).status).toBe(429);
    } finally {
      await other.close();
    }
  });
});
