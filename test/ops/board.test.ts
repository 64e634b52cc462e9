import { afterAll, beforeAll, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import pollHouse from "../../jobs/poll-house.ts";
import { KEY, voidKey } from "../../src/forecasts/accuracy/keys.ts";
import { connect, openPipeline, type Sql } from "../../src/db/client.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { loadSettings } from "../../src/config/environment.ts";
import * as houseProblem from "../../src/ops/board/house-problem.ts";
import * as latency from "../../src/ops/board/latency.ts";
import * as rows from "../../src/ops/board/rows.ts";
import * as strip from "../../src/ops/board/strip.ts";
import { startWorkers } from "../../src/queue/worker.ts";
import { sumCells } from "../../src/rounds/gaps/cells-store.ts";
import { readableLog } from "../queue/world.ts";
import { page as rounds, respondWith, startBadHouse } from "../support/bad-house.ts";
import { testContext } from "../support/context.ts";
import { createRedis } from "../support/database.ts";
import type { OpsParts } from "../../src/ops/contract.ts";
import { readBoard } from "../../src/ops/board/facts.ts";
import { eventually } from "../support/eventually.ts";
import { listExamples, runExample } from "../support/examples.ts";
import { postponeProbe } from "./postpone-probe.ts";
import { feedEntry, houseEntry, tableEntry } from "../support/houses.ts";
import { makeItem, makePayload } from "../support/make.ts";
import { passesTo } from "../support/passes-to.ts";
import { writeSums } from "../support/sums.ts";
import { calibrateRolling } from "./data-world.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "./world.ts";

let world: OpsWorld;
let sql: Sql;
let operator: CookieClient;
let viewer: CookieClient;
const secret = "s3cret-of-a-house";

beforeAll(async () => {
  world = await openOpsWorld();
  ({ sql } = world);
  operator = await world.as("operator");
  viewer = await world.as("viewer");
  await applyHouses(sql, [
    houseEntry(),
    houseEntry({ id: "beta", name: "Beta & <Sons>", requests_per_minute: 30, headers: { "x-key": "${BETA_KEY}" } }),
    houseEntry({ id: "gamma", name: "Gamma", tables: [tableEntry({ market: "one" }), tableEntry({ market: "two" })] }),
  ]);
  const table = { id: await tableId("alpha/crash/global") };
  await makePayload(sql, table, { second: 0, items: [makeItem(3, 1.5), makeItem(2, 0), makeItem(1, 1.2)] });
  await makePayload(sql, table, { second: 1, items: [makeItem(4, 2.5), makeItem(3, 1.75)] });
  await makePayload(sql, table, { second: 2, items: [makeItem(9, 3.25)] });
  await normalizeRounds.run({ house: "alpha" }, testContext(sql, { passes: passesTo(world.databaseUrl) }).context);
  await sql`
    insert into workers (id, pid, host, version, queues, rss_bytes, heap_bytes, seen_at)
    values ('w', 7, 'host-of-w', '1.2.3', '{poll-house}', 150000000, 50000000, now() + interval '1 hour')`;
  await sql`insert into heartbeats (name, at, detail) values ('reconcile', now() + interval '1 hour', '{"leader":"w","redisMark":null,"failures":{}}')`;
  await sql`
    update poll_leases
    set
      last_poll_at = clock_timestamp() + interval '1 hour', last_ok_at = clock_timestamp(), last_status = 200, recent = '11'`;
  await sql`
    update table_heads
    set version = version + 1, last_polled_round_at = clock_timestamp()
    where table_id in (select id from tables where house_id = 'gamma')`;
  await sql`
    insert into polls (house_id, shard, minute, requests, statuses, bytes, latency_ms)
    select h.id, 0, date_trunc('minute', now()) - n * interval '1 minute', 20, '{"200": 15, "503": 5}', 1000, '{0,0,10,5,0,0,0,0,0,0}'
    from houses h, generate_series(0, 9) n
    where h.id <> 'gamma'`;
});
afterAll(() => world.close());

async function tableId(name: string): Promise<number> {
  const [row] = await sql<{ id: number }[]>`
    select id from tables where house_id || '/' || game || '/' || market = ${name}`;
  if (row === undefined) throw new Error(`there is no table ${name}`);
  return row.id;
}

async function page(path: string, who = viewer): Promise<string> {
  const response = await who.get(path);
  const failure = response.status === 500 ? (world.lines.findLast((line) => line.includes(`"level":50`)) ?? "") : "";
  expect(`${path} ${response.status} ${failure}`).toBe(`${path} 200 `);
  return (await response.text()).replaceAll(/\s+/g, " ");
}

/** The problems of a page as text, worst first. */
const problemsOf = (html: string) =>
  [...html.matchAll(/<li class="(bad|warn|info)">(.*?)<\/li>/g)].map(
    ([, tone, text = ""]) =>
      `${tone} ${text
        .replaceAll(/<details>.*?<\/details>/g, "")
        .replaceAll(/<[^>]+>/g, "")
        .replaceAll(/\s+/g, " ")
        .trim()}`,
  );
const namesOf = (html: string) =>
  [...html.matchAll(/<th scope="row"><a href="\/ops\/tables\/([^"]+)">[^<]*<\/a><br>/g)].map(([, n]) => n);

describe("the board", () => {
  it("lists first what is wrong, since when, why, and the automatic action", async () => {
    await sql`
      update poll_leases
      set
        circuit = 'open', failures_in_row = 7, opened_times = 3, opened_at = clock_timestamp() - interval '10 minutes',
        next_allowed_at = clock_timestamp() + interval '1 hour', last_status = 503, last_error_at = clock_timestamp(),
        last_error = 'crash/global: answered 503, expected 200'
      where house_id = 'beta'`;
    await sql`insert into alerts (kind, subject, text) values ('house_offline', 'beta', 'beta is offline'), ('not_polled', 'beta', 'beta is due')`;
    const problems = problemsOf(await page("/ops"));
    expect(problems[0]).toMatch(
      /^bad error beta not responding since .*\(10 min.* ago\) crash\/global: answered 503, expected 200 Next: circuit open: probe 3 in \d\d min.*, at .*; alert open since/,
    );
    expect(problems.join("\n")).toMatch(
      /warn warning alpha\/crash\/global 2 gaps since .* 5 rounds are missing Next: backfill attempt 1 of 8/,
    );
    expect(problems.join("\n")).toMatch(/a round has two results/);
    expect(problems.filter((text) => /house_offline|beta is due/.test(text))).toEqual([]);
    expect(problems.filter((text) => text.includes("gamma"))).toEqual([]);
  });

  it("shows of every table what is known, and links each number to its evidence", async () => {
    const id = await tableId("alpha/crash/global");
    const sums = new Map([
      [KEY.forecasts, 1000n],
      [KEY.n, 1000n],
      [KEY.hits, 600n],
      [KEY.sumP, 500_000_000n],
    ]);
    await writeSums(sql, id, "2026-11-21T12:00:00Z", { period: "24h", sums });
    await sql`
      insert into house_audits (table_id, hour, seq, rounds, tested, edge_ppm, ln_e, ln_e_max, proven, missing, gaps)
      values (${id}, date_trunc('hour', now(), 'UTC'), 4, 4, 4, 10000, 2995733, 3500000, 2, 4, 1)`;
    await calibrateRolling(sql, id);
    const html = await page("/ops?q=alpha");
    expect(html).toMatch(/href="\/ops\/gaps\?of=alpha%2Fcrash%2Fglobal&amp;state=open">2</);
    expect(html).toMatch(/href="\/ops\/quarantine\?of=alpha%2Fcrash%2Fglobal&amp;state=open">1</);
    expect(html).toMatch(/href="\/ops\/conflicts\?of=alpha%2Fcrash%2Fglobal&amp;state=open">1</);
    expect(html).toContain("≤ 50 ms, ≤ 100 ms");
    expect(html).toContain('aria-label="responses of alpha, for alpha/crash/global: 200: 150, 503: 50"');
    expect(html).toContain("10.0 kB");
    expect(html).toContain("50.0 % proven");
    expect(html).toContain("<span>20.0</span>"); // at most 33: too little to reject an edge when there are several tables
    expect(html).toContain(">v1<");
    expect(html).toMatch(/<span class="warn">60\.0 %<\/span> \(50\.0 %\)/);
    expect(html).toContain("56.9 % to 63.0 %, n 1,000");
    const hrefs = new Set(
      [...html.matchAll(/href="(\/ops\/[^"#]+)"/g)].map(([, href = ""]) => href.replaceAll("&amp;", "&")),
    );
    for (const href of hrefs) expect([href, (await viewer.get(href)).status]).toEqual([href, 200]);
    await sql`update house_audits set ln_e_max = 20_000_000 where table_id = ${id}`;
    expect(await page("/ops?q=alpha")).toContain('<span class="bad">20.0</span>');
    expect(await page("/ops/tables/alpha/crash/global")).toContain('<small class="bad">not kept</small>');
  });

  it("has no interval of a record that is withheld", async () => {
    const sums = [
      [KEY.n, 1000n],
      [KEY.hits, 600n],
      [KEY.sumP, 500_000_000n],
      [voidKey(1), 100n],
    ] as const;
    const id = await tableId("gamma/crash/one");
    await writeSums(sql, id, "2026-11-21T12:00:00Z", { period: "24h", sums: new Map(sums) });
    for (const path of ["/ops?q=gamma", "/ops/tables/gamma/crash/one"]) {
      const html = await page(path);
      expect(html).toContain("interval withheld: more than 5 % of the rounds are void or late");
      expect(html).not.toContain("56.9 %");
    }
  });

  it("begins with a summary of seven figures, each with its evidence", async () => {
    const html = await page("/ops");
    const tiles = [
      ...html.matchAll(
        /<div class="stat([^"]*)"> <dt><a href="([^"]+)">([^<]+)<\/a><\/dt> <dd class="value">(.*?)<\/dd>/g,
      ),
    ];
    const shown = new Map(
      tiles.map(([, state, href, label, value = ""]) => [
        label,
        [value.replaceAll(/<[^>]+>/g, "").trim(), state, href],
      ]),
    );
    expect([...shown.keys()]).toEqual([
      "Houses live",
      "Lag, p95",
      "Rounds per minute",
      "Forecasts on time",
      "Failed runs",
      "Backlog",
      "Money waiting",
    ]);
    expect(shown.get("Houses live")).toEqual(["1 of 3", " is-bad", "/ops?sort=-lag#tables"]);
    expect(shown.get("Forecasts on time")).toEqual(["0 of 2", " is-warn", "/ops?sort=forecast#tables"]);
    // without Redis the number is unknown, and not 0
    expect(shown.get("Failed runs")).toEqual(["–", " is-bad", "/ops/queues#failures"]);
    expect(shown.get("Backlog")).toEqual(["none", "", "/ops/payloads?state=unread"]);
    expect(shown.get("Money waiting")).toEqual(["0", "", "/ops/bank"]);
    await sql`
      update payloads set state = 'unread', read_at = null where received_at = (select max(received_at) from payloads)`;
    expect(await page("/ops")).toMatch(/stat is-warn"> <dt><a href="\/ops\/payloads\?state=unread">Backlog/);
    await sql`update payloads set state = 'read', read_at = now() where state = 'unread'`;
  });

  it("hides the columns that matter less below 1920 px, until all are chosen", async () => {
    const extra = /<th scope="col" class="(?:num )?extra"/g;
    expect((await page("/ops")).match(extra)).toHaveLength(7);
    const all = await page("/ops?columns=all&q=gam");
    expect(all.match(extra)).toBeNull();
    expect(all).toContain('<input type="hidden" name="columns" value="all">');
    expect(all).toContain('<a href="/ops?columns=all">Clear</a>'.replace("<a", '<a class="button quiet"'));
  });

  it("names the filters that are set, and offers to clear them only then", async () => {
    const set = /Filtered by: ([^<]+)</;
    for (const [path, names] of [
      ["/ops?q=gam&wrong=1", "Name, Only with problems"],
      ["/ops/gaps?state=", "State"],
      ["/ops/conflicts?of=alpha", "House or table"],
      ["/ops/notices?kind=gap", "Kind"],
      ["/ops/mails?state=sent", "State"],
    ] as const) {
      expect([path, set.exec(await page(path))?.[1]]).toEqual([path, names]);
      const plain = await page(path.slice(0, path.indexOf("?")));
      expect(plain).not.toMatch(set);
      expect(plain).not.toContain(">Clear<");
    }
  });

  it("filters, sorts and pages by its URL, worst first by default", async () => {
    expect(namesOf(await page("/ops"))[0]).toBe("beta/crash/global");
    expect(namesOf(await page("/ops?q=gam"))).toEqual(["gamma/crash/one", "gamma/crash/two"]);
    expect(namesOf(await page("/ops?sort=-table"))[0]).toBe("gamma/crash/two");
    expect(namesOf(await page("/ops?wrong=1"))).toEqual(["beta/crash/global", "alpha/crash/global"]);
    expect(namesOf(await page("/ops?status=live"))).toEqual(["gamma/crash/one", "gamma/crash/two"]);
    expect(namesOf(await page("/ops?page=2"))).toEqual([]);
    for (const sort of rows.SORTS) expect(namesOf(await page(`/ops?sort=-${sort}`))).toHaveLength(4);
    expect((await viewer.get("/ops?sort=height")).status).toBe(400);
    expect(await page("/ops?q=%3Cscript%3E")).not.toContain("<script>");
  });

  it("shows how fresh tables were, and links cells with gaps to them", async () => {
    for (let looks = 0; looks < 60 && (await sumCells(sql)) > 0; looks++); // an hour each, less the cell that is looked at again
    expect(await sumCells(sql)).toBe(0);
    const lengths = await sql<{ hours: number; cells: number }[]>`
      select count(*)::integer as hours, sum(cardinality(rounds))::integer as cells
      from round_cells where table_id = ${await tableId("alpha/crash/global")}`;
    expect(lengths[0]?.hours).toBeGreaterThanOrEqual(24);
    expect(lengths[0]?.cells).toBeGreaterThanOrEqual(288);
    const summed = await sql<{ n: number }[]>`
      select sum(n)::integer as n from round_cells, unnest(rounds) as cell (n) where table_id = ${await tableId("alpha/crash/global")}`;
    expect(summed[0]?.n).toBe(4); // the fifth item was refused
    // hours before the table existed do not count towards its usual rate
    expect(await page("/ops?q=alpha")).toContain("usual not known");
    await sql`update tables set created_at = created_at - interval '2 days'`;
    const html = await page("/ops?q=alpha");
    expect(html).not.toContain("usual not known");
    expect(html).toMatch(/without a round, .*2 gaps/);
    expect(html).toMatch(
      /<a href="\/ops\/gaps\?of=alpha%2Fcrash%2Fglobal&amp;state=open" aria-label="alpha\/crash\/global: 2 gaps found at \d\d:\d\d, 5 rounds, 2 open">/,
    );
  });

  it("shows for the queues, without Redis, what PostgreSQL knows", async () => {
    await sql`insert into queue_controls (queue, paused_by, reason) values ('poll-house', 'ann', 'a quiet night')`;
    const html = await page("/ops/queues");
    expect(html).toContain("was given no Redis (REDIS_URL)");
    expect(html).toContain("a quiet night");
    expect(problemsOf(await page("/ops")).join()).toContain("queue paused by ann");
    const refused = await operator.post("/ops/queues/poll-house/resume", { reason: "once more" });
    expect(refused.status).toBe(503);
    expect((await viewer.get("/ops/queues/poll-house")).status).toBe(503);
    await sql`delete from queue_controls`;
  });

  it("shows every alert with its action, also of a table that has another problem", async () => {
    await sql`
      insert into alerts (kind, subject, text)
      values
        ('scoring', 'alpha/crash/global', 'its forecasts cannot be scored'),
        ('usdt', 'endpoint 1', 'BNB Smart Chain cannot be read'),
        ('payment-app', 'orders not reported', 'it did not respond')`;
    const html = await page("/ops/alerts");
    const problems = problemsOf(html).join("\n");
    expect(problems).toMatch(
      /bad error alpha\/crash\/global alert: scoring .*its forecasts cannot be scored.* Open table/,
    );
    expect(problems).toMatch(/bad error endpoint 1 chain endpoint or deposit .* Open deposits/);
    expect(problems).toMatch(/bad error orders not reported payment app .* Open payment app/);
    expect(html).toContain('href="/ops/deposits">Open deposits<');
    await sql`update alerts set closed_at = clock_timestamp() where kind in ('scoring', 'usdt', 'payment-app')`;
    expect(problemsOf(await page("/ops/alerts")).join()).not.toMatch(/scoring|chain endpoint|payment app/);
  });

  it("shows seven equal problems as one with seven places, as old as the oldest", async () => {
    await sql`
      insert into alerts (kind, subject, text, opened_at)
      select 'scoring', 'zeta/crash/m' || n, 'failure ' || n, clock_timestamp() - n * interval '1 hour'
      from generate_series(1, 7) n`;
    const html = await page("/ops/alerts");
    expect(html.match(/alert: scoring/g)).toHaveLength(1);
    expect(html).toMatch(/7 places:<\/strong> alert: scoring [^(]*\(<time [^>]*>7 h ago<\/time>\)/);
    for (const n of [1, 2, 3, 4, 5, 6, 7]) {
      expect(html).toContain(`<a href="/ops/tables/zeta/crash/m${n}">zeta/crash/m${n}</a>: failure ${n}`);
    }
    await sql`delete from alerts where kind = 'scoring'`;
  });

  it("shows a notice by staff about a house once, and links the page that equal problems have in common", async () => {
    const text = "the house moves";
    const notices = sql`
      insert into notices (table_id, kind, text)
      select id, kind, ${text} from tables, unnest('{operator,quarantine}'::text[]) kind where house_id = 'gamma'`;
    await notices;
    const moved = problemsOf(await page("/ops/houses/gamma")).filter((problem) => problem.includes("notice by staff"));
    expect(moved).toEqual([expect.stringMatching(/^info notice gamma notice by staff since .* The house moves /)]);
    const html = await page("/ops/alerts");
    expect(html).toMatch(/3 places:<\/strong> items in quarantine/);
    expect(html).toContain('href="/ops/quarantine">Decide items<');
    await sql`delete from notices where text = ${text}`;
  });

  it("shows a part of the reconciler that fails", async () => {
    await sql`
      update heartbeats
      set detail = jsonb_set(detail, '{failures}', '{"Redis": "it is away, so nothing is reconciled"}')
      where name = 'reconcile'`;
    expect(problemsOf(await page("/ops/alerts")).join()).toMatch(/bad error Redis reconciliation fails/);
    await sql`update heartbeats set detail = jsonb_set(detail, '{failures}', '{}') where name = 'reconcile'`;
  });

  it("reports that no worker runs", async () => {
    await sql`update workers set seen_at = now() - interval '30 seconds'`;
    expect(problemsOf(await page("/ops"))[0]).toMatch(/no worker is running/);
    await sql`update workers set seen_at = now() + interval '1 hour', clock_problem = 'the clock is 900 ms ahead'`;
    expect(problemsOf(await page("/ops")).join()).toMatch(/wrong clock/);
    await sql`update workers set clock_problem = null`;
  });
});

describe("a house", () => {
  it("is shown with its polls, failures, budget and settings, and no secret", async () => {
    process.env["BETA_KEY"] = secret;
    await sql`
      insert into poll_failures (house_id, status, reason, detail)
      values ('beta', 503, 'status', '<i>answered 503</i>')`;
    const html = await page("/ops/houses/beta");
    expect(html).toContain("Beta &amp; &lt;Sons&gt;");
    expect(html).toContain("30 requests per minute");
    expect(html).toContain("&lt;i&gt;answered 503&lt;/i&gt;");
    expect(html).toContain("${BETA_KEY}");
    expect(html).not.toContain(secret);
    expect(html).toMatch(/<td>200: 15, 503: 5<\/td>/);
    expect(html).not.toContain("/act?do=");
    for (const [, href = ""] of html.matchAll(/href="(\/ops\/[^"#]+)"/g)) {
      expect([href, (await viewer.get(href.replaceAll("&amp;", "&"))).status]).toEqual([href, 200]);
    }
    expect((await viewer.get("/ops/houses/nobody")).status).toBe(404);
  });

  it("with an open circuit is requested again at its next poll, and its opening and closing are recorded", async () => {
    expect(await page("/ops/houses/beta", operator)).toContain("act?do=probe");
    const probed = await operator.post("/ops/houses/beta/probe", { reason: "they report they are back" });
    expect(probed.status).toBe(303);
    expect(
      await sql`select circuit, next_allowed_at::text as at from poll_leases where house_id = 'beta'`,
    ).toMatchObject([{ circuit: "open", at: "-infinity" }]);
    expect((await operator.post("/ops/houses/beta/close", { reason: "begin again" })).status).toBe(303);
    const none = await operator.post("/ops/houses/beta/probe", { reason: "once more" });
    expect(none.status).toBe(422);
    expect(await none.text()).toContain("its circuit is closed");
    expect((await operator.post("/ops/houses/nobody/probe", { reason: "once more" })).status).toBe(404);
    expect([...(await sql`select state, reason from circuit_changes order by id`)]).toEqual([
      { state: "open", reason: "crash/global: answered 503, expected 200" },
      { state: "closed", reason: null },
    ]);
    expect(await page("/ops/houses/beta")).toMatch(/1\d min[^<]* open/);
  });

  it("is read alone for its page", async () => {
    const read = async (house?: string) => {
      const parts = { sql: world.sql, liveWindowSeconds: 300 } as OpsParts;
      const { tables, houses, open, notices, usual } = await readBoard(parts, house);
      const ids = (facts: readonly { tableId: number }[]) => facts.map((one) => one.tableId).toSorted((a, b) => a - b);
      return { tables, houses: houses.map(({ id }) => id), open: ids(open), notices: ids(notices), usual: ids(usual) };
    };
    const [all, own] = [await read(), await read("alpha")];
    const isOwn = new Set(all.tables.filter(({ house }) => house === "alpha").map(({ id }) => id));
    expect(own.houses).toEqual(["alpha"]);
    expect(new Set(own.tables.map(({ id }) => id))).toEqual(isOwn);
    for (const part of ["open", "notices", "usual"] as const) {
      expect([part, own[part]]).toEqual([part, all[part].filter((id) => isOwn.has(id))]);
    }
    expect(own.open).not.toEqual([]);
  });

  it("shows the rounds per minute of a new table since its first response, whose rounds are older", async () => {
    const id = await tableId("alpha/crash/global");
    const rateOf = async () => />(\d+\.\d)<\/td>/.exec(await page("/ops/houses/alpha"))?.[1];
    const firstAgo = async (minutes: number) => {
      await sql`
        update rounds
        set received_at = now() - case when seq <= 2 then ${minutes} else 1 end * interval '1 minute'
        where table_id = ${id}`;
    };
    await firstAgo(4);
    expect(await rateOf()).toBe("0.5");
    await firstAgo(60);
    expect(await rateOf()).toBe("0.2");
  });

  it("shows when it is polled next only if that is to come", async () => {
    const nextPoll = async () =>
      /good<\/td><td class="num">\d+<\/td><td>(.*?)<\/td>/.exec(await page("/ops/houses/alpha"))?.[1];
    await sql`update poll_leases set next_allowed_at = now() + interval '90 seconds' where house_id = 'alpha'`;
    expect(await nextPoll()).toMatch(/>in 1 min (2\d|30) s<\/time>$/);
    await sql`update poll_leases set next_allowed_at = now() - interval '90 seconds' where house_id = 'alpha'`;
    expect(await nextPoll()).toBe('<span class="quiet">–</span>');
  });

  it("is paused once, and resumed only if its pause is the one that was shown", async () => {
    const admin = await world.as("admin");
    const sent = await Promise.all([
      operator.post("/ops/houses/gamma/pause", { reason: "they asked us to wait" }),
      admin.post("/ops/houses/gamma/pause", { reason: "maintenance" }),
    ]);
    expect(sent.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 422]);
    const refused = sent.find(({ status }) => status === 422);
    expect(await refused?.text()).toMatch(/gamma is paused already: by (operator|admin)@example\.com since/);
    expect(problemsOf(await page("/ops")).join()).toMatch(/info notice gamma paused by/);
    const form = await page("/ops/houses/gamma/act?do=resume", operator);
    const version = (/name="version" value="([^"]+)"/.exec(form)?.[1] ?? "").replaceAll("&#43;", "+");
    const stale = await operator.post("/ops/houses/gamma/resume", { reason: "over", version: "2020-01-01" });
    expect(stale.status).toBe(422);
    expect((await operator.post("/ops/houses/gamma/resume", { reason: "they are back", version })).status).toBe(303);
    const entries = await sql<{ action: string }[]>`
      select action, target, reason, before ->> 'pausedBy' as "pausedBy" from audit_log where target = 'house gamma' order by seq`;
    expect([...entries]).toMatchObject([
      { action: "house.pause", pausedBy: null },
      { action: "house.resume", reason: "they are back", pausedBy: expect.stringContaining("@example.com") },
    ]);
  });
});

describe("a table", () => {
  it("is shown with its rounds, forecasts, notices, gaps and proof", async () => {
    const html = await page("/ops/tables/alpha/crash/global");
    expect(html).toMatch(/<td>9<\/td><td class="num">3\.25×<\/td><td>purple<\/td>/);
    expect(html).toContain("after a gap");
    expect(html).toMatch(/href="\/ops\/payloads\/\d+\/\d{4}-\d\d-\d\dT[\d:.]+Z">poll/);
    expect(html).toContain("No forecasts yet.");
    expect(html).toMatch(/>2 gaps<.*>1 quarantined item<.*>1 conflict</);
    expect(html).toContain("No round is linked to a published chain.");
    expect(html).toMatch(/<strong>conflict<\/strong> since/);
    expect((await viewer.get("/ops/tables/alpha/crash/nowhere")).status).toBe(404);
  });
});

it("figures equal their examples", () => {
  const examples = ["latency", "rows", "strip", "house-problem"].flatMap((name) =>
    listExamples(`src/ops/board/${name}.ts`),
  );
  const claims = examples.flatMap((example) => runExample(example, { ...latency, ...rows, ...strip, ...houseProblem }));
  expect(claims.length).toBeGreaterThan(10);
  for (const { line, actual, expected } of claims) expect(actual, line).toEqual(expected);
});

describe("a house that is killed", () => {
  it("appears red with its reason, and is well again by itself when it is back", async () => {
    const { log } = readableLog();
    let house = await startBadHouse();
    let newest = 100;
    const respond = () =>
      house.on("/rounds", (request, response) => respondWith(rounds((newest += 1)))(request, response));
    respond();
    const entry = {
      id: "demo",
      name: "Demo",
      base_url: house.url,
      poll_every_ms: 200,
      tables: [tableEntry({ feed: feedEntry() })],
    };
    await applyHouses(sql, [houseEntry(entry)]);
    const redis = await createRedis();
    const own = connect(world.databaseUrl, { name: "worker", max: 6 });
    const pipeline = openPipeline(world.databaseUrl, { name: "worker" });
    const http = createHouseClient({ version: "0.0.0" });
    const workers = await startWorkers({
      jobs: [pollHouse, normalizeRounds],
      sql: own,
      passes: createPasses(pipeline),
      redisUrl: redis.url,
      settings: loadSettings({ ALLOW_PRIVATE_HOUSES: "1" }),
      variables: () => undefined,
      http,
      log,
      version: "1.2.3",
      onFatal: (error) => log.fatal(error),
      tickMs: 500,
    });
    const problem = async () => problemsOf(await page("/ops")).find((text) => text.includes(" demo "));
    try {
      const live = () => page("/ops?status=live");
      await eventually(
        async () => namesOf(await live()).includes("demo/crash/global") && (await problem()) === undefined,
      );

      const { port } = new URL(house.url);
      await house.close();
      const red = await eventually(problem, { timeoutMs: 15_000 });
      expect(red).toMatch(
        /^bad error demo .*(polls fail|not responding).*since .*ECONNREFUSED.*Next: (polled every|circuit)/,
      );
      const open = await eventually(async () => {
        const text = await problem();
        return text?.includes("circuit open:") === true && text;
      });
      expect(open).toMatch(/Next: circuit open: probe \d+ (now|in \d+ s)/);
      await eventually(() => postponeProbe(sql, "demo"));

      house = await startBadHouse(Number(port));
      respond();
      expect((await operator.post("/ops/houses/demo/probe", { reason: "it is back" })).status).toBe(303);
      await eventually(async () => (await problem()) === undefined);
      expect(namesOf(await live())).toContain("demo/crash/global");
    } finally {
      await workers.stop(0);
      await http.close();
      await own.end({ timeout: 1 });
      await pipeline.end({ timeout: 1 });
      await house.close();
    }
  });
});
