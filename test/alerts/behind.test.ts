import { beforeAll, describe, expect, it } from "vitest";
import publishLog from "../../jobs/publish-log.ts";
import { findLogBehind, findUnreadBacklog } from "../../src/alerts/behind-store.ts";
import { createLasting } from "../../src/alerts/lasting.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { readWaiting } from "../../src/ops/board/summary/summary-store.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { houseEntry } from "../support/houses.ts";
import { makeItem, makePayload } from "../support/make.ts";

const { sql } = await openTestDatabase();
beforeAll(async () => {
  await applyHouses(sql, [houseEntry(), houseEntry({ id: "beta" })]);
});

const texts = (found: readonly { text: string }[]) => found.map(({ text }) => text);

describe("responses that are not read", () => {
  it("are a backlog of their house after 20 s, until they are read", async () => {
    const [table] = await sql<{ id: number }[]>`select id from tables where house_id = 'alpha'`;
    if (table === undefined) throw new Error("expected a table");
    await makePayload(sql, table, { second: 0, items: [makeItem(1, 1.5)] });
    await sql`update payloads set received_at = clock_timestamp()`;
    expect(await findUnreadBacklog(sql)).toEqual([]);
    await sql`update payloads set received_at = clock_timestamp() - interval '21 seconds'`;
    expect(texts(await findUnreadBacklog(sql))).toEqual([
      expect.stringMatching(/^1 responses of alpha are not read since .* normalize-rounds is paused or fails$/),
    ]);
    await sql`update payloads set state = 'read', read_at = clock_timestamp()`;
    expect(await findUnreadBacklog(sql)).toEqual([]);
  });

  it("are a backlog also next to a damaged table, whose many payloads are kept and are none", async () => {
    await sql`
      insert into payloads (table_id, kind, requested_at, received_at, path, status, bytes, sha256, body, error)
      select t.id, 'poll', s.at, s.at, '/', 200, 0, sha256(''), '', 'its head is damaged'
      from tables t
      cross join (
        select clock_timestamp() - interval '1 minute' + n * interval '1 millisecond' as at
        from generate_series(1, 10000) n
      ) s
      where t.house_id = 'alpha'`;
    expect(await findUnreadBacklog(sql)).toEqual([]);
    expect(await sql.begin((tx) => readWaiting(tx))).toMatchObject({ backlogSeconds: null });
    const [table] = await sql<{ id: number }[]>`select id from tables where house_id = 'beta'`;
    if (table === undefined) throw new Error("expected a table");
    await makePayload(sql, table, { second: 0, items: [makeItem(1, 1.5)] });
    expect(await findUnreadBacklog(sql)).toMatchObject([{ subject: "beta" }]);
  });
});

describe("the transparency log", () => {
  it("is behind when a table changed 20 s ago and no statement covers it", async () => {
    expect(await findLogBehind(sql)).toEqual([]);
    await sql`update table_heads set last_seq = 1, version = version + 1, changed_at = clock_timestamp() - interval '21 seconds'`;
    expect(texts(await findLogBehind(sql))).toEqual([expect.stringMatching(/^2 tables changed since .* publish-log/)]);
    await sql`update table_heads set version = version + 1, changed_at = clock_timestamp()`;
    expect(await findLogBehind(sql)).toEqual([]);
  });

  it("raises an alert when its folder cannot be written, and the job still fails", async () => {
    const { context } = testContext(sql, { env: { LOG_DIR: "/dev/null/log" } });
    await expect(publishLog.run({}, context)).rejects.toThrow(/ENOTDIR/);
    expect([...(await sql`select kind, text from alerts where closed_at is null`)]).toMatchObject([
      { kind: "log", text: expect.stringContaining("the transparency log is not signed") as string },
    ]);
  });
});

it("a finding counts once it was there without a break for the time that is set", () => {
  let ms = 0;
  const lasting = createLasting(20, () => ms);
  const late = [{ subject: "alpha", text: "late" }];
  expect(lasting(late)).toEqual([]);
  ms = 19_999;
  expect(lasting(late)).toEqual([]);
  ms = 20_000;
  expect(lasting(late)).toEqual(late);
  expect(lasting([])).toEqual([]);
  expect(lasting(late)).toEqual([]);
});
