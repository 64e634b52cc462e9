import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allowSlowness, play, score } from "../api/play.ts";
import { makeWorld, type World } from "../api/world.ts";
import { eventually } from "../support/eventually.ts";

const SCRIPT = fileURLToPath(new URL("../../clients/python/roundhouse_example.py", import.meta.url));
const run = promisify(execFile);
const hasRequests = await run("python3", ["-c", "import requests"]).then(
  () => true,
  () => false,
);
let world: World;

beforeAll(async () => {
  world = await makeWorld();
  await allowSlowness(world);
  for (const hundredths of [150, 150, 150]) await play(world, "alpha/crash/global", [hundredths]);
  await score(world, "alpha");
});
afterAll(() => world.close());

/** What the example prints and exits with. */
async function example(env: Record<string, string>): Promise<{ code: number; stdout: string; stderr: string }> {
  try {
    const { stdout, stderr } = await run("python3", [SCRIPT], {
      env: { PATH: process.env["PATH"], ROUNDHOUSE_URL: world.api.url, ...env },
      timeout: 30_000,
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { code, stdout, stderr };
  }
}

describe.skipIf(!hasRequests)("the Python example", () => {
  test("prints a line per table", async () => {
    await eventually(async () => {
      const { code, stdout } = await example({ ROUNDHOUSE_KEY: world.key });
      expect(code).toBe(0);
      expect(stdout).toMatch(
        /^alpha\/crash\/global: blue \d+\.\d% \(long run \d+\.\d%\), .*; 100\.0% of 1 had the likeliest color, skill unknown\n/,
      );
      expect(stdout.trimEnd().split("\n")).toHaveLength(5);
      return true;
    });
  });

  test("ends with the code of the API's error and the request", async () => {
    const { code, stderr } = await example({ ROUNDHOUSE_KEY: `rh_live_${"A".repeat(38)}` });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^invalid_api_key: .*#invalid_api_key\) request req_[0-9a-f]{32}\n$/);
  });

  test("ends with the code of an error that the proxy in front sends without request_id and docs_url", async () => {
    const proxy = createServer((_, response) => {
      response.writeHead(503, { "Content-Type": "application/json" });
      response.end('{"ok":false,"error":{"code":"temporarily_unavailable","message":"no API process answers now"}}');
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const { port } = proxy.address() as AddressInfo;
    const ended = await example({ ROUNDHOUSE_KEY: world.key, ROUNDHOUSE_URL: `http://127.0.0.1:${port}` });
    proxy.close();
    expect(ended).toMatchObject({ code: 1, stderr: "temporarily_unavailable: no API process answers now\n" });
  });

  test.each([302, 308])("does not follow a redirect with %s, since the request has the key", async (status) => {
    const keys: unknown[] = [];
    const other = createServer((request, response) => {
      keys.push(request.headers["x-api-key"]);
      response.end();
    }).listen(0, "127.0.0.1");
    await once(other, "listening");
    const target = `http://127.0.0.1:${(other.address() as AddressInfo).port}/moved`;
    const moved = createServer((_, response) => {
      response.writeHead(status, { Location: target }).end();
    }).listen(0, "127.0.0.1");
    await once(moved, "listening");
    const url = `http://127.0.0.1:${(moved.address() as AddressInfo).port}`;
    const { code, stderr } = await example({ ROUNDHOUSE_KEY: world.key, ROUNDHOUSE_URL: url });
    moved.close();
    other.close();
    expect(keys).toEqual([]);
    expect(code).toBe(1);
    expect(stderr).toContain(
      `expected a response of the API at ${url}: it redirects to ${target}, to which the key is not sent`,
    );
  });

  test("names the variable if there is no key", async () => {
    expect(await example({})).toMatchObject({ code: 1, stderr: expect.stringContaining("ROUNDHOUSE_KEY") });
  });
});
