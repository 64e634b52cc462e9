import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { connect } from "../../src/db/client.ts";
import { reasonOf } from "../../src/errors.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import {
  ask,
  askUntilServed,
  housesFile,
  makeFolder,
  type Place,
  processesOf,
  roundhouse,
  startRoundhouse,
  untilReady,
} from "./world.ts";

/** A start on servers that run already, which is quick: a database of its own, any free port, a fresh data folder. */
async function makePlace(): Promise<Place & { env: Record<string, string>; dataDir: string }> {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const dataDir = join(await makeFolder(), "data");
  const env = { DATABASE_URL: database.url, REDIS_URL: (await createRedis()).url, DATA_DIR: dataDir, PORT: "0" };
  return { env, dataDir };
}

async function roundsOf(dataDir: string): Promise<{ table: string; status: string; rounds: number; gaps: number }> {
  const { stdout } = await roundhouse(["table", "list", "--json"], { env: { DATA_DIR: dataDir } });
  const [first] = JSON.parse(stdout) as { table: string; status: string; rounds: number; gaps: number }[];
  if (first === undefined) throw new Error("expected a table");
  return first;
}

/** Whose connections there are: callers never wait for one that an operator's page holds. */
async function poolsOf(runFile: string): Promise<string[]> {
  const { database_url: url } = JSON.parse(await readFile(runFile, "utf8")) as { database_url: string };
  const sql = connect(url, { name: "test", max: 1 });
  try {
    const rows = await sql<{ name: string }[]>`
      select distinct application_name as name
      from pg_stat_activity`;
    return rows.map(({ name }) => name);
  } finally {
    await sql.end();
  }
}

/** What the login of a running instance may do, and the error of a program that it has the server run. */
async function rightsOf(runFile: string): Promise<{ rights: string[]; error: string }> {
  const { database_url: url } = JSON.parse(await readFile(runFile, "utf8")) as { database_url: string };
  const sql = connect(url, { name: "test", max: 1 });
  try {
    const [row] = await sql<{ super: boolean; roles: boolean; databases: boolean; replication: boolean }[]>`
      select rolsuper as super, rolcreaterole as roles, rolcreatedb as databases, rolreplication as replication
      from pg_roles
      where rolname = session_user`;
    const rights = Object.entries(row ?? {}).flatMap(([name, has]) => (has ? [name] : []));
    await sql`set role none`;
    const error = await sql`copy (select 1) to program 'true'`.then(() => "", reasonOf);
    return { rights, error };
  } finally {
    await sql.end();
  }
}

