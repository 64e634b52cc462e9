import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAILURES } from "../../src/api/errors.ts";
import { openApiDocument } from "../../src/api/openapi/document.ts";
import { OPERATIONS } from "../../src/api/operations.ts";
import { setPlan } from "../../src/callers/plan-store.ts";
import { html } from "../../src/site/html.ts";
import { addRounds, makeWorld, type World } from "../api/world.ts";
import { eventually } from "../support/eventually.ts";

const NOTICE = "Information only. Rounds come from the house&#39;s random generator; no outcome is guaranteed. 18+.";
let world: World;

beforeAll(async () => {
  world = await makeWorld({ PUBLIC_URL: "https://rounds.example/" });
});
afterAll(() => world.close());

/** A page as a browser reads it: white space between its parts means nothing. */
const page = async (path: string) => {
  const response = await fetch(world.api.url + path);
  expect(response.status).toBe(200);
  return tightened(await response.text());
};
const tightened = (text: string) => text.replaceAll(/\s+/g, " ").replaceAll(/ ?(<[^>]*>) ?/g, "$1");

describe("the first page", () => {
  it("lists every table with its status, and marks those whose rounds are invented", async () => {
    const text = await page("/");
    for (const table of ["alpha/crash/global", "alpha/dice/eu", "gamma/rocket/one"]) {
      expect(text).toContain(`<th scope="row">${table}</th>`);
    }
    expect(text).toContain('<th scope="row">beta/crash/eu<span class="simulated">simulated</span></th>');
    expect(text).toContain("3 houses, 4 tables.");
    expect(text).toContain("None: nothing is known to be missing.");
  });

  it("shows the newest rounds and open notices, escaped", async () => {
    await addRounds(world.sql, "beta/crash/eu", [{ id: "1" }, { id: "2", hundredths: 1_234, color: "pink" }]);
    await world.sql`
      update published_now
      set continuity_text = ${'rounds are missing since <04:00> & "later"'}, updated_at = clock_timestamp()
      where table_id = (select id from tables where house_id = 'beta')`;
    await world.sql`select pg_notify('roundhouse_published', '')`;
    await eventually(async () => expect(await page("/")).toContain("missing since"));
    const text = await page("/");
    expect(text).toContain("<li>12.34<small>pink</small></li><li>1.87<small>blue</small></li>");
    expect(text).toContain("rounds are missing since &lt;04:00&gt; &amp; &quot;later&quot;");
    expect(text).toContain('<span class="status live">live</span>');
    expect(text.match(/class="simulated"/g)).toHaveLength(2);
  });

  it("shows how to ask, under the public address", async () => {
    expect(await page("/")).toContain('curl -H "X-Api-Key: rh_live_…" https://rounds.example/api/v1/games');
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
      expect(text).toContain(`<tr id="${code}"><th scope="row"><code>${code}</code></th><td>${status}</td>`);
    }
  });

  it("is where errors point to, under the public address", async () => {
    const refusal = await (await world.get("/api/v1/nothing")).json();
    expect(refusal).toMatchObject({ error: { docs_url: "https://rounds.example/docs/errors#not_found" } });
  });
});

