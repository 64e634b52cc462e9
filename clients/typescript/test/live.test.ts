/** The client, its packed tarball and the tools that callers use, against a running `npm start`. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, describe, it } from "node:test";
import { promisify } from "node:util";
import { AuthenticationError, InconsistentLogError, Roundhouse } from "../src/index.ts";
import { eventually, exitOf, type Instance, startInstance } from "./instance.ts";

const run = promisify(execFile);
const CLIENT = path.join(import.meta.dirname, "..");
const tool = (name: string) => path.join(CLIENT, "node_modules/.bin", name);

const instance: Instance = await startInstance();
after(() => instance.stop());
const folder = await mkdtemp(path.join(tmpdir(), "roundhouse-tools-"));
after(() => rm(folder, { recursive: true }));
const documentFile = path.join(folder, "openapi.json");
await writeFile(documentFile, await (await fetch(`${instance.url}/openapi.json`)).text());

describe("the client against a running instance", () => {
  it("reads all six endpoints", async () => {
    const api = new Roundhouse(instance);
    await eventually(async () => {
      const { forecasts } = await api.forecasts({ house: ["bustabit"] });
      assert.ok(forecasts[0]?.next_color);
    });
    const names = (await api.games()).games.map(({ house, game, market }) => `${house}/${game}/${market}`);
    assert.ok(names.includes("bustabit/crash/global"));
    const { tables } = await api.rounds({ house: ["bustabit", "demo-simulated"], limit: 3 });
    assert.ok(tables.length > 1 && tables.every(({ rounds }) => rounds.length <= 3));
    assert.equal((await api.readings({ house: ["bustabit"], lang: "es" })).readings[0]?.lang, "es");
    assert.ok(Array.isArray((await api.accuracy({ feature: "next_color", period: "24h" })).accuracy));
    assert.ok((await api.usage({ days: 2 })).day.requests > 0);
  });

  it("throws an error of its class for an unknown key", async () => {
    const api = new Roundhouse({ ...instance, key: `rh_live_${"A".repeat(38)}` });
    await assert.rejects(
      api.games(),
      (error) => error instanceof AuthenticationError && error.code === "invalid_api_key",
    );
  });

  it("checks that the public log grows, with the log's signature, and reports a root that it never had", async () => {
    const logKey = await eventually(async () => {
      const response = await fetch(`${instance.url}/log/key`);
      assert.equal(response.status, 200); // the log begins up to ten seconds after the instance
      return response.text();
    });
    const api = new Roundhouse({ ...instance, logKey });
    const first = await eventually(async () => {
      await api.games();
      assert.ok(api.checkpoint);
      return api.checkpoint;
    });
    const grown = await eventually(async () => {
      const newest = await api.checkLog();
      assert.ok(newest.size > first.size);
      return newest;
    });
    assert.deepEqual(api.checkpoint, grown);
    const changed = { size: first.size, root: `${first.root.startsWith("A") ? "B" : "A"}${first.root.slice(1)}` };
    const deceived = new Roundhouse({ ...instance, checkpoint: changed });
    await assert.rejects(deceived.checkLog(), InconsistentLogError);
    const otherKey = new Roundhouse({ ...instance, logKey: logKey.replace(/.{4}\n?$/, "AAAA") });
    await assert.rejects(otherKey.checkLog(), /signature is missing or wrong/);
  });

  it("is packed by `npm pack` and works where the tarball is installed, with its types", async () => {
    const { stdout } = await run("npm", ["pack", "--silent", `--pack-destination=${folder}`], { cwd: CLIENT });
    const app = await mkdtemp(path.join(tmpdir(), "roundhouse-app-"));
    try {
      await writeFile(path.join(app, "package.json"), '{"type":"module","private":true}');
      await run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", path.join(folder, stdout.trim())], {
        cwd: app,
      });
      const code =
        'import { Roundhouse } from "roundhouse-client";\nconst [url = "", key = ""] = process.argv.slice(2);\nconst { games } = await new Roundhouse({ url, key }).games();\nconst house: string | undefined = games[0]?.house;\nconsole.log(house);\n';
      await writeFile(path.join(app, "app.mts"), code);
      const types = path.join(CLIENT, "node_modules/@types");
      const flags = ["--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "--typeRoots", types];
      await run(tool("tsc"), [...flags, "app.mts"], { cwd: app });
      const { stdout: printed } = await run(process.execPath, ["app.mjs", instance.url, instance.key], { cwd: app });
      assert.match(printed, /^(?:bustabit|demo-simulated)\n$/);
    } finally {
      await rm(app, { recursive: true });
    }
  });
});

describe("the OpenAPI document", () => {
  it("has nothing that Spectral's rules for OpenAPI report, hints included", async () => {
    const ruleset = path.join(CLIENT, ".spectral.yaml");
    const { stdout } = await run(tool("spectral"), [
      "lint",
      documentFile,
      "--ruleset",
      ruleset,
      "--fail-severity=hint",
    ]);
    assert.match(stdout, /No results/);
  });

  it("is what every response is, by Prism as a validating proxy", async () => {
    const port = await freePort();
    const prism = spawn(tool("prism"), ["proxy", documentFile, instance.url, "--errors", "--port", String(port)]);
    try {
      const viaPrism = { ...instance, url: `http://127.0.0.1:${port}` };
      await eventually(() => fetch(`${viaPrism.url}/healthz`));
      for (const endpoint of await endpointsOf(documentFile)) await assertValid(viaPrism, endpoint);
      await assertValid(viaPrism, "/api/v1/accuracy?scope=house&period=24h");
      await assertValid(viaPrism, "/api/v1/rounds?house=bustabit,demo-simulated&limit=100");
      const refused = await fetch(`${viaPrism.url}/api/v1/games?house=none`, {
        headers: { "X-Api-Key": instance.key },
      });
      assert.equal(refused.status, 404);
      assert.match(await refused.text(), /table_not_found/);
    } finally {
      await exitOf(prism);
    }
  });

  it("makes types and a client that compile, by openapi-typescript and by @hey-api/openapi-ts", async () => {
    const types = path.join(folder, "types.ts");
    await run(tool("openapi-typescript"), [documentFile, "--output", types]);
    const generated = path.join(folder, "hey-api");
    await run(tool("openapi-ts"), ["--input", documentFile, "--output", generated, "--no-log-file"]);
    const made = await readFile(path.join(generated, "sdk.gen.ts"), "utf8");
    for (const name of ["getGames", "getRounds", "getForecasts", "getReadings", "getAccuracy", "getUsage"])
      assert.ok(made.includes(`export const ${name} =`), name);
    const compilerOptions = {
      noEmit: true,
      strict: true,
      target: "es2022",
      module: "esnext",
      moduleResolution: "bundler",
    };
    const config = { compilerOptions: { ...compilerOptions, lib: ["es2022", "dom", "dom.iterable"], types: [] } };
    await writeFile(
      path.join(folder, "tsconfig.json"),
      JSON.stringify({ ...config, include: ["types.ts", "hey-api"] }),
    );
    await run(tool("tsc"), ["--project", folder]);
  });
});

/** Every path of the document. */
async function endpointsOf(file: string): Promise<string[]> {
  const { paths } = JSON.parse(await readFile(file, "utf8")) as { paths: Record<string, unknown> };
  return Object.keys(paths);
}

/** A 200 of the instance that Prism lets through: what does not match the document is a 500 of Prism's own. */
async function assertValid({ url, key }: { url: string; key: string }, endpoint: string): Promise<void> {
  const response = await fetch(`${url}${endpoint}`, { headers: { "X-Api-Key": key } });
  assert.equal(response.status, 200, `${endpoint}: ${(await response.text()).slice(0, 2_000)}`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === "object" ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
