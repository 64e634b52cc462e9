import pino from "pino";
import { expect, it } from "vitest";
import { knowCallers } from "../../src/api/known-callers.ts";
import type { Caller } from "../../src/callers/caller-store.ts";
import { hashKey } from "../../src/callers/key.ts";
import { CALLER } from "./caller.ts";

const silent = pino({ level: "silent" });

/** A directory that counts its look-ups, and resolves them on request. */
function slowDirectory() {
  const waiting: ((caller: Caller | null) => void)[] = [];
  const find = () => new Promise<Caller | null>((resolve) => void waiting.push(resolve));
  return { waiting, callers: knowCallers(find, silent) };
}

it("many concurrent calls with one key make one query", async () => {
  const { waiting, callers } = slowDirectory();
  const asked = Array.from({ length: 100 }, () => callers.of("one"));
  expect(waiting).toHaveLength(1);
  waiting[0]?.(CALLER);
  expect(new Set(await Promise.all(asked))).toEqual(new Set([CALLER]));
  expect(await callers.of("one")).toBe(CALLER);
  expect(waiting).toHaveLength(1);
});

it("a key that was never made is asked for each time, so that it works once it is", async () => {
  const { waiting, callers } = slowDirectory();
  const first = callers.of("new");
  waiting[0]?.(null);
  expect(await first).toBeNull();
  const second = callers.of("new");
  waiting[1]?.(CALLER);
  expect(await second).toBe(CALLER);
});

it("a refused caller is looked up each time, so that a new plan holds with the very next call", async () => {
  const { waiting, callers } = slowDirectory();
  const first = callers.of("one");
  const refused: Caller = { ...CALLER, standing: "plan_expired" };
  waiting[0]?.(refused);
  expect(await first).toBe(refused);
  const second = callers.of("one");
  waiting[1]?.(CALLER);
  expect(await second).toBe(CALLER);
  expect(await callers.of("one")).toBe(CALLER);
  expect(waiting).toHaveLength(2);
});

it("no caller is cached beyond the end of their plan or key", async () => {
  const { waiting, callers } = slowDirectory();
  const first = callers.of("one");
  waiting[0]?.({ ...CALLER, endsInMs: 0 });
  expect(await first).toMatchObject({ standing: "good" });
  const ended: Caller = { ...CALLER, standing: "plan_expired" };
  const second = callers.of("one");
  waiting[1]?.(ended);
  expect(await second).toBe(ended);
});

it("an unknown caller is looked up only if that is allowed, a known one in any case", async () => {
  const { waiting, callers } = slowDirectory();
  const forbidden = () => Promise.reject(new Error("too many"));
  await expect(callers.of("one", forbidden)).rejects.toThrow("too many");
  expect(waiting).toHaveLength(0);
  const asked = callers.of("one", () => Promise.resolve());
  await Promise.resolve();
  waiting[0]?.(CALLER);
  expect(await asked).toBe(CALLER);
  expect(await callers.of("one", forbidden)).toBe(CALLER);
});

it("a refused caller is looked up again only if that is allowed", async () => {
  const { waiting, callers } = slowDirectory();
  const refused: Caller = { ...CALLER, standing: "account_suspended" };
  const first = callers.of("one");
  waiting[0]?.(refused);
  await first;
  const limit = (caller: Caller | null) => Promise.reject(new Error(`too many of ${caller?.standing}`));
  await expect(callers.of("one", limit)).rejects.toThrow("too many of account_suspended");
  expect(waiting).toHaveLength(1);
});

it("after a doubt everyone is asked for again, also who was being asked for", async () => {
  const { waiting, callers } = slowDirectory();
  const before = callers.of("one");
  callers.doubt();
  waiting[0]?.(CALLER);
  await before;
  const after = callers.of("one");
  expect(waiting).toHaveLength(2);
  const revoked: Caller = { ...CALLER, standing: "revoked_api_key" };
  waiting[1]?.(revoked);
  expect(await after).toBe(revoked);
  callers.doubt();
  void callers.of("one");
  expect(waiting).toHaveLength(3);
});

it("the ten thousand seen last are known, and no more", async () => {
  let asked = 0;
  const callers = knowCallers(() => {
    asked++;
    return Promise.resolve(CALLER);
  }, silent);
  for (let n = 0; n < 10_000; n++) await callers.of(`key ${n}`);
  await callers.of("key 0"); // seen again: now key 1 is the one seen longest ago
  expect(asked).toBe(10_000);
  await callers.of("one more");
  await callers.of("key 0");
  expect(asked).toBe(10_001);
  await callers.of("key 1");
  expect(asked).toBe(10_002);
});

it("while no look-up resolves, only so many wait, and a known caller is served", async () => {
  let isAway = false;
  let asked = 0;
  const known = hashKey("known");
  const callers = knowCallers((sha256) => {
    asked++;
    if (!isAway && known.equals(sha256)) return Promise.resolve(CALLER);
    return new Promise(() => undefined);
  }, silent);
  await callers.of("known");
  isAway = true;
  callers.doubt();
  const strangers = await Promise.allSettled(Array.from({ length: 2_000 }, (_, n) => callers.of(`invented ${n}`)));
  expect(new Set(strangers.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  expect(asked).toBe(501);
  expect(await callers.of("known")).toBe(CALLER);
});

it("the first call during a failure is served as well, once it is clear that no response arrives", async () => {
  const callersFound = [Promise.resolve(CALLER)];
  const callers = knowCallers(() => callersFound.pop() ?? new Promise(() => undefined), silent);
  await callers.of("known");
  callers.doubt();
  expect(await callers.of("known")).toBe(CALLER);
});
