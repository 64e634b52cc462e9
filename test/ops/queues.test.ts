import { NO_PASSES } from "../support/context.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { openQueues, type Queues } from "../../src/queue/queues.ts";
import { startWorkers, type Workers } from "../../src/queue/worker.ts";
import { makeJob, readableLog } from "../queue/world.ts";
import { openWire, type Wire } from "../site/wire.ts";
import { createRedis } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "./world.ts";

const { log } = readableLog();
let world: OpsWorld;
let queues: Queues;
let wire: Wire;
let workers: Workers;
let operator: CookieClient;
let viewer: CookieClient;

const fragile = makeJob({
  name: "fragile",
  retry: { attempts: 1, firstMs: 1, maxMs: 1 },
  run: async ({ house, note }) => {
    if (note === "slow") throw new Error(`took longer than ${house.length}00 ms`);
    throw new Error("<b>the house</b> is on fire");
  },
});
const quiet = makeJob({ name: "quiet" });
const ticking = makeJob({
  name: "ticking",
  schedule: async () => [{ payload: { house: "alpha" }, everyMs: 3_600_000, offsetMs: 5 }],
});

const every5s = { purpose: "for a test", intervalSeconds: 5, timeoutSeconds: 5 };

beforeAll(async () => {
  const redis = await createRedis();
  const jobs = [fragile, quiet, ticking];
  wire = await openWire();
  queues = await openQueues(jobs, await wire.through(redis.url), log);
  world = await openOpsWorld({ queues });
  workers = await startWorkers({
    jobs,
    sql: connectTo(world),
    passes: NO_PASSES,
    redisUrl: redis.url,
    settings: loadSettings({}),
    variables: () => undefined,
    http: { fetch: () => Promise.reject(new Error("no house is asked here")), close: () => Promise.resolve() },
    log,
    version: "9.9.9",
    periodicTasks: () => [
      { ...every5s, name: "looks-at-nothing", run: () => Promise.resolve() },
      { ...every5s, name: "broken-task", run: () => Promise.reject(new Error("no such table")) },
    ],
    onFatal: (error) => log.fatal(error),
    tickMs: 100,
  });
  operator = await world.as("operator");
  viewer = await world.as("viewer");
  for (const house of ["a", "b", "c"]) await queues.enqueue(fragile, { house });
  for (const house of ["d", "ee"]) await queues.enqueue(fragile, { house, note: "slow" });
  await eventually(async () => (await queues.get("fragile").getFailedCount()) === 5);
  await eventually(async () => (await queues.get("ticking").getJobSchedulersCount()) === 1);
});
afterAll(async () => {
  await workers.stop(0);
  await workersSql.end({ timeout: 1 });
  await world.close();
  await queues.close();
  await wire.cut();
});

let workersSql: Sql;
function connectTo({ databaseUrl }: OpsWorld): Sql {
  workersSql = connect(databaseUrl, { name: "worker", max: 4 });
  return workersSql;
}

async function page(path: string, who = viewer): Promise<string> {
  const response = await who.get(path);
  const failure = response.status === 500 ? (world.lines.at(-1) ?? "") : "";
  expect(`${path} ${response.status} ${failure}`).toBe(`${path} 200 `);
  return (await response.text()).replaceAll(/\s+/g, " ");
}

const entries = (action: string) => world.sql<{ actor: string; target: string; after: unknown; reason: string }[]>`
  select actor, target, after, reason
  from audit_log
  where action = ${action}
  order by seq`;

const tokensOf = (html: string) =>
  [...html.matchAll(/type="hidden" name="run" value="([^"]+)"/g)].map(([, t = ""]) => t);

const tokensShown = (html: string) => [...html.matchAll(/name="run" value="([^"]+)"/g)].map(([, t = ""]) => t);

