import { createHash, createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ANCHORS, LAST_GAME, SALT, TERMINATING_HASH } from "../../src/demo/bustabit-v2.ts";
import { makeDemoHouse, readBustabit, START_MS, T0_MS } from "./world.ts";

type House = Awaited<ReturnType<typeof makeDemoHouse>>;

async function roundsOf(house: House, query = "") {
  const answer = await house.get(`/bustabit/rounds${query}`);
  expect(answer.status).toBe(200);
  return (await readBustabit(answer)).rounds;
}

/** The chain below an anchor, computed here on its own: id to hash. */
function chainBelow(anchorId: number, games: number): Map<number, string> {
  let hash = ANCHORS.find(({ id }) => id === anchorId)?.hash ?? "";
  const hashes = new Map<number, string>();
  for (let id = anchorId; id > anchorId - games; id -= 1) {
    hashes.set(id, hash);
    hash = createHash("sha256").update(hash).digest("hex");
  }
  return hashes;
}

function multiplierOf(hash: string): number {
  const mac = createHmac("sha256", SALT).update(Buffer.from(hash, "hex")).digest("hex");
  return Math.max(1, Math.floor(99 / (1 - Number.parseInt(mac.slice(0, 13), 16) / 2 ** 52)) / 100);
}

describe("the true demo house", () => {
  it("has played 200 games at its very first start, and lists the newest fifty, newest first", async () => {
    const rounds = await roundsOf(await makeDemoHouse());
    expect(rounds.map(({ id }) => id)).toEqual(Array.from({ length: 50 }, (_, index) => 200 - index));
  });

  it("serves exactly the true chain: every hash and every multiplier", async () => {
    const house = await makeDemoHouse();
    const truth = chainBelow(250_000, 250_000);
    for (const { id, hash, multiplier } of await roundsOf(house, "?limit=200")) {
      expect(hash, `hash of game ${id}`).toBe(truth.get(id));
      expect(multiplier, `multiplier of game ${id}`).toBe(multiplierOf(truth.get(id) ?? ""));
    }
  });

  it("ends game n at T0 + n s, and lists it from that moment on", async () => {
    const house = await makeDemoHouse();
    expect((await roundsOf(house))[0]).toMatchObject({ id: 200, created_at: new Date(START_MS).toISOString() });
    house.clock.nowMs = START_MS + 999;
    expect((await roundsOf(house))[0]?.id).toBe(200);
    house.clock.nowMs = START_MS + 1_000;
    const rounds = await roundsOf(house);
    expect(rounds[0]?.id).toBe(201);
    for (const { id, created_at } of rounds) expect(Date.parse(created_at)).toBe(T0_MS + id * 1_000);
  });

  it("can be paged back to game 1 without a hole, and game 1 leads to the published commitment", async () => {
    const house = await makeDemoHouse();
    house.clock.nowMs = START_MS + 2_345_000;
    const rounds = await roundsOf(house, "?limit=200");
    for (let page = rounds; page.length > 0;) {
      page = await roundsOf(house, `?before=${rounds.at(-1)?.id}&limit=200`);
      rounds.push(...page);
    }
    expect(rounds.map(({ id }) => id)).toEqual(Array.from({ length: 2_545 }, (_, index) => 2_545 - index));
    for (const [place, { hash }] of rounds.entries()) {
      const before = createHash("sha256").update(hash).digest("hex");
      expect(before).toBe(rounds[place + 1]?.hash ?? TERMINATING_HASH);
    }
  });

  it("pages across a known hash, at which two walks meet", async () => {
    const house = await makeDemoHouse();
    house.clock.nowMs = T0_MS + 3_000_100 * 1_000;
    const truth = new Map([...chainBelow(3_250_000, 250_000), ...chainBelow(3_000_000, 200)]);
    const rounds = await roundsOf(house, "?before=3000051&limit=100");
    expect(rounds.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, index) => 3_000_050 - index));
    expect(rounds.map(({ hash }) => hash)).toEqual(rounds.map(({ id }) => truth.get(id)));
  });

  it("serves many readers of different pages at the same time correctly", async () => {
    const house = await makeDemoHouse();
    house.clock.nowMs = T0_MS + 240_000 * 1_000;
    const truth = chainBelow(250_000, 250_000);
    const befores = Array.from({ length: 60 }, (_, index) => 3_900 * (index + 1));
    const pages = await Promise.all(befores.map((before) => roundsOf(house, `?before=${before}&limit=20`)));
    for (const [place, page] of pages.entries()) {
      expect(page[0]?.id).toBe((befores[place] ?? 0) - 1);
      expect(page.map(({ hash }) => hash)).toEqual(page.map(({ id }) => truth.get(id)));
    }
  });

  it("does not list games that have not ended, also when older ones are requested", async () => {
    const house = await makeDemoHouse();
    expect((await roundsOf(house, "?before=5000&limit=1"))[0]?.id).toBe(200);
    expect(await roundsOf(house, "?before=1")).toEqual([]);
  });

  it("stays at the last game whose hash is known, and reports it", async () => {
    const house = await makeDemoHouse();
    house.clock.nowMs = T0_MS + LAST_GAME * 1_000 - 1;
    expect((await readBustabit(await house.get("/bustabit/rounds"))).chain_ended).toBeUndefined();
    for (const laterMs of [0, 86_400_000]) {
      house.clock.nowMs = T0_MS + LAST_GAME * 1_000 + laterMs;
      const answer = await readBustabit(await house.get("/bustabit/rounds"));
      expect(answer.chain_ended).toBe(true);
      expect(answer.note).toContain("5728987");
      expect(answer.rounds).toHaveLength(50);
      expect(answer.rounds[0]).toMatchObject({ id: LAST_GAME, multiplier: 7.29 });
    }
  });

  it("plays faster at a higher speed, in the same order", async () => {
    const house = await makeDemoHouse({ speed: 10 });
    expect((await roundsOf(house))[0]?.id).toBe(200);
    house.clock.nowMs += 1_000;
    const rounds = await roundsOf(house);
    expect(rounds[0]?.id).toBe(210);
    expect(Date.parse(rounds[0]?.created_at ?? "") - Date.parse(rounds[1]?.created_at ?? "")).toBe(100);
  });
});

