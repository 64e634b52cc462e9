import { globSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { totalmem } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { jobs } from "../../jobs/index.ts";
import { connect } from "../../src/db/client.ts";
import { createMetrics } from "../../src/metrics/metrics.ts";
import { eventually } from "../support/eventually.ts";
import { createWorkingWorld, type WorkingWorld } from "./world.ts";
import { readScrape, type Scraped } from "./scraped.ts";

let world: WorkingWorld;
beforeAll(async () => {
  world = await createWorkingWorld();
});
afterAll(() => world.end());

/** A scrape that has what each server reports: it waits 0.8 s for them, which may be too short on a busy machine. */
function scrape(): Promise<Scraped> {
  return eventually(async () => {
    const response = await fetch(`${world.apiUrl}/metrics`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const read = readScrape(await response.text());
    for (const part of ["postgres", "facts", "redis"]) expect(read.value(`roundhouse_up{part="${part}"}`)).toBe(1);
    return read;
  });
}

describe("the time of a response", () => {
  it("finds the line of the run that brought its rounds", async () => {
    const played = [await world.play(), await world.play()];
    for (const receivedAt of played) {
      // the line is written a moment after the commit
      const named = await eventually(() => {
        const lines = world.lines.filter(({ traces }) => Array.isArray(traces) && traces.includes(receivedAt));
        return lines.length > 0 && lines;
      });
      expect(named).toMatchObject([{ queue: "poll-house", msg: "done", counts: { rounds: expect.any(Number) } }]);
    }
    expect(new Set(played).size).toBe(2);
  });
});

describe("a scrape", () => {
  it("report houses, rounds, jobs and queues", async () => {
    await world.play();
    const read = await eventually(async () => {
      const found = await scrape();
      const counted = found.value('roundhouse_job_results_total{queue="poll-house",result="rounds"}');
      return counted === found.value('roundhouse_rounds_total{house="alpha"}') && found;
    });
    expect(read.value('roundhouse_rounds_total{house="alpha"}')).toBeGreaterThanOrEqual(4);
    expect(read.value('roundhouse_forecasts_issued_total{house="alpha"}')).toBeGreaterThan(0);
    expect(read.value('roundhouse_house_lag_seconds{house="alpha"}')).toBeLessThan(60);
    expect(read.value('roundhouse_house_tables{house="alpha"}')).toBe(1);
    expect(read.value('roundhouse_house_paused{house="alpha"}')).toBe(0);
    expect(read.value('roundhouse_house_circuit{house="alpha",state="closed"}')).toBe(1);
    expect(read.value('roundhouse_gaps_open{house="alpha"}')).toBe(0);
    expect(read.value("roundhouse_workers")).toBe(1);
    expect(read.value("roundhouse_partitions_ahead_seconds")).toBeGreaterThanOrEqual(2 * 86_400);
    expect(read.value("roundhouse_database_bytes")).toBeGreaterThan(1e6);
    expect(read.value('roundhouse_house_requests_total{house="alpha",outcome="response",code="200"}')).toBeGreaterThan(
      3,
    );
    expect(read.value('roundhouse_house_request_duration_seconds_count{house="alpha"}')).toBeGreaterThan(3);
    expect(read.value('roundhouse_house_response_bytes_total{house="alpha"}')).toBeGreaterThan(100);
    expect(read.value('roundhouse_job_runs_total{queue="poll-house",outcome="done"}')).toBeGreaterThan(0);
    expect(read.value('roundhouse_job_duration_seconds_count{queue="poll-house"}')).toBeGreaterThan(0);
    expect(read.value('roundhouse_queue_runs{queue="poll-house",state="failed"}')).toBe(0);
    expect(read.value('roundhouse_queue_oldest_age_seconds{queue="calibrate-table",state="waiting"}')).toBe(0);
    expect(read.value('roundhouse_info{version="1.2.3"}')).toBe(1);
    expect(read.knows("nodejs_eventloop_lag_p99_seconds")).toBe(true);
  });

  it("has the limits of the process's memory, which alerts compare with what it uses", async () => {
    const read = await scrape();
    const limit = (of: string) => read.value(`roundhouse_memory_limit_bytes{of="${of}"}`) ?? 0;
    const used = read.value("nodejs_heap_size_used_bytes") ?? 0;
    expect(used).toBeGreaterThan(0);
    expect(limit("heap")).toBeGreaterThan(used);
    expect(limit("process")).toBeGreaterThan(read.value("process_resident_memory_bytes") ?? Infinity);
    expect(limit("process")).toBeLessThanOrEqual(totalmem());
  });

  it("counts requests by endpoint and code, and never by what a caller made up", async () => {
    const ask = (url: string, key = world.key) => fetch(world.apiUrl + url, { headers: { "X-Api-Key": key } });
    // a machine that is busy may refuse the first ones, since it cannot count them in time
    await eventually(async () => (await ask("/api/v1/games")).status === 200);
    await ask("/api/v1/games?x=1");
    await ask("/api/v1/games", "rh_live_wrong");
    await ask("/api/v1/nothing-of-ours");
    await ask("/made/up?by=anyone");
    const read = await eventually(async () => {
      const found = await scrape();
      return found.value('roundhouse_http_requests_total{endpoint="other",code="404"}') === 1 && found;
    });
    const requests = (endpoint: string, code: number) =>
      read.value(`roundhouse_http_requests_total{endpoint="${endpoint}",code="${code}"}`);
    expect(requests("/api/v1/games", 200)).toBe(1);
    expect(requests("/api/v1/games", 400)).toBe(1);
    expect(requests("/api/v1/games", 401)).toBe(1);
    expect(requests("/api", 404)).toBe(1);
    const ofGames = (suffix: string, bound = "") =>
      read.value(`roundhouse_http_request_duration_seconds_${suffix}{${bound}endpoint="/api/v1/games"}`);
    expect(ofGames("count")).toBe(3 + (requests("/api/v1/games", 503) ?? 0));
    expect(ofGames("bucket", 'le="+Inf",')).toBe(ofGames("count"));
    expect(read.value('roundhouse_http_errors_total{code="invalid_api_key"}')).toBe(1);
    expect(read.value("roundhouse_meter_batch_calls_sum")).toBeGreaterThanOrEqual(1);
    expect(read.value("roundhouse_meter_batch_duration_seconds_count")).toBeGreaterThanOrEqual(1);
  });

  it("has no label that grows with tables or callers", async () => {
    const { samples } = await scrape();
    const labels = new Set([...samples.keys()].flatMap((key) => [...key.matchAll(/(\w+)="/g)].map(([, name]) => name)));
    expect([...labels].filter((name) => /table|key|account|path|round|payload|id$/.test(name ?? ""))).toEqual([]);
  });

  it("respond while PostgreSQL accepts and never responds, and Redis is gone, and report it", async () => {
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    const address = silent.address();
    if (address === null || typeof address === "string") throw new Error("expected a port");
    const sql = connect(`postgres://nobody@127.0.0.1:${address.port}/nothing`, { name: "test" });
    const queues = await world.open([]);
    queues.redis.disconnect();
    await eventually(() => queues.redis.status === "end");
    const metrics = createMetrics({ sql, queues: () => queues }, { version: "0", endpoints: [], log: world.log });
    const read = readScrape(await metrics.scrape());
    expect(read.value('roundhouse_up{part="postgres"}')).toBe(0);
    expect(read.value('roundhouse_up{part="redis"}')).toBe(0);
    expect([...read.samples.keys()].filter((key) => key.startsWith("roundhouse_house_lag"))).toEqual([]);
    expect(read.knows("roundhouse_house_lag_seconds")).toBe(true);
    silent.close();
    await sql.end({ timeout: 0 });
  });
});

const rules = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.strictObject({
          alert: z.string().regex(/^[A-Z][a-z]+(?:[A-Z][a-z]*)+$/),
          expr: z.string(),
          for: z
            .string()
            .regex(/^\d+[smh]$/)
            .optional(),
          labels: z.strictObject({ severity: z.enum(["critical", "warning"]) }),
          annotations: z.strictObject({ summary: z.string().min(10), runbook: z.string().min(60) }),
        }),
      ),
    }),
  ),
});

