import { describe, expect, it } from "vitest";
import { loadSettings } from "../src/config/environment.ts";
import { withoutPassword } from "../src/log.ts";
import { redisProblem } from "../src/queue/redis.ts";
import { placeOfRedis } from "../src/redis-url.ts";
import { listExamples, runExample } from "./support/examples.ts";

const FILE = "src/redis-url.ts";

describe("the address of Redis", () => {
  it.each(listExamples(FILE))("is told as the example of $title says", (example) => {
    for (const { actual, expected } of runExample(example, { placeOfRedis })) expect(actual).toEqual(expected);
  });

  it.each([
    "redis+cluster://a:7001,",
    "redis+cluster://",
    "redis+cluster://a:7001/1",
    "redis+cluster://a:seven",
    "redis+cluster://:100%@a:7001",
    "a:7001",
  ])("is not given by %s", (text) => {
    expect(placeOfRedis(text)).toBeNull();
    expect(() => loadSettings({ REDIS_URL: text })).toThrow(/REDIS_URL: expected a URL .* redis\+cluster:\/\//);
  });

  it("is a cluster by TLS, with a user, a password with any sign in it, and nodes by IPv6", () => {
    expect(placeOfRedis("rediss+cluster://ann:a%3A%40b:c@[::1]:7001,cache.example.com")).toEqual({
      kind: "cluster",
      nodes: [
        { host: "::1", port: 7001 },
        { host: "cache.example.com", port: 6379 },
      ],
      access: { username: "ann", password: "a:@b:c", tls: {} },
    });
  });

  it("is shown without its password", () => {
    expect(withoutPassword("redis+cluster://:geheim@a:7001,b")).toBe("redis+cluster://:***@a:7001,b");
  });

  it("is not one node of a cluster, which is refused with what to write instead", () => {
    const info = "redis_version:7.0.15\r\ncluster_enabled:1\r\n";
    expect(redisProblem(info, "server")).toMatch(/let REDIS_URL begin with redis\+cluster:\/\//);
    expect(redisProblem(info, "cluster")).toBeNull();
  });
});
