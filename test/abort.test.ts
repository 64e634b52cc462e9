import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { sleep, startDeadline, unlessAborted } from "../src/abort.ts";

test("waits no shorter than asked, though timers count whole milliseconds", async () => {
  const { signal } = new AbortController();
  const waited: number[] = [];
  for (let times = 0; times < 50; times += 1) {
    const from = performance.now();
    await sleep(1.9, [signal]);
    waited.push(performance.now() - from);
  }
  expect(Math.min(...waited)).toBeGreaterThanOrEqual(1.9);
});

test("ends immediately when a signal is aborted, before or meanwhile", async () => {
  const [before, meanwhile] = [new AbortController(), new AbortController()];
  before.abort();
  expect(await sleep(60_000, [meanwhile.signal, before.signal])).toBe(false);
  const waiting = sleep(60_000, [meanwhile.signal]);
  meanwhile.abort();
  expect(await waiting).toBe(false);
});

test("a deadline counts what waited in a socket while this process was busy", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[far]] = await Promise.all([once(server, "connection"), once(socket, "connect")]);
  const deadline = startDeadline(new AbortController().signal, 20);
  try {
    const answer = once(socket, "data", { signal: deadline.signal });
    far.write("here");
    const busyUntil = performance.now() + 100;
    while (performance.now() < busyUntil);
    expect(String((await answer)[0])).toBe("here");
    expect(deadline.isLate()).toBe(false);
  } finally {
    deadline.end();
    socket.destroy();
    server.close();
  }
});

test("work whose signal is aborted is left, and its later failure reaches nobody", async () => {
  const source = new AbortController();
  const { signal } = source;
  expect(await unlessAborted(Promise.resolve(5), signal)).toBe(5);
  await expect(unlessAborted(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
  const { promise, reject } = Promise.withResolvers<never>();
  const left = [unlessAborted(promise, signal), unlessAborted(promise, signal, () => new RangeError("stopped"))];
  source.abort(new Error("enough"));
  expect(await Promise.allSettled(left)).toMatchObject([
    { reason: { message: "enough" } },
    { reason: { message: "stopped" } },
  ]);
  await expect(unlessAborted(promise, signal)).rejects.toThrow("enough");
  reject(new Error("an unhandled rejection would end the process"));
});
