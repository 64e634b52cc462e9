import { afterAll, beforeAll, describe, expect, it } from "vitest";
import compareCalibrations from "../../jobs/compare-calibrations.ts";
import replayRange from "../../jobs/replay-range.ts";
import { createAccount } from "../../src/callers/account-store.ts";
import { createKey } from "../../src/callers/key-store.ts";
import {
  beatComparison,
  findComparison,
  leaveComparison,
  requestComparison,
  takeComparison,
} from "../../src/calibration/comparison-store.ts";
import { giveUpLostRun } from "../../src/calibration/runs/lost-attempts-store.ts";
import { runWaitingCalibration } from "../../src/calibration/manual-calibration.ts";
import { claimManualRun } from "../../src/calibration/runs/manual-run-store.ts";
import { csvText } from "../../src/csv.ts";
import { binKey, KEY, referenceKey } from "../../src/forecasts/accuracy/keys.ts";
import { minus } from "../../src/frame/text/format.ts";
import { roundhouse } from "../cli/world.ts";
import { testContext } from "../support/context.ts";
import { tableEntry } from "../support/houses.ts";
import { makeHouse, makeTable, type MadeTable } from "../support/make.ts";
import { writeSums } from "../support/sums.ts";
import { generatedRounds } from "../forecasts/streams.ts";
import { addLateRounds, PAUSE_MS, playRounds } from "../forecasts/world.ts";
import { calibrateRolling, FIRST_ID, makeLearnedTable, playTurns, work } from "./data-world.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "./world.ts";

const COUNT = 1200;
const never = new AbortController().signal;

let world: OpsWorld;
let table: MadeTable;
let data: CookieClient;
let operator: CookieClient;
let viewer: CookieClient;

beforeAll(async () => {
  world = await openOpsWorld();
  table = await makeLearnedTable(world.sql, COUNT);
  [data, operator, viewer] = [await world.as("data"), await world.as("operator"), await world.as("viewer")];
});
afterAll(() => world.close());

const text = async (response: Response) => (await response.text()).replaceAll(/\s+/g, " ");
const page = async (path: string, as: CookieClient = viewer) => {
  const response = await as.get(path);
  const body = await text(response);
  expect([path, response.status]).toEqual([path, 200]);
  return body;
};
const going = (response: Response) => [response.status, response.headers.get("location")];

/** The entries of the audit log of an action, newest last. */
const audited = (action: string) =>
  world.sql<{ actor: string; target: string; before: unknown; after: unknown; reason: string | null }[]>`
    select actor, target, before, after, reason
    from audit_log
    where action = ${action}
    order by seq`;

/** Starts a run over the ids from..to; gives its number. */
async function start(fields: Record<string, string> = {}): Promise<string> {
  const asked = { table: table.name, model: "k7@1", reason: "last week's, once more", ...fields };
  const response = await data.post("/ops/calibrations/new", asked);
  expect([response.status, await text(response)]).toEqual([303, ""]);
  return /runs\/(\d+)$/.exec(response.headers.get("location") ?? "")?.[1] ?? "";
}

async function calibrationOf(run: string): Promise<string> {
  await work(world.sql);
  const [row] = await world.sql<{ id: string | null; status: string; reason: string | null }[]>`
    select calibration_id::text as id, status, reason from calibration_runs where id = ${run}`;
  expect(row).toMatchObject({ status: "done", reason: null });
  return row?.id ?? "";
}

