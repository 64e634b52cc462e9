import { mkdtemp, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startRedis } from "../../src/embedded/redis.ts";
import { UsageError } from "../../src/errors.ts";
import { checkRedis, redisProblem } from "../../src/queue/redis.ts";

// its own server: the eviction policy is one for the whole server, and other test files use theirs meanwhile
let dataDir: string;
let server: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "roundhouse-redis-"));
  server = await startRedis({ dataDir, cacheDir: join(homedir(), ".cache", "roundhouse"), say: () => undefined });
});
afterAll(async () => {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const info = (version: string, policy: string) => `redis_version:${version}\r\nmaxmemory_policy:${policy}\r\n`;

describe("a Redis", () => {
  it("that keeps what it is given will do", async () => {
    expect((await checkRedis(server.url)).version).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it("that evicts keys is refused, with what to set", async () => {
    const redis = new Redis(server.url);
    await redis.config("SET", "maxmemory-policy", "allkeys-lru");
    redis.disconnect();
    const refusal = await checkRedis(server.url).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(UsageError);
    expect(String(refusal)).toMatch(/maxmemory-policy is allkeys-lru.*config set maxmemory-policy noeviction/);
    expect(String(refusal)).not.toContain(new URL(server.url).password);
  });

  it("that is not there is refused, with its address and without its password", async () => {
    const refusal = await checkRedis("redis://:geheim@127.0.0.1:9/0").catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(UsageError);
    expect(String(refusal)).toMatch(/Redis at redis:\/\/:\*\*\*@127\.0\.0\.1:9\/0 cannot be reached: .*ECONNREFUSED/);
  });

  it("that does not take the password is refused, with its words", async () => {
    const url = new URL(server.url);
    url.password = "wrong";
    await expect(checkRedis(url.href)).rejects.toThrow(/WRONGPASS/);
  });

  it.each([
    ["6.2.0", null],
    ["7.0.15", null],
    ["10.1.0", null],
    ["6.0.16", "it is version 6.0.16, and 6.2 or newer is needed"],
    ["5.0.14", "it is version 5.0.14, and 6.2 or newer is needed"],
  ])("of version %s: %s", (version, problem) => {
    expect(redisProblem(info(version, "noeviction"))).toBe(problem);
  });

  it("that does not report its version is refused", () => {
    expect(redisProblem("# Server\r\n")).toMatch(/version unknown/);
  });
});