const dashboard = z.object({
  uid: z.string(),
  title: z.string(),
  schemaVersion: z.int(),
  templating: z.object({ list: z.array(z.object({ name: z.string(), query: z.unknown() })) }),
  panels: z.array(
    z.object({
      id: z.int(),
      title: z.string(),
      type: z.enum(["row", "stat", "timeseries"]),
      gridPos: z.object({ x: z.int(), y: z.int(), w: z.int().max(24), h: z.int() }),
      targets: z.array(z.object({ refId: z.string(), expr: z.string() })).optional(),
    }),
  ),
});

const read = (file: string) => readFileSync(path.join(import.meta.dirname, "../../deploy", file), "utf8");
/** Names of metrics in an expression: `up` is Prometheus' own. */
const metricsIn = (expression: string) =>
  [...expression.matchAll(/\b(?:roundhouse|process|nodejs)_\w+/g)].map(([name]) => name);

describe("what is in deploy", () => {
  const { groups } = rules.parse(parse(read("roundhouse.rules.yml")));
  const alerts = groups.flatMap((group) => group.rules);
  const board = dashboard.parse(JSON.parse(read("grafana-dashboard.json")));
  const expressions = board.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

  it("asks only for metrics that a scrape shows, and leaves none of ours out", async () => {
    const scraped = await scrape();
    const used = new Set([...alerts.map(({ expr }) => expr), ...expressions].flatMap(metricsIn));
    expect([...used].filter((name) => !scraped.knows(name))).toEqual([]);
    const ours = [...scraped.types.keys()].filter((name) => name.startsWith("roundhouse_"));
    const shown = new Set([...used].map((name) => name.replace(/_bucket$/, "")));
    expect(ours.filter((name) => !shown.has(name))).toEqual([]);
  });

  it("selects only queues and results that jobs have", () => {
    const texts = [...alerts.flatMap(({ expr, annotations: { runbook } }) => [expr, runbook]), ...expressions];
    const selected = (label: string) => [
      ...new Set(
        texts.flatMap((text) =>
          [...text.matchAll(new RegExp(String.raw`\b${label}(?:=~|!~|!=|=)"([^"]+)"`, "g"))].flatMap(([, value = ""]) =>
            value.split("|"),
          ),
        ),
      ),
    ];
    const queues = new Set(jobs.map(({ name }) => name));
    expect(selected("queue").filter((queue) => !queues.has(queue))).toEqual([]);
    const root = path.join(import.meta.dirname, "../..");
    const sources = ["jobs/*.ts", "src/pass/after-commit.ts", "src/backfill/*.ts"]
      .flatMap((files) => globSync(files, { cwd: root }))
      .map((file) => readFileSync(path.join(root, file), "utf8").replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, ""));
    const isReturned = (result: string) =>
      sources.some((text) => new RegExp(String.raw`\b${result}\b[:, ]`).test(text));
    const results = selected("result");
    expect(results.length).toBeGreaterThan(5);
    expect(results.filter((result) => !isReturned(result))).toEqual([]);
  });

  it("names only commands that there are", () => {
    const commands = alerts.flatMap(({ annotations: { runbook } }) =>
      [...runbook.matchAll(/`roundhouse ([a-z-]+)/g)].map(([, command]) => command ?? ""),
    );
    expect(commands.length).toBeGreaterThan(20);
    const files = globSync("src/cli/**/*.ts", { cwd: path.join(import.meta.dirname, "../..") });
    const known = new Set(files.map((file) => path.basename(file, ".ts")));
    expect(commands.filter((command) => !known.has(command))).toEqual([]);
  });

  it("names each alert once, and its runbook names a command, a table, a signal or another alert", () => {
    const names = alerts.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(names.length);
    for (const { alert, annotations } of alerts) {
      const { runbook } = annotations;
      expect(/`|\/ops|SIG/.test(runbook) || names.some((name) => runbook.includes(name)), alert).toBe(true);
    }
  });

  it("has a dashboard whose panels have their own ids and do not overlap", () => {
    const ids = board.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const cells = board.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)} ${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    for (const { gridPos } of board.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  });

  it("has a scrape example that asks for our path, our rules and our job", () => {
    const config = z
      .object({
        rule_files: z.array(z.string()),
        scrape_configs: z.array(z.object({ job_name: z.string(), metrics_path: z.string() })),
      })
      .parse(parse(read("prometheus.yml")));
    expect(config.rule_files).toEqual(["roundhouse.rules.yml"]);
    expect(config.scrape_configs).toMatchObject([{ job_name: "roundhouse", metrics_path: "/metrics" }]);
  });
});
