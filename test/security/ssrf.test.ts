import { createServer } from "node:net";
import { setImmediate as nextTick } from "node:timers/promises";
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import pollHouse from "../../jobs/poll-house.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { connect } from "../../src/db/client.ts";
import type { HouseResponse, HouseClient, HouseRequest } from "../../src/houses/polling/client.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { page, respondWith, startBadHouse, type BadHouse } from "../support/bad-house.ts";
import { testContext } from "../support/context.ts";
import { createDatabase } from "../support/database.ts";
import { passesTo } from "../support/passes-to.ts";
import { feedEntry, houseEntry, tableEntry } from "../support/houses.ts";
import { type NameRecord, type NameServer, startNameServer } from "../support/name-server.ts";

/** Public by its form, and of no one: IANA has not allocated this part of IPv6. */
const PUBLIC = "2e00::1";
const HERE: readonly NameRecord[] = [{ a: "127.0.0.1" }];

let names: NameServer;
let client: HouseClient;
let house: BadHouse;
/** Connections to this machine's own https port, which is what an attacker is after; where we may not have it, none are seen. */
let trapped = 0;
beforeAll(async () => {
  names = await startNameServer();
  client = createHouseClient({ version: "1.2.3", nameServers: [names.address] });
  house = await startBadHouse();
  const trap = createServer((socket) => {
    trapped += 1;
    socket.destroy();
  });
  trap.on("error", () => undefined);
  trap.listen(443);
  return async () => {
    trap.close();
    await client.close();
    await house.close();
    await names.close();
  };
});
afterAll(() => expect(trapped).toBe(0));

function ask(url: string, changed: Partial<HouseRequest> = {}): Promise<HouseResponse> {
  const asked = { house: "h", url, method: "GET" as const, headers: {}, timeoutMs: 5_000, allowPrivate: false };
  return client.fetch({ ...asked, ...changed }, new AbortController().signal);
}
const here = (path: string, changed: Partial<HouseRequest> = {}) =>
  ask(house.url + path, { allowPrivate: true, ...changed });

describe("[API7] a name", () => {
  it("is resolved once for a connection, and checked again for the next: later addresses are never used", async () => {
    names.on("rebinding.example", [{ aaaa: PUBLIC }], HERE);
    const first = await ask("https://rebinding.example/rounds");
    expect(first).toMatchObject({ kind: "failed" });
    expect(first).not.toMatchObject({ reason: "refused_address" }); // nothing listens there, but it was tried
    expect(names.asked.toSorted()).toEqual(["A rebinding.example", "AAAA rebinding.example"]);
    const second = await ask("https://rebinding.example/rounds");
    expect(second).toMatchObject({
      reason: "refused_address",
      detail: expect.stringContaining("rebinding.example resolves to 127.0.0.1, which is not a public address"),
    });
  });

  it.each<[string, readonly NameRecord[]]>([
    ["loopback", HERE],
    ["another loopback", [{ a: "127.8.8.8" }]],
    ["this network", [{ a: "0.0.0.0" }]],
    ["a private network", [{ a: "192.168.1.1" }]],
    ["the metadata of a cloud", [{ a: "169.254.169.254" }]],
    ["the metadata of a cloud, by IPv6", [{ aaaa: "fd00:ec2::254" }]],
    ["loopback of IPv6", [{ aaaa: "::1" }]],
    ["IPv4 mapped into IPv6", [{ aaaa: "::ffff:127.0.0.1" }]],
    ["IPv4 translated into IPv6", [{ aaaa: "64:ff9b::7f00:1" }]],
    ["a link of this machine", [{ aaaa: "fe80::1" }]],
    ["public and private addresses", [{ a: "8.8.8.8" }, { a: "10.0.0.1" }]],
    ["public by IPv6 and private by IPv4", [{ aaaa: PUBLIC }, { a: "10.0.0.1" }]],
    ["names that lead to loopback", [{ cname: "a.example" }, { cname: "b.example" }, { a: "127.0.0.1" }]],
  ])("that resolves to %s is refused", async (_, records) => {
    names.on("inside.example", records);
    expect(await ask("https://inside.example/")).toMatchObject({ kind: "failed", reason: "refused_address" });
  });

  it.each<[string, readonly NameRecord[] | "silence" | "garbage" | undefined]>([
    ["is unknown", undefined],
    ["has no address", []],
    ["only has another name, which is not asked for", [{ cname: "localhost" }]],
    ["gets a malformed response", "garbage"],
    ["gets no response", "silence"],
  ])("that %s is a failure within its time", async (_, response) => {
    if (response !== undefined) names.on("nowhere.example", response);
    const url = `https://${response === undefined ? "unknown" : "nowhere"}.example/`;
    expect(await ask(url, { timeoutMs: 500 })).toMatchObject({ kind: "failed", status: null });
  });

  it("of a house that may be private is resolved by the same name servers, and only for a connection", async () => {
    house.on("/rounds", respondWith(page(9)));
    names.on("kept.example", HERE, [{ a: "10.255.255.1" }]);
    const url = `http://kept.example:${new URL(house.url).port}/rounds`;
    for (const _ of [1, 2]) {
      expect(await ask(url, { house: "kept", allowPrivate: true })).toMatchObject({ kind: "response" });
      await nextTick(); // only then the connection is free again
    }
    expect(names.asked.filter((question) => question.endsWith("kept.example"))).toHaveLength(2);
    // the connection that is open to the private address is no way to it for the same house where it is not private
    expect(await ask(url.replace("http:", "https:"), { house: "kept" })).toMatchObject({ reason: "refused_address" });
    expect(house.requests.filter(({ path }) => path === "/rounds")).toHaveLength(2);
  });

  it("is resolved by the configured name servers, and a wrong one is reported", () => {
    const of = (HOUSE_NAME_SERVERS: string) => loadSettings({ HOUSE_NAME_SERVERS }).HOUSE_NAME_SERVERS;
    expect(of("9.9.9.9, [2620:fe::fe]:53,::1,127.0.0.1:5353")).toEqual([
      "9.9.9.9",
      "[2620:fe::fe]:53",
      "::1",
      "127.0.0.1:5353",
    ]);
    for (const wrong of ["dns.example", "9.9.9.9:0", "9.9.9.9:70000", "[9.9.9.9]:53", "9.9.9.9,"]) {
      expect(() => of(wrong), wrong).toThrow("the environment is not usable");
    }
  });
});