describe("requests to the true demo house", () => {
  it("an unchanged list is 304 to a client with its ETag, and a changed one is not", async () => {
    const house = await makeDemoHouse();
    const first = await house.get("/bustabit/rounds");
    const etag = first.headers.get("etag") ?? "";
    expect(etag).toMatch(/^"[^"]+"$/);
    expect(first.headers.get("content-type")).toBe("application/json; charset=utf-8");
    for (const condition of [etag, `"other", W/${etag}`, "*"]) {
      const again = await house.get("/bustabit/rounds", { headers: { "if-none-match": condition } });
      expect(again.status).toBe(304);
      expect(again.headers.get("etag")).toBe(etag);
      expect(await again.text()).toBe("");
    }
    house.clock.nowMs += 1_000;
    const changed = await house.get("/bustabit/rounds", { headers: { "if-none-match": etag } });
    expect(changed.status).toBe(200);
    expect(changed.headers.get("etag")).not.toBe(etag);
  });

  it("HEAD returns what GET would, without the body", async () => {
    const house = await makeDemoHouse();
    const get = await house.get("/bustabit/rounds");
    const head = await house.get("/bustabit/rounds", { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    for (const name of ["etag", "content-type"]) expect(head.headers.get(name)).toBe(get.headers.get(name));
    expect(head.headers.get("content-length")).toBe(String((await get.text()).length));
  });

  it.each([
    ["limit=0", "from 1 to 200"],
    ["limit=201", "from 1 to 200"],
    ["limit=ten", "from 1 to 200"],
    ["limit=5&limit=6", "limit once"],
    ["before=0", "the number of a game"],
    ["before=-5", "the number of a game"],
    ["before=abc", "the number of a game"],
    ["before=99999999999", "the number of a game"],
    ["page=2", "only before and limit"],
  ])("%s is 400, saying what was expected", async (query, expected) => {
    const answer = await (await makeDemoHouse()).get(`/bustabit/rounds?${query}`);
    expect(answer.status).toBe(400);
    expect(answer.headers.get("etag")).toBeNull();
    expect(await answer.json()).toEqual({ error: expect.stringContaining(expected) });
  });

  it("other methods are 405 and other paths 404 with the paths there are", async () => {
    const house = await makeDemoHouse();
    const post = await house.get("/bustabit/rounds", { method: "POST", body: "{}" });
    expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
    const unknown = await house.get("/bustabit");
    expect(unknown.status).toBe(404);
    expect(await unknown.json()).toEqual({ error: expect.stringContaining("/bustabit/rounds") });
  });

  it("the front page states in words what is real and what is simulated", async () => {
    const house = await makeDemoHouse();
    const front = await house.get("/");
    expect(front.headers.get("content-type")).toContain("text/plain");
    const text = await front.text();
    for (const part of ["true past rounds", "simulated", "200 of 5728987", "/simulated/balloon/rounds"]) {
      expect(text).toContain(part);
    }
  });
});
