import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SIGN_UP_SECONDS } from "../../src/accounts/holders/sign-up.ts";
import { KNOWN_SECONDS } from "../../src/accounts/identity/devices.ts";
import { TRIES_KEPT_SECONDS } from "../../src/accounts/identity/tries.ts";
import { legalText } from "../../src/accounts/legal.ts";
import { FAILURES } from "../../src/http/errors.ts";
import { openApiDocument } from "../../src/api/openapi/document.ts";
import { OPERATIONS } from "../../src/api/operations.ts";
import { setPlan } from "../../src/callers/plan-store.ts";
import { SESSION_SECONDS as CONSOLE_SECONDS } from "../../src/console/sign-in/limits.ts";
import { USAGE_DAYS_KEPT_DAYS, USAGE_FACTS_KEPT_DAYS } from "../../src/housekeeping/limits.ts";
import { ENDED_KEPT_DAYS } from "../../src/mail/limits.ts";
import { SESSION_SECONDS as OPS_SECONDS } from "../../src/ops/sign-in/limits.ts";
import { FONTS, SCRIPT, STYLE } from "../../src/frame/assets.ts";
import type { Sample } from "../../src/frame/components.ts";
import { SITE_SCRIPT, SITE_STYLE } from "../../src/site/assets.ts";
import { PART_TIMEOUT_MS } from "../../src/site/loader.ts";
import { guidePages } from "../../src/site/docs/guides.ts";
import { helplineBlocks, readHelplines } from "../../src/site/legal/helplines.ts";
import { prose } from "../../src/frame/text/prose.ts";
import { addRounds, errorBody, makeWorld, secondsAgo, type World } from "../api/world.ts";
import { promisesIn } from "../forecasts/words.ts";
import { eventually } from "../support/eventually.ts";
import { openWire } from "./wire.ts";

const NOTICE = "Information only. Rounds come from the house&#39;s random generator; no outcome is guaranteed. 18+.";
const PAGES = [
  "/",
  "/houses",
  "/accuracy",
  "/method",
  "/plans",
  "/status",
  "/terms",
  "/privacy",
  "/responsible-gambling",
  "/docs",
  "/docs/errors",
  "/docs/changes",
  "/docs/quick-start",
  "/docs/guides/polling",
  "/docs/guides/verify",
  "/docs/guides/accuracy",
];
const HELPLINES = join(tmpdir(), `helplines-${process.pid}.txt`);
let world: World;

beforeAll(async () => {
  await writeFile(HELPLINES, "# Spain\nJuego responsable:\n900 533 025 <free>\n\n- one\n- two\n");
  const settings = { HELPLINES_FILE: HELPLINES, OPERATOR_NAME: "Example & Sons", PAYLOAD_RETENTION_HOURS: 48 };
  world = await makeWorld({ PUBLIC_URL: "https://rounds.example", ...settings });
});
afterAll(async () => {
  await world.close();
  await Promise.all([HELPLINES, `${HELPLINES}.large`].map((file) => rm(file, { force: true })));
});

const html = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
/** A page as a browser reads it: white space between its parts means nothing. */
const page = async (path: string, of = world) => {
  const response = await fetch(of.api.url + path, { headers: html });
  expect(response.status, path).toBe(200);
  return tightened(await response.text());
};
const tightened = (text: string) => text.replaceAll(/\s+/g, " ").replaceAll(/ ?(<[^>]*>) ?/g, "$1");
/** What is written on a page. */
const wordsOf = (text: string) => text.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
const badge = (word: string, tone: string) => `<span class="badge ${tone}">${word}</span>`;

