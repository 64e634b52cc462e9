import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/environment.ts";
import { listSettingsInForce } from "../../src/config/setting-sources.ts";
import { verifierKeyText } from "../../src/signed-note.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import type { Problem } from "../../src/ops/board/problems.ts";
import { listSnoozes } from "../../src/ops/board/snooze-store.ts";
import { type Snooze, splitSnoozed } from "../../src/ops/board/snooze.ts";
import { houseEntry } from "../support/houses.ts";
import { problemOf } from "../topups/bank-world.ts";
import { openOpsWorld, type OpsWorld, type CookieClient } from "./world.ts";

let world: OpsWorld;
let operator: CookieClient;
let viewer: CookieClient;

beforeAll(async () => {
  world = await openOpsWorld({
    settings: { AUTH_SECRET: "x".repeat(40), STAFF_WEBHOOK_URL: "https://hooks.example/T0/secret-path" },
  });
  [operator, viewer] = [await world.as("operator"), await world.as("viewer")];
  await applyHouses(world.sql, [houseEntry()]);
  await world.sql`
    insert into alerts (kind, subject, text)
    values ('disk', 'host-1', 'the disk is 96 % full'), ('ledger', '', 'the sums differ')`;
});
afterAll(() => world.close());

const textOf = async (path: string, who = viewer) =>
  (await (await who.get(path)).text())
    .replaceAll(/<details>.*?<\/details>/gs, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ");
const snooze = (problem: string | string[], length: string, reason = "the disk is ordered") =>
  operator.post("/ops/alerts/snooze", { problem, for: length, reason, back: "board" });

describe("an alert", () => {
  it("is listed with its problem, time and next action, and leads there", async () => {
    const page = await (await viewer.get("/ops/alerts")).text();
    const text = await textOf("/ops/alerts");
    expect(text).toMatch(/error host-1 disk nearly full since .* the disk is 96 % full Next: .* Open workers/);
    expect(text).toMatch(/ledger does not add up .* the sums differ .* Open ledger/);
    expect(page).toContain('href="/ops/ledger"');
    expect(page).not.toContain("/ops/alerts/snooze"); // a viewer
  });

  it("is snoozed with a reason: it leaves the board, is listed as snoozed, and returns when the snooze ends", async () => {
    const response = await snooze("alert_disk host-1", "1h");
    expect([response.status, response.headers.get("location")]).toEqual([303, "/ops"]);
    const board = await textOf("/ops", operator);
    expect(board).toContain("Snoozed 1 problem for 1 h.");
    expect(board).toContain("1 snoozed");
    expect(board).not.toContain("disk nearly full");
    const list = await textOf("/ops/alerts?state=snoozed");
    expect(list).toMatch(
      /host-1 error disk nearly full .* in (59 min|1 h).* operator@example\.com, .* the disk is ordered/,
    );
    const [entry] = await world.sql`
      select actor, target, reason, after from audit_log where action = 'alert.snooze' order by seq desc limit 1`;
    expect(entry).toEqual({
      actor: "operator@example.com",
      target: "problem alert_disk of host-1",
      reason: "the disk is ordered",
      after: { for: "1h", problems: ["host-1: disk nearly full"] },
    });

    await world.sql`update snoozes set until = clock_timestamp(), made_at = clock_timestamp() - interval '1 hour'`;
    expect(await textOf("/ops")).toContain("disk nearly full");
    await snooze("alert_disk host-1", "8h");
    expect(await textOf("/ops")).not.toContain("disk nearly full");
    expect((await operator.post("/ops/alerts/end-snooze", { problem: "alert_disk host-1" })).status).toBe(303);
    expect(await textOf("/ops")).toContain("disk nearly full");
    expect((await operator.post("/ops/alerts/end-snooze", { problem: "alert_disk host-1" })).status).toBe(303);
    const ended = await world.sql`select actor from audit_log where action = 'alert.end-snooze'`;
    expect(ended).toEqual([{ actor: "operator@example.com" }]);
  });

  it("that is snoozed until it changes returns with its next occurrence", async () => {
    expect((await snooze("alert_ledger ledger", "change")).status).toBe(303);
    expect(await textOf("/ops/alerts")).not.toContain("ledger does not add up");
    expect(await textOf("/ops/alerts?state=snoozed")).toContain("it changes");
    await world.sql`update alerts set closed_at = clock_timestamp() where kind = 'ledger'`;
    expect(await textOf("/ops/alerts?state=closed")).toMatch(/ledger .* the sums differ/);
    await world.sql`insert into alerts (kind, subject, text) values ('ledger', '', 'the sums differ again')`;
    expect(await textOf("/ops/alerts")).toContain("the sums differ again");
  });

  it("stays snoozed however many others are", async () => {
    const insert = (kind: string) => world.sql`
      insert into snoozes (kind, subject, tone, what, ends_on_change, until, made_by, reason)
      select ${kind}, n::text, 'bad', 'x', false, clock_timestamp() + interval '1 hour', 'ann@example.com', 'a test'
      from generate_series(1, 1001) as n`;
    await insert("a");
    await insert("b");
    const others = (await listSnoozes(world.sql)).filter(({ kind }) => kind === "a" || kind === "b");
    expect(others).toHaveLength(2002);
    await world.sql`delete from snoozes where kind in ('a', 'b')`;
  });

  it("of a kind with a space in its name is snoozed, and its snooze is ended", async () => {
    await world.sql`insert into alerts (kind, subject, text) values ('proof mismatch', 'zeta/crash/x', 'it differs')`;
    expect((await snooze("alert_proof_mismatch zeta/crash/x", "1h")).status).toBe(303);
    expect(await textOf("/ops/alerts")).not.toContain("it differs");
    await operator.post("/ops/alerts/end-snooze", { problem: "alert_proof_mismatch zeta/crash/x" });
    expect(await textOf("/ops/alerts")).toContain("it differs");
  });

  it("of more equal problems than a form takes shows how many of them it snoozes", async () => {
    await world.sql`
      insert into alerts (kind, subject, text)
      select 'disk', 'crowd-' || n, 'the disk is 97 % full' from generate_series(1, 501) n`;
    const page = await (await operator.get("/ops/alerts")).text();
    expect(page).toContain("Snooze the first 500 of 502</button>"); // and host-1
    expect(page).toContain("492 more</summary>");
    await world.sql`update alerts set closed_at = clock_timestamp() where subject like 'crowd-%'`;
  });

  it("that is closed is on a page that exists: one past the last shows the last", async () => {
    const last = await textOf("/ops/alerts?state=closed&page=11");
    expect(last).toMatch(/Closed 502 .* crowd-/);
    expect(last).toContain("501–502 of 502");
    expect(await textOf("/ops/alerts?state=closed&page=400")).toContain("501–502 of 502");
    expect(await textOf("/ops/callers")).not.toContain("Previous"); // a list of one page has no steps
  });

  it("is not snoozed without a reason, by a viewer, or when it is no longer open", async () => {
    expect((await snooze("alert_disk host-1", "1h", "")).status).toBe(400);
    expect((await snooze("alert_disk host-1", "9d")).status).toBe(400);
    expect(await problemOf(await snooze("alert_disk host-2", "1h"))).toContain("open any more");
    const refused = await viewer.post("/ops/alerts/snooze", { problem: "alert_disk host-1", for: "1h", reason: "why" });
    expect(refused.status).toBe(403);
  });
});

it("a snooze ends when its problem gets worse, and with `change` when its text or beginning differs", () => {
  const since = new Date("2026-11-21T04:00:00Z");
  const now = new Date("2026-11-21T05:00:00Z");
  const problem: Problem = {
    kind: "gaps",
    tone: "warn",
    subject: "a/b/c",
    href: "",
    what: "2 gaps",
    since,
    why: "",
    doing: "",
    action: "",
  };
  const until = new Date("2026-11-21T06:00:00Z");
  const made: Snooze = { ...problem, endsOnChange: false, until, madeBy: "", madeAt: since, reason: "" };
  const isSnoozed = (changed: Partial<Problem>, snoozed: Partial<Snooze> = {}, at = now) =>
    splitSnoozed([{ ...problem, ...changed }], [{ ...made, ...snoozed }], at).snoozed.length === 1;
  expect(isSnoozed({})).toBe(true);
  expect(isSnoozed({ what: "3 gaps" })).toBe(true);
  expect(isSnoozed({ tone: "bad" })).toBe(false);
  expect(isSnoozed({ tone: "info" })).toBe(true);
  expect(isSnoozed({ subject: "a/b/d" })).toBe(false);
  expect(isSnoozed({}, {}, until)).toBe(false);
  expect(isSnoozed({}, { endsOnChange: true })).toBe(true);
  expect(isSnoozed({ what: "3 gaps" }, { endsOnChange: true })).toBe(false);
  expect(isSnoozed({ since: now }, { endsOnChange: true })).toBe(false);
});

const WITNESS = verifierKeyText({ name: "witness.example/w", type: "witness", publicKey: Buffer.alloc(32, 7) });

describe("the page of settings", () => {
  it("shows admins names, values and sources, and never a secret", async () => {
    const admin = await world.as("admin");
    const html = await (await admin.get("/ops/settings")).text();
    expect(html).toMatch(/id="LIVE_WINDOW_SECONDS">[\s\S]*?<code>300<\/code>[\s\S]*?default/);
    expect(html).toMatch(/id="AUTH_SECRET">[\s\S]*?set, hidden[\s\S]*?program/);
    expect(html).not.toContain("x".repeat(40));
    expect(html).not.toContain("secret-path");
    expect(html).toMatch(/id="USDT_MIN">[\s\S]*?<code>5\.00<\/code>/);
    expect(html).toMatch(/id="BANK_CURRENCIES">[\s\S]*?<code>USD, EUR<\/code>/);
    const env = {
      USDT_MIN: "5",
      PORT: "4000",
      OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:pass@collector:4318",
      OPS_REQUIRE_TWO_FACTOR: "1",
      MAIL_FROM: "Rounds <hello@example.com>",
      LOG_WITNESSES: `${WITNESS} https://user:p@s#s?@a.example/w,${WITNESS} https://b.example`,
    };
    const all = new Map(
      listSettingsInForce(loadSettings(env), env).flatMap(({ settings }) =>
        settings.map((one) => [one.name as string, one]),
      ),
    );
    expect(all.get("PORT")).toMatchObject({ value: "4000", source: "environment" });
    expect(all.get("OPS_REQUIRE_TWO_FACTOR")).toMatchObject({ value: "on" });
    expect(all.get("OTEL_EXPORTER_OTLP_ENDPOINT")).toMatchObject({ value: "http://…@collector:4318" });
    expect(all.get("USDT_MIN")).toMatchObject({ value: "5.00" });
    expect(all.get("MAIL_FROM")).toMatchObject({ value: "Rounds <hello@example.com>" });
    expect(all.get("LOG_WITNESSES")).toMatchObject({
      value: `${WITNESS} https://…@a.example/w, ${WITNESS} https://b.example`,
    });
    expect(all.get("HOST")).toMatchObject({ value: "127.0.0.1", source: "default" });
    expect(all.get("DATABASE_URL")).toMatchObject({ value: null, isHidden: false });
  });

  it("is for admins alone, in the navigation too", async () => {
    expect((await viewer.get("/ops/settings")).status).toBe(403);
    expect((await operator.get("/ops/settings")).status).toBe(403);
    expect(await (await viewer.get("/ops")).text()).not.toContain("/ops/settings");
    expect(await (await (await world.as("admin")).get("/ops")).text()).toContain('href="/ops/settings"');
  });
});
