import { get } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { startHealthServer, type HealthServer } from "../../src/http/health-server.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { CHECKS } from "../api/world.ts";
import { readableLog } from "../queue/world.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { readScrape } from "./scraped.ts";

const TOKEN = "a-token-of-some-length";

const { sql } = await openTestDatabase();
let server: HealthServer | undefined;
afterEach(async () => {
  await server?.close();
});

/** A worker's server with this environment; returns a function that requests its metrics. */
async function serve(env: Record<string, string>) {
  const { log, lines } = readableLog();
  const metrics = createMetrics({ sql, queues: () => null }, { version: "1.2.3", endpoints: [], log });
  const settings = loadSettings({ WORKER_PORT: "0", ...env });
  const opened = await startHealthServer({ settings, version: "1.2.3", checks: CHECKS, metrics, log });
  server = opened;
  const ask = (headers: Record<string, string> = {}, method = "GET") =>
    fetch(`${opened.url}/metrics`, { method, headers });
  return { ask, lines, url: opened.url };
}

describe("[V13] metrics", () => {
  it("need no token on the machine itself, without Redis too, and are read only", async () => {
    const { ask, lines } = await serve({});
    // a scrape waits 0.8 s for PostgreSQL: the first one may be too early on a busy machine
    const read = await eventually(async () => {
      const response = await ask();
      expect(response.status).toBe(200);
      expect(response.headers.get("cache-control")).toBe("no-store");
      const found = readScrape(await response.text());
      expect(found.value('roundhouse_up{part="postgres"}')).toBe(1);
      return found;
    });
    expect(read.value('roundhouse_up{part="redis"}')).toBeUndefined();
    expect((await ask({}, "HEAD")).status).toBe(200);
    expect((await ask({}, "POST")).status).toBe(405);
    expect(lines.filter((line) => line["path"] === "/metrics" && line.level > 20)).toEqual([]);
  });

  it.each(["x-forwarded-for", "forwarded", "x-real-ip", "via"])(
    "are closed to a client behind a proxy on this machine, by its header %s",
    async (header) => {
      const { ask } = await serve({});
      const response = await ask({ [header]: "203.0.113.7" });
      expect(response.status).toBe(403);
      expect(await response.text()).toContain("METRICS_TOKEN");
    },
  );

  it.each([{ PUBLIC_URL: "https://api.example" }, { TRUSTED_PROXIES: "10.0.0.0/8" }])(
    "are closed if the settings name a proxy, whatever headers it sends: %o",
    async (env) => {
      const { ask } = await serve(env);
      expect((await ask()).status).toBe(403);
    },
  );

  it("are closed to a page that a browser was led to under another name of this machine", async () => {
    const { url } = await serve({});
    const status = (host: string) =>
      new Promise<number | undefined>((resolve, reject) => {
        get(`${url}/metrics`, { headers: { host } }, (response) => resolve(response.resume().statusCode)).on(
          "error",
          reject,
        );
      });
    const { port } = new URL(url);
    expect(await status(`evil.example:${port}`)).toBe(403);
    expect(await status("127.0.0.1.evil.example")).toBe(403);
    for (const host of [`127.0.0.1:${port}`, "localhost", `[::1]:${port}`]) expect(await status(host)).toBe(200);
  });

  it("are closed on another HOST until there is a token, and say what to set", async () => {
    const { ask } = await serve({ HOST: "0.0.0.0" });
    const response = await ask({ authorization: `Bearer ${TOKEN}` });
    expect(response.status).toBe(403);
    expect(await response.text()).toContain("set METRICS_TOKEN");
  });

  it.each(["0.0.0.0", "127.0.0.1"])("require the token from every client if there is one, on %s", async (HOST) => {
    const { ask, lines } = await serve({ HOST, METRICS_TOKEN: TOKEN });
    const wrong: Record<string, string>[] = [
      {},
      { authorization: `Bearer ${TOKEN}x` },
      { authorization: TOKEN },
      { authorization: "Bearer " },
    ];
    for (const headers of [...wrong, { "x-api-key": TOKEN }]) {
      const response = await ask(headers);
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe('Bearer realm="metrics"');
      expect(await response.text()).not.toContain(TOKEN);
    }
    expect((await ask({ authorization: `Bearer ${TOKEN}`, "x-forwarded-for": "203.0.113.7" })).status).toBe(200);
    expect((await ask({ authorization: `bearer ${TOKEN}` })).status).toBe(200);
    expect(JSON.stringify(lines)).not.toContain(TOKEN);
  });

  it("take no token that could be guessed", () => {
    expect(() => loadSettings({ METRICS_TOKEN: "short" })).toThrow(/METRICS_TOKEN/);
    expect(loadSettings({ METRICS_TOKEN: "" }).METRICS_TOKEN).toBeUndefined();
  });
});
