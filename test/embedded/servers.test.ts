import { spawn } from "node:child_process";
import { appendFile, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import postgres from "postgres";
import { describe, expect, it, onTestFinished } from "vitest";
import { findPrograms } from "../../src/embedded/process.ts";
import { startServers } from "../../src/embedded/servers.ts";
import { eventually } from "../support/eventually.ts";
import { keepLines, makeFolder, processesOf, startHolder } from "./world.ts";

/** Where /proc tells what runs. */
const LINUX = process.platform === "linux";

/** Given where a test is about the other server alone. */
const GIVEN_DATABASE = "postgres://db.example/app";
const GIVEN_REDIS = "redis://cache.example";

type Given = Partial<Parameters<typeof startServers>[0]>;

async function start(dataDir: string, given: Given = {}) {
  const said: string[] = [];
  const servers = await startServers({ dataDir, durable: false, ...given, say: keepLines(said) });
  onTestFinished(() => servers.stop());
  return { ...servers, said };
}

async function ask<T>(url: string, question: (sql: postgres.Sql) => PromiseLike<T>): Promise<T> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    return await question(sql);
  } finally {
    await sql.end();
  }
}

async function tell<T>(url: string, question: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, { maxRetriesPerRequest: 0 });
  const refused = new Promise<never>((_, reject) => redis.once("error", reject));
  try {
    return await Promise.race([question(redis), refused]);
  } finally {
    redis.disconnect();
  }
}

async function writeBoth({ databaseUrl, redisUrl }: { databaseUrl: string; redisUrl: string }): Promise<void> {
  await ask(databaseUrl, async (sql) => {
    await sql`create table kept (word text)`;
    await sql`insert into kept values ('straße')`;
  });
  await tell(redisUrl, (redis) => redis.set("kept", "straße"));
}

async function readBoth({ databaseUrl, redisUrl }: { databaseUrl: string; redisUrl: string }) {
  return [
    await ask(databaseUrl, async (sql) =>
      (await sql<{ word: string }[]>`select word from kept`).map(({ word }) => word),
    ),
    await tell(redisUrl, (redis) => redis.get("kept")),
  ];
}

describe("private servers", () => {
  it("keep what was written over a restart", async () => {
    const dataDir = await makeFolder();
    const first = await start(dataDir);
    expect(first.embedded).toEqual({ postgres: true, redis: true });
    await writeBoth(first);
    await first.stop();
    const second = await start(dataDir);
    expect(await readBoth(second)).toEqual([["straße"], "straße"]);
    expect(second.said).toEqual([]);
  });

  it("are made as the app needs them", async () => {
    const { databaseUrl, redisUrl } = await start(await makeFolder(), { durable: true });
    const facts = await ask(
      databaseUrl,
      (sql) => sql`
        select current_database() as database, current_setting('server_encoding') as encoding,
          current_setting('TimeZone') as zone, current_setting('fsync') as fsync, upper('é') as upper`,
    );
    expect(facts).toEqual([{ database: "roundhouse", encoding: "UTF8", zone: "UTC", fsync: "on", upper: "É" }]);
    const policy = await tell(redisUrl, (redis) => redis.config("GET", "maxmemory-policy"));
    expect(policy).toEqual(["maxmemory-policy", "noeviction"]);
  });

  it("[V13] listen on loopback only and ask for a password that only their user can read", async () => {
    const dataDir = await makeFolder();
    const { databaseUrl, redisUrl } = await start(dataDir);
    const listening = await ask(databaseUrl, (sql) => sql`select current_setting('listen_addresses') as addresses`);
    expect(listening).toEqual([{ addresses: "127.0.0.1" }]);
    expect(await tell(redisUrl, (redis) => redis.config("GET", "bind"))).toEqual(["bind", "127.0.0.1"]);
    for (const url of [databaseUrl, redisUrl]) {
      const { password, protocol, port } = new URL(url);
      const file = join(dataDir, protocol === "redis:" ? "redis.password" : "postgres.password");
      expect((await readFile(file, "utf8")).trim()).toBe(password);
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const wrong = url.replace(password, "wrong");
      const attempt = protocol === "redis:" ? tell(wrong, (redis) => redis.ping()) : ask(wrong, (sql) => sql`select 1`);
      await expect(attempt, `password of port ${port}`).rejects.toThrow(/WRONGPASS|password authentication failed/);
    }
  });

  it("are not started if both are given, and nothing is made", async () => {
    const dataDir = join(await makeFolder(), "none");
    const given = { databaseUrl: GIVEN_DATABASE, redisUrl: GIVEN_REDIS };
    const servers = await start(dataDir, given);
    expect(servers).toMatchObject({ ...given, embedded: { postgres: false, redis: false } });
    await expect(stat(dataDir)).rejects.toThrow("ENOENT");
  });

  it("are started one by one if the other is given", async () => {
    const dataDir = await makeFolder();
    const servers = await start(dataDir, { databaseUrl: GIVEN_DATABASE });
    expect(servers.embedded).toEqual({ postgres: false, redis: true });
    expect(await tell(servers.redisUrl, (redis) => redis.ping())).toBe("PONG");
    expect(await readdir(dataDir)).not.toContain("pg");
  });

  it.runIf(LINUX)("are stopped again where one cannot start", async () => {
    const dataDir = await makeFolder();
    await mkdir(join(dataDir, "pg")); // no cluster
    await expect(start(dataDir)).rejects.toThrow(/the private PostgreSQL in .*pg does not start/);
    expect(await processesOf(dataDir)).toEqual(new Map());
  });

  it.runIf(LINUX)("show the data folder, and no password, in their processes", async () => {
    const dataDir = await makeFolder();
    const { databaseUrl, redisUrl } = await start(dataDir);
    const commands = [...(await processesOf(dataDir)).values()].join("\n");
    expect(commands).toMatch(/postgres/);
    expect(commands).toMatch(/redis-server|valkey-server/);
    expect(commands).not.toContain(new URL(databaseUrl).password);
    expect(commands).not.toContain(new URL(redisUrl).password);
  });

  it.runIf(LINUX)("tell when one of them dies, and what it wrote last", async () => {
    const dataDir = await makeFolder();
    const servers = await start(dataDir);
    const deaths: { what: string; detail: string }[] = [];
    servers.onDeath((what, detail) => deaths.push({ what, detail }));
    for (const [pid, command] of await processesOf(dataDir)) {
      if (/redis-server|valkey-server/.test(command)) process.kill(pid, "SIGKILL");
      if (command.includes(`-D\0${dataDir}`)) process.kill(pid, "SIGINT");
    }
    await eventually(() => deaths.length === 2);
    expect(deaths).toContainEqual({
      what: "redis",
      detail: expect.stringMatching(/^ended by SIGKILL; .*Ready to accept/s),
    });
    expect(deaths).toContainEqual({
      what: "postgres",
      detail: expect.stringMatching(/^exit code 0; .*fast shutdown/s),
    });
  });

  it("say nothing of their end when they are stopped", async () => {
    const servers = await start(await makeFolder());
    const deaths: string[] = [];
    servers.onDeath((what) => deaths.push(what));
    await servers.stop();
    await servers.stop();
    expect(deaths).toEqual([]);
  });
});

