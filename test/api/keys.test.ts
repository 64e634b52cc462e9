import { randomBytes } from "node:crypto";
import { createServer, connect as dial, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TIMES } from "../../src/api/times.ts";
import { mintKey } from "../../src/callers/key.ts";
import { createKey, revokeKey } from "../../src/callers/key-store.ts";
import { eventually } from "../support/eventually.ts";
import { addRounds, ANNOUNCED, makeKey, makeWorld, type World } from "./world.ts";

const PATH = "/api/v1/games";
let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

const refusedWith = (key: string, of = world) => of.refused(PATH, { headers: { "X-Api-Key": key } });
const statusWith = async (key: string) => (await world.get(PATH, { headers: { "X-Api-Key": key } })).status;

describe("a request without a good key", () => {
  it("has none: 401 missing_api_key, with the header to use", async () => {
    const response = await fetch(world.api.url + PATH);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe('ApiKey realm="api"');
    expect(await response.json()).toMatchObject({
      error: { code: "missing_api_key", message: "expected a key in the header X-Api-Key, found none" },
    });
    expect(await refusedWith("")).toMatchObject({ status: 401, code: "missing_api_key" });
  });

  it.each([
    ["is no key", "secret"],
    ["lacks its last character", mintKey(randomBytes).slice(0, -1)],
    ["has a wrong checksum", "rh_live_0123456789ABCDEFGHIJKLMNOPQRSTUV09MR4K"],
    ["was never made", mintKey(randomBytes)],
    ["is very long", "x".repeat(8_000)],
  ])("whose key %s: 401 invalid_api_key", async (_, key) => {
    expect(await refusedWith(key)).toMatchObject({ status: 401, code: "invalid_api_key" });
  });

  it("sends the header twice: 401, even if both are the same good key", async () => {
    const response = await fetch(world.api.url + PATH, {
      headers: [
        ["X-Api-Key", world.key],
        ["X-Api-Key", world.key],
      ],
    });
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: { code: "invalid_api_key" } });
  });
});

describe("a key", () => {
  it("works with the very next request after it was made, though it was tried before", async () => {
    await makeKey(world.sql, "bob@example.com", "Pro");
    const made = await createKey(world.sql, { email: "bob@example.com", plan: "Pro" });
    expect(await statusWith(made.ok ? made.key : "")).toBe(200);
  });

  it("that is revoked is refused immediately by a process that had cached it, also for free requests", async () => {
    const key = await makeKey(world.sql, "carl@example.com", "Pro");
    const own = await makeWorld({}, { on: world, times: ANNOUNCED });
    try {
      // announced after the key was, so that what is known of the key from here on is used
      await addRounds(world.sql, "alpha/crash/global", [{ id: "1" }]);
      await eventually(async () => (await (await own.get("/api/v1/rounds")).text()).includes('"round_id":"1"'));
      const { headers } = await own.get(PATH, { headers: { "X-Api-Key": key } });
      const free = { "X-Api-Key": key, "If-None-Match": headers.get("etag") ?? "" };
      expect((await own.get(PATH, { headers: free })).status).toBe(304);
      await revokeKey(world.sql, key);
      await eventually(async () =>
        expect(await own.refused(PATH, { headers: free })).toMatchObject({ status: 401, code: "revoked_api_key" }),
      );
    } finally {
      await own.close();
    }
  });

  it.each([
    [401, "expired_api_key", "update keys set expires_at = now() where account_id = "],
    [403, "account_suspended", "update accounts set suspended_at = now(), suspend_reason = 'test' where id = "],
    [403, "email_not_verified", "update accounts set verified_at = null where id = "],
    [402, "no_active_plan", "delete from entitlements where account_id = "],
    [
      402,
      "plan_expired",
      "update entitlements set starts_at = now() - interval '1 day', ends_at = now() where account_id = ",
    ],
  ])("ends with %i %s after: %s", async (status, code, change) => {
    const key = await makeKey(world.sql, `${code}@example.com`, "Pro");
    const [account] = await world.sql`select id from accounts where email = ${`${code}@example.com`}`;
    await world.sql.unsafe(change + String(account?.["id"]));
    expect(await refusedWith(key)).toMatchObject({ status, code });
  });

  it("that was used has its minute written when the process stops", async () => {
    const other = await makeWorld({}, { on: world });
    expect((await other.get(PATH)).status).toBe(200);
    await other.close();
    const [row] = await world.sql`
      select last_used_at = date_trunc('minute', last_used_at) as used
      from keys
      where last4 = ${world.key.slice(-4)}`;
    expect(row).toEqual({ used: true });
  });
});

