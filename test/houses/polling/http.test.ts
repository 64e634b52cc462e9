import { setImmediate as nextTick } from "node:timers/promises";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HouseResponse, HouseClient, HouseRequest } from "../../../src/houses/polling/client.ts";
import { createHouseClient } from "../../../src/houses/polling/http.ts";
import { page, respondWith, startBadHouse, badResponses, type BadHouse } from "../../support/bad-house.ts";
import { eventually } from "../../support/eventually.ts";

let house: BadHouse;
let client: HouseClient;
beforeEach(async () => {
  house = await startBadHouse();
  client = createHouseClient({ version: "1.2.3" });
});
afterEach(async () => {
  await client.close();
  await house.close();
});

function ask(request: Partial<HouseRequest> = {}, signal = new AbortController().signal): Promise<HouseResponse> {
  return client.fetch(
    {
      house: "bad",
      url: `${house.url}/rounds`,
      method: "GET",
      headers: {},
      timeoutMs: 5_000,
      allowPrivate: true,
      ...request,
    },
    signal,
  );
}

describe("a good response", () => {
  test("arrives whole, with the validators for the next request", async () => {
    house.on("/rounds", respondWith(page(9), { etag: '"9"', "last-modified": "Fri, 20 Nov 2026 10:00:00 GMT" }));
    const result = await ask({ headers: { "X-Example": "one" } });
    expect(result).toMatchObject({
      kind: "response",
      status: 200,
      contentType: "application/json",
      etag: '"9"',
      lastModified: "Fri, 20 Nov 2026 10:00:00 GMT",
    });
    expect(result.kind === "response" && result.body.toString()).toBe(page(9));
    expect(house.requests[0]?.headers).toMatchObject({ "user-agent": "roundhouse/1.2.3", "x-example": "one" });
  });

  test.each([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
    ["zstd", zstdCompressSync],
    ["deflate", deflateSync],
    ["deflate", deflateRawSync],
  ] as const)("is unpacked from %s", async (encoding, pack) => {
    house.on("/rounds", respondWith(pack(Buffer.from(page(9))), { "content-encoding": encoding }));
    const result = await ask();
    expect(result.kind === "response" && result.body.toString()).toBe(page(9));
  });

  test("may be packed twice, and is unpacked in the opposite order", async () => {
    const packed = gzipSync(brotliCompressSync(Buffer.from(page(9))));
    house.on("/rounds", respondWith(packed, { "content-encoding": "br, gzip" }));
    const result = await ask();
    expect(result.kind === "response" && result.body.toString()).toBe(page(9));
  });

  test("of exactly 4 MiB is taken, one byte more is not", async () => {
    house.on("/rounds", respondWith(Buffer.alloc(4 << 20, " ")));
    expect(await ask()).toMatchObject({ kind: "response" });
    house.on("/rounds", respondWith(Buffer.alloc((4 << 20) + 1, " ")));
    expect(await ask()).toMatchObject({ kind: "failed", reason: "too_large", status: 200 });
  });

  test("has no Last-Modified that is as recent as the response, because it counts whole seconds", async () => {
    const now = "Fri, 20 Nov 2026 10:00:00 GMT";
    house.on("/rounds", respondWith(page(9), { "last-modified": now, date: now }));
    expect(await ask()).toMatchObject({ kind: "response", lastModified: null });
  });

  test("after another goes over the same connection, also when the one between failed", async () => {
    house.on("/rounds", respondWith(page(9)));
    house.on("/error", respondWith("oh no", {}, 500));
    await ask();
    await nextTick(); // a connection is free again once its response's last event was handled
    await ask({ url: `${house.url}/error` });
    await nextTick();
    await ask();
    expect(house.requests).toHaveLength(3);
    expect(house.connections()).toBe(1);
  });
});

describe("asking for changes only", () => {
  test("a 304 is an unchanged response", async () => {
    house.on("/rounds", respondWith("", {}, 304));
    expect(await ask({ headers: { "if-none-match": '"9"' } })).toMatchObject({ kind: "unchanged", status: 304 });
  });

  test("a 304 without a conditional request is a failure, because it means nothing", async () => {
    house.on("/rounds", respondWith("", {}, 304));
    expect(await ask()).toMatchObject({ kind: "failed", reason: "status", status: 304 });
  });
});