describe("the first page", () => {
  it("links tables and houses, and marks those whose rounds are invented", async () => {
    const text = await page("/");
    for (const table of ["alpha/crash/global", "alpha/dice/eu", "gamma/rocket/one"]) {
      expect(text).toContain(`<a href="/houses/${table}"><strong>${table}</strong></a>`);
      expect(text).toContain(`<a href="/houses/${table.split("/")[0]}">`);
    }
    expect(text).toMatch(
      /<strong>beta\/crash\/eu<\/strong><\/a><span class="badge [a-z]+">[a-z]+<\/span><span class="badge info">simulated</,
    );
  });

  it("has every house with the badge that callers get, and marks simulated ones", async () => {
    const { sql } = world;
    await addRounds(sql, "alpha/dice/eu", [{ id: "7" }]);
    const old = { receivedAt: secondsAgo(120) };
    await addRounds(sql, "beta/crash/eu", [
      { id: "1", ...old },
      { id: "2", ...old, hundredths: 1_234, color: "pink" },
      ...["3", "4", "5"].map((id) => ({ id, ...old, hundredths: 31_337 })),
    ]);
    await addRounds(sql, "gamma/rocket/one", [{ id: "1", receivedAt: secondsAgo(301) }]);
    await sql`update houses set demo = true where id = 'gamma'`;
    const row = (name: string, id: string, marks: string, status: string) =>
      `<a href="/houses/${id}">${name}</a><p>${status}${marks}`;
    await eventually(async () => {
      const text = await page("/");
      expect(text).toContain(row("Alpha", "alpha", "", badge("live", "good")));
      expect(text).toContain(row("Beta", "beta", badge("simulated", "info"), badge("live", "good")));
      expect(text).toContain(row("Gamma", "gamma", badge("demo", "info"), badge("stale", "warn")));
      return true;
    });
    const games = await (await world.get("/api/v1/games?house=gamma")).text();
    expect(games).toContain('"status":"stale"');
    await sql`update houses set demo = false where id = 'gamma'`;
  });

  it("shows rounds a minute and three rounds late, and open notices, escaped", async () => {
    const old = [1, 2, 3, 4, 5].map((id) => ({
      id: String(100 + id),
      hundredths: id === 2 ? 1_234 : 110 + id,
      receivedAt: secondsAgo(90 - id),
    }));
    await addRounds(world.sql, "gamma/rocket/one", [...old, { id: "106", hundredths: 777 }]);
    await world.sql`
      insert into notices (table_id, kind, text)
      select id, 'gap', ${'rounds are missing since <04:00> & "later"'}
      from tables
      where house_id = 'beta'`;
    await world.sql`update table_heads set version = version + 1, changed_at = clock_timestamp()`;
    await world.sql`select pg_notify('roundhouse_published', '')`;
    await eventually(async () => expect(await page("/")).toContain("missing since"));
    const text = await page("/");
    expect(text).toContain("12.34×");
    for (const fresh of ["1.14×", "1.15×", "7.77×"]) expect(text).not.toContain(fresh);
    const table = await page("/houses/gamma/rocket/one");
    expect(table).toContain("12.34×");
    for (const fresh of ["1.14×", "1.15×", "7.77×"]) expect(table).not.toContain(fresh);
    expect(text).toContain("Rounds are missing since &lt;04:00&gt; &amp; &quot;later&quot;");
  });

  it("[LIVE] shows no round of the last minute, and none of the newest three however old", async () => {
    const { sql } = world;
    const shown = (text: string) => {
      const [, strip = ""] = text.split("<strong>gamma/rocket/one</strong>");
      return [...(strip.split("</ol>")[0] ?? "").matchAll(/title="[a-z]+">([\d.]+)×/g)].map(
        ([, multiplier]) => multiplier,
      );
    };
    const rounds = (from: number, to: number, receivedAt: string) =>
      Array.from({ length: to - from + 1 }, (_, at) => ({
        id: String(from + at),
        hundredths: 100 * (from + at),
        receivedAt,
      }));
    await addRounds(sql, "gamma/rocket/one", rounds(201, 210, secondsAgo(120)));
    await eventually(async () => expect(shown(await page("/"))[0]).toBe("207.00"));
    await addRounds(sql, "gamma/rocket/one", rounds(211, 215, secondsAgo(1)));
    await eventually(async () => expect(shown(await page("/"))[0]).toBe("210.00"));
    expect(await (await world.get("/api/v1/rounds?house=gamma&limit=1")).text()).toContain('"round_id":"215"');
  });

  it("[LIVE] is refused to an address that loads it too often, and to no other page's reader", async () => {
    const few = await makeWorld(
      { TRUSTED_PROXIES: ["loopback"] },
      { on: world, firstPage: { points: 2, seconds: 60 } },
    );
    try {
      const load = (from: string, path = "/") =>
        fetch(few.api.url + path, { headers: { ...html, "X-Forwarded-For": from } });
      const statuses: number[] = [];
      for (let count = 0; count < 3; count += 1) statuses.push((await load("203.0.113.9")).status);
      expect(statuses).toEqual([200, 200, 429]);
      const refused = await load("203.0.113.9");
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await refused.text()).toContain("Too many requests");
      expect((await load("203.0.113.9", "/status")).status).toBe(200);
      expect((await load("203.0.113.10")).status).toBe(200);
    } finally {
      await few.close();
    }
  });

  it("shows how to ask, under the public address", async () => {
    const text = unescaped((await page("/")).replaceAll(/<span[^>]*>|<\/span>/g, ""));
    expect(text).toContain("rh_live_YOUR_KEY}");
    expect(text).toContain('"https://rounds.example/api/v1/rounds?limit=5"');
  });

  it("states on its first screen what it costs and how to begin", async () => {
    const [above = ""] = (await page("/")).split('<section id="live"');
    expect(above).toContain("Plans from<strong>29.00 USD</strong>for 30 days");
    expect(above).toContain('<a class="button primary large" href="/console/sign-up">Get an API key</a>');
  });
});