describe("a start with nothing given", () => {
  it("starts its own servers, continues after kill -9 where it stopped, and leaves nothing behind, nor a password in a log", async () => {
    const folder = await makeFolder();
    const dataDir = join(folder, "data");
    const place = { env: { DATA_DIR: dataDir, PORT: "0" } };

    const first = startRoundhouse(["up", "--json"], place);
    const ready = await untilReady(first);
    expect(ready).toEqual({
      event: "ready",
      url: expect.any(String),
      api_key: expect.stringMatching(/^rh_live_/),
      ops_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/ops\/link\?token=[\w-]{43}$/),
    });
    const link = await fetch(ready.ops_url, { redirect: "manual" });
    expect([link.status, link.headers.get("location")]).toEqual([303, "/ops"]);
    const cookie = link.headers
      .getSetCookie()
      .map((line) => line.split(";")[0])
      .join("; ");
    expect((await fetch(`${ready.url}/ops/people`, { headers: { cookie } })).status).toBe(200);
    expect((await fetch(`${ready.url}/ops`, { headers: { cookie } })).status).toBe(200);
    expect((await fetch(ready.ops_url, { redirect: "manual" })).status).toBe(401);
    const runFile = join(dataDir, "run.json");
    expect((await stat(runFile)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(runFile, "utf8"))).toMatchObject({
      pid: first.pid,
      version: "0.1.0",
      url: ready.url,
      worker_url: null,
      database_url: expect.stringMatching(/^postgres:/),
      redis_url: expect.stringMatching(/^redis:/),
      demo_house_url: expect.stringMatching(/^http:/),
      api_key: ready.api_key,
    });
    expect(await poolsOf(runFile)).toEqual(expect.arrayContaining(["roundhouse api", "roundhouse ops"]));
    const live = await eventually(async () => {
      const { body } = await ask(ready, "/api/v1/games?house=bustabit");
      const games = body["games"] as { status: string; buffered_rounds: number }[];
      return games[0]?.status === "live" && games[0].buffered_rounds > 0 ? games[0] : undefined;
    });
    expect(live).toMatchObject({ house: "bustabit", game: "crash", market: "global", continuity_notice: false });
    const { body } = await askUntilServed(ready, "/api/v1/rounds?house=bustabit");
    const [table] = body["tables"] as { rounds: { round_id: string; verified: boolean }[] }[];
    expect(table?.rounds.every(({ verified }) => verified)).toBe(true);
    const ids = table?.rounds.map(({ round_id }) => Number(round_id)) ?? [];
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));

    const second = await roundhouse(["up"], place);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`another roundhouse (pid ${first.pid}, since `);

    const before = await roundsOf(dataDir);
    first.kill("SIGKILL");
    await first.ended;
    await eventually(() => processesOf(folder).length === 0);

    const third = startRoundhouse(["up", "--json"], place);
    const again = await untilReady(third);
    expect((await askUntilServed({ ...again, api_key: ready.api_key }, "/api/v1/games")).status).toBe(401);
    await eventually(
      async () => {
        const after = await roundsOf(dataDir);
        return after.rounds > before.rounds && after.status === "live" && after.gaps === 0;
      },
      { timeoutMs: 60_000, everyMs: 200 },
    );

    third.kill("SIGINT");
    expect(await third.ended).toMatchObject({ code: 0 });
    await expect(stat(runFile)).rejects.toThrow("ENOENT");
    expect(processesOf(folder)).toEqual([]);
    const inData = (name: string) => readFile(join(dataDir, name), "utf8");
    const passwords = await Promise.all(["postgres.password", "redis.password", "auth-secret"].map(inData));
    const logs = (await Promise.all(["postgres.log", "redis.log"].map(inData))).join("") + third.output.stderr;
    for (const password of passwords) expect(logs.includes(password.trim())).toBe(false);
  });

  it("[SUPERUSER] connects as no superuser, makes no roles, runs no programs, and stops in order when a server dies", async () => {
    const folder = await makeFolder();
    const running = startRoundhouse(["up", "--json"], { env: { DATA_DIR: join(folder, "data"), PORT: "0" } });
    await untilReady(running);
    const { rights, error } = await rightsOf(join(folder, "data", "run.json"));
    expect(rights).toEqual([]);
    expect(error).toMatch(/permission denied to COPY to or from an external program/);

    process.kill(Number(await readFile(join(folder, "data", "redis", "redis.pid"), "utf8")), "SIGKILL");
    const { code, stderr } = await running.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("the private Redis is gone (ended by SIGKILL");
    expect(processesOf(folder)).toEqual([]);
    await expect(stat(join(folder, "data", "run.json"))).rejects.toThrow("ENOENT");
  });

  it("can be stopped while it starts", async () => {
    const folder = await makeFolder();
    const running = startRoundhouse(["up"], { env: { DATA_DIR: join(folder, "data"), PORT: "0" } });
    await eventually(() => running.output.stderr.includes("making the private PostgreSQL"));
    running.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 0, stdout: "" });
    expect(processesOf(folder)).toEqual([]);
  });
});

