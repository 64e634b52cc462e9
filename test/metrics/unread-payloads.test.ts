import { expect, it } from "vitest";
import { findUnreadBacklog } from "../../src/alerts/behind-store.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { readDatabaseFacts } from "../../src/metrics/facts-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { houseEntry } from "../support/houses.ts";

const { sql } = await openTestDatabase();

it("counts at most 10,000 unread payloads, and finds the oldest by an index", async () => {
  await applyHouses(sql, [houseEntry()]);
  await sql`
    insert into payloads (table_id, kind, requested_at, received_at, path, status, bytes, sha256, body)
    select t.id, 'poll', s.at, s.at, '/', 200, 0, sha256(''), ''
    from tables t
    cross join (
      select clock_timestamp() - interval '1 hour' + n * interval '10 milliseconds' as at
      from generate_series(10001, 1, -1) n
    ) s`;
  const { server } = await readDatabaseFacts(sql);
  expect(server.unreadPayloads).toBe(10_000);
  expect(server.oldestUnread).toBeGreaterThan(3_599.9);
  const [backlog] = await findUnreadBacklog(sql);
  expect(backlog?.text).toMatch(/^at least 10000 responses/);
  const plan = await sql<{ "QUERY PLAN": string }[]>`
    explain select min(received_at) from payloads where state = 'unread' and error is null`;
  const lines = plan.map((row) => row["QUERY PLAN"]).join("\n");
  expect(lines).toMatch(/Index Only Scan using payloads_\d{8}_received_at_idx/);
  expect(lines).not.toMatch(/Sort|Seq Scan|Bitmap/);
});