describe("after a kill -9 of the app", () => {
  it.runIf(LINUX)("no server stays, and the next start has everything", async () => {
    const dataDir = await makeFolder();
    const holder = await startHolder(dataDir);
    await writeBoth(holder);
    // Eight of PostgreSQL's, the server and the holder itself.
    expect((await processesOf(dataDir)).size).toBeGreaterThan(5);
    await holder.kill("SIGKILL");
    await eventually(async () => (await processesOf(dataDir)).size === 0);
    expect(await readBoth(await startHolder(dataDir))).toEqual([["straße"], "straße"]);
  });

  it.runIf(LINUX)("the next start may come at once", async () => {
    const dataDir = await makeFolder();
    const holder = await startHolder(dataDir);
    await writeBoth(holder);
    await holder.kill("SIGKILL");
    expect(await readBoth(await startHolder(dataDir))).toEqual([["straße"], "straße"]);
  });

  it.runIf(LINUX)("also when the servers were killed with it", async () => {
    const dataDir = await makeFolder();
    const holder = await startHolder(dataDir);
    await writeBoth(holder);
    const servers = [...(await processesOf(dataDir))].filter(([pid]) => pid !== holder.pid);
    for (const [pid, command] of servers) {
      if (/redis-server|valkey-server|-D\0/.test(command)) process.kill(pid, "SIGKILL");
    }
    await holder.kill("SIGKILL");
    expect(await readBoth(await start(dataDir))).toEqual([["straße"], "straße"]);
  });

  it.runIf(LINUX)("servers that outlive it, where setpriv is missing, are ended by the next start", async () => {
    const folder = await makeFolder();
    const dataDir = join(folder, "data");
    const used = [
      "flock",
      "unshare",
      "redis-server",
      "valkey-server",
      "redis-check-rdb",
      "apt-get",
      "apt-cache",
      "dpkg-deb",
    ];
    for (const [name, path] of await findPrograms(used)) await symlink(path, join(folder, name));
    const holder = await startHolder(dataDir, folder);
    await writeBoth(holder);
    await holder.kill("SIGKILL");
    const left = await processesOf(dataDir);
    expect(left.size).toBeGreaterThan(2);
    const next = await start(dataDir);
    expect(await readBoth(next)).toEqual([["straße"], "straße"]);
    const now = await processesOf(dataDir);
    expect([...left.keys()].filter((pid) => now.has(pid))).toEqual([]);
  });

  it.runIf(LINUX)("SIGTERM leaves nothing either, not even a pid file", async () => {
    const dataDir = await makeFolder();
    const holder = await startHolder(dataDir);
    expect(await holder.kill("SIGTERM")).toBe(0);
    expect(await processesOf(dataDir)).toEqual(new Map());
    expect(await readdir(join(dataDir, "pg"))).not.toContain("postmaster.pid");
    expect(await readdir(join(dataDir, "redis"))).not.toContain("redis.pid");
  });
});