describe("while PostgreSQL does not respond", () => {
  const RETRY = ["The houses could not be loaded.", "The plans could not be loaded."];

  it("houses and plans alone ask to retry shortly, whether it is silent or gone, and are back by themselves", async () => {
    const wire = await openWire();
    const far = await makeWorld({}, { on: world, through: (url) => wire.through(url) });
    const givenUp = (part: string) => {
      const line = far.lines.find((one) => one.includes(`the site is shown without ${part}:`)) ?? "{}";
      return (JSON.parse(line) as { time: number }).time;
    };
    try {
      wire.hold();
      const [home, plans, status, method] = await Promise.all(
        ["/", "/plans", "/status", "/method"].map((path) => page(path, far)),
      );
      for (const sentence of RETRY) expect(home).toContain(`${sentence} Try again shortly.`);
      expect(home).toContain("<strong>alpha/crash/global</strong>");
      expect(home).toContain("12.34×");
      expect(home).toContain('<h2 id="begin">');
      expect(plans).toContain("The plans could not be loaded. Try again shortly.");
      expect(plans).toContain("Announced, and not available yet");
      for (const part of ["houses", "notices"]) expect(status).toContain(`The ${part} could not be loaded.`);
      expect(status).toContain(badge("serving cached data", "warn"));
      // one deadline for all parts: the history does not wait for the houses
      expect(givenUp("the history of availability") - givenUp("the houses")).toBeLessThan(PART_TIMEOUT_MS / 2);
      expect(method).toContain("The public log could not be loaded. Please try again shortly.");
      const house = await fetch(`${far.api.url}/houses/alpha`, { headers: html });
      expect([house.status, house.headers.get("retry-after")]).toEqual([503, "5"]);
      wire.letGo();
      await eventually(async () => {
        const text = await page("/", far);
        return RETRY.every((sentence) => !text.includes(sentence));
      });
      await wire.cut();
      // what was loaded is believed for seconds, and then no more
      await eventually(async () => expect(await page("/", far)).toContain(RETRY[0]));
      const log = await fetch(`${far.api.url}/log/checkpoint`);
      expect([log.status, log.headers.get("retry-after")]).toEqual([503, "5"]);
      expect(errorBody.parse(await log.json()).error.code).toBe("temporarily_unavailable");
    } finally {
      await far.close();
    }
  });

  it("a part that can be read is shown next to a missing one", async () => {
    const far = await makeWorld({}, { on: world });
    try {
      await world.sql`alter table plans rename to plans_away`;
      const text = await page("/", far);
      expect(text).toContain("The plans could not be loaded. Try again shortly.");
      expect(text).toContain(badge("live", "good"));
      expect(text).not.toContain("The houses could not be loaded.");
      await world.sql`alter table uptime_days rename to uptime_days_away`;
      const status = await page("/status", far);
      expect(status).toContain('<td class="uptime-cell"><small>could not be loaded</small></td>');
      expect(status).not.toContain("not measured yet");
    } finally {
      await world.sql`alter table plans_away rename to plans`;
      await world.sql`alter table if exists uptime_days_away rename to uptime_days`;
      await far.close();
    }
  });
});

describe("the page about errors", () => {
  it("shows as code what a meaning has between backticks", async () => {
    const text = await page("/docs/errors");
    expect(text).toContain("<code>/api/v1/usage</code>");
    expect(text).not.toContain("`");
  });

  it("has every code, with its status", async () => {
    const text = await page("/docs/errors");
    for (const [code, { status }] of Object.entries(FAILURES)) {
      expect(text).toContain(
        `<tr id="${code}"><th scope="row" class="nowrap"><code>${code}</code></th><td data-name="Status">${status}</td>`,
      );
    }
  });

  it("is at the address in errors, under the public address", async () => {
    const refusal = await (await world.get("/api/v1/nothing")).json();
    expect(refusal).toMatchObject({ error: { docs_url: "https://rounds.example/docs/errors#not_found" } });
  });
});

