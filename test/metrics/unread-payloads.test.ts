import { beforeAll, expect, it } from "vitest";
import { findUnreadBacklog } from "../../src/alerts/behind-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { readDatabaseFacts } from "../../src/metrics/facts-store.ts";
import type { Value } from "../../src/db/statement.ts";
import { openTestDatabase } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";

const { sql } = await openTestDatabase();

beforeAll(async () => {
  const tables = ["one", "two"].map((market) => tableEntry({ market }));
  await applyHouses(sql, [houseEntry({ id: "alpha", tables }), houseEntry({ id: "beta", tables })]);
  await makeUnread("alpha", 20_000, "1 hour");
  await makeUnread("beta", 30, "20 minutes");
  await sql`analyze payloads`;
});

/** Stores unread payloads of each table of a house, newest first, which begin so long ago. */
async function makeUnread(house: string, count: number, ago: string): Promise<void> {
  await sql`
    insert into payloads (table_id, kind, requested_at, received_at, path, status, bytes, sha256, body)
    select t.id, 'poll', s.at, s.at, '/', 200, 0, sha256(''), ''
    from tables t
    cross join (
      select clock_timestamp() - ${ago}::interval + n * interval '10 milliseconds' as at
      from generate_series(${count}::integer, 1, -1) n
    ) s
    where t.house_id = ${house}`;
}

it("the metrics count at most 10,000 unread payloads, and find the oldest by an index", async () => {
  const { server } = await readDatabaseFacts(sql);
  expect(server.unreadPayloads).toBe(10_000);
  expect(server.oldestUnread).toBeGreaterThan(3_599.9);
  const plan = await sql<{ "QUERY PLAN": string }[]>`
    explain select min(received_at) from payloads where state = 'unread' and error is null`;
  const lines = plan.map((row) => row["QUERY PLAN"]).join("\n");
  expect(lines).toMatch(/Index Only Scan using payloads_\d{8}_received_at_idx/);
  expect(lines).not.toMatch(/Sort|Seq Scan|Bitmap/);
});

it("the alert backlog reports a house whose unread payloads are newer than 40,000 of another", async () => {
  const found = await findUnreadBacklog(sql);
  expect(found.map(({ text }) => text)).toEqual([
    expect.stringMatching(/^at least 1000 responses of alpha are not read since /),
    expect.stringMatching(/^60 responses of beta are not read since /),
  ]);
});

it("the alert backlog reads as many payloads as it counts, by the index of each table", async () => {
  const plan: string[] = [];
  const explaining = (strings: TemplateStringsArray, ...values: readonly Value[]) => {
    const texts = [`explain (analyze, timing off) ${strings[0]}`, ...strings.slice(1)];
    return sql<{ "QUERY PLAN": string }[]>(Object.assign(texts, { raw: texts }), ...values).then((rows) => {
      plan.push(...rows.map((row) => row["QUERY PLAN"]));
      return [];
    });
  };
  await findUnreadBacklog(Object.assign(explaining, sql));
  const ofPayloads = plan.filter((line) => /Scan.* on payloads/.test(line) && !line.includes("never executed"));
  expect(ofPayloads.length).toBeGreaterThan(0);
  for (const line of ofPayloads) expect(line).toMatch(/Index (Only )?Scan using payloads_\d{8}_/);
  const rows = ofPayloads.map((line) => {
    const [, each, loops] = /actual rows=([\d.]+) loops=(\d+)/.exec(line) ?? [];
    return Number(each) * Number(loops);
  });
  expect(rows.reduce((sum, of) => sum + of, 0)).toBeLessThan(2_200);
});