describe("the manual", () => {
  it("stays where the plans cannot be loaded, asks to try again, and has them as soon as they can", async () => {
    await world.sql`alter table plans rename to plans_away`;
    const without = await page("/docs");
    expect(without).toContain("The plans could not be loaded. Please try again shortly.");
    expect(without).toContain('<h3 id="games"><code>GET /api/v1/games</code></h3>');
    await world.sql`alter table plans_away rename to plans`;
    await setPlan(world.sql, "Starter", { rps: 2, burst: 5, houses: ["alpha", "beta"] });
    const text = await page("/docs");
    expect(text).toContain(
      '<th scope="row">Starter</th><td data-name="A UTC day">20,000</td><td data-name="A UTC month">500,000</td><td data-name="A second">2</td><td data-name="At once">5</td><td data-name="Houses">alpha, beta</td>',
    );
    expect(text).toContain('<th scope="row">Max</th><td data-name="A UTC day">no fixed number</td>');
    expect(text).not.toContain("1,000,000"); // a ceiling is not promised
  });

  it("has every path, parameter, field, header and error of the document", async () => {
    const text = await page("/docs");
    const document = openApiDocument({ site: "https://rounds.example", version: "1.2.3" });
    for (const path of Object.keys(document.paths).filter((one) => one.startsWith("/api/"))) {
      expect(text).toContain(`<code>GET ${path}</code>`);
    }
    for (const name of OPERATIONS.flatMap(({ params }) => Object.keys(params.shape))) {
      expect(text).toContain(`<th scope="row"><code>${name}</code></th>`);
    }
    for (const field of ["accuracy[].voids.gap", "forecasts[].windows[].now.rounds_left", "day.remaining"]) {
      expect(text).toContain(`<th scope="row"><code>${field}</code></th>`);
    }
    const names = [...Object.keys(document.components.headers), ...Object.keys(FAILURES)];
    for (const name of names) expect(text).toContain(`<th scope="row"><code>${name}</code></th>`);
    expect(text).not.toContain("undefined");
    expect(text).not.toContain("[object Object]");
  });

  it("says what values can be, in words", async () => {
    const text = await page("/docs");
    expect(text).toContain(
      '<th scope="row"><code>limit</code></th><td>integer, 1 to 100</td><td data-name="Without it"><code>20</code></td>',
    );
    expect(text).toContain('<th scope="row"><code>accuracy[].interval_95</code></th><td>[number, number] or null</td>');
    expect(text).toContain('<th scope="row"><code>games[].last_round_at</code></th><td>time or null</td>');
    expect(text).toContain("<code>en</code>,<code>es</code>,<code>pt</code>");
  });

  it("has programs in JavaScript that do what they say", async () => {
    const text = (await (await fetch(`${world.api.url}/docs`)).text()).replaceAll(
      "https://rounds.example",
      world.api.url,
    );
    const programs = [...text.matchAll(/<summary>JavaScript<\/summary>\s*<pre tabindex="0"><code>([^<]*)<\/code>/g)];
    expect(programs).toHaveLength(6);
    for (const [, program = ""] of programs) {
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

describe("every page", () => {
  const paths = ["/", "/docs", "/docs/errors"];

  it.each(paths)("%s has the notice, no script, and a policy without unsafe parts", async (path) => {
    const response = await fetch(world.api.url + path);
    const text = await response.text();
    expect(text).toContain(NOTICE);
    expect(text).not.toMatch(/<script|style=|onclick|http-equiv/);
    expect(response.headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = response.headers.get("content-security-policy");
    expect(policy).toBe(
      "default-src 'none';style-src 'self';img-src 'self';base-uri 'none';form-action 'none';frame-ancestors 'none'",
    );
  });

  it("has only links that answer", async () => {
    for (const path of paths) {
      const links = [...(await page(path)).matchAll(/(?:href|src)="([^"]+)"/g)].map(([, link = ""]) => link);
      expect(links.length).toBeGreaterThan(3);
      for (const link of links) await page(link);
    }
  });

  it("uses none of the words that promise something, but for the fixed notice", async () => {
    for (const path of paths) {
      const text = (await page(path)).replaceAll(NOTICE, "");
      expect(text).not.toMatch(/\b(sure|wins?|winning|winner|profit\w*|risk-free|predictor|due|guarantee\w*)\b/i);
    }
  });

  it("has type and policy on its parts too", async () => {
    for (const [path, type] of [
      ["/site.css", "text/css; charset=utf-8"],
      ["/icon.svg", "image/svg+xml; charset=utf-8"],
    ] as const) {
      const { headers } = await fetch(world.api.url + path);
      expect(headers.get("content-type")).toBe(type);
      expect(headers.get("cache-control")).toBe("public, max-age=3600");
    }
  });
});

describe("html", () => {
  it("escapes whatever is put in, and joins what it made itself", () => {
    const items = ["<b>", `"&'`].map((text) => html`<li>${text}</li>`);
    const list = html`<ul>
      ${items}
    </ul>`;
    expect(tightened(html`${list}${7}`.html)).toBe("<ul><li>&lt;b&gt;</li><li>&quot;&amp;&#39;</li></ul>7");
  });
});
