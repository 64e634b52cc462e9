import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { revokeKey } from "../../src/callers/key-store.ts";
import { eventually } from "../support/eventually.ts";
import { ANNOUNCED, makeKey, makeWorld, type World } from "./world.ts";

const PATH = "/api/v1/games";
let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

/** Another process, and its URL. */
async function startProcess(): Promise<{ url: string; process: ChildProcess }> {
  const script = path.join(import.meta.dirname, "api-process.ts");
  const started = fork(script, [world.databaseUrl, "", JSON.stringify(ANNOUNCED)], { stdio: "inherit" });
  const [url] = await once(started, "message");
  return { url: String(url), process: started };
}

/** What an account has used by its day, its month and the facts, which must agree. */
async function countedOf(email: string): Promise<number> {
  const [row] = await world.sql<{ day: number; month: number; facts: number }[]>`
    select
      coalesce((select used from quotas where account_id = a.id and length(period) = 10), 0)::integer as day,
      coalesce((select used from quotas where account_id = a.id and length(period) = 7), 0)::integer as month,
      coalesce((select sum(n) from usage_facts where account_id = a.id), 0)::integer as facts
    from accounts a
    where email = ${email}`;
  expect(row).toEqual({ day: row?.day, month: row?.day, facts: row?.day });
  return row?.day ?? 0;
}

it("a process that is killed in the middle loses at most what was in flight, and never admits more than the quota", async () => {
  const [limit, inFlight] = [400, 40];
  const email = "killed@example.com";
  await world.sql`
    insert into plans (name, position, day_limit, burst_per_second, burst, price_micros, days)
    values ('killed', 9, ${limit}, 100000, 100000, 0, 30)`;
  const key = await makeKey(world.sql, email, "killed");
  const { url, process: victim } = await startProcess();
  const died = once(victim, "exit");
  const status = async (base: string) =>
    fetch(base + PATH, { headers: { "X-Api-Key": key } }).then(
      async (response) => (await response.arrayBuffer(), response.status),
      () => 0,
    );
  let served = 0;
  // as many at a time as there are workers; the process goes in the middle of it
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      for (let got = await status(url); got !== 0; got = await status(url)) {
        if (got === 200) served++;
        if (served === limit / 4) victim.kill("SIGKILL");
      }
    }),
  );
  await died;
  // the batch that was in the database when it died is counted or not, as a whole
  await eventually(async () => {
    const [row] = await world.sql<{ n: number }[]>`
      select count(*)::integer as n
      from pg_stat_activity
      where datname = current_database() and query like '%from consume_calls%' and state <> 'idle'
        and pid <> pg_backend_pid()`;
    return row?.n === 0;
  });
  const counted = await countedOf(email);
  expect(counted).toBeGreaterThanOrEqual(served);
  expect(counted).toBeLessThanOrEqual(served + inFlight);

  // another process continues from what is counted
  let more = 0;
  for (let got = 200; got !== 429; got = await eventually(async () => (await status(world.api.url)) || false)) {
    if (got === 200) more++;
  }
  expect(counted + more - 1).toBe(limit);
  expect(await countedOf(email)).toBe(limit);
});

it("[API2] a key that is revoked is refused by another process at its next counted call, and for free requests as soon as it is announced", async () => {
  const key = await makeKey(world.sql, "revoked@example.com", "Pro");
  const { url, process: other } = await startProcess();
  try {
    const ask = (headers = {}) => fetch(url + PATH, { headers: { "X-Api-Key": key, ...headers } });
    const free = { "If-None-Match": (await ask()).headers.get("etag") ?? "" };
    expect((await ask(free)).status).toBe(304);
    await revokeKey(world.sql, key);
    expect((await ask()).status).toBe(401);
    await eventually(async () => expect((await ask(free)).status).toBe(401));
  } finally {
    other.kill("SIGKILL");
  }
});
