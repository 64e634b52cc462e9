import { once } from "node:events";
import { connect, createServer } from "node:net";
import { expect, it } from "vitest";
import { LATE, valueOrLate, within } from "../src/within.ts";

it("a value in time is returned, a failure is thrown unchanged, and silence ends with the name of what was awaited", async () => {
  expect(await within(10_000, "it", Promise.resolve(5))).toBe(5);
  await expect(within(10_000, "it", Promise.reject(new Error("no")))).rejects.toThrow("no");
  await expect(within(10, "the house", new Promise(() => undefined))).rejects.toThrow(
    "the house did not respond within 10 ms",
  );
  await expect(within(10, () => new RangeError("too late"), new Promise(() => undefined))).rejects.toThrow(RangeError);
});

it("a failure after the time reaches nobody", async () => {
  const { promise, reject } = Promise.withResolvers<number>();
  expect(await valueOrLate(10, promise)).toBe(LATE);
  reject(new Error("an unhandled rejection would end the process"));
});

it("a response that waited in the socket while this process was busy is in time", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const socket = connect(typeof address === "object" ? (address?.port ?? 0) : 0, "127.0.0.1");
  const [[far]] = await Promise.all([once(server, "connection"), once(socket, "connect")]);
  try {
    const answer = once(socket, "data");
    far.write("here");
    const waited = within(20, "the other side", answer);
    const busyUntil = performance.now() + 100;
    while (performance.now() < busyUntil);
    expect(String((await waited)[0])).toBe("here");
  } finally {
    socket.destroy();
    server.close();
  }
});