describe("the queues", () => {
  it("are shown with their backlog, why runs failed, and whether starts are on time", async () => {
    const html = await page("/ops/queues");
    for (const name of ["fragile", "quiet", "ticking"]) expect(html).toContain(`href="/ops/queues/${name}"`);
    expect(html).toMatch(/3<span class="hidden"> runs of fragile: &lt;b&gt;the house&lt;\/b&gt; is on fire/);
    expect(html).toMatch(/2<span class="hidden"> runs of fragile: took longer than # ms/);
    expect(html).toContain("1 schedule</a> start within 5 s of their time");
    expect(html).not.toContain("/pause");
    expect(await page("/ops/queues", operator)).toContain("/ops/queues/quiet/pause");
    expect(await page("/ops/queues/schedules?q=ticking")).toMatch(/alpha<\/td><td[^>]*>every 1 h/);
    const few = await page("/ops/queues/fragile?state=failed&group=took%20longer%20than%20%23%20ms");
    expect(few).toContain("took longer than 200 ms");
    expect(few).not.toContain("on fire</td>");
    expect((await viewer.get("/ops/queues/nobody")).status).toBe(404);
  });

  it("show the periodic tasks of the leader with their last run", async () => {
    const html = await eventually(async () => {
      const text = await page("/ops/queues/tasks");
      return text.includes("looks-at-nothing") && text.includes(">done<") && text;
    });
    expect(html).toMatch(/broken-task.*failing.*no such table/);
    expect(html).toContain("every 5 s");
  });

  it("show their workers with memory, version and who leads", async () => {
    const html = await eventually(async () => {
      const text = await page("/ops/workers");
      return text.includes(">leader<") && text;
    });
    expect(html).toContain("9.9.9");
    expect(html).toMatch(/<td class="num">\d+\.\d [MG]B<\/td><td class="num">\d+\.\d [MG]B<\/td>/);
  });

  it("show their runs by state, found by id or payload, and a run with its attempts", async () => {
    const delayed = await page("/ops/queues/ticking?state=delayed");
    expect(delayed).toMatch(/href="(\/ops\/queues\/ticking\/runs\/repeat%3Aalpha%3A\d+)"/);
    expect(await page("/ops/queues/ticking?state=active")).toContain("No active run");
    const [failed] = await queues.get("fragile").getFailed();
    const { id = "", data } = failed ?? {};
    expect(await page(`/ops/queues/fragile?q=${id}`)).toContain(`/ops/queues/fragile/runs/${id}"`);
    expect(await page(`/ops/queues/fragile?q=%22${data.house}%22`)).toContain(`/ops/queues/fragile/runs/${id}"`);
    expect(await page("/ops/queues/fragile?q=nothing-of-it")).toContain("No run matches");
    expect(await page("/ops/queues/fragile?state=failed&older=1d")).toContain("No run matches");
    const run = await page(`/ops/queues/fragile/runs/${id}`);
    expect(run).toContain("1 of 1");
    expect(run).toMatch(/<summary>attempt 1 failed at 2\d{3}-[\d-]+T[\d:.]+Z after \d+ ms<\/summary>/);
    expect(run).toMatch(/queues\.test\.ts\S*:\d/);
    expect(run).not.toContain("<b>the house</b>");
    expect(run).not.toContain(`/ops/queues/fragile/retry?`);
    expect(await page(`/ops/queues/fragile/runs/${id}`, operator)).toContain("/ops/queues/fragile/retry?state=failed");
    expect((await viewer.get("/ops/queues/fragile/runs/no-such-run")).status).toBe(404);
    expect((await world.stranger().get(`/ops/queues/fragile/runs/${id}`)).status).toBe(302);
    expect((await viewer.post("/ops/queues/fragile/retry", { run: "1@2", reason: "not mine" })).status).toBe(403);
  });
});

describe("failed runs", () => {
  it("are retried as many as were announced, singly or by reason, and the log has an entry before", async () => {
    const group = encodeURIComponent("took longer than # ms");
    const asked = await page(`/ops/queues/fragile/retry?all=1&group=${group}`, operator);
    expect(asked).toContain("<strong>2 failed runs of fragile</strong>");
    expect(asked).toContain("Retry exactly these 2");
    const tokens = tokensOf(asked);
    expect(tokens).toHaveLength(2);
    const short = await operator.post("/ops/queues/fragile/retry", { run: tokens, reason: "x" });
    expect(tokensShown(await short.text())).toEqual(tokens); // nothing has to be chosen again
    // so that they are seen waiting
    expect((await operator.post("/ops/queues/fragile/pause", { reason: "one moment" })).status).toBe(303);
    const done = await operator.post("/ops/queues/fragile/retry", { run: tokens, reason: "the machine was busy" });
    expect(done.status).toBe(303);
    expect(await queues.get("fragile").getFailedCount()).toBe(3);
    const again = await operator.post("/ops/queues/fragile/retry", { run: tokens, reason: "a stale form" });
    expect(again.status).toBe(303);
    expect(await page("/ops/queues/fragile", operator)).toContain("0 runs of fragile are retried; 2 had changed");
    const most = Array.from({ length: 1_000 }, (_, run) => `${run}@1763745600000`);
    const fields = { run: most, reason: "all that a queue keeps", _password: "not needed" };
    expect((await operator.post("/ops/queues/fragile/retry", fields)).status).toBe(303);
    expect((await operator.post("/ops/queues/fragile/resume", { reason: "go on" })).status).toBe(303);
    await eventually(async () => (await queues.get("fragile").getFailedCount()) === 5);
    expect(await entries("queue.retry")).toMatchObject([
      { actor: "operator@example.com", target: "queue fragile", after: { runs: 2 }, reason: "the machine was busy" },
      { after: { runs: 2 }, reason: "a stale form" },
      { after: { runs: 1_000 }, reason: "all that a queue keeps" },
    ]);
  });

  it("are discarded as they were seen: one that failed again since stays", async () => {
    const seen = tokensOf(await page("/ops/queues/fragile/discard?all=1", operator));
    expect(seen).toHaveLength(5);
    const one = seen[0] ?? "";
    const chosen = await page(`/ops/queues/fragile/retry?run=${encodeURIComponent(one)}`, operator);
    expect(chosen).toContain("<strong>1 failed run of fragile</strong>");
    await operator.post("/ops/queues/fragile/retry", { run: one, reason: "one more time" });
    await eventually(async () => (await queues.get("fragile").getFailedCount()) === 5);
    const done = await operator.post("/ops/queues/fragile/discard", { run: seen, reason: "the gap is closed" });
    expect(done.status).toBe(303);
    const left = await queues.get("fragile").getFailed();
    expect(left.map(({ id }) => id)).toEqual([one.split("@")[0]]);
    expect(await entries("queue.discard")).toMatchObject([{ after: { runs: 5 }, reason: "the gap is closed" }]);
    expect((await operator.post("/ops/queues/fragile/discard", { reason: "nothing chosen" })).status).toBe(400);
    expect((await operator.post("/ops/queues/nobody/discard", { run: "1@2", reason: "no queue" })).status).toBe(404);
  });
});

describe("a key of BullMQ", () => {
  it("is no run", async () => {
    await queues.get("quiet").add("quiet", { house: "alpha" }, { delay: 3_600_000 });
    for (const id of ["events", "meta", "delayed"]) {
      expect([id, (await viewer.get(`/ops/queues/quiet/runs/${id}`)).status]).toEqual([id, 404]);
    }
    await queues.get("quiet").drain(true);
  });
});

describe("a delayed run", () => {
  it("starts now if an operator promotes it, and is discarded unless it belongs to a schedule", async () => {
    expect((await operator.post("/ops/queues/quiet/pause", { reason: "one moment" })).status).toBe(303);
    const queue = queues.get("quiet");
    await eventually(() => queue.isPaused());
    for (const house of ["alpha", "beta"]) await queue.add("quiet", { house }, { delay: 3_600_000 });
    const asked = await page("/ops/queues/quiet/promote?all=1&state=delayed&q=alpha", operator);
    expect(asked).toContain("<strong>1 delayed run of quiet</strong>");
    const fields = { run: tokensOf(asked), state: "delayed", reason: "the house is back" };
    expect((await viewer.post("/ops/queues/quiet/promote", fields)).status).toBe(403);
    expect((await operator.post("/ops/queues/quiet/promote", fields)).status).toBe(303);
    expect([await queue.getWaitingCount(), await queue.getDelayedCount()]).toEqual([1, 1]);
    expect(await entries("queue.promote")).toMatchObject([
      { target: "queue quiet", after: { state: "delayed", runs: 1 }, reason: "the house is back" },
    ]);
    const wrong = await operator.post("/ops/queues/quiet/promote", { ...fields, state: "failed" });
    expect([wrong.status, await wrong.text()]).toEqual([
      422,
      expect.stringContaining("expected runs that are delayed"),
    ]);
    for (const state of ["delayed", "waiting"]) {
      const shown = await page(`/ops/queues/quiet/discard?all=1&state=${state}`, operator);
      const done = await operator.post("/ops/queues/quiet/discard", {
        run: tokensOf(shown),
        state,
        reason: "not needed",
      });
      expect(done.status).toBe(303);
    }
    expect([await queue.getWaitingCount(), await queue.getDelayedCount()]).toEqual([0, 0]);
    expect((await operator.post("/ops/queues/quiet/resume", { reason: "continue" })).status).toBe(303);
    const scheduled = await page("/ops/queues/ticking/discard?all=1&state=delayed", operator);
    expect(scheduled).toContain("1 run of a schedule is left out");
    expect(scheduled).toContain("No run to act on");
  });
});

describe("a queue", () => {
  const pause = (fields: Record<string, string>) => operator.post("/ops/queues/quiet/pause", fields);

  it("is paused with name, reason and end, once; the second request learns by whom", async () => {
    expect((await pause({ reason: "x", lasts: "1h" })).status).toBe(400);
    expect(await (await pause({ reason: "too late", until: "2020-01-01" })).text()).toContain("an end in the future");
    expect(await (await pause({ reason: "both of them", until: "2099-01-01", lasts: "1h" })).text()).toContain(
      "got both",
    );
    for (const until of ["+200000-01-01", "0000-01-01"]) {
      expect([until, (await pause({ reason: "for ever", until })).status]).toEqual([until, 400]);
    }
    expect((await pause({ reason: "the house asked for quiet", lasts: "1h" })).status).toBe(303);
    await eventually(() => queues.get("quiet").isPaused());
    const html = await page("/ops/queues");
    expect(html).toMatch(/By operator@example\.com since .*Z, until .*Z: the house asked for quiet/);
    expect(html).toContain("the house asked for quiet");
    const admin = await world.as("admin");
    const second = await admin.post("/ops/queues/quiet/pause", { reason: "me too" });
    expect(second.status).toBe(422);
    expect(await second.text()).toContain("paused already: by operator@example.com");
    expect(await page("/ops/queues/quiet/pause", admin)).toContain("The queue is paused already");
  });

  it("is resumed only if its pause is the one that was shown", async () => {
    const form = await page("/ops/queues/quiet/resume", operator);
    const version = /name="version" value="([^"]+)"/.exec(form)?.[1]?.replaceAll("&#43;", "+") ?? "";
    const stale = await operator.post("/ops/queues/quiet/resume", { reason: "it is over", version: "2020-01-01" });
    expect(stale.status).toBe(422);
    expect(await stale.text()).toContain("not the one that you saw: by operator@example.com");
    expect((await operator.post("/ops/queues/quiet/resume", { reason: "it is over", version })).status).toBe(303);
    await eventually(async () => !(await queues.get("quiet").isPaused()));
    expect((await entries("queue.resume")).at(-1)).toMatchObject({ target: "queue quiet", after: { paused: false } });
    const gone = await operator.post("/ops/queues/quiet/resume", { reason: "once more", version });
    expect(await gone.text()).toContain("quiet is not paused");
  });

  it("is paused though Redis is silent, and pages that need Redis report it instead of waiting", async () => {
    const [failed] = await queues.get("fragile").getFailed();
    const token = `${failed?.id}@${failed?.finishedOn}`;
    wire.hold(); // pausing Redis itself would stop the tests next to this one
    const [paused, retried, ...looks] = await Promise.all([
      pause({ reason: "a silent night" }),
      operator.post("/ops/queues/fragile/retry", { run: token, reason: "nobody hears it" }),
      ...[
        "",
        "/schedules",
        "/fragile",
        "/fragile?state=active",
        "/fragile/retry?all=1",
        `/fragile/runs/${failed?.id}`,
      ].map((path) => operator.get(`/ops/queues${path}`)),
    ]);
    wire.letGo();
    expect(paused.status).toBe(303);
    expect([retried.status, await retried.text()]).toEqual([
      503,
      expect.stringContaining("done, in part or not at all"),
    ]);
    for (const look of looks) expect([look.status, await look.text()]).toEqual([503, expect.stringContaining("Redis")]);
    await eventually(() => queues.get("quiet").isPaused());
    const version = /name="version" value="([^"]+)"/.exec(await page("/ops/queues/quiet/resume", operator));
    const fields = { reason: "it is day", version: version?.[1]?.replaceAll("&#43;", "+") ?? "" };
    expect((await operator.post("/ops/queues/quiet/resume", fields)).status).toBe(303);
  });

  it("that is paused stays so when Redis loses everything", async () => {
    expect((await pause({ reason: "a long night" })).status).toBe(303);
    await queues.redis.flushdb();
    await eventually(() => queues.get("quiet").isPaused());
    expect(await page("/ops")).toContain("queue paused by operator@example.com");
  });
});