describe("a run that is asked for in a browser", () => {
  it("is a row that a worker finds, reaches the live state, and shows who requested it and why", async () => {
    const run = await start();
    expect(await page(`/ops/calibrations/runs/${run}`)).toContain("queued");
    const record = await calibrationOf(run);
    const shown = await page(`/ops/calibrations/runs/${run}`);
    expect(shown).toContain("1,200 of 1,200 rounds");
    expect(shown).toContain(`/ops/calibrations/${record}`);
    const detail = await page(`/ops/calibrations/${record}`);
    expect(detail).toContain("last week&#39;s, once more");
    expect(detail).toContain('<svg role="img" aria-label="Reliability of the backtest"');
    expect(detail).not.toMatch(/<svg[^>]*style=|undefined|NaN/);
    expect(await page("/ops/calibrations?kind=manual&sort=log_loss")).toContain(`/ops/calibrations/${record}`);
    expect(await audited("calibration.start")).toMatchObject([
      { actor: "data@example.com", target: `run ${run} of ${table.name}`, reason: "last week's, once more" },
    ]);
  });

  it.each([
    ["a table that is not there", { table: "no/such/one" }, "there is no table no/such/one"],
    ["a round that is not there", { from: "77" }, "from: there is no round 77"],
    [
      "a range that ends before it begins",
      { from: `${FIRST_ID + 9}`, to: `${FIRST_ID + 3}` },
      `is after round ${FIRST_ID + 3}`,
    ],
    ["a time before all rounds", { to: "2020-01-01" }, "no on-time round that was received at or before"],
    [
      "a time before all times",
      { from: "0000-01-01" },
      "from: expected a time such as 2026-11-21T04:00, found 0000-01-01",
    ],
    [
      "a day that does not exist",
      { to: "2026-02-30" },
      "to: expected a time such as 2026-11-21T04:00, found 2026-02-30",
    ],
    ["a model that is not there", { model: "k8" }, "there is no model k8; known are k7@1"],
    ["what is no number", { recent_prior: "many" }, "recent_prior: expected numbers such as 25, found many"],
    ["too few weights", { prior_weights: "1, 2" }, "prior_weights: expected 7 numbers, found 2"],
    ["a number that no model can have", { share: "2" }, "share: "],
    ["no reason", { reason: " " }, "Reason: expected a reason"],
  ])("is refused with what was typed and what to do: %s", async (_, fields, problem) => {
    const before = await world.sql`select id from calibration_runs`;
    const asked = { table: table.name, model: "k7@1", reason: "a try", ...fields };
    const response = await data.post("/ops/calibrations/new", asked);
    expect([400, 422]).toContain(response.status);
    const body = await text(response);
    expect(body.replaceAll("&#39;", "'")).toContain(problem);
    expect(await world.sql`select id from calibration_runs`).toHaveLength(before.length);
  });

  it("takes times for its ends, and parameters that differ, under another name", async () => {
    const run = await start({ from: "2020-01-01T00:00", share: "0.0001", x0: "1.5" });
    const [row] = await world.sql<{ model: string; from: string; to: string }[]>`
      select model, from_seq::text as "from", to_seq::text as "to" from calibration_runs where id = ${run}`;
    expect(row).toEqual({
      model: expect.stringMatching(/^k7@1\+[0-9a-f]{12}-[0-9a-f]{12}$/),
      from: "1",
      to: String(COUNT),
    });
    await calibrationOf(run);
  });

  it("is cancelled while it runs, keeps its place, resumes there, and reaches the same state", async () => {
    const run = await start();
    let cancelled: Promise<Response> | undefined;
    const outcome = await runWaitingCalibration(world.sql, run, {
      signal: never,
      steps: { roundsPerChunk: 1, roundsPerCheckpoint: 100 },
      progress() {
        cancelled ??= data.post(`/ops/calibrations/runs/${run}/cancel`, { reason: "the wrong table" });
      },
    });
    expect(outcome).toBe("cancelled");
    expect(going((await cancelled) ?? new Response())).toEqual([303, `/ops/calibrations/runs/${run}`]);
    const [place] = await world.sql<{ at: string; kept: string }[]>`
      select r.at_seq::text as at, c.to_seq::text as kept
      from calibration_runs r join backtest_checkpoints c on c.run_id = r.id where r.id = ${run}`;
    expect(Number(place?.at)).toBeLessThan(COUNT);
    expect(place?.kept).toBe(place?.at);
    await work(world.sql);
    expect(await page(`/ops/calibrations/runs/${run}`)).toContain("cancelled after");

    const resumed = await data.post(`/ops/calibrations/runs/${run}/resume`, { reason: "it was the right one" });
    expect(resumed.status).toBe(303);
    const again = await data.post(`/ops/calibrations/runs/${run}/resume`, { reason: "me too" });
    expect([again.status, await text(again)]).toEqual([
      422,
      expect.stringContaining(`run ${run} is queued; only a cancelled or failed run`),
    ]);
    const record = await calibrationOf(run);
    const hashes = await world.sql`
      select distinct state_hash from calibrations where table_id = ${table.id} and to_seq = ${COUNT} and model like 'k7@1-%'`;
    expect(hashes).toHaveLength(1);
    expect(await page(`/ops/calibrations/runs/${run}`)).toContain("resumed once");
    expect((await audited("calibration.cancel"))[0]).toMatchObject({
      reason: "the wrong table",
      after: { status: "stopping" },
    });
    expect((await audited("calibration.resume"))[0]).toMatchObject({
      before: { status: "cancelled" },
      after: { status: "queued" },
    });
    expect(record).not.toBe("");
  });

  it("is cancelled immediately if no process works on it, and never claimed by a worker that was notified before", async () => {
    const run = await start();
    expect((await data.post(`/ops/calibrations/runs/${run}/cancel`, { reason: "not needed" })).status).toBe(303);
    expect(await runWaitingCalibration(world.sql, run, { signal: never })).toBe("skipped");
    expect(await page(`/ops/calibrations/runs?status=cancelled`)).toContain(`run ${run}`);
  });

  it("is continued by the next worker if its own stops", async () => {
    const run = await start();
    const stop = new AbortController();
    const ended = runWaitingCalibration(world.sql, run, {
      signal: stop.signal,
      steps: { roundsPerChunk: 50, roundsPerCheckpoint: 100 },
      progress: () => stop.abort(new Error("the worker stops")),
    });
    await expect(ended).rejects.toThrow("the worker stops");
    const [row] = await world.sql`select status, at_seq::text as at from calibration_runs where id = ${run}`;
    expect(row).toEqual({ status: "queued", at: "50" });
    await calibrationOf(run);
  });

  it("and a comparison that stop every worker fail with the reason, and continue when requested again", async () => {
    const { sql } = world;
    const { context } = testContext(sql);
    const run = await start();
    const [{ a, b } = { a: "", b: "" }] = await sql<{ a: string; b: string }[]>`
      select min(id)::text as a, max(id)::text as b
      from calibrations
      where table_id = ${table.id}`;
    await data.post("/ops/calibrations/compare", { id: [a, b] });
    for (let attempt = 1; attempt <= 4; attempt++) {
      expect(await claimManualRun(sql, run, "worker")).not.toBeNull();
      // nothing of the last 1 h is known of its worker, as after a kill
      await sql`update calibration_runs set heartbeat_at = heartbeat_at - interval '1 hour' where id = ${run}`;
      expect(await takeComparison(sql, [a, b])).not.toBeNull();
      await sql`update calibration_comparisons set heartbeat_at = heartbeat_at - interval '1 hour' where a_id = ${a}`;
    }
    expect(await giveUpLostRun(sql, run)).toBeNull();
    expect(await claimManualRun(sql, run, "worker")).not.toBeNull();
    expect(await takeComparison(sql, [a, b])).not.toBeNull();
    await expect(replayRange.run({ run }, context)).resolves.toEqual({ skipped: 1 }); // its worker may live yet
    await sql`update calibration_runs set heartbeat_at = heartbeat_at - interval '1 hour' where id = ${run}`;
    await sql`update calibration_comparisons set heartbeat_at = heartbeat_at - interval '1 hour' where a_id = ${a}`;
    const lost = "5 workers in a row died during this";
    await expect(replayRange.run({ run }, context)).rejects.toThrow(lost);
    await expect(compareCalibrations.run({ a, b }, context)).rejects.toThrow(lost);
    expect(await page(`/ops/calibrations/runs/${run}`)).toMatch(new RegExp(`failed</span>[^]*<p>${lost}`));
    expect(await page(`/ops/calibrations/compare?id=${a}&id=${b}`, data)).toMatch(new RegExp(`failed</span> ${lost}`));
    expect([await replayRange.sweep?.(context), await compareCalibrations.sweep?.(context)]).toEqual([[], []]);

    await data.post(`/ops/calibrations/runs/${run}/resume`, { reason: "more memory" });
    await data.post("/ops/calibrations/compare", { id: [a, b] });
    await calibrationOf(run);
    expect(await page(`/ops/calibrations/compare?id=${a}&id=${b}`)).not.toContain(lost);
  });

  it("and a comparison that another worker has claimed is neither ended nor finished by the one that lost it", async () => {
    const { sql } = world;
    const [{ a, b } = { a: "", b: "" }] = await sql<{ a: string; b: string }[]>`
      select min(id)::text as a, max(id)::text as b
      from calibrations
      where table_id = ${table.id}`;
    await requestComparison(sql, [a, b], { by: "ann", recompute: true });
    const first = await takeComparison(sql, [a, b]);
    await sql`update calibration_comparisons set heartbeat_at = heartbeat_at - interval '1 hour' where a_id = ${a}`;
    const second = await takeComparison(sql, [a, b]);
    if (first === null || second === null) throw new Error("the comparison was requested");
    await leaveComparison(sql, first, { status: "failed", reason: "it was stopped" });
    await expect(beatComparison(sql, first, 1, 2)).rejects.toThrow("another one has claimed it");
    expect(await findComparison(sql, [a, b])).toMatchObject({ status: "running", reason: null, done: 0n });
    await leaveComparison(sql, second, { status: "queued", reason: "the worker stops" });
    expect(await findComparison(sql, [a, b])).toMatchObject({ status: "queued" });
    const { context } = testContext(sql);
    expect(await compareCalibrations.run({ a, b }, context)).toEqual({ compared: 1 });
  });

  it("that gets on before each of its workers is lost is not given up", async () => {
    const run = await start();
    for (let attempt = 1; attempt <= 6; attempt++) {
      expect(await giveUpLostRun(world.sql, run)).toBeNull();
      const stopped = new AbortController();
      const ended = runWaitingCalibration(world.sql, run, {
        signal: stopped.signal,
        steps: { roundsPerChunk: 50, roundsPerCheckpoint: 50 },
        progress: (done) => done > 50 * attempt && stopped.abort(new Error("killed")),
      });
      await expect(ended).rejects.toThrow("killed");
      // as if it had been killed rather than stopped
      await world.sql`
        update calibration_runs
        set status = 'running', heartbeat_at = heartbeat_at - interval '1 hour'
        where id = ${run}`;
    }
    await calibrationOf(run);
  });

  it("and a comparison are done once, however often a worker is sent", async () => {
    const { context } = testContext(world.sql);
    const run = await start({ to: String(FIRST_ID + 49) });
    expect(await replayRange.run({ run }, context)).toEqual({ done: 1 });
    expect(await replayRange.run({ run }, context)).toEqual({ skipped: 1 });
    const [{ id: a } = { id: "" }, { id: b } = { id: "" }] = await world.sql<{ id: string }[]>`
      select id::text as id
      from calibrations
      where table_id = ${table.id}
      order by calibrations.id
      limit 2`;
    expect(await compareCalibrations.run({ a, b }, context)).toEqual({ skipped: 1 });
    await data.post("/ops/calibrations/compare", { id: [a, b] });
    expect(await compareCalibrations.run({ a, b }, context)).toEqual({ compared: 1 });
    expect(await compareCalibrations.run({ a, b }, context)).toEqual({ skipped: 1 });
    expect(await replayRange.sweep?.(context)).toEqual([]);
    expect(await compareCalibrations.sweep?.(context)).toEqual([]);
  });

  it("is requested again from the one before, which both pages show", async () => {
    const first = await start({ to: String(FIRST_ID + 99) });
    const form = await page(`/ops/calibrations/new?parent=${first}`, data);
    expect(form).toContain(`name="parent" value="${first}"`);
    expect(form).toContain(`value="${FIRST_ID + 99}"`);
    const second = await start({ parent: first, to: String(FIRST_ID + 199) });
    expect(await page(`/ops/calibrations/runs/${second}`)).toContain(`run ${first}</a>`);
    expect(await page(`/ops/calibrations/runs/${first}`)).toContain(`run ${second}</a> (queued)`);
    await calibrationOf(second);
  });
});

