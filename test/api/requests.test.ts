import { request as httpRequest } from "node:http";
import { gunzipSync } from "node:zlib";
import express from "express";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openServer } from "../../src/http/http.ts";
import { sendErrors, beginRequest } from "../../src/http/request.ts";
import { eventually } from "../support/eventually.ts";
import { addRounds, countedRounds, errorBody, makeWorld, type World } from "./world.ts";

let world: World;

beforeAll(async () => {
  world = await makeWorld();
  await addRounds(world.sql, "alpha/crash/global", countedRounds(1, 50));
  await eventually(async () => (await (await world.get("/api/v1/rounds")).text()).includes('"50"'));
});
afterAll(() => world.close());

describe("paths that are none", () => {
  it.each([
    "/api/v1/stream",
    "/api/v1/history",
    "/api/v1/rounds/history",
    "/api/v1/webhooks",
    "/api/v1/bankroll",
    "/api/v1/white-label",
    "/api/v1/forecasts/stream",
    "/api/v2/games",
    "/api/v1",
    "/api",
    "/api/v1/games/",
    "/API/v1/games",
    "//api/v1/games",
    "/api/v1/%E0%A4%A",
    "/api/v1/games%2F",
    "/asdf",
  ])("%s responds exactly like any unknown path, with or without a key", async (path) => {
    const noise = await world.get("/api/v1/noise-4711");
    const expected = { ...errorBody.parse(await noise.json()), request_id: "" };
    for (const headers of [{}, { "X-Api-Key": "" }, { "X-Api-Key": "wrong" }]) {
      for (const method of ["GET", "POST", "OPTIONS"]) {
        const response = await world.get(path, { headers, method });
        expect(response.status).toBe(404);
        expect({ ...errorBody.parse(await response.json()), request_id: "" }).toEqual(expected);
        expect(response.headers.get("allow")).toBeNull();
      }
    }
    expect(expected).toMatchObject({ error: { code: "not_found", message: "this path does not exist" } });
  });
});

describe("parts of a path that are not UTF-8", () => {
  it.each(["/houses/%E0%A4%A", "/log/tile/%E0%A4%A", "/log/export/rounds/%E0%A4%A/a/b", "/houses/%E0%A4%A/x/%zz"])(
    "%s is a path that does not exist",
    async (path) => {
      for (const method of ["GET", "HEAD", "POST"]) {
        expect([method, (await world.get(path, { method })).status]).toEqual([method, 404]);
      }
      const { error } = errorBody.parse(await (await world.get(path)).json());
      expect(error).toMatchObject({ code: "not_found", message: "this path does not exist" });
    },
  );
});