describe("[API10] a failing house", () => {
  test.each([
    ["sends nothing", badResponses.silence, "timeout", null],
    ["resets the connection", badResponses.reset, "connection", null],
    ["hangs up in the middle", badResponses.hangUp, "connection", 200],
    ["sends its body drop by drop without end", badResponses.slowBody, "timeout", 200],
    ["sends headers without end", badResponses.slowHeaders, "timeout", null],
    ["does not speak HTTP", badResponses.notHttp, "connection", null],
    ["sends 20 kB of headers", badResponses.manyHeaders, "too_large", null],
    ["sends 50 MB", badResponses.fiftyMegabytes, "too_large", 200],
    ["sends a bomb of gzip", badResponses.gzipBomb, "too_large", 200],
    ["sends invalid gzip", badResponses.brokenGzip, "not_decodable", 200],
    ["sends incomplete gzip", badResponses.cutGzip, "not_decodable", 200],
    ["uses an unknown encoding", badResponses.unknownEncoding, "not_decodable", 200],
    ["uses three encodings", badResponses.manyEncodings, "not_decodable", 200],
    ["is broken", respondWith("oh no", {}, 500), "status", 500],
    ["has moved", badResponses.redirect, "redirect", 302],
    ["responds without content", respondWith("", {}, 204), "status", 204],
  ])("that %s is a failure with its reason", async (_, listener, reason, status) => {
    house.on("/rounds", listener);
    // headers that are expected before the timeout have seconds to arrive
    const result = await ask({ timeoutMs: reason !== "timeout" ? 20_000 : status === null ? 400 : 3_000 });
    expect(result).toMatchObject({ kind: "failed", reason, status });
    expect(result.kind === "failed" && result.detail).toMatch(/^[a-z0-9]/);
  });

  test("that is not there at all is a failed connection", async () => {
    await house.close();
    expect(await ask()).toMatchObject({ kind: "failed", reason: "connection", status: null });
    house = await startBadHouse();
  });

  test("that responded while this process was busy is in time", async () => {
    house.on("/rounds", (_, response) => {
      response.end("[]");
      for (const from = performance.now(); performance.now() - from < 600;);
    });
    expect(await ask({ timeoutMs: 500 })).toMatchObject({ kind: "response", status: 200 });
  });

  test("that sends an endless error costs no more than the timeout", async () => {
    house.on("/rounds", (_, response) => {
      response.writeHead(503, { "retry-after": "7" });
      response.write("oh");
    });
    expect(await ask({ timeoutMs: 3_000 })).toMatchObject({ kind: "failed", reason: "status", retryAfterMs: 7_000 });
  });

  test("reports the target of a redirect without its query, and the redirect is not followed", async () => {
    house.on("/rounds", badResponses.redirect);
    const result = await ask();
    expect(result.kind === "failed" && result.detail).toContain("http://169.254.169.254/latest/meta-data;");
    expect(house.requests).toHaveLength(1);
  });

  test.each([429, 503])("that returns %i may state how long to wait", async (status) => {
    house.on("/rounds", respondWith("later", { "retry-after": "30" }, status));
    expect(await ask()).toMatchObject({ kind: "failed", reason: "status", status, retryAfterMs: 30_000 });
    house.on("/rounds", respondWith("later", {}, status));
    expect(await ask()).toMatchObject({ status, retryAfterMs: null });
  });

  test("is asked no more once the caller gives up", async () => {
    house.on("/rounds", badResponses.silence);
    const stop = new AbortController();
    const result = ask({}, stop.signal);
    await eventually(() => house.requests.length === 1);
    stop.abort(new Error("stopping"));
    expect(await result).toMatchObject({ kind: "failed", reason: "aborted" });
  });

  test("keeps no other house waiting", async () => {
    house.on("/rounds", badResponses.silence);
    const other = await startBadHouse();
    other.on("/rounds", respondWith(page(9)));
    const stop = new AbortController();
    const slow = Array.from({ length: 20 }, () => ask({ house: "slow" }, stop.signal));
    expect(await ask({ house: "quick", url: `${other.url}/rounds` })).toMatchObject({ kind: "response" });
    stop.abort();
    await Promise.all(slow);
    await other.close();
  });
});

describe("[API7] an address that must not be asked", () => {
  test.each([
    ["loopback", "https://127.0.0.1/rounds"],
    ["loopback in another spelling", "https://0x7f.1/rounds"],
    ["loopback as one number", "https://2130706433/rounds"],
    ["loopback of IPv6", "https://[::1]/rounds"],
    ["IPv4 inside IPv6", "https://[::ffff:127.0.0.1]/rounds"],
    ["a cloud's metadata", "https://169.254.169.254/latest/meta-data"],
    ["a private network", "https://10.1.2.3/rounds"],
    ["a name that resolves to loopback", "https://localhost/rounds"],
    ["plain http", "http://example.com/rounds"],
    ["another port", "https://example.com:8443/rounds"],
    ["a password in the URL", "https://me:hunter22@example.com/rounds"],
  ])("is refused: %s", async (_, url) => {
    const result = await ask({ url, allowPrivate: false });
    expect(result).toMatchObject({ kind: "failed", reason: "refused_address", status: null });
    expect(result.kind === "failed" && result.detail).not.toContain("hunter22");
  });
});

test("a refused connection names the address once", async () => {
  const result = await ask({ url: "http://127.0.0.1:2/rounds", allowPrivate: true });
  expect(result).toMatchObject({ reason: "connection", detail: "connect ECONNREFUSED 127.0.0.1:2" });
});

test("no failure repeats a secret of the request", async () => {
  const secret = "s3cr3t-token";
  const results = [
    await ask({ headers: { "x-token": `${secret}\nx: y` } }),
    await ask({ url: `http://127.0.0.1:1/rounds?key=${secret}`, headers: { "x-token": secret } }),
    await ask({ url: `https://127.0.0.1/rounds?key=${secret}`, allowPrivate: false }),
  ];
  for (const result of results) {
    expect(result).toMatchObject({ kind: "failed" });
    expect(JSON.stringify(result)).not.toContain(secret);
  }
});