describe("the guide to polling", () => {
  it.each([
    ["JavaScript", process.execPath, ["--input-type=module", "-e"]],
    ["Python", "python3", ["-c"]],
  ])("has a program in %s that stops if its key is refused", async (language, command, options) => {
    const { data } = guidePages(world.api.url)["/docs/guides/polling"] as unknown as {
      data: { samples: Sample[] };
    };
    const { text = "" } = data.samples.find(({ name }) => name === language) ?? {};
    const env = { ...process.env, ROUNDHOUSE_KEY: "rh_live_unknown" };
    const ended = promisify(execFile)(command, [...options, text], { env, timeout: 60_000 });
    await expect(ended).rejects.toMatchObject({ code: 1, killed: false });
  });
});

describe("the page of a house and of a table", () => {
  it("shows state, availability and tables, and a page for an unknown house", async () => {
    await world.sql`insert into uptime_days values ('house:alpha', (now() at time zone 'UTC')::date, 999, 1000)`;
    const house = await page("/houses/alpha");
    expect(house).toContain("99.90 % of polls returned a good response");
    expect(house).toContain('<a href="/houses/alpha/crash/global">');
    const table = await page("/houses/gamma/rocket/one");
    expect(table).toContain("Multipliers against the declared edge");
    expect(table).toContain("cannot be verified");
    for (const path of ["/houses/nobody", "/houses/alpha/crash/nowhere", "/houses/alpha/crash"]) {
      expect((await fetch(world.api.url + path, { headers: html })).status, path).toBe(404);
    }
  });
});