describe("[KEY-IN-URL] a key in the URL", () => {
  const key = "rh_live_0123456789ABCDEFGHIJKLMNOPQRSTUV09MR4J";
  const secret = key.slice(8);

  it.each([
    `/api/v1/games?api_key=${key}`,
    "/api/v1/games?api_key=",
    `/api/v1/games?API-KEY=${key}`,
    `/api/v1/games?x_api_key=${key}`,
    `/api/v1/games?api%5Fkey=${key}`,
    `/api/v1/games?house=${key}`,
    `/api/v1/games?house=%72h_live_${secret}`,
    `/api/v1/games/${key}`,
    `/api/v1/nothing?apikey=${key}`,
    `/?api_key=${key}`,
  ])("is refused before anything else, and neither repeated nor logged: %s", async (path) => {
    world.lines.length = 0;
    const response = await world.get(path);
    const text = await response.text();
    expect(response.status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ error: { code: "key_in_url" } });
    expect(text + JSON.stringify([...response.headers])).not.toContain(secret);
    await eventually(() => world.lines.some((line) => line.includes('"status":400')));
    expect(world.lines.join("")).not.toContain(secret);
  });
});

describe("[LOGS] the log", () => {
  it("has one line a request with the key's id and last four, and never the key or a parameter", async () => {
    world.lines.length = 0;
    await world.get(`${PATH}?house=alpha`);
    const line = await eventually(() => world.lines.find((one) => one.includes('"path"')));
    expect(JSON.parse(line ?? "")).toMatchObject({
      msg: "request",
      method: "GET",
      path: PATH,
      status: 200,
      key: "1",
      last4: world.key.slice(-4),
      request_id: expect.stringMatching(/^req_/),
    });
    expect(world.lines.join("")).not.toContain(world.key.slice(8, 40));
    expect(world.lines.join("")).not.toContain("alpha");
  });
});

describe("while PostgreSQL does not respond", () => {
  it("known callers are served, and unknown ones get a soon Retry-After", async () => {
    const wire = await openWire();
    const far = await makeWorld({}, { on: world, through: (url) => wire.through(url), times: TIMES });
    const stranger = await makeKey(world.sql, "stranger@example.com", "Pro");
    try {
      const etag = await eventually(async () => (await far.get(PATH)).headers.get("etag") ?? undefined);
      const ask = () => far.get(PATH, { headers: { "If-None-Match": etag } });
      expect((await ask()).status).toBe(304);
      wire.hold();
      const refusal = await refusedWith(stranger, far);
      expect(refusal).toMatchObject({ status: 503, code: "temporarily_unavailable" });
      expect(refusal.headers.get("retry-after")).toBe("5");
      const mistyped = "rh_live_0123456789ABCDEFGHIJKLMNOPQRSTUV09MR4K"; // its checksum shows it, not the database
      expect(await refusedWith(mistyped, far)).toMatchObject({ status: 401, code: "invalid_api_key" });
      // long past the five seconds for which a caller is cached
      await eventually(async () => expect(Number((await ask()).headers.get("x-data-age"))).toBeGreaterThan(5));
      expect((await ask()).status).toBe(304);
      wire.letGo();
      await eventually(async () =>
        expect((await far.get(PATH, { headers: { "X-Api-Key": stranger } })).status).toBe(200),
      );
    } finally {
      wire.letGo();
      await far.close();
      await wire.close();
    }
  });
});

/** A wire to the database that can be held: what is sent then arrives later, as when a network is cut without a word. */
async function openWire() {
  const sockets = new Set<Socket>();
  let target = { host: "", port: 0 };
  const server = createServer((near) => {
    const far = dial(target.port, target.host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (bytes) => to.write(bytes));
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      if (isHeld) from.pause();
    }
  });
  let isHeld = false;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    through(databaseUrl: string): Promise<string> {
      const url = new URL(databaseUrl);
      target = { host: url.hostname, port: Number(url.port) };
      url.hostname = "127.0.0.1";
      url.port = String(typeof address === "object" ? address?.port : "");
      return Promise.resolve(url.href);
    },
    hold() {
      isHeld = true;
      for (const socket of sockets) socket.pause();
    },
    letGo() {
      isHeld = false;
      for (const socket of sockets) socket.resume();
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}
