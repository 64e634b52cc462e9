import { beforeAll, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import { openPipeline } from "../../src/db/client.ts";
import { createPasses } from "../../src/pass/passes.ts";
import { roundhouse } from "../cli/world.ts";
import { withOptions } from "../houses/adapters/fixtures.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { feedEntry, tableEntry } from "../support/houses.ts";
import { makeHouse, makePayload, makeTable, type MadeTable } from "../support/make.ts";

const DIGITS = "7".repeat(1_500_000);
const TEXT = JSON.stringify('\u0001x"'.repeat(300_000));
const KEYS = Array.from({ length: 12 }, (_, at) => `"${String(at).repeat(100_000)}":1`).join(",");

/** Bounds of the columns that a house's texts get into. */
const [LONGEST_REASON, LONGEST_ID] = [500, 128];

const { sql, url } = await openTestDatabase({ max: 1 });
let table: MadeTable;

beforeAll(async () => {
  table = await makeTable(sql, { feed: feedEntry({ occurred_at: "at", hash: "hash" }), round_ids: "opaque" });
});

/** Takes in what a house sent, a body each; gives what became of the payloads. */
async function takeIn(bodies: readonly string[], of = table): Promise<string[]> {
  await sql`delete from payloads where table_id = ${of.id}`;
  for (const [second, body] of bodies.entries()) await makePayload(sql, of, { second, body });
  const pipeline = openPipeline(url, { name: "test" });
  await normalizeRounds.run({ house: of.house }, testContext(sql, { passes: createPasses(pipeline) }).context);
  await pipeline.end();
  const rows = await sql<{ state: string }[]>`
    select state
    from payloads
    where table_id = ${of.id}
    order by received_at`;
  return rows.map(({ state }) => state);
}

describe("[TEXTS] what a hostile house sends", () => {
  it("is stored with short reasons, and listed in less than 400 kB", async () => {
    const items = [
      `{"id":${DIGITS},"multiplier":1.5}`,
      `{"id":-1.${DIGITS},"multiplier":1.5}`,
      `{"id":${TEXT},"multiplier":1.5}`,
      `{"id":"a","multiplier":${DIGITS}}`,
      `{"id":"b","multiplier":1e${DIGITS.slice(0, 1_000)}}`,
      `{"id":"c","multiplier":${TEXT}}`,
      `{"id":"d","multiplier":2,"at":${DIGITS}}`,
      `{"id":"e","multiplier":2,"at":${TEXT}}`,
      `{"id":"f","multiplier":2,"hash":${DIGITS}}`,
      `{"id":"g","multiplier":2,"hash":${TEXT}}`,
      DIGITS,
      TEXT,
    ];
    await takeIn(items.map((item) => `{"rounds":[${item}]}`));
    // many that fill a page with as much as one of them may have
    const many = Array.from({ length: 60 }, (_, at) =>
      JSON.stringify({ id: "ሴ".repeat(200) + at, more: 'ሴ"'.repeat(9_000) }),
    );
    await takeIn([`{"rounds":[${many.join(",")}]}`]);
    const stored = await sql<{ code: string; reason: string; roundId: string | null }[]>`
      select code, reason, round_id as "roundId"
      from quarantine`;
    expect(stored).toHaveLength(items.length + many.length);
    for (const { reason, roundId } of stored) {
      expect(reason.length).toBeLessThanOrEqual(LONGEST_REASON);
      expect(roundId?.length ?? 0).toBeLessThanOrEqual(LONGEST_ID);
    }
    const list = await roundhouse(["quarantine", "list", "--house", "alpha", "--json"], {
      env: { DATABASE_URL: url },
    });
    expect(list.code).toBe(0);
    expect(JSON.parse(list.stdout)).toHaveLength(50);
    expect(Buffer.byteLength(list.stdout)).toBeLessThan(400_000);
  });

  it.each([
    ["an id of thirty digits", `"id":"${"9".repeat(30)}","multiplier":2`, "bad_id"],
    ["an id that is no exact number", '"id":1e300,"multiplier":2', "bad_id"],
    ["an id below zero", '"id":-1,"multiplier":2', "bad_id"],
    ["an id with a fraction", '"id":1.5,"multiplier":2', "bad_id"],
    ["the largest id", `"id":"${"9".repeat(18)}","multiplier":2`, "far_ahead"],
    ["a multiplier above all columns", '"id":7,"multiplier":1e19', "impossible_multiplier"],
    ["a multiplier without an end", '"id":7,"multiplier":1e999999', "impossible_multiplier"],
    ["a multiplier below zero", '"id":7,"multiplier":-1e18', "impossible_multiplier"],
    ["a multiplier of nothing", '"id":7,"multiplier":1e-999999', "impossible_multiplier"],
    ["a time in the far future", '"id":7,"multiplier":2,"at":9999999999999999', "absurd_time"],
    ["a time of a year without end", '"id":7,"multiplier":2,"at":"+275760-09-13T00:00:00Z"', "absurd_time"],
    ["a time before all", '"id":7,"multiplier":2,"at":"0001-01-01T00:00:00+14:00"', "absurd_time"],
  ])("[NUMBERS] %s is quarantined, and its payload is read", async (_, fields, code) => {
    const [counting] = await makeHouse(sql, {
      id: "counting",
      tables: [tableEntry({ feed: feedEntry({ occurred_at: "at" }) })],
    });
    await sql`delete from quarantine where table_id = ${counting!.id}`;
    const good = '{"id":6,"multiplier":2}';
    expect(await takeIn([`{"rounds":[${good}]}`, `{"rounds":[{${fields}},${good}]}`], counting)).toEqual([
      "read",
      "read",
    ]);
    const rows = await sql`select code from quarantine where table_id = ${counting!.id}`;
    expect(rows).toEqual([{ code }]);
  });

  it.each([
    ["bcgame", `{"code":${DIGITS},"msg":${TEXT}}`],
    [
      "bcgame",
      `{"data":{"list":[{"gameId":${DIGITS},"gameDetail":"{\\"rate\\":1}"},{"gameId":1,"gameDetail":${TEXT}}]}}`,
    ],
    ["blaze", `[{"id":1,"status":${TEXT},"crash_point":1},{${KEYS}}]`],
    ["stake", `{"errors":[{"message":${TEXT}}]}`],
    ["stake", `{"errors":[${DIGITS}]}`],
    [
      "stake",
      `{"data":{"crashGameList":[{${KEYS}},{"id":1,"crashpoint":${DIGITS}},{"id":1,"crashpoint":1,"startTime":1.${DIGITS}}]}}`,
    ],
    ["roobet", `[{${KEYS}},{"id":1,"crashPoint":${DIGITS}}]`],
    ["lucky-jet", `[{${KEYS}},{"hash":1,"topCoefficient":${DIGITS}}]`],
    ["roobet", DIGITS],
    ["roobet", TEXT],
    ["json", `{"rounds":${DIGITS}}`],
  ] as const)("gives %s reasons that are short", (name, body) => {
    const { read } = withOptions(name, name === "json" ? feedEntry() : {});
    const result = read(body);
    const reasons = result.ok ? result.items.flatMap((item) => (item.ok ? [] : [item.reason])) : [result.reason];
    expect(reasons).not.toEqual([]);
    for (const reason of reasons) expect(reason.length).toBeLessThanOrEqual(LONGEST_REASON);
  });

  it.each([
    ["ethcrash-io", "/game/5.json", `{"game_crash":1.${DIGITS}}`],
    ["ethcrash-io", "/game/5.json", `{"game_crash":100,"id":${DIGITS}}`],
    ["bustabit", "/game/5", `<p>Game #${DIGITS} Busted at: ${DIGITS}x`],
    ["ethercrash", "/game/5", `<h4>Game 5 | Crashed @${DIGITS}x`],
    ["ethercrash", "/game/5", `<h4>Game 5 | Crashed @2x</h4> days ago on ${DIGITS}`],
  ] as const)("gives %s at %s reasons that are short", (name, path, body) => {
    const result = withOptions(name, { first_round_id: 1 }).read(body, { path });
    const reasons = result.ok ? result.items.flatMap((item) => (item.ok ? [] : [item.reason])) : [result.reason];
    expect(reasons).not.toEqual([]);
    for (const reason of reasons) expect(reason.length).toBeLessThanOrEqual(LONGEST_REASON);
  });

  it.each([
    ["quarantine", "reason"],
    ["quarantine", "code"],
    ["quarantine", "round_id"],
    ["quarantine", "item"],
    ["conflicts", "round_id"],
    ["conflicts", "other_raw"],
    ["gaps", "after_round_id"],
    ["gaps", "before_round_id"],
    ["gaps", "cursor_round_id"],
    ["gaps", "reason"],
    ["notices", "text"],
    ["alerts", "text"],
    ["payloads", "path"],
    ["payloads", "content_type"],
    ["payloads", "refused_reason"],
    ["payloads", "error"],
    ["payloads_kept", "refused_reason"],
    ["rounds", "round_id"],
    ["rounds", "raw_value"],
    ["feeds", "etag"],
    ["feeds", "last_modified"],
    ["table_heads", "newest_round_id"],
    ["table_heads", "payload_path"],
    ["poll_leases", "last_error"],
    ["circuit_changes", "reason"],
    ["poll_failures", "detail"],
    ["poll_failures", "reason"],
    ["chain_endpoints", "last_error"],
    ["chain_deposits", "sender"],
    ["chain_deposits", "block_hash"],
    ["chain_deposits", "dispute"],
    ["payment_app_orders", "prepay_id"],
    ["payment_app_orders", "checkout_url"],
    ["payment_app_orders", "qr_content"],
    ["payment_app_orders", "provider_status"],
    ["payment_app_orders", "last_error"],
    ["payment_app_certificates", "serial"],
    ["payment_app_certificates", "public_key"],
    ["bank_lines", "sender"],
    ["bank_lines", "remittance"],
    ["bank_imports", "body"],
  ])("is bounded by the column %s.%s", async (name, column) => {
    const checks = await sql<{ text: string }[]>`
      select pg_get_constraintdef(c.oid) as text
      from pg_constraint c
      join pg_attribute a on a.attrelid = c.conrelid and a.attnum = any(c.conkey)
      where c.contype = 'c'
        and c.conrelid = ${name}::regclass
        and a.attname = ${column}`;
    const bound = new RegExp(
      `length\\(${column}\\) <= \\d+|length\\(${column}\\)\\)? (?:>=|<=)|${column} ~ '.*\\{[\\d,]+\\}\\$'`,
    );
    expect(checks.map(({ text }) => text).join(" ")).toMatch(bound);
  });
});