describe("the next start survives", () => {
  it("pid files that name a stranger", async () => {
    const dataDir = await makeFolder();
    const first = await start(dataDir);
    await writeBoth(first);
    await first.stop();
    const stranger = spawn("sleep", ["600"]);
    onTestFinished(() => {
      stranger.kill("SIGKILL");
    });
    await writeFile(
      join(dataDir, "pg", "postmaster.pid"),
      `${stranger.pid}\n${join(dataDir, "pg")}\n1\n5432\n\n127.0.0.1\n\nready\n`,
    );
    await writeFile(join(dataDir, "redis", "redis.pid"), `${stranger.pid}\n`);
    expect(await readBoth(await start(dataDir))).toEqual([["straße"], "straße"]);
    expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
  });

  it("a cluster that was half made", async () => {
    const dataDir = await makeFolder();
    await mkdir(join(dataDir, "pg.new", "base"), { recursive: true });
    await writeFile(join(dataDir, "pg.new", "PG_VERSION"), "18\n");
    await writeBoth(await start(dataDir));
    expect((await readdir(dataDir)).filter((name) => name.startsWith("pg."))).toEqual([]);
  });

  it("a lost password and a dropped database", async () => {
    const dataDir = await makeFolder();
    const first = await start(dataDir, { redisUrl: GIVEN_REDIS });
    const administration = first.databaseUrl.replace(/roundhouse$/, "postgres");
    await ask(administration, (sql) => sql`drop database roundhouse`);
    await first.stop();
    await rm(join(dataDir, "postgres.password"));
    const second = await start(dataDir, { redisUrl: GIVEN_REDIS });
    expect(await ask(second.databaseUrl, (sql) => sql`select 1 as one`)).toEqual([{ one: 1 }]);
  });

  it("a torn end of what Redis wrote, losing only that", async () => {
    const dataDir = await makeFolder();
    await writeRedis(dataDir);
    await appendFile(await changesOf(dataDir), "*3\r\n$3\r\nSET\r\n$5\r\nlo");
    const { redisUrl, said } = await start(dataDir, { databaseUrl: GIVEN_DATABASE });
    expect(await tell(redisUrl, (redis) => redis.get("kept"))).toBe("straße");
    expect(said).toEqual([]);
  });

  it("a damaged middle of what Redis wrote, which it puts aside with a word", async () => {
    const dataDir = await makeFolder();
    await writeRedis(dataDir);
    const changes = await changesOf(dataDir);
    const text = await readFile(changes, "latin1");
    await writeFile(changes, text.replace("*2", "*#").concat(text), "latin1");
    const { redisUrl, said } = await start(dataDir, { databaseUrl: GIVEN_DATABASE });
    expect(await tell(redisUrl, (redis) => redis.get("kept"))).toBeNull();
    expect(said.join("\n")).toMatch(/Redis cannot read its data: moved it to .*redis\.damaged/);
    expect(await readdir(dataDir)).toContain("redis.damaged");
  });

  it("a log that has grown for months", async () => {
    const dataDir = await makeFolder();
    await writeFile(join(dataDir, "redis.log"), Buffer.alloc(11 * 1024 * 1024, "x"));
    const { redisUrl } = await start(dataDir, { databaseUrl: GIVEN_DATABASE });
    await tell(redisUrl, (redis) => redis.ping());
    expect((await stat(join(dataDir, "redis.log"))).size).toBeLessThan(100_000);
    expect((await stat(join(dataDir, "redis.log.1"))).size).toBe(11 * 1024 * 1024);
  });
});

async function writeRedis(dataDir: string): Promise<void> {
  const servers = await start(dataDir, { databaseUrl: GIVEN_DATABASE });
  await tell(servers.redisUrl, (redis) => redis.set("kept", "straße"));
  await servers.stop();
}

async function changesOf(dataDir: string): Promise<string> {
  const folder = join(dataDir, "redis", "appendonlydir");
  const name = (await readdir(folder)).find((file) => file.endsWith(".incr.aof"));
  return join(folder, name ?? "missing");
}
