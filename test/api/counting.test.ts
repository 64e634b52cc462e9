import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { dial, statusesIn } from "../security/raw.ts";
import { makeKey, makeWorld, type World } from "./world.ts";

let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** A caller of a new account, who sends bytes. */
async function makeCaller() {
  const email = `${crypto.randomUUID()}@example.com`;
  const key = await makeKey(world.sql, email, "Max");
  return {
    key,
    get: (...headers: string[]) =>
      ["GET /api/v1/games HTTP/1.1", "Host: a", `X-Api-Key: ${key}`, ...headers, "", ""].join("\r\n"),
    async counted() {
      const [row] = await world.sql<{ used: number }[]>`
        select coalesce(sum(used), 0)::integer as used
        from quotas
        join accounts a on a.id = account_id
        where a.email = ${email}
          and length(period) = 10`;
      return row?.used;
    },
  };
}

/** The statuses of all responses until the connection is closed. */
async function exchange(bytes: string): Promise<number[]> {
  const wire = dial(world.api.port, bytes);
  await wire.ended;
  return statusesIn(wire.text());
}

describe("[COUNTED] a call counts when its request is complete, and then it gets its response", () => {
  const garbage = "\u0001\u0002 nothing\r\n\r\n";
  const chunked = "Transfer-Encoding: chunked";
  it.each([
    ["a chunk without a size is refused and costs nothing", [chunked], "zz\r\n", [400], 0],
    ["a broken chunk after a good one is refused and costs nothing", [chunked], "1\r\na\r\nzz\r\n", [400], 0],
    ["an unknown transfer encoding is refused and costs nothing", ["Transfer-Encoding: gzip"], "abc", [400], 0],
    ["chunks past 16 KB are refused and cost nothing", [chunked], `5000\r\n${"a".repeat(0x5000)}\r\n`, [413], 0],
    ["a body that is complete changes nothing", ["Content-Length: 2"], "{}", [200], 1],
    ["chunks that are complete change nothing", [chunked], "2\r\n{}\r\n0\r\n\r\n", [200], 1],
    ["garbage behind a call is refused after the response to the call", [], garbage, [200, 400], 1],
  ])("%s", async (_, headers, rest, statuses, calls) => {
    const { get, counted } = await makeCaller();
    expect(await exchange(get(...headers) + rest)).toEqual(statuses);
    expect(await counted()).toBe(calls);
  });

  it("garbage behind two calls is refused after both responses", async () => {
    const { get, counted } = await makeCaller();
    expect(await exchange(get() + get() + garbage)).toEqual([200, 200, 400]);
    expect(await counted()).toBe(2);
  });

  it("a body that breaks off costs nothing", async () => {
    const { key, get, counted } = await makeCaller();
    const wire = dial(world.api.port, `${get("Content-Length: 10")}abc`);
    await new Promise((resolve) => wire.socket.once("connect", resolve));
    // a response on another connection, after what the first one sent was read
    expect((await world.get("/api/v1/games", { headers: { "X-Api-Key": key } })).status).toBe(200);
    wire.socket.destroy();
    await wire.ended;
    expect((await world.get("/api/v1/games", { headers: { "X-Api-Key": key } })).status).toBe(200);
    expect(await counted()).toBe(2);
  });
});