describe("[API7] an address in a URL", () => {
  it.each([
    "https://127.1/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://2130706433/",
    "https://127.0.0.1./",
    "https://[::]/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[fe80::1]/",
    "https://169.254.169.254/latest/meta-data",
    "https://8.8.8.8@127.0.0.1/",
    "https://127.0.0.1#@8.8.8.8/",
    "https://8.8.8.8:22/",
    "http://8.8.8.8/",
    "ftp://8.8.8.8/",
    "file:///etc/passwd",
  ])("is refused before anything is asked: %s", async (url) => {
    const before = names.asked.length;
    expect(await ask(url)).toMatchObject({ kind: "failed", reason: "refused_address", status: null });
    expect(names.asked).toHaveLength(before);
  });
});

describe("[API7] the response of a house", () => {
  it.each([301, 302, 303, 307, 308])(
    "that is a %i is not followed, neither to an internal address nor to another house",
    async (status) => {
      const other = await startBadHouse();
      onTestFinished(() => other.close());
      for (const to of ["http://127.0.0.1:1/", other.url, "//127.0.0.1/", "https://169.254.169.254/", "/elsewhere"]) {
        house.on("/moved", respondWith("", { location: to }, status));
        const before = house.requests.length;
        expect(await here("/moved")).toMatchObject({ kind: "failed", reason: "redirect", status });
        expect([house.requests.length - before, other.connections()]).toEqual([1, 0]);
      }
    },
  );

  const zeros = Buffer.alloc(64 << 20);
  const fast = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
  it.each<[string, string, () => Buffer]>([
    ["gzip", "gzip", () => gzipSync(zeros, { level: 1 })],
    ["gzip in gzip", "gzip, gzip", () => gzipSync(gzipSync(zeros, { level: 1 }))],
    ["deflate", "deflate", () => deflateSync(zeros, { level: 1 })],
    ["bare deflate", "deflate", () => deflateRawSync(zeros, { level: 1 })],
    ["br", "br", () => brotliCompressSync(zeros, fast)],
    ["zstd", "zstd", () => zstdCompressSync(zeros)],
  ])("does not burst: 64 MiB of nothing in %s", async (_, encoding, pack) => {
    house.on("/bomb", respondWith(pack(), { "content-encoding": encoding }));
    const before = process.memoryUsage().rss;
    expect(await here("/bomb", { timeoutMs: 20_000 })).toMatchObject({ kind: "failed", reason: "too_large" });
    expect(process.memoryUsage().rss - before).toBeLessThan(128 << 20);
  });

  it.each<[string, string, string]>([
    ["a status without an end", "HTTP/1.1 200 ", "x"],
    ["headers without an end", "HTTP/1.1 200 OK\r\n", "x-a: b\r\n"],
    ["early hints without an end", "", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"],
    ["a body without an end", "HTTP/1.1 200 OK\r\n\r\n", "x"],
    ["chunks without an end", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "1\r\nx\r\n"],
    ["chunk extensions without an end", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", "x"],
    ["trailers without an end", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", "x-a: b\r\n"],
  ])("may be %s, in drops or as a stream: it costs its time and no memory", async (_, head, piece) => {
    const asStream = piece.repeat(Math.ceil(16_384 / piece.length));
    for (const [path, text, everyMs] of [
      ["/drops", piece, 20],
      ["/stream", asStream, 1],
    ] as const) {
      house.on(path, ({ socket }) => {
        socket.write(head);
        const timer = setInterval(() => socket.writableNeedDrain || socket.write(text), everyMs);
        socket.on("close", () => clearInterval(timer));
      });
      const before = process.memoryUsage().rss;
      expect(await here(path, { timeoutMs: 300 })).toMatchObject({ kind: "failed" });
      expect(process.memoryUsage().rss - before).toBeLessThan(128 << 20);
    }
  });
});

it("[API7] a poll of a house whose name resolves to an internal address fails with the reason, and stores nothing", async () => {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 3 });
  onTestFinished(async () => {
    await sql.end();
    await database.drop();
  });
  names.on("turned.example", [{ aaaa: PUBLIC }], [{ aaaa: "::ffff:127.0.0.1" }]);
  const tables = [tableEntry({ feed: feedEntry({ path: "/rounds" }) })];
  await applyHouses(sql, [houseEntry({ base_url: "https://turned.example", private: false, tables })]);
  const { context } = testContext(sql, {
    passes: passesTo(database.url),
    http: client,
    env: {},
    variables: () => undefined,
  });
  for (const _ of [1, 2]) {
    expect(await pollHouse.run({ house: "alpha", shard: 0 }, context)).toMatchObject({ payloads: 0, failed: 1 });
  }
  const failures = await sql`select reason, detail from poll_failures order by 1`;
  expect(failures).toHaveLength(2);
  expect(failures).toContainEqual({
    reason: "refused_address",
    detail: expect.stringContaining("turned.example resolves to ::ffff:127.0.0.1, which is not a public address"),
  });
  expect([...(await sql`select 1 from payloads`)]).toEqual([]);
});
