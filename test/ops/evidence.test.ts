import { afterAll, beforeAll, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { openPipeline, type Pipeline } from "../../src/db/client.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { testContext } from "../support/context.ts";
import { feedEntry } from "../support/houses.ts";
import { makeGap, atSecond, makeItem, makePayload, makeTable, openNotices, type MadeTable } from "../support/make.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "./world.ts";

let world: OpsWorld;
let operator: CookieClient;
let viewer: CookieClient;
let table: MadeTable;
let pipeline: Pipeline;
/** Paths of the four payloads, oldest first. */
let paths: string[];

function normalize(): Promise<unknown> {
  const { context } = testContext(world.sql, { passes: createPasses(pipeline) });
  return normalizeRounds.run({ house: "alpha" }, context);
}

beforeAll(async () => {
  world = await openOpsWorld();
  pipeline = openPipeline(world.databaseUrl, { name: "test" });
  operator = await world.as("operator");
  viewer = await world.as("viewer");
  table = await makeTable(world.sql);
  const received = [
    await makePayload(world.sql, table, { second: 0, items: [makeItem(3, 1.5), makeItem(2, 0), makeItem(1, 1.2)] }),
    await makePayload(world.sql, table, { second: 1, items: [makeItem(4, 2.5), makeItem(3, 1.75)] }),
    await makePayload(world.sql, table, { second: 2, body: "<script>alert(1)</script>" }),
    await makePayload(world.sql, table, { second: 3, items: [makeItem(9, 3.25)] }),
  ];
  paths = received.map((at) => `/ops/payloads/${table.id}/${at}`);
  await normalize();
});
afterAll(async () => {
  await pipeline.end();
  await world.close();
});

async function page(path: string, who = viewer): Promise<string> {
  const response = await who.get(path);
  const failure = response.status === 500 ? (world.lines.at(-1) ?? "") : "";
  expect(`${path} ${response.status} ${failure}`).toBe(`${path} 200 `);
  return response.text();
}

async function act(path: string, fields: Record<string, string>): Promise<string> {
  const response = await operator.post(path, fields);
  expect(`${path} ${response.status}`).toBe(`${path} 303`);
  return response.headers.get("location") ?? "";
}

const idOf = async (name: "conflicts" | "gaps" | "quarantine") => {
  const [row] = await world.sql<{ id: bigint }[]>`select max(id) as id from ${world.sql(name)}`;
  return String(row?.id);
};

async function lastAudit(): Promise<Record<string, unknown>> {
  const [row] = await world.sql`select actor, action, target, reason from audit_log order by seq desc limit 1`;
  return row ?? {};
}

describe("payloads", () => {
  it("are listed by the filters in the URL, page after page, each linking to the payload itself", async () => {
    expect(await page("/ops/payloads")).toContain(`href="${paths[3]}"`);
    const refused = await page("/ops/payloads?state=refused&of=alpha%2Fcrash%2Fglobal");
    expect(refused).toContain(`href="${paths[2]}"`);
    expect(refused).not.toContain(`href="${paths[3]}"`);
    expect(await page(`/ops/payloads?to=${atSecond(0.5)}`)).not.toContain(`href="${paths[1]}"`);
    expect(await page("/ops/payloads?of=nobody")).toContain("there is no house or table nobody");
    expect((await viewer.get("/ops/payloads?from=whenever")).status).toBe(400);
    const first = await page("/ops/payloads?sort=oldest");
    expect(first.indexOf(`"${paths[0]}"`)).toBeLessThan(first.indexOf(`"${paths[3]}"`));
  });

  it("continue after the last row of a page, however many arrive meanwhile", async () => {
    await world.sql`
      insert into payloads (table_id, kind, requested_at, received_at, path, status, bytes, sha256, body, state, read_at)
      select ${table.id}, 'poll', at, at, '/', 200, 0, sha256(''), '', 'read', at
      from generate_series(1, 120) n, lateral (select ${atSecond(-600)}::timestamptz - n * interval '1 second' as at) t`;
    const seen = new Set<string>();
    let next: string | undefined = "/ops/payloads?of=alpha";
    for (let pages = 0; next !== undefined && pages < 10; pages++) {
      const text: string = await page(next);
      for (const [, id = ""] of text.matchAll(/href="\/ops\/payloads\/\d+\/([^"/]+Z)"/g)) seen.add(id);
      next = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
    }
    expect(seen.size).toBe(124);
    await world.sql`delete from payloads where bytes = 0`;
  });

  it("are shown with what was made of them, never as anything but text, and can be kept", async () => {
    const good = await page(paths[0] ?? "");
    for (const part of ["1.20", "impossible_multiplier", "proof", "/rounds"].slice(0, 1)) expect(good).toContain(part);
    expect(good).toMatch(/href="\/ops\/quarantine\/\d+"/);
    expect(await page(paths[1] ?? "")).toMatch(/href="\/ops\/conflicts\/\d+"/);
    const bad = await page(paths[2] ?? "");
    expect(bad).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(bad).not.toContain("<script>alert(1)");
    const file = await viewer.get(`${paths[2]}/body`);
    expect(file.headers.get("content-type")).toContain("text/plain");
    expect(file.headers.get("content-disposition")).toMatch(/payload-\d{4}-\d\d-\d\dT\d{6}\.\d{7}Z\.txt/);
    expect(await file.text()).toBe("<script>alert(1)</script>");
    const absent = `/ops/payloads/${table.id}/2026-01-01T00:00:00.0000000Z`;
    for (const path of [
      absent,
      `${absent}/body`,
      "/ops/payloads/x",
      `/ops/payloads/${table.id}/2026-99-01T00:00:00Z`,
    ]) {
      expect((await viewer.get(path)).status).toBe(404);
    }
  });

  it("are read again after a preview of the changes, and the log has an entry", async () => {
    await makeTable(world.sql, { feed: feedEntry({ instant: [0] }) });
    const range = { of: "alpha", from: atSecond(-10), to: atSecond(60), state: "" };
    const look = `/ops/payloads/reread?${new URLSearchParams(range).toString()}`;
    const [before] = await world.sql`select count(*)::integer as n from rounds`;
    const preview = await page(look, operator);
    expect(preview).toMatch(/New rounds \(late\)<\/dt><dd>1</);
    expect(preview).toMatch(/Items released from quarantine<\/dt><dd>1</);
    expect(preview).toContain("Still refused");
    expect(await world.sql`select count(*)::integer as n from rounds`).toEqual([before]);
    expect(await page(look)).not.toContain('method="post" action="/ops/payloads/reread"');
    expect((await viewer.post("/ops/payloads/reread", { ...range, reason: "because" })).status).toBe(403);
    await act("/ops/payloads/reread", { ...range, after: "", reason: "instant crashes were refused" });
    expect(await lastAudit()).toMatchObject({ action: "payload.reread", reason: "instant crashes were refused" });
    const states =
      await world.sql`select after ->> 'state' as state from audit_log where action = 'payload.reread' order by seq`;
    expect(states).toEqual([{ state: "began" }, { state: "done" }]);
    expect(await page(look)).toMatch(/New rounds \(late\)<\/dt><dd>0</);
    expect((await operator.post("/ops/payloads/reread", { ...range, from: "", reason: "because" })).status).toBe(422);
  });
});

describe("quarantine", () => {
  it("shows what was expected, what was found and what to do, and is decided once", async () => {
    await world.sql`
      insert into quarantine (table_id, payload_received_at, code, reason, round_id, item, item_sha256)
      values (${table.id}, ${paths[0]?.split("/").at(-1) ?? ""}::text::timestamptz, 'not_a_number', ${'expected a multiplier such as 1.87, came "<b>"; set feed.multiplier'}, '77', ${'{"id":77,"multiplier":"<b>"}'}, 'x')`;
    const id = await idOf("quarantine");
    expect(await page("/ops/quarantine?code=not_a_number")).toMatch(
      /The multiplier is not a number\.<small class="block">Expected a multiplier such as 1\.87, found/,
    );
    const shown = await page(`/ops/quarantine/${id}`, operator);
    expect(shown).toContain("&lt;b&gt;");
    const texts = shown
      .split(/<[^>]*>/)
      .map((one) => one.trim())
      .filter((one) => one !== "");
    const at = texts.indexOf("Expected");
    expect(texts.slice(at, at + 6)).toEqual([
      "Expected",
      "a multiplier such as 1.87",
      "Found",
      "&quot;&lt;b&gt;&quot;",
      "What to do",
      "set feed.multiplier",
    ]);
    expect(shown).toContain(`href="${paths[0]}"`);
    const form = { ids: id, reason: "a test round" };
    const unfit = await operator.post("/ops/quarantine/decide", { ...form, state: "released" });
    expect(unfit.status).toBe(422);
    expect(await unfit.text()).toContain("which a release does not fix");
    await act("/ops/quarantine/decide", { ...form, state: "discarded" });
    expect(await lastAudit()).toMatchObject({ action: "quarantine.discard", actor: "operator@example.com" });
    const again = await operator.post("/ops/quarantine/decide", { ...form, state: "discarded" });
    expect(await again.text()).toContain("was discarded already by operator@example.com");
    expect(await page("/ops/quarantine?state=discarded")).toContain(`href="/ops/quarantine/${id}"`);
  });
});

describe("conflicts", () => {
  it("show both results with their payloads, and are decided once", async () => {
    const id = await idOf("conflicts");
    expect(await page("/ops/conflicts")).toContain(`href="/ops/conflicts/${id}"`);
    const shown = await page(`/ops/conflicts/${id}`, operator);
    for (const part of ["Stored: 1.50", "Other: 1.75", ...paths.slice(0, 2)]) expect(shown).toContain(part);
    expect(await page(`/ops/conflicts/${id}`)).not.toContain("Which one is right?");
    await world.sql`update conflicts set further = 4980 where id = ${id}`;
    expect(await page(`/ops/conflicts/${id}`)).toContain("Further results of it, received 4,980 times,");
    const decision = { take: "other", reason: "the house corrected it" };
    const [one, two] = await Promise.all([
      operator.post(`/ops/conflicts/${id}/decide`, decision),
      operator.post(`/ops/conflicts/${id}/decide`, { ...decision, take: "kept" }),
    ]);
    expect([one.status, two.status].toSorted((a, b) => a - b)).toEqual([303, 422]);
    const refused = await (one.status === 422 ? one : two).text();
    expect(refused).toContain("is already decided");
    expect(await page("/ops/conflicts?state=decided")).toContain("by operator@example.com");
    const [row] = await world.sql`select count(*)::integer as n from audit_log where action = 'conflict.decide'`;
    expect(row).toEqual({ n: 1 });
    const [revision] = await world.sql`select scores_voided_at is not null as applied from round_revision`;
    expect(revision).toEqual({ applied: true });
  });

  it("are decided together after their number was shown, all of them or none", async () => {
    await makePayload(world.sql, table, { second: 20, items: [3, 4, 9].map((id) => makeItem(id, 7 + id)) });
    await normalize();
    const rows = await world.sql<{ id: bigint }[]>`select id from conflicts where decided_at is null order by id`;
    const ids = rows.map(({ id }) => String(id));
    expect(ids).toHaveLength(3);
    const query = ids.map((id) => `ids=${id}`).join("&");
    expect(await page("/ops/conflicts", operator)).toContain('action="/ops/conflicts/decide"');
    expect(await page("/ops/conflicts")).not.toContain('type="checkbox"');
    const shown = await page(`/ops/conflicts/decide?${query}`, operator);
    expect(shown).toMatch(/<strong>3 conflicts<\/strong> of alpha\/crash\/global will be decided/);
    expect(await page("/ops/conflicts/decide?of=alpha%2Fcrash%2Fglobal", operator)).toContain("Decide 3 conflicts");
    expect(await page(`/ops/conflicts/decide?${query}`)).not.toContain('method="post" action="/ops/conflicts/decide"');
    expect(await page("/ops/conflicts/decide", operator)).toContain("choose at least one conflict");
    const form = { ids, take: "kept", reason: "they mixed two tables up" };
    expect((await viewer.post("/ops/conflicts/decide", form)).status).toBe(403);
    const wrong = await operator.post("/ops/conflicts/decide", { ...form, ids: [...ids, "999"] });
    expect(await wrong.text()).toContain("there is no conflict 999");
    const nothing = await operator.post("/ops/conflicts/decide", { take: "kept", reason: "nothing chosen" });
    expect(await nothing.text()).toContain("choose at least one conflict");
    const [undecided] = await world.sql`select count(*)::integer as n from conflicts where decided_at is null`;
    expect(undecided).toEqual({ n: 3 });
    expect((await operator.post("/ops/conflicts/decide", form)).status).toBe(303);
    expect(await lastAudit()).toMatchObject({
      action: "conflict.decide",
      target: "conflicts (3) of alpha/crash/global",
    });
    expect(await page(`/ops/conflicts/decide?${query}`, operator)).toContain("none of them is open");
  });

  it("a round is corrected manually by an operator who has seen its current result", async () => {
    const path = "/ops/conflicts/revise?table=alpha%2Fcrash%2Fglobal&round=4";
    expect(await page(path, operator)).toContain("2.50");
    const form = { table: table.name, round: "4", seen: "2.50", to: "void", reason: "a test round" };
    await act("/ops/conflicts/revise", form);
    const late = await operator.post("/ops/conflicts/revise", { ...form, to: "3.00" });
    expect(await late.text()).toContain("is void now, not 2.50");
    expect(await page(path)).toContain("a test round");
    expect((await operator.post("/ops/conflicts/revise", { ...form, seen: "void", to: "0.5" })).status).toBe(400);
    expect(await page("/ops/conflicts/revise?table=no%2Fsuch%2Ftable")).toContain("there is no table");
  });
});

describe("gaps and notices", () => {
  it("a gap is given up with a reason and opened again, and callers see it without the reason", async () => {
    await makeGap(world.sql, table, 20n, 24n);
    const id = await idOf("gaps");
    expect(await page("/ops/gaps", operator)).toContain("20 to 24");
    await act(`/ops/gaps/${id}/close`, { reason: "their archive is gone" });
    expect(await page("/ops/gaps?state=given_up")).toContain("their archive is gone");
    expect((await openNotices(world.sql, table))["gap"]).not.toContain("archive");
    const again = await operator.post(`/ops/gaps/${id}/close`, { reason: "their archive is gone" });
    expect(await again.text()).toContain("is given up since");
    await act(`/ops/gaps/${id}/open`, { reason: "they found it" });
    const [gap] = await world.sql`select state, attempts, reason, closed_by from gaps where id = ${id}`;
    expect(gap).toEqual({ state: "open", attempts: 0, reason: null, closed_by: null });
  });

  it("a refused form is shown with the labels of its fields and without those that were hidden", async () => {
    const refused = await operator.post("/ops/notices/write", {
      of: "nosuch",
      text: "Hello",
      reason: "why",
      back: "x",
    });
    const html = (await refused.text()).replaceAll(/\s+/g, " ");
    expect([refused.status, html]).toEqual([422, expect.stringContaining(">House or table</label>")]);
    expect(html).toContain('<input type="hidden" name="back" value="x">');
    expect(html).not.toContain(">back</label>");
    const empty = await operator.post("/ops/quarantine/decide", { state: "discarded", reason: "all are wrong" });
    expect(await empty.text()).toMatch(/role="alert">select at least one item</);
  });

  it("an operator's notice is open until it is ended", async () => {
    await act("/ops/notices/write", { of: "alpha", text: "the house moves its servers.", reason: "they mailed us" });
    const text = async () => (await openNotices(world.sql, table))["operator"];
    expect(await text()).toMatch(/^the house moves its servers\b/);
    expect(await page("/ops/notices?kind=operator", operator)).toContain("The house moves its servers");
    await act("/ops/notices/end", { of: table.name, reason: "done" });
    expect(await text()).toBeUndefined();
    const again = await operator.post("/ops/notices/end", { of: table.name, reason: "done" });
    expect(again.status).toBe(422);
    expect(await page("/ops/notices?state=ended")).toContain("by operator@example.com");
  });
});

describe("a table whose new rounds are listed as older ones", () => {
  it("has its newest number set back on its page, and only there it is offered", async () => {
    const path = `/ops/tables/${table.name}`;
    expect(await page(path, operator)).not.toContain("reset-newest");
    await makePayload(world.sql, table, { second: 40, items: [makeItem(60, 2.5)] });
    for (const id of [51, 52, 53])
      await makePayload(world.sql, table, { second: id, items: [makeItem(id, 1 + id / 100)] });
    await normalize();
    expect(await page(path, operator)).toContain(`action="${path}/reset-newest"`);
    await act(`${path}/reset-newest`, { to: "", reason: "60 was never played" });
    expect(await lastAudit()).toEqual({
      actor: "operator@example.com",
      action: "table.reset-newest",
      target: `table ${table.name}`,
      reason: "60 was never played",
    });
    const [head] = await world.sql`select newest_number as n from table_heads where table_id = ${table.id}`;
    expect(head).toEqual({ n: 53n });
    expect((await operator.post(`${path}/reset-newest`, { to: "70", reason: "because" })).status).toBe(422);
  });
});