/** The text of each cell of the row with this head. */
function cellsOf(body: string, head: string): string[] {
  const row = body.split("<tr>").find((one) => one.includes(`<th scope="row">${head}</th>`)) ?? "";
  return [...row.matchAll(/<td[^>]*>(.*?)<\/td>/g)].map(([, cell = ""]) => cell.replaceAll(/<[^>]*>/g, " ").trim());
}

describe("calibrations that are compared", () => {
  it("stand side by side with the best marked and differences from the first, and are compared on the same rounds by a worker", async () => {
    const ids = [];
    for (const share of ["", "0.001", "0.01"]) ids.push(await calibrationOf(await start({ share })));
    const [a = "", b = "", c = ""] = ids;
    const path = `/ops/calibrations/compare?id=${a}&id=${b}&id=${c}`;
    const before = await page(path, data);
    const losses = cellsOf(before, "Log loss, nats per round");
    expect(losses).toHaveLength(3);
    expect(losses[0]).toMatch(/^(best\s+)?\d\.\d{6}$/);
    for (const cell of losses.slice(1)) expect(cell).toMatch(/\d\.\d{6}\s+(±0|[+−]\d\.\d{6})$/);
    const values = losses.map((cell) => Number(/\d\.\d{6}/.exec(cell)?.[0]));
    expect(losses.map((cell) => cell.startsWith("best"))).toEqual(values.map((one) => one === Math.min(...values)));
    expect(before).toContain("Compare on the same rounds");
    expect(before).toContain(`href="/ops/calibrations/compare?id=${c}&amp;id=${a}&amp;id=${b}"`);
    for (const label of ["Skill of each calibration", "Reliability of each calibration"]) {
      expect(before).toContain(`<svg role="img" aria-label="${label}"`);
      expect(before).toContain(`aria-label="${label}: numbers"`);
    }

    expect(going(await data.post("/ops/calibrations/compare", { id: ids }))).toEqual([303, path]);
    expect(await page(path)).toMatch(/queued.*requested by data@example\.com/);
    await work(world.sql);
    const done = await page(path, data);
    const pairs = done.split("Paired differences from")[1] ?? "";
    expect([...pairs.matchAll(/<td class="num">1,200<\/td>/g)]).toHaveLength(2);
    expect(done).not.toContain("Compare on the same rounds");
    // seen from the other side, the difference has the other sign
    const turned = (await page(`/ops/calibrations/compare?id=${b}&id=${a}`)).split("Paired differences from")[1] ?? "";
    const differenceOf = (body: string) =>
      Number(/<td class="num">(−?\d+\.\d\d)<\/td>/.exec(body)?.[1]?.replace("−", "-"));
    expect(differenceOf(pairs)).not.toBe(0);
    expect(differenceOf(turned)).toBe(-differenceOf(pairs));
    expect((await audited("calibration.compare")).at(-1)).toMatchObject({
      target: `calibrations ${a}, ${b} and ${c} of ${table.name}`,
      after: { first: a, requested: [b, c] },
    });
  });

  it("are computed again if a stored difference cannot be read", async () => {
    const [a, b] = [await calibrationOf(await start()), await calibrationOf(await start({ share: "0.002" }))];
    const path = `/ops/calibrations/compare?id=${a}&id=${b}`;
    await data.post("/ops/calibrations/compare", { id: [a, b] });
    await work(world.sql);
    await world.sql`update calibration_comparisons set paired = paired - 'rounds' where a_id = ${a} and b_id = ${b}`;
    expect(await page(path, data)).toMatch(/compare again.*Compare on the same rounds/);
    await data.post("/ops/calibrations/compare", { id: [a, b] });
    await work(world.sql);
    expect(await page(path, data)).toContain('<td class="num">1,200</td>');
  });

  it("that share no bands or rounds show why, and the rest is compared", async () => {
    const whole = await calibrationOf(await start());
    const bands = await calibrationOf(await start({ thresholds: "1.5, 3, 20" }));
    expect(await page(`/ops/calibrations/compare?id=${whole}&id=${bands}`)).toContain("have different colors");
    const response = await data.post("/ops/calibrations/compare", { id: [whole, bands] });
    expect(response.status).toBe(422);
    const other = await calibrationOf(await start({ share: "0.003" }));
    expect((await data.post("/ops/calibrations/compare", { id: [whole, bands, other] })).status).toBe(303);
    expect((await audited("calibration.compare")).at(-1)).toMatchObject({ after: { requested: [other] } });
    await work(world.sql);
    expect(await page(`/ops/calibrations/${bands}/promote`, data)).toContain("never promoted");
    const promoted = await data.post(`/ops/calibrations/${bands}/promote`, { reason: "all the same", expected: "0" });
    expect(promoted.status).toBe(422);
  });

  it("number two to eight", async () => {
    const one = await viewer.get("/ops/calibrations/compare?id=1");
    expect([one.status, await text(one)]).toEqual([400, expect.stringContaining("select at least two calibrations")]);
    const nine = Array.from({ length: 9 }, (_, i) => `id=${i + 1}`).join("&");
    const response = await viewer.get(`/ops/calibrations/compare?${nine}`);
    expect([response.status, await text(response)]).toEqual([400, expect.stringContaining("expected at most 8 ids")]);
    expect((await viewer.get("/ops/calibrations/compare?id=1&id=999999")).status).toBe(404);
  });
});

