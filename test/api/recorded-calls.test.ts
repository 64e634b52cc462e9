import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listWorkingKeys, revokeKey } from "../../src/callers/key-store.ts";
import type { CallMinute } from "../../src/usage/call-counts.ts";
import { listCallKinds, listCallMinutes, listRefusals, saveCallMinutes } from "../../src/usage/call-minute-store.ts";
import { eventually } from "../support/eventually.ts";
import { makeKey, makeWorld, type World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await makeWorld();
  await world.sql`update plans set day_limit = 3 where name = 'Starter'`;
});
afterAll(() => world.close());

async function makeCaller(plan: string) {
  const email = `${crypto.randomUUID()}@example.com`;
  const key = await makeKey(world.sql, email, plan);
  const [account] = await world.sql<[{ id: bigint }]>`select id from accounts where email = ${email}`;
  const call = async (path: string, headers: Record<string, string> = {}) => {
    const response = await world.get(`/api/v1/${path}`, { headers: { "X-Api-Key": key, ...headers } });
    await response.arrayBuffer();
    return response;
  };
  const kinds = async () =>
    (await listCallKinds(world.sql, account.id, { minutes: 60 }, 100)).map(
      ({ endpoint, outcome, n }) => `${endpoint} ${outcome} ${n}`,
    );
  return { accountId: account.id, key, call, kinds };
}

describe("calls by minute", () => {
  it("show every call of an account by endpoint and outcome within seconds, refused ones with their reason", async () => {
    const { accountId, call, kinds, key } = await makeCaller("Starter");
    const etag = (await call("games")).headers.get("etag") ?? "";
    await call("games", { "If-None-Match": etag });
    await call("rounds?limit=1000");
    await call("rounds");
    await call("rounds");
    await call("rounds");
    await call("usage");
    await eventually(async () => (await kinds()).length >= 6);
    expect((await kinds()).toSorted()).toEqual([
      "games not_modified 1",
      "games ok 1",
      "rounds day_quota_exceeded 1",
      "rounds invalid_parameter 1",
      "rounds ok 2",
      "usage ok 1",
    ]);
    const refusals = await listRefusals(world.sql, accountId);
    expect(refusals.map(({ outcome, n }) => [outcome, n])).toEqual([
      ["day_quota_exceeded", 1],
      ["invalid_parameter", 1],
    ]);
    const minutes = await listCallMinutes(world.sql, accountId, { minutes: 60 });
    const total = minutes.reduce((sum, { ok, notModified, refused }) => sum + ok + notModified + refused, 0);
    expect(total).toBe(7);
    const rounds = await listCallKinds(world.sql, accountId, { minutes: 60, endpoint: "rounds" }, 100);
    expect(rounds.every(({ endpoint, last4 }) => endpoint === "rounds" && last4 === key.slice(-4))).toBe(true);
  });

  it("include calls with a revoked key, and none with an unknown key", async () => {
    const { accountId, call, kinds, key } = await makeCaller("Pro");
    await call("games");
    await revokeKey(world.sql, key.slice(-4));
    await eventually(async () => (await call("games")).status === 401);
    await eventually(async () => (await kinds()).some((kind) => kind.startsWith("games revoked_api_key")));
    const [before] = await world.sql<[{ n: bigint }]>`select count(distinct key_id) as n from call_minutes`;
    const wrong = await call("games", { "X-Api-Key": `${key.slice(0, -1)}${key.endsWith("a") ? "b" : "a"}` });
    expect(wrong.status).toBe(401);
    await call("games"); // written in the same batch or a later one
    await eventually(async () => (await listRefusals(world.sql, accountId))[0]!.n >= 2);
    const [after] = await world.sql<[{ n: bigint }]>`select count(distinct key_id) as n from call_minutes`;
    expect(after.n).toBe(before.n);
  });

  it("are stored though others of the same batch are of a day without a partition, which are left out", async () => {
    const { accountId, kinds } = await makeCaller("Pro");
    const [key] = await world.sql<[{ id: bigint }]>`select id from keys where account_id = ${accountId}`;
    const ended = { accountId, keyId: key.id, endpoint: "games", outcome: "ok" };
    const now = Date.now();
    const minutes = [-5, 0, 400].map((day, place): CallMinute => {
      const at = now + day * 86_400_000;
      return { ...ended, minuteMs: at - (at % 60_000), n: place + 1, lastAtMs: at };
    });
    expect(await saveCallMinutes(world.sql, minutes)).toBe(4);
    expect(await kinds()).toEqual(["games ok 2"]);
    expect(await saveCallMinutes(world.sql, minutes.slice(1, 2))).toBe(0);
    expect(await kinds()).toEqual(["games ok 4"]);
  });

  it("give the last use of a key within seconds", async () => {
    const { accountId, call } = await makeCaller("Pro");
    const lastUsed = async () => (await listWorkingKeys(world.sql, accountId))[0]?.lastUsedAt ?? null;
    expect(await lastUsed()).toBeNull();
    await call("games");
    const first = await eventually(async () => (await lastUsed()) ?? false);
    await call("games");
    await eventually(async () => (await lastUsed())! > first);
  });
});