describe("a feed", () => {
  it("is Atom: of incidents with their end, and of changes of the API", async () => {
    const response = await fetch(`${world.api.url}/status.atom`);
    expect(response.headers.get("content-type")).toBe("application/atom+xml; charset=utf-8");
    const text = await response.text();
    expect(text).toContain('<feed xmlns="http://www.w3.org/2005/Atom">');
    expect(text).toContain("Rounds are missing since &lt;04:00&gt;");
    expect(text).toMatch(/<id>https:\/\/rounds\.example\/status#notice-\d+<\/id>/);
    expect(await (await fetch(`${world.api.url}/docs/changes.atom`)).text()).toContain("<title>v1</title>");
  });
});

describe("the manual", () => {
  it("has the plans with all their limits, but for a ceiling, and none that is not sold", async () => {
    await setPlan(world.sql, "Starter", { rps: 2, burst: 5, houses: ["alpha", "beta"] });
    await world.sql`update plans set on_sale = false where name = 'Pro'`;
    const limits = {
      "Calls per day": "20,000",
      "Calls per month": "500,000",
      "Calls per second": "2",
      Burst: "5",
      Houses: "alpha, beta",
    };
    for (const path of ["/docs", "/plans", "/"]) {
      // plans that were loaded before are believed for ten seconds
      const text = await eventually(async () => {
        const found = await page(path);
        return found.includes("alpha, beta") && found;
      });
      for (const [name, value] of Object.entries(limits)) {
        expect(text).toContain(
          path === "/docs" ? `<td data-name="${name}">${value}</td>` : `<dt>${name}</dt><dd>${value}</dd>`,
        );
      }
      expect(text).toContain("29.00 USD");
      expect(text).toContain("no fixed number");
      expect(text).not.toContain("1,000,000"); // a ceiling is not promised
      expect(text).not.toMatch(/>Pro</);
    }
    await world.sql`update plans set on_sale = true`;
  });

  it("has every path, parameter, field, header and error of the document", async () => {
    const text = await page("/docs");
    const document = openApiDocument({ site: "https://rounds.example", version: "1.2.3" });
    for (const path of Object.keys(document.paths).filter((one) => one.startsWith("/api/"))) {
      expect(text).toContain(`<code>${path}</code>`);
    }
    for (const name of OPERATIONS.flatMap(({ params }) => Object.keys(params.shape))) {
      expect(text).toContain(`<dt><code>${name}</code>`);
    }
    for (const field of ["accuracy[].voids.gap", "forecasts[].windows[].now.rounds_left", "day.remaining"]) {
      expect(text).toContain(`<dt><code>${field}</code>`);
    }
    for (const name of Object.keys(document.components.headers)) expect(text).toContain(`<dt><code>${name}</code>`);
    for (const name of Object.keys(FAILURES))
      expect(text).toContain(`<th scope="row" class="nowrap"><code>${name}</code></th>`);
    expect(text).not.toContain("undefined");
    expect(text).not.toContain("[object Object]");
  });

  it("describes the possible values in words", async () => {
    const text = await page("/docs");
    expect(text).toContain('<dt><code>limit</code><span class="quiet">integer, 1 to 100</span></dt>');
    expect(text).toContain(
      '<dt><code>accuracy[].interval_95</code><span class="quiet">[number, number] or null</span>',
    );
    expect(text).toContain('<dt><code>games[].last_round_at</code><span class="quiet">time or null</span>');
    expect(text).toContain("<code>en</code>,<code>es</code>,<code>pt</code>");
  });

  it("has programs in JavaScript that do what they say", async () => {
    const text = (await (await fetch(`${world.api.url}/docs`)).text()).replaceAll(
      "https://rounds.example",
      world.api.url,
    );
    const programs = [...text.matchAll(/<pre tabindex="0" aria-label="JavaScript"><code>([\s\S]*?)<\/code>/g)];
    expect(programs).toHaveLength(7);
    for (const [, marked = ""] of programs) {
      const program = marked.replaceAll(/<[^>]*>/g, "");
      const printed: unknown[] = [];
      const parts = {
        process: { env: { ROUNDHOUSE_KEY: world.key } },
        console: { log: (of: unknown) => printed.push(of) },
      };
      await run(unescaped(program), parts);
      expect(printed, program).toEqual([expect.any(Object)]);
    }
  });
});

/** Runs the text of a program with these names in it. */
async function run(program: string, parts: Record<string, unknown>): Promise<void> {
  const AsyncFunction = Object.getPrototypeOf(run).constructor as new (
    ...texts: string[]
  ) => (...of: unknown[]) => Promise<void>;
  await new AsyncFunction(...Object.keys(parts), program)(...Object.values(parts));
}

function unescaped(text: string): string {
  return text
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}

describe("terms, privacy and help", () => {
  it("has the terms that are agreed to at sign-up, word for word, with version, hash and whom they are made with", async () => {
    const { version, text, sha256 } = legalText("terms");
    const shown = await page("/terms");
    const words = wordsOf(shown).replaceAll("&#39;", "'").toLowerCase();
    for (const sentence of text.toLowerCase().split(/[\n.;]|: /)) expect(words).toContain(sentence.trim());
    expect(shown).toContain(`Version ${version}`);
    expect(shown).toContain(`<code>${sha256}</code>`);
    expect(shown).toContain("The operator of this service is Example &amp; Sons.");
    const file = await (await fetch(`${world.api.url}/terms.txt`)).text();
    expect(createHash("sha256").update(file).digest("hex")).toBe(sha256);
  });

  it("states how long data are kept in the numbers that the service uses", async () => {
    const shown = await page("/privacy");
    expect(shown).toContain(
      `By minute ${USAGE_FACTS_KEPT_DAYS} days, by day ${USAGE_DAYS_KEPT_DAYS} days; the sum of a month permanently`,
    );
    expect(shown).toContain("Until the end of the next day");
    expect(shown).toContain("for 48 hours after the end of their day");
    const signInDays = Math.max(CONSOLE_SECONDS, OPS_SECONDS) / 86_400 + 1; // they are swept a day after their end
    expect(shown).toContain(`Until you sign out or end them, and ${signInDays} days at most`);
    expect(shown).toContain(`A mail that could not be sent is kept whole for ${ENDED_KEPT_DAYS} days`);
    const limits = "Network addresses that load the home page, send wrong keys, try passwords or ask for mails";
    expect(wordsOf(shown)).toMatch(
      new RegExp(`${limits}.*${TRIES_KEPT_SECONDS / 3_600} hours at most Lines in the log`),
    );
    expect(shown).toContain(`one that for ${KNOWN_SECONDS / 86_400} days marks your browser`);
    expect(shown).toContain(`one that for ${SIGN_UP_SECONDS / 3_600} hours marks it as the one in which you signed up`);
    expect(shown).toContain("write to the operator: Example &amp; Sons");
  });

  it("names helplines, and those of the operator, escaped", async () => {
    const shown = await page("/responsible-gambling");
    expect(shown).toContain("0808 8020 133");
    expect(shown).toContain("Gambling Therapy");
    expect(shown).toContain(
      "<h3>Spain</h3><p>Juego responsable: 900 533 025 &lt;free&gt;</p><ul><li>one</li><li>two</li>",
    );
  });

  it("takes no file of helplines that cannot be read or is too large", async () => {
    expect(() => readHelplines("/nowhere/helplines.txt")).toThrow("of HELPLINES_FILE cannot be used");
    const file = `${HELPLINES}.large`;
    await writeFile(file, "a".repeat(32_769));
    expect(() => readHelplines(file)).toThrow("it has 32769 bytes, expected at most 32768");
    expect(readHelplines(undefined)).toEqual([]);
    expect(helplineBlocks("\n\n")).toEqual([]);
  });
});

describe("what is not there", () => {
  const ANNOUNCED = ["/stream", "/history", "/webhooks", "/bankroll", "/white-label"];

  it("is a page for people and JSON for programs; an announced path is like an unknown one", async () => {
    const shown = async (path: string, headers = {}) => {
      const response = await fetch(world.api.url + path, { headers });
      const text = (await response.text()).replaceAll(/req_[0-9a-f]{32}/g, "");
      return [response.status, response.headers.get("content-type"), text];
    };
    const [person, program] = [await shown("/noise-4711", html), await shown("/noise-4711")];
    expect(person).toEqual([404, "text/html; charset=utf-8", expect.stringContaining("Page not found")]);
    expect(program).toEqual([404, "application/json; charset=utf-8", expect.stringContaining('"not_found"')]);
    for (const path of ANNOUNCED) {
      expect(await shown(path, html)).toEqual(person);
      expect(await shown(path)).toEqual(program);
    }
    for (const path of ["/api", "/api/v1/stream", "/API/v1/webhooks", "//api/v1/history"]) {
      expect(await shown(path, html), path).toEqual(program);
    }
    const sent = await fetch(`${world.api.url}/noise-4711`, { method: "POST", headers: html });
    expect([sent.status, sent.headers.get("content-type")]).toEqual([404, "application/json; charset=utf-8"]);
  });

  it("is named in one place, as not available", async () => {
    const found: string[] = [];
    for (const path of PAGES) {
      if (/webhook|white-label|bankroll|real-time stream/i.test(wordsOf(await page(path)))) found.push(path);
    }
    expect(found).toEqual(["/plans"]);
    expect(wordsOf(await page("/plans"))).toContain("None of them exists today, no plan includes them");
  });
});

describe("every page", () => {
  it.each(PAGES)(
    "%s has the notice, 18+ and help, no inline script or cookie, and a policy without unsafe parts",
    async (path) => {
      const response = await fetch(world.api.url + path);
      const text = await response.text();
      expect(text).toContain(NOTICE);
      expect(text).toContain('<a href="/responsible-gambling">Where to find help with gambling</a>');
      expect(text).not.toMatch(/<script(?! src="\/site\.js)|style=|onclick|http-equiv|undefined|\[object/);
      expect(text).toMatch(/<meta name="description" content="[^"]{40,200}">/);
      expect(text).toContain(`<link rel="canonical" href="https://rounds.example${path}">`);
      expect(text).toMatch(/href="\/console\/sign-up">Get an API key<\/a>/);
      expect(Buffer.byteLength(text)).toBeLessThan(path === "/docs" ? 200_000 : 100_000);
      const { headers } = response;
      expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(headers.get("content-security-policy")).toBe(
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      );
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.getSetCookie()).toEqual([]);
    },
  );

  it("promises nothing, but for the fixed notice", async () => {
    for (const path of [...PAGES, "/nothing-here"]) {
      const response = await fetch(world.api.url + path, { headers: html });
      const words = wordsOf(tightened(await response.text()).replaceAll(NOTICE, ""));
      expect(promisesIn(words, ["en"]), path).toEqual([]);
      expect(words, path).not.toMatch(/\b(?:credit|debit) cards?\b|\brefund|\bwithdrawals?\b/i);
    }
  });

  it("is in the sitemap, which robots.txt names", async () => {
    const robots = await (await fetch(`${world.api.url}/robots.txt`)).text();
    expect(robots).toContain("Sitemap: https://rounds.example/sitemap.xml");
    const response = await fetch(`${world.api.url}/sitemap.xml`);
    expect(response.headers.get("content-type")).toBe("application/xml; charset=utf-8");
    const listed = [...(await response.text()).matchAll(/<loc>https:\/\/rounds\.example([^<]*)<\/loc>/g)];
    const paths = listed.map(([, path = ""]) => path);
    expect(paths.filter((path) => !path.startsWith("/houses/"))).toEqual(PAGES);
    expect(paths).toContain("/houses/alpha");
    expect(paths).toContain("/houses/alpha/crash/global");
  });

  it("has type and time on its parts too", async () => {
    const icon = await fetch(`${world.api.url}/icon.svg`);
    expect(icon.headers.get("content-type")).toBe("image/svg+xml; charset=utf-8");
    expect(icon.headers.get("cache-control")).toBe("public, max-age=3600");
    const [, style = ""] = /rel="stylesheet" href="([^"]+)"/.exec(await page("/")) ?? [];
    const { headers } = await fetch(world.api.url + style);
    expect(headers.get("content-type")).toBe("text/css; charset=utf-8");
    expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  });

  it("caches a file for a year only under its own hash, since a rolling upgrade asks old processes for new hashes", async () => {
    const urls = [STYLE, SCRIPT, SITE_STYLE, SITE_SCRIPT, ...FONTS].map(({ url }) => url);
    const cachedFor = async (path: string) => {
      const response = await fetch(world.api.url + path);
      await response.arrayBuffer();
      return [response.status, response.headers.get("cache-control")];
    };
    for (const url of urls) {
      expect(await cachedFor(url)).toEqual([200, "public, max-age=31536000, immutable"]);
      const [path] = url.split("?");
      for (const other of ["", "?v=", "?v=0123456789ab", `?v=0123456789ab&${url.split("?")[1]}`]) {
        expect(await cachedFor(`${path}${other}`), other).toEqual([200, "public, max-age=60"]);
      }
    }
  });
});