describe("notes and tags of a run", () => {
  it("are edited, audited, and found by their tag in both lists and the comparison", async () => {
    const run = await start({ tags: "Slow, edge-2026 slow" });
    const record = await calibrationOf(run);
    const note = "fits better <after> March\nsecond line";
    const saved = await data.post(`/ops/calibrations/runs/${run}/labels`, { note, tags: "edge-2026 candidate" });
    expect(going(saved)).toEqual([303, `/ops/calibrations/runs/${run}`]);
    expect((await audited("calibration.label")).at(-1)).toMatchObject({
      actor: "data@example.com",
      target: `run ${run} of ${table.name}`,
      before: { note: null, tags: ["slow", "edge-2026"] },
      after: { note, tags: ["edge-2026", "candidate"] },
    });
    expect(await page(`/ops/calibrations/runs/${run}`)).toContain("fits better &lt;after&gt; March second line");
    const other = await calibrationOf(await start());
    const [listed, runs] = await Promise.all([
      page("/ops/calibrations?tag=candidate"),
      page("/ops/calibrations/runs?tag=candidate"),
    ]);
    expect(listed).toContain(`/ops/calibrations/${record}"`);
    expect(listed).not.toContain(`/ops/calibrations/${other}"`);
    expect([...runs.matchAll(/runs\/(\d+)"/g)].map(([, id]) => id)).toEqual([run]);
    expect(await page("/ops/calibrations?tag=slow")).toContain("No calibrations match");
    expect(await page(`/ops/calibrations/compare?id=${other}&id=${record}`)).toContain("fits better");
    expect(await page(`/ops/calibrations/${record}`)).toContain("candidate");
  });

  it.each([
    ["a note that is too long", { note: "x".repeat(2001), tags: "" }, "Note: expected at most 2000 characters"],
    ["too many tags", { note: "", tags: "a b c d e f g h i j k" }, "Tags: expected at most 10 tags"],
    ["a tag with other characters", { note: "", tags: "<b>" }, "Tags: expected tags of 1 to 40 of a-z"],
  ])("are refused and not stored: %s", async (_, fields, problem) => {
    const run = await start({ tags: "kept" });
    const response = await data.post(`/ops/calibrations/runs/${run}/labels`, fields);
    expect([response.status, (await text(response)).replaceAll("&lt;", "<")]).toEqual([
      400,
      expect.stringContaining(problem),
    ]);
    const [row] = await world.sql`select note, tags from calibration_runs where id = ${run}`;
    expect(row).toEqual({ note: null, tags: ["kept"] });
    await calibrationOf(run);
  });

  it("are for data staff, and of runs that exist", async () => {
    expect((await viewer.post("/ops/calibrations/runs/1/labels", { note: "", tags: "" })).status).toBe(403);
    expect((await data.post("/ops/calibrations/runs/999999/labels", { note: "", tags: "" })).status).toBe(404);
  });
});

describe("a run over a range with late rounds", () => {
  it("states how many rounds are stored, how many were replayed and how many are late", async () => {
    const late = await makeTable(world.sql, { house_edge: 0.01, pause_ms: PAUSE_MS }, { id: "delta" });
    const played = (count: number) => generatedRounds(count).map(({ hundredths }) => hundredths);
    await playRounds(world.sql, late.id, played(20));
    const missed = played(7).map((hundredths, at) => ({ hundredths, roundId: String(at + 1) }));
    await addLateRounds(world.sql, late.id, "computed", missed);
    await playRounds(world.sql, late.id, played(10));
    const run = await start({ table: late.name, order: "taken" });
    await calibrationOf(run);
    expect(await page(`/ops/calibrations/runs/${run}`)).toContain("37 rounds stored, 30 replayed (7 late)");
  });
});

describe("a run over several tables", () => {
  it("is one batch with the progress of each table, all requested or none", async () => {
    const other = await makeTable(world.sql, { house_edge: 0.01, pause_ms: PAUSE_MS }, { id: "gamma" });
    await playRounds(
      world.sql,
      other.id,
      generatedRounds(300).map(({ hundredths }) => hundredths),
    );
    const before = await world.sql`select id from calibration_runs`;
    const refused = await data.post("/ops/calibrations/new", {
      table: `${table.name} ${other.name}`,
      to: String(FIRST_ID + 999),
      model: "k7@1",
      reason: "both",
    });
    expect([refused.status, await text(refused)]).toEqual([422, expect.stringContaining(`in ${other.name}`)]);
    expect(await world.sql`select id from calibration_runs`).toHaveLength(before.length);

    const response = await data.post("/ops/calibrations/new", {
      table: `${table.name}, ${other.house}`, // a house selects all of its tables
      model: "k7@1",
      tags: "both",
      reason: "both",
    });
    const [status, location] = going(response);
    expect([status, location]).toEqual([303, expect.stringMatching(/^\/ops\/calibrations\/batches\/\d+$/)]);
    const queued = await page(String(location));
    expect(queued).toMatch(/0\.0 %: 0 of 1,500 rounds; 0 of 2 runs ended/);
    const rowOf = (body: string, name: string) => body.split("<tr>").find((row) => row.includes(`>${name}</th>`)) ?? "";
    const [run = ""] = /(?<=runs\/)\d+/.exec(rowOf(queued, other.name)) ?? [];
    expect(await runWaitingCalibration(world.sql, run, { signal: never })).toBe("done");
    const half = await page(String(location));
    expect(half).toMatch(/20\.0 %: 300 of 1,500 rounds; 1 of 2 runs ended/);
    expect(rowOf(half, other.name)).toMatch(/done.*100\.0 %.*300 of 300.*calibration \d+/);
    expect(rowOf(half, table.name)).toMatch(/queued.*0\.0 %.*0 of 1,200/);
    await work(world.sql);
    const done = await page(String(location));
    const compare = /href="(\/ops\/calibrations\/compare[^"]*)"/.exec(done)?.[1]?.replaceAll("&amp;", "&") ?? "";
    const compared = await page(compare);
    expect(compared).toContain("of different tables");
    expect(cellsOf(compared, "Log loss, nats per round").join(" ")).not.toMatch(/best|[+−]/);
    expect((await viewer.get("/ops/calibrations/batches/999999")).status).toBe(404);
  });
});

describe("a promotion", () => {
  it("names what will change, is made by one of two concurrent requests, and shows the other who was first", async () => {
    const [a, b] = [await calibrationOf(await start({ share: "0.0002" })), await calibrationOf(await start())];
    const form = await page(`/ops/calibrations/${a}/promote`, data);
    expect(form).toContain(`The live state of <strong>${table.name}</strong>`);
    expect(form).toContain("changes from k7@1-7262526239ae to k7@1+");
    expect(form).toContain('name="expected" value="0"');
    const admin = await world.as("admin");
    const responses = await Promise.all([
      data.post(`/ops/calibrations/${a}/promote`, { reason: "it fits better", expected: "0" }),
      admin.post(`/ops/calibrations/${b}/promote`, { reason: "as it was", expected: "0" }),
    ]);
    expect(responses.map(({ status }) => status).toSorted((x, y) => x - y)).toEqual([303, 422]);
    const texts = await Promise.all(responses.filter(({ status }) => status === 422).map(text));
    expect(texts[0]).toMatch(/(data|admin)@example\.com promoted calibration \d+ of .* meanwhile/);
    const entries = await audited("calibration.promote");
    expect(entries).toHaveLength(1);
    const [row] = await world.sql<{ by: string }[]>`
      select decided_by as by from calibrations where kind = 'promoted' and table_id = ${table.id}`;
    expect(row?.by).toBe(entries[0]?.actor);
    const to = responses.find(({ status }) => status === 303)?.headers.get("location") ?? "";
    expect(await page(to)).toContain("live");
    // back to what it was, with what the newest form holds
    const [newest] = await world.sql<
      { id: string }[]
    >`select max(id)::text as id from calibrations where kind = 'promoted'`;
    const back = await data.post(`/ops/calibrations/${b}/promote`, {
      reason: "back again",
      expected: newest?.id ?? "",
    });
    expect(back.status).toBe(303);
    await calibrateRolling(world.sql, table.id);
  });
});

describe("accuracy", () => {
  beforeAll(() => playTurns(world.sql, table, [150, 320, 1200, 101, 250, 180, 999, 1500, 210, 130, 400, 120]), 60_000);

  it("is listed with its sample, and its file has every line, with more decimals", async () => {
    const list = await page(`/ops/accuracy?of=${table.house}&period=24h&sort=-n`);
    expect(list).toMatch(new RegExp(`${table.name}.*running`));
    const csv = await (await viewer.get(`/ops/accuracy/list.csv?of=${table.house}&period=24h`)).text();
    const [head, line] = csv.split("\r\n");
    expect(head).toMatch(/^table,feature,model,n,hit rate,/);
    const values = (line ?? "").split(",");
    for (const value of values.slice(0, 4)) expect(list).toContain(value);
    expect(list).toContain(`${Number.parseFloat(values[4] ?? "").toFixed(1)} %`);
    const windows = await page("/ops/accuracy?feature=window:*&period=24h");
    const total = Number(/<span>1–\d+ of (\d+)<\/span>/.exec(windows)?.[1]);
    const whole = await viewer.get("/ops/accuracy/list.csv?feature=window:*&period=24h&page=2");
    expect([total > 1, (await whole.text()).trim().split("\r\n").length]).toEqual([true, total + 1]);
    expect(await page("/ops/accuracy?of=nowhere")).toContain("there is no house or table nowhere");
    expect((await viewer.get("/ops/accuracy?period=3d")).status).toBe(400);
  });

  it("has no file of more lines than one can have, and states how to choose fewer", async () => {
    await world.sql`
      with models as (
        insert into accuracy_models (table_id, model, palette, first_hour)
        select table_id, model || '-' || n, palette, first_hour
        from accuracy_models, generate_series(1, 2001) n
        where table_id = ${table.id}
        returning *
      )
      insert into accuracy_hours
      select h.table_id, h.hour, h.feature, m.model, h.sums
      from models m
      join (select * from accuracy_hours where table_id = ${table.id} and feature = 0 order by hour desc limit 1) h on true`;
    try {
      const refused = await viewer.get("/ops/accuracy/list.csv?period=24h&feature=");
      expect(refused.status).toBe(422);
      expect(await refused.text()).toMatch(
        /expected at most 2000 lines in a file, found 2\d{3}; choose a house or one feature/,
      );
    } finally {
      const added = world.sql`table_id = ${table.id} and model ~ '-[0-9]+$'`;
      await world.sql`delete from accuracy_hours where ${added}`;
      await world.sql`delete from accuracy_models where ${added}`;
    }
  });

  it("of one feature shows reliability, CORP, rates, waits and the references, exactly as its file and the command", async () => {
    const env = { DATABASE_URL: world.databaseUrl, REDIS_URL: "redis://127.0.0.1:9/0" };
    for (const one of [table.name, table.house]) {
      const chosen = [one === table.name ? "--table" : "--house", one, "--feature", "next_color", "--period", "24h"];
      const { stdout } = await roundhouse(["accuracy", ...chosen], { env });
      const path = `of=${encodeURIComponent(one)}&feature=next_color&period=24h`;
      const shown = await page(`/ops/accuracy/detail?${path}`);
      for (const label of ["Hit rate by hour", "Reliability", "CORP reliability curve"])
        expect(shown).toContain(`<svg role="img" aria-label="${label}"`);
      for (const name of ["ours", "last_20", "last_100", "due"])
        expect(shown).toContain(`<th scope="row">${name}</th>`);
      const csv = await (await viewer.get(`/ops/accuracy/detail.csv?${path}`)).text();
      const lines = csv.trim().split("\r\n").slice(1);
      expect(lines.length).toBeGreaterThan(60);
      for (const line of lines) {
        const value = minus(/,("(?:[^"]|"")*"|[^,]*)$/.exec(line)?.[1]?.replaceAll('"', "") ?? "");
        expect(shown, line).toContain(`>${value.replaceAll("'", "&#39;")}<`);
        const isByHour = line.includes(",Hit rate by hour,");
        if (!isByHour) expect(stdout, line).toContain(value.replace(/^–$/, "-").replaceAll("−", "-"));
      }
    }
    expect((await viewer.get("/ops/accuracy/detail?of=no/such/table&feature=next_color")).status).toBe(404);
    expect(await page(`/ops/accuracy/detail?of=${table.name}&feature=window:pink:99`)).toContain(
      "Nothing was measured",
    );
  });

  it("has one verdict in the list, in the details and in the terminal, whichever features are chosen", async () => {
    const other = await makeTable(world.sql, { pause_ms: PAUSE_MS }, { id: "delta" });
    await playTurns(world.sql, other, [150, 320, 1200]);
    // an e-value of 25: enough for one row, too little for two
    const given = [5_000n, 2_500n, 2_500_000_000n, 1_250n * 10n ** 12n, 4_976_734n];
    const sums = new Map([KEY.n, KEY.hits, KEY.sumP, KEY.sumPq, KEY.firstLnE + 5].map((key, at) => [key, given[at]!]));
    for (const feature of [0, 8]) {
      await writeSums(world.sql, other.id, "2026-11-21T12:00:00Z", { feature, period: "all", sums });
    }
    const verdicts = (shown: string) => [...shown.matchAll(/[>"](o\w+ target)[<"]/g)].map(([, verdict]) => verdict);
    for (const feature of ["next_color", ""]) {
      const list = await page(`/ops/accuracy?of=${other.name}&period=all&feature=${feature}`);
      expect(verdicts(list)).toEqual(feature === "" ? ["on target", "on target"] : ["on target"]);
      const asked = ["--table", other.name, "--period", "all", ...(feature === "" ? [] : ["--feature", feature])];
      const env = { DATABASE_URL: world.databaseUrl, REDIS_URL: "redis://127.0.0.1:9/0" };
      const { stdout } = await roundhouse(["accuracy", "--json", ...asked], { env });
      expect(new Set(verdicts(stdout))).toEqual(new Set(["on target"]));
    }
    for (const name of [other.name, other.house]) {
      const detail = await page(`/ops/accuracy/detail?of=${name}&feature=next_color&period=all`);
      expect(verdicts(detail)).toEqual(["on target", "on target"]);
    }
  });

  it("that is withheld has no interval, z or band, neither in the details nor in the terminal", async () => {
    const other = await makeTable(world.sql, { pause_ms: PAUSE_MS }, { id: "delta" });
    const reference = referenceKey(0);
    const keys = [KEY.n, KEY.hits, KEY.sumP, KEY.sumPq, reference, reference + 1, reference + 2, reference + 3];
    const given = [9_000n, 4_500n, 4_400_000_000n, 2_250n * 10n ** 12n];
    const bin = [9_000n, 4_400_000_000n, 4_500n].map((value, at) => [binKey(0, 488) + at, value] as const);
    const counts = new Map([...keys.map((key, at) => [key, given[at % 4]!] as const), ...bin]);
    const env = { DATABASE_URL: world.databaseUrl, REDIS_URL: "redis://127.0.0.1:9/0" };
    for (const voids of [0n, 1_000n]) {
      const sums = new Map([...counts, ...(voids === 0n ? [] : [[KEY.firstVoid, voids] as const])]);
      await writeSums(world.sql, other.id, "2026-11-21T12:00:00Z", { period: "90d", sums });
      const shown = await page(`/ops/accuracy/detail?of=${other.name}&feature=next_color&period=90d`);
      expect(shown.match(/<th scope="col"[^>]*>95 % interval<\/th>/g)?.length ?? 0).toBe(voids === 0n ? 2 : 0);
      expect(/<th scope="row">last_20<\/th>(?:<td[^>]*>[^<]*<\/td>){2}<td[^>]*>2\.11</.test(shown)).toBe(voids === 0n);
      const asked = ["--table", other.name, "--period", "90d", "--feature", "next_color"];
      const { stdout } = await roundhouse(["accuracy", ...asked], { env });
      expect(/^95 % interval +\d/m.test(stdout)).toBe(voids === 0n);
      expect(stdout.includes(" 2.11 ")).toBe(voids === 0n);
      expect(/^40 % to 50 % .*[o|]-/m.test(stdout)).toBe(voids === 0n);
      const list = await page("/ops/accuracy?period=90d&sort=-z");
      expect(list.indexOf(`of=${other.house}%2F`) < list.indexOf(`of=${table.house}%2F`)).toBe(voids === 0n);
    }
  });

  it("of a damaged row is called damaged, and hides no other row", async () => {
    const of = (sums: Buffer) => world.sql`
      update accuracy_hours
      set sums = ${sums}
      where table_id = ${table.id} and feature = 0 and hour = ${kept?.hour ?? null}`;
    const [kept] = await world.sql<{ hour: Date; sums: Buffer }[]>`
      select hour, sums from accuracy_hours where table_id = ${table.id} and feature = 0 order by hour desc limit 1`;
    await of(Buffer.from("many"));
    for (const sort of ["table", "-n", "rate", "z", "skill"]) {
      const list = await page(`/ops/accuracy?of=${table.house}&period=24h&feature=&sort=${sort}`);
      expect(list).toContain("damaged</span> expected the sums of an accuracy row");
      expect(list).toContain("window:");
    }
    expect(await (await viewer.get("/ops/accuracy/list.csv?period=24h")).text()).toContain("damaged");
    await of(kept?.sums ?? Buffer.alloc(0));
  });

  it("cells of a file that a table program would take for a formula are texts", () => {
    expect(csvText([['=a"b', "-1.5 %", "-x"]])).toBe(`"'=a""b",-1.5 %,'-x\r\n`);
  });
});

describe("a caller", () => {
  const call = async (key: string) => {
    const response = await fetch(`${world.url}/api/v1/games`, { headers: { "x-api-key": key } });
    const body = (await response.json()) as { error?: { code: string } };
    return [response.status, body.error?.code];
  };

  async function makeCaller(email: string): Promise<{ id: string; key: string; keyId: string }> {
    const account = await createAccount(world.sql, email);
    const key = await createKey(world.sql, { email, plan: "Pro" });
    if (!account.ok || !key.ok) throw new Error("expected an account with a key");
    return { id: String(account.id), key: key.key, keyId: String(key.id) };
  }

  it("is found by address, id or a key, and shown without the secret", async () => {
    const { id, key } = await makeCaller("ann@callers.example");
    await makeCaller("bob@callers.example");
    for (const q of ["ann@call", id, key.slice(-4), key]) {
      const list = await page(`/ops/callers?q=${encodeURIComponent(q)}`);
      expect(list).toContain("ann@callers.example");
      if (q !== id) expect(list).not.toContain("bob@callers.example");
    }
    const warned = await page(`/ops/callers?q=${key}`);
    expect(warned).toContain("A whole key was sent in the URL");
    expect(warned.split("<main")[1]).not.toContain(key.slice(0, -4));
    expect(await call(key)).toEqual([200, undefined]);
    const shown = await page(`/ops/callers/${id}`);
    expect(shown).toContain(`…${key.slice(-4)}`);
    expect(shown).not.toContain(key.slice(0, -4));
    expect(shown).toContain("Calls today</dt><dd>1 of 100,000");
    expect(shown).toContain('<svg role="img" aria-label="Calls of ann@callers.example by day"');
    expect((await viewer.get("/ops/callers/999")).status).toBe(404);
  });

  it("is refused from the next call on when suspended, and served again when restored", async () => {
    const { id, key } = await makeCaller("cid@callers.example");
    expect(await call(key)).toEqual([200, undefined]);
    const suspended = await operator.post(`/ops/callers/${id}/suspend`, { reason: "its key is on a public page" });
    expect(going(suspended)).toEqual([303, `/ops/callers/${id}`]);
    expect(await call(key)).toEqual([403, "account_suspended"]);
    const twice = await (await world.as("admin")).post(`/ops/callers/${id}/suspend`, { reason: "me too" });
    expect([twice.status, await text(twice)]).toEqual([
      422,
      expect.stringContaining("was suspended by operator@example.com at"),
    ]);
    expect(await page(`/ops/callers?state=suspended`)).toContain("cid@callers.example");
    for (const act of ["suspend", "restore"])
      expect((await operator.post(`/ops/callers/999/${act}`, { reason: "nobody" })).status).toBe(404);
    expect((await operator.post(`/ops/callers/${id}/restore`, { reason: "it was replaced" })).status).toBe(303);
    expect(await call(key)).toEqual([200, undefined]);
    expect((await audited("account.suspend"))[0]).toMatchObject({
      actor: "operator@example.com",
      target: `account ${id}`,
      before: { suspended: false },
      after: { suspended: true, reason: "its key is on a public page" },
    });
    expect((await audited("account.restore"))[0]).toMatchObject({ before: { suspended: true } });
  });

  it("is suspended at the command line by the same rule, with its own words in the log", async () => {
    const { id, key } = await makeCaller("fay@callers.example");
    const place = { env: { DATABASE_URL: world.databaseUrl } };
    const suspend = ["account", "suspend", "fay@callers.example", "--reason", "it asked for it"];
    expect(await roundhouse(suspend, place)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("fay@callers.example is suspended"),
    });
    expect(await call(key)).toEqual([403, "account_suspended"]);
    const { code, stdout } = await roundhouse(["account", "show", "FAY@callers.example", "--json"], place);
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      { suspend_reason: "it asked for it", plan: "Pro", keys: [{}], balance: "0.00", purchases: [] },
    ]);
    expect(stdout).not.toContain(key.slice(0, -4));
    const entries = await audited("account.suspend");
    expect(entries.at(-1)).toMatchObject({ target: `account ${id}`, reason: "it asked for it" });
  });

  it("loses a plan without end at the command line, from the next call on, and nothing that has one", async () => {
    const { id, key } = await makeCaller("gil@callers.example");
    const place = { env: { DATABASE_URL: world.databaseUrl } };
    const end = ["account", "end-plan", "gil@callers.example", "--reason", "the trial is over"];
    expect(await call(key)).toEqual([200, undefined]);
    expect(await roundhouse(end, place)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("has no plan without end any more"),
    });
    expect(await call(key)).toEqual([402, "plan_expired"]);
    expect(await roundhouse(end, place)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("what was bought runs to its end"),
    });
    expect(await audited("account.end-plan")).toMatchObject([
      { target: `account ${id}`, before: { plan: "Pro", ends_at: null }, reason: "the trial is over" },
    ]);
  });

  it("loses one key permanently, and only by its own account", async () => {
    const { id, key, keyId } = await makeCaller("dan@callers.example");
    const other = await makeCaller("eve@callers.example");
    const wrong = await operator.post(`/ops/callers/${other.id}/keys/${keyId}/revoke`, { reason: "a mistake" });
    expect([wrong.status, await call(key)]).toEqual([404, [200, undefined]]);
    expect(await text(wrong)).toContain("there is no such key of this account");
    expect((await operator.post(`/ops/callers/${id}/keys/${keyId}/revoke`, { reason: "leaked" })).status).toBe(303);
    expect(await call(key)).toEqual([401, "revoked_api_key"]);
    expect(await call(other.key)).toEqual([200, undefined]);
    expect(await audited("key.revoke")).toMatchObject([{ target: `key ${keyId} of account ${id}`, reason: "leaked" }]);
    // the log cannot forget an address, and an account that is closed has to be forgotten
    const named = await world.sql`select target from audit_log a where to_jsonb(a)::text like '%@callers.example%'`;
    expect([...named]).toEqual([]);
  });
});