describe("methods", () => {
  it.each(["POST", "PUT", "PATCH", "DELETE", "PROPFIND"])(
    "%s is 405 with Allow, before the key is looked at",
    async (method) => {
      const refusal = await world.refused("/api/v1/games", { method, headers: { "X-Api-Key": "wrong" } });
      expect(refusal).toMatchObject({ status: 405, code: "method_not_allowed" });
      expect(refusal.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
    },
  );

  it("OPTIONS is 204 with Allow and needs no key; nothing is allowed to other origins", async () => {
    const response = await fetch(`${world.api.url}/api/v1/rounds`, {
      method: "OPTIONS",
      headers: { Origin: "https://a.example" },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("allow")).toBe("GET, HEAD, OPTIONS");
    expect([...response.headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
  });

  it("HEAD gives the headers of GET and no body", async () => {
    const headers = { "Accept-Encoding": "identity" };
    const got = await world.get("/api/v1/rounds", { headers });
    const head = await world.get("/api/v1/rounds", { method: "HEAD", headers });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    const same = ["etag", "content-type", "content-length", "vary", "cache-control"];
    const valuesOf = ({ headers: all }: Response) => same.map((name) => [name, all.get(name)]);
    expect(valuesOf(head)).toEqual(valuesOf(got));
    expect(Number(head.headers.get("content-length"))).toBe(Buffer.byteLength(await got.text()));
    const wrong = await world.get("/api/v1/rounds", { method: "HEAD", headers: { "X-Api-Key": "wrong" } });
    expect([wrong.status, await wrong.text()]).toEqual([401, ""]);
  });
});

describe("[API8][V13] every response", () => {
  it.each(["/api/v1/games", "/api/v1/nothing", "/api/v1/games?x=1", "/", "/healthz"])(
    "%s has its id and safe headers",
    async (path) => {
      const { headers } = await world.get(path);
      expect(headers.get("x-request-id")).toMatch(/^req_[0-9a-f]{32}$/);
      expect(headers.get("cache-control")).toBe(path === "/healthz" ? "no-store" : "private, no-cache");
      expect(headers.get("vary")).toBe("X-Api-Key, Accept-Encoding");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("strict-transport-security")).toMatch(/^max-age=\d{8}/);
      expect(headers.get("x-powered-by")).toBeNull();
      expect(headers.get("content-security-policy")).not.toContain("unsafe");
    },
  );

  it("that is an error names its own page, which has it", async () => {
    const response = await world.get("/api/v1/nothing");
    const { error, request_id } = errorBody.parse(await response.json());
    expect(request_id).toBe(response.headers.get("x-request-id"));
    expect(error.docs_url).toBe(`${world.api.url}/docs/errors#not_found`);
    const page = await fetch(error.docs_url);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('<tr id="not_found">');
  });

  it("is compressed from one kilobyte on", async () => {
    const ask = (path: string) =>
      new Promise<{ encoding: string | undefined; body: Buffer }>((resolve, reject) => {
        const asked = httpRequest(
          world.api.url + path,
          { headers: { "X-Api-Key": world.key, "Accept-Encoding": "gzip" } },
          (response) => {
            const parts: Buffer[] = [];
            response.on("data", (part: Buffer) => parts.push(part));
            response.on("end", () =>
              resolve({ encoding: response.headers["content-encoding"], body: Buffer.concat(parts) }),
            );
          },
        );
        asked.on("error", reject);
        asked.end();
      });
    const large = await ask("/api/v1/rounds");
    expect(large.encoding).toBe("gzip");
    expect(gunzipSync(large.body).toString()).toBe(await (await world.get("/api/v1/rounds")).text());
    expect((await ask("/api/v1/games")).encoding).toBeUndefined();
  });
});

describe("a response of one kilobyte or more", () => {
  it.each([
    ["br;q=0.1, gzip", "gzip"],
    ["br;q=1, *;q=0", "br"],
    ["*", "br"],
    ["identity, gzip;q=0.5", undefined],
    ["identity", undefined],
    ["deflate", undefined],
    [undefined, undefined],
  ])("is sent to a caller who accepts %s as %s", async (accepted, encoding) => {
    const headers = { "X-Api-Key": world.key, ...(accepted === undefined ? {} : { "Accept-Encoding": accepted }) };
    const got = await new Promise((resolve, reject) => {
      const sent = httpRequest(`${world.api.url}/api/v1/rounds`, { headers }, (response) => {
        response.resume();
        resolve([response.statusCode, response.headers["content-encoding"]]);
      });
      sent.on("error", reject).end();
    });
    expect(got).toEqual([200, encoding]);
  });
});

describe("[API4] a request without a response in time", () => {
  it("gets 503 with Retry-After, and its connection is closed", async () => {
    const log = pino({ level: "silent" });
    const app = express().use(beginRequest(log, undefined, 50));
    app.get("/", () => undefined);
    app.use(sendErrors(() => "", log));
    const server = await openServer(app, { host: "127.0.0.1", port: 0, variable: "PORT" }, () => "", log);
    try {
      const response = await fetch(server.url, { signal: AbortSignal.timeout(10_000) });
      expect(["retry-after", "connection"].map((name) => response.headers.get(name))).toEqual(["5", "close"]);
      expect(response.status).toBe(503);
      expect(errorBody.parse(await response.json()).error.code).toBe("temporarily_unavailable");
    } finally {
      await server.close();
    }
  });
});

describe("[API8][V16] a fault of ours", () => {
  it("is a 500 with only its id for the caller; the log has the details under that id", async () => {
    const lines: string[] = [];
    const log = pino({}, { write: (line) => void lines.push(line) });
    const app = express().use(beginRequest(log));
    app.get("/", () => {
      throw new Error("the secret of the house");
    });
    app.use(sendErrors(() => "http://site.example", log));
    const server = await openServer(app, { host: "127.0.0.1", port: 0, variable: "PORT" }, () => "", log);
    try {
      const response = await fetch(server.url);
      const text = await response.text();
      expect(response.status).toBe(500);
      const { error, request_id } = errorBody.parse(JSON.parse(text));
      expect(error.code).toBe("internal_error");
      expect(error.docs_url).toBe("http://site.example/docs/errors#internal_error");
      expect(text).not.toContain("secret");
      const line = lines.find((one) => one.includes("the secret of the house"));
      expect(JSON.parse(line ?? "{}")).toMatchObject({
        request_id,
        stack: expect.stringContaining("requests.test.ts"),
      });
    } finally {
      await server.close();
    }
  });
});
