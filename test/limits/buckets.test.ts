import { createServer, connect as dial, type Socket } from "node:net";
import { Redis } from "ioredis";
import pino from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openBuckets, type Buckets, type Draw } from "../../src/limits/buckets.ts";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";

/** So slow that nothing comes back while a test runs. */
const SLOW = { points: 5, seconds: 5_000 };
const opened: Buckets[] = [];
let redisUrl: string;
let patientUrl: string;

beforeEach(async () => {
  ({ url: redisUrl } = await createRedis());
  // on a busy machine a response may take longer than the usual 100 ms, after which a process would count alone
  patientUrl = `${redisUrl}?commandTimeout=20000&socketTimeout=20000`;
});
afterEach(() => {
  for (const buckets of opened.splice(0)) buckets.close();
});

/** Buckets as one process has them, once Redis is there. */
async function open(url = patientUrl): Promise<Buckets> {
  const lines: string[] = [];
  const log = pino({ level: "debug" }, { write: (line) => void lines.push(line) });
  const buckets = openBuckets(url, log);
  opened.push(buckets);
  await eventually(() => lines.some((line) => line.includes("limits are shared")));
  return buckets;
}

const drawMany = (buckets: Buckets, count: number, size = SLOW, name = "one") =>
  Promise.all(Array.from({ length: count }, async () => buckets.draw(name, size)));
const grantedOf = (draws: Draw[]) => draws.map(({ isGranted }) => isGranted);

describe.each([
  ["shared by Redis", () => open()],
  ["of a process alone", () => Promise.resolve(openBuckets(undefined, pino({ level: "silent" })))],
])("a bucket %s", (_, make) => {
  it("grants all its points immediately, to the first requests, and then returns when there is more", async () => {
    const draws = await drawMany(await make(), 8);
    expect(grantedOf(draws)).toEqual([true, true, true, true, true, false, false, false]);
    expect(draws.map(({ left }) => left)).toEqual([4, 3, 2, 1, 0, 0, 0, 0]);
    expect(draws.at(-1)?.waitMs).toBeGreaterThan(0);
  });

  it("counts consecutive requests like concurrent ones", async () => {
    const buckets = await make();
    const lefts: number[] = [];
    for (let n = 0; n < 5; n++) lefts.push((await buckets.draw("one", SLOW)).left);
    expect(lefts).toEqual([4, 3, 2, 1, 0]);
    expect(grantedOf(await drawMany(buckets, 2))).toEqual([false, false]);
  });

  it("is queried without taking a point", async () => {
    const buckets = await make();
    for (let n = 0; n < 9; n++) expect(await buckets.look("one", SLOW)).toMatchObject({ isGranted: true, left: 5 });
    await drawMany(buckets, 6);
    expect(await buckets.look("one", SLOW)).toMatchObject({ isGranted: false, left: 0 });
  });

  it("is one of many that know nothing of each other", async () => {
    const buckets = await make();
    await drawMany(buckets, 6);
    expect(grantedOf(await drawMany(buckets, 1, SLOW, "another"))).toEqual([true]);
  });

  it("fills again", async () => {
    const buckets = await make();
    const quick = { points: 10, seconds: 1 };
    expect(grantedOf(await drawMany(buckets, 30, quick))).toContain(false);
    await eventually(async () => expect((await buckets.draw("one", quick)).isGranted).toBe(true));
  });
});

describe("processes on one Redis", () => {
  it("give out together what there is, and not more", async () => {
    const [one, two] = [await open(), await open()];
    const draws = await Promise.all([
      drawMany(one, 40, { points: 50, seconds: 5_000 }),
      drawMany(two, 40, { points: 50, seconds: 5_000 }),
    ]);
    expect(draws.flat().filter(({ isGranted }) => isGranted)).toHaveLength(50);
  });

  it("let through what a second brings and no window's end doubles it", async () => {
    const buckets = await open();
    const size = { points: 4, seconds: 40 };
    await drawMany(buckets, 4, size);
    const redis = new Redis(redisUrl);
    // as if half of the time until it is full had passed: the number is the time at which it is
    const fullAt = Number(await redis.get("rh-limit:one"));
    await redis.set("rh-limit:one", String(fullAt - 20_000_000));
    redis.disconnect();
    const other = await open(); // knows nothing of who is over the limit
    expect(grantedOf(await drawMany(other, 4, size))).toEqual([true, true, false, false]);
  });

  it("take a smaller bucket for its size, also if a larger one was empty", async () => {
    await drawMany(await open(), 100, { points: 100, seconds: 100_000 });
    const { waitMs } = (await drawMany(await open(), 1, { points: 1, seconds: 1 }))[0] ?? { waitMs: -1 };
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThanOrEqual(1_000);
  });

  it("work alone while Redis is silent or unreachable, and share again when it is back", async () => {
    const wire = await openWire(redisUrl);
    const buckets = await open(wire.url);
    const isShared = async (name: string) => {
      await buckets.draw(name, SLOW);
      const redis = new Redis(redisUrl);
      const found = await redis.exists(`rh-limit:${name}`);
      redis.disconnect();
      return found === 1;
    };
    expect(await isShared("before")).toBe(true);
    wire.hold();
    expect(grantedOf(await drawMany(buckets, 6))).toEqual([true, true, true, true, true, false]);
    wire.cut();
    expect(grantedOf(await drawMany(buckets, 1, SLOW, "two"))).toEqual([true]);
    let turn = 0;
    await eventually(() => isShared(`after ${++turn}`));
    buckets.close();
    await wire.close();
  });
});

/** A wire to Redis that can be held, so that nothing comes through, and cut. */
async function openWire(url: string) {
  const target = new URL(url);
  const [port, host] = [Number(target.port || 6379), target.hostname];
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = dial(port, host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  target.port = String(typeof address === "object" ? address?.port : "");
  target.hostname = "127.0.0.1";
  return {
    url: target.href,
    hold() {
      for (const socket of sockets) socket.unpipe().pause();
    },
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      this.cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

it("an unreachable Redis delays no call", async () => {
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  const buckets = openBuckets("redis://127.0.0.1:1", log);
  opened.push(buckets);
  expect(grantedOf(await drawMany(buckets, 6))).toEqual([true, true, true, true, true, false]);
  await eventually(() => lines.length > 0);
  expect(lines).toEqual([
    expect.stringContaining("Redis is not available, so this process enforces the limits by itself"),
  ]);
});
