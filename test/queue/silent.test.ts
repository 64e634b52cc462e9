import { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connectConsumer, connectProducer } from "../../src/queue/redis.ts";
import { eventually } from "../support/eventually.ts";
import { openProxy, type Proxy } from "../support/proxy.ts";
import { createWorld, gate, LEVEL, makeJob, type Task, type World } from "./world.ts";

/** Less than the 20 s within which polling must be back, and less than the 30 s that BullMQ's own settings take. */
const RECOVERED_WITHIN_MS = 19_000;

let world: World;
let proxy: Proxy;
let redisUrl: string;
beforeEach(async () => {
  world = await createWorld();
  const { port } = new URL(world.redisUrl);
  proxy = await openProxy(() => Number(port || 6379));
  redisUrl = Object.assign(new URL(world.redisUrl), { hostname: "127.0.0.1", port: String(proxy.port) }).href;
});
afterEach(async () => {
  await world.end();
  await proxy.close();
});

describe("connections to Redis that go silent", () => {
  it("are replaced, and a worker takes work again", async () => {
    const seen: Task[] = [];
    const job = makeJob({ name: "greet", run: async (task) => ({ greeted: seen.push(task) }) });
    await world.start([job], { redisUrl });
    const queues = await world.open([job]);
    await queues.enqueue(job, { house: "before" });
    await eventually(() => seen.length === 1);
    expect(proxy.silence()).toBeGreaterThanOrEqual(3);
    await queues.enqueue(job, { house: "after" });
    await eventually(() => seen.length === 2, { timeoutMs: RECOVERED_WITHIN_MS });
  });

  it("cost a run that ends meanwhile nothing: it is done once", async () => {
    const open = gate();
    let runs = 0;
    const job = makeJob({
      name: "slow",
      timeoutMs: 90_000, // its lock lasts a minute, so that a busy machine does not lose it
      async run() {
        runs += 1;
        await open.passed;
        return { done: 1 };
      },
    });
    await world.start([job], { redisUrl });
    const queues = await world.open([job]);
    await queues.enqueue(job, { house: "alpha" });
    await eventually(() => runs === 1);
    proxy.silence();
    open.open();
    const left = () => queues.get("slow").getJobCounts("active", "waiting", "delayed", "failed");
    await eventually(async () => Object.values(await left()).every((count) => count === 0), {
      timeoutMs: RECOVERED_WITHIN_MS,
    });
    expect(runs).toBe(1);
    expect(world.lines.filter(({ level }) => level >= LEVEL.error)).toEqual([]);
  });

  it("of a process that hands out work are replaced before its command is given up", async () => {
    const producer = await connectProducer(redisUrl, world.log);
    if (!(producer instanceof Redis)) throw new Error("expected a client of one server");
    expect(producer.options.socketTimeout).toBeLessThan(producer.options.commandTimeout ?? 0);
    producer.options.commandTimeout = 60_000; // a busy machine may take longer than the second between the two
    proxy.silence();
    expect(await producer.ping()).toBe("PONG");
    producer.disconnect();
  });

  it("that block have longer than the longest read", async () => {
    const consumer = await connectConsumer(redisUrl, world.log);
    if (!(consumer instanceof Redis)) throw new Error("expected a client of one server");
    const blocking = consumer.duplicate({ lazyConnect: true });
    const LONGEST_READ_MS = 10_000; // BullMQ's maximumBlockTimeout, and the lock of a short run
    expect(blocking.options.socketTimeout).toBeGreaterThan(LONGEST_READ_MS);
    expect(consumer.options.socketTimeout).toBeLessThan(LONGEST_READ_MS);
    blocking.disconnect();
    consumer.disconnect();
  });
});