// the last one, since it leaves its houses behind
describe("with more houses and notices than a page can hold", () => {
  it("every page stays below 100 KB, escapes what it names and counts what it leaves out", async () => {
    const { sql } = world;
    await sql`
      insert into houses (id, name, settings, enabled)
      select 'many-' || n || repeat('x', 50), '<b>' || n || '</b>' || repeat(' a long name & more', 9), '{}', true
      from generate_series(1, 300) n`;
    await sql`
      insert into tables (house_id, game, market, position, settings, round_ids, pause_ms, colors)
      select h.id, repeat('g', 60), repeat('m', 60), 0, t.settings, 'opaque', 1000, t.colors
      from houses h
      cross join (select settings, colors from tables order by id limit 1) t
      where h.id like 'many-%'`;
    await sql`
      insert into table_heads (table_id, palette, first_model, model, pause_ms)
      select t.id, p.id, m.name, m.name, t.pause_ms
      from tables t
      join palettes p on p.bands = t.colors
      cross join (select name from models limit 1) m
      where t.house_id like 'many-%'`;
    await sql`
      insert into notices (table_id, kind, text)
      select id, 'gap', repeat('<i>a long notice</i> ', 40)
      from tables
      where house_id like 'many-%'`;
    const many = await sql<{ id: string }[]>`select id from houses where id like 'many-%'`;
    await setPlan(sql, "Starter", { houses: many.map(({ id }) => id) });
    const far = await makeWorld({}, { on: world });
    try {
      const first = await page("/", far);
      expect(first).toContain("And 298 more tables on");
      expect(await page("/houses", far)).toContain("&lt;b&gt;100&lt;/b&gt; a long name &amp; more");
      expect(first).toMatch(/<dt>Houses<\/dt><dd>many-[^<]* and 260 more<\/dd>/);
      const status = await page("/status", far);
      expect(status).toContain(badge("300 offline", "bad"));
      expect(status).toContain("And 273 more; houses that are not live are listed first.");
      for (const path of PAGES) {
        const text = await page(path, far);
        expect(Buffer.byteLength(text), path).toBeLessThan(path === "/docs" ? 200_000 : 100_000);
        expect(text, path).not.toMatch(/<[bi]>/);
      }
    } finally {
      await far.close();
    }
  });
});

it("prose escapes whatever is put in", () => {
  expect(prose('ask `<a>` & "wait"')).toBe("ask <code>&lt;a&gt;</code> &amp; &quot;wait&quot;");
});