describe("runs that are requested concurrently", () => {
  it("are one of each table that is named, in the order that is chosen", async () => {
    const [, other] = await makeHouse(world.sql, {
      tables: [tableEntry({ house_edge: 0.01, pause_ms: PAUSE_MS }), tableEntry({ market: "other" })],
    });
    await playRounds(world.sql, other?.id ?? 0, [150, 230, 1200]);
    const asked = { table: `${table.name}, ${other?.name}`, model: "k7@1", order: "round", reason: "both of them" };
    const response = await data.post("/ops/calibrations/new", asked);
    expect(going(response)).toEqual([303, expect.stringMatching(/^\/ops\/calibrations\/batches\/\d+$/)]);
    const runs = await world.sql<{ id: string }[]>`
      select id::text as id
      from calibration_runs
      where asked_why = 'both of them'
        and seen_seq is not null
        and table_id in (${table.id}, ${other?.id ?? 0})
      order by id`;
    expect(runs).toHaveLength(2);
    expect(await page(`/ops/calibrations/runs/${runs[0]?.id}`)).toContain("by round id, with late rounds");
    const record = await calibrationOf(runs[1]?.id ?? "");
    expect(await page(`/ops/calibrations/${record}`)).toContain("by round id, 0 of them late");
    expect(await page(`/ops/calibrations/${record}`, data)).not.toContain("Promote calibration");
    expect(await text(await data.post("/ops/calibrations/new", { ...asked, table: "a/b/c" }))).toContain(
      "there is no table a/b/c",
    );
  });
});