describe("a start on given servers", () => {
  it("prints its addresses, what is simulated, and a curl line that works unchanged; is ready until SIGTERM ends it", async () => {
    const place = await makePlace();
    const running = startRoundhouse(["up"], place);
    const line = await eventually(() => /^ {2}curl .*$/m.exec(running.output.stdout)?.[0], { timeoutMs: 60_000 });
    const [, name = "", value = "", url = ""] = /^ {2}curl -H "([^:]+): ([^"]+)" (\S+)$/.exec(line) ?? [];
    // again after a 503: a busy process could not look up the caller in time
    const result = await eventually(async () => {
      const status = await fetch(url, { headers: { [name]: value } }).then(
        (response) => response.status,
        (error: unknown) => error,
      );
      return status !== 503 && { status };
    });
    expect(result).toEqual({ status: 200 });
    expect(running.output.stdout).toContain("demo-simulated: simulated rounds, with errors on purpose.");
    expect(running.output.stdout).toContain("Ctrl-C stops everything.");
    expect(running.output.stdout).toContain("works until this stops or another `up` starts on its database)");

    const ready = { url: new URL(url).origin, api_key: value };
    const checks = { postgres: true, redis: true, migrations: true, polling: true };
    await eventually(async () =>
      expect(await ask(ready, "/readyz")).toEqual({ status: 200, body: { ok: true, checks } }),
    );
    expect(await ask(ready, "/healthz")).toEqual({ status: 200, body: { ok: true, version: "0.1.0" } });
    running.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 0 });
    await expect(ask(ready, "/readyz")).rejects.toThrow();
  });

  it("warns of a table that is polled too seldom for forecasts, applies the houses file again on SIGHUP, and logs a wrong one, which changes nothing", async () => {
    const place = await makePlace();
    const entry = (changed: object) => houseEntry({ enabled: false, ...changed }).entry;
    const slow = { enabled: true, poll_every_ms: 2000, tables: [tableEntry({ pause_ms: 3000 })] };
    const file = await housesFile([entry({ id: "acme", ...slow })]);
    const running = startRoundhouse(["up", "--json"], {
      env: { ...place.env, HOUSES_FILE: file, ALLOW_PRIVATE_HOUSES: "1" },
    });
    await untilReady(running);
    const houses = async () => {
      const { stdout, stderr } = await roundhouse(["house", "list", "--json"], { env: { DATA_DIR: place.dataDir } });
      expect(stderr).toBe("");
      return (JSON.parse(stdout) as { house: string }[]).map(({ house }) => house);
    };
    expect(await houses()).toEqual(["acme"]);
    expect(running.output.stderr).toContain("set poll_every_ms to 1500 or less");
    await writeFile(file, JSON.stringify({ houses: [entry({ id: "acme" }), entry({ id: "bolt" })] }));
    running.kill("SIGHUP");
    await eventually(async () => (await houses()).length === 2, { everyMs: 100 });
    expect(await houses()).toEqual(["acme", "bolt"]);
    const wrong = { ...entry({ id: "acme" }), id: "Acme", tables: [tableEntry({ colors: [] })] };
    await writeFile(file, JSON.stringify({ houses: [wrong] }));
    running.kill("SIGHUP");
    await eventually(() => running.output.stderr.includes("houses[0].id: "));
    expect(running.output.stderr).toContain("houses[0].tables[0].colors: ");
    expect(running.output.stderr).toContain("the previous settings stay in use");
    expect(await houses()).toEqual(["acme", "bolt"]);
    running.kill("SIGTERM");
    expect(await running.ended).toMatchObject({ code: 0 });
  });

  it("refuses a port in use, with advice, and leaves nothing behind", async () => {
    const place = await makePlace();
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const address = taken.address();
    const port = typeof address === "object" ? `${address?.port}` : "";
    const { code, stdout, stderr } = await startRoundhouse(["up"], { env: { ...place.env, PORT: port } }).ended;
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(
      `the port ${port} of 127.0.0.1 is in use; stop the other program, or set PORT to another port`,
    );
    await expect(stat(join(place.dataDir, "run.json"))).rejects.toThrow("ENOENT");
  });

  it("names the server it cannot reach, without its password, and stops what it started", async () => {
    const place = await makePlace();
    const noDatabase = { ...place.env, DATABASE_URL: "postgres://app:geheim@127.0.0.1:9/none" };
    const first = await roundhouse(["up"], { env: noDatabase });
    expect(first.code).toBe(1);
    expect(first.stderr).toContain("the database postgres://app:***@127.0.0.1:9/none cannot be used: start it, or set");
    const second = await startRoundhouse(["up"], { env: { ...place.env, REDIS_URL: "redis://:geheim@127.0.0.1:9" } })
      .ended;
    expect(second.code).not.toBe(0);
    expect(second.stderr).toContain("Redis at redis://:***@127.0.0.1:9 cannot be reached");
    expect(first.stderr + second.stderr).not.toContain("geheim");
  });

  it("refuses a data folder that cannot be written", async () => {
    const place = await makePlace();
    await mkdir(join(place.dataDir, ".."), { recursive: true });
    await writeFile(place.dataDir, "a file, not a folder");
    const { code, stderr } = await roundhouse(["up"], place);
    expect(code).toBe(1);
    expect(stderr).toContain(`data folder ${place.dataDir} cannot be written`);
    expect(stderr).toContain("set DATA_DIR to another folder");
  });

  it("lists every problem of the houses file before it touches anything", async () => {
    const place = await makePlace();
    const file = await housesFile([
      { id: "Acme", name: "Acme", base_url: "https://acme.example", poll_evry_ms: 5, tables: [tableEntry()] },
      { id: "bolt", name: "Bolt", base_url: "http://127.0.0.1", private: true, tables: [tableEntry(), tableEntry()] },
      { id: "bolt", name: "${BOLT_NAME}", demo: true, tables: [tableEntry({ colors: [{ name: "blue", below: 2 }] })] },
    ]);
    const { code, stdout, stderr } = await roundhouse(["up"], { env: { ...place.env, HOUSES_FILE: file } });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const paths = [
      "houses[0].id: ",
      "houses[0]: ",
      "houses[1].tables[1]: the table bolt/crash/global is already tables[0]",
      "houses[2].name: the variable BOLT_NAME is not set",
      "houses[2].tables[0].colors: ",
      'houses[2].id: "bolt" is already the id of houses[1]',
    ];
    for (const path of paths) expect(stderr).toContain(`  ${path}`);
    await expect(stat(place.dataDir)).rejects.toThrow("ENOENT");
  });
});
