import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { writeNotice } from "../../src/corrections/operator-notice.ts";
import { createNoticeRefresh, refreshNotices, refreshStalledNotices } from "../../src/rounds/notices/notices-store.ts";
import { lockHeads } from "../../src/tables/heads-store.ts";
import { openTestDatabase } from "../support/database.ts";
import { forgetHouses, tableEntry } from "../support/houses.ts";
import { makeHouse, openNotices, type MadeTable } from "../support/make.ts";

const { sql, url } = await openTestDatabase();
let other: Sql;
beforeAll(async () => {
  other = connect(url, { name: "other" });
});
beforeEach(() => forgetHouses(sql));
afterAll(async () => {
  await other.end();
});

/** Tables of one house, each with a round that was received with two results. */
async function disputedTables(count: number): Promise<MadeTable[]> {
  const tables = await makeHouse(sql, {
    tables: Array.from({ length: count }, (_, n) => tableEntry({ market: `market-${n}` })),
  });
  tables.sort((a, b) => a.id - b.id);
  await sql`
    insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw, payload_received_at)
    select id, '812', 187, 204, '2.04', now()
    from unnest(${idsOf(tables)}::integer[]) as t (id)`;
  return tables;
}

/** In id order, as heads are locked. */
const idsOf = (tables: readonly MadeTable[]) => tables.map(({ id }) => id).toSorted((a, b) => a - b);

/** Holds the heads of tables, as a slow transaction would, until `free` is called. */
async function hold(tables: readonly MadeTable[]): Promise<{ free: () => Promise<void> }> {
  const [held, freed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = other.begin(async (tx) => {
    await lockHeads(tx, idsOf(tables));
    held.resolve();
    await freed.promise;
  });
  await held.promise;
  return {
    free: async () => {
      freed.resolve();
      await holding;
    },
  };
}

it("of a house are refused after a second if another session keeps one of its tables locked, as an import does", async () => {
  const [one, locked] = await disputedTables(2);
  if (one === undefined || locked === undefined) throw new Error("expected two tables");
  const held = await hold([locked]);
  const written = sql.begin((tx) => writeNotice(tx, idsOf([one, locked]), { text: "a test", by: "ann" }));
  await expect(written).rejects.toMatchObject({ code: "55P03" });
  await held.free();
  expect(await openNotices(sql, one)).toEqual({});
});

it("are opened and closed by the periodic refresh if the process of the pass ended before", async () => {
  const [disputed, gapped, filled] = await disputedTables(3);
  if (disputed === undefined || gapped === undefined || filled === undefined) throw new Error("expected three tables");
  await sql`delete from conflicts where table_id <> ${disputed.id}`;
  await sql`
    insert into gaps (table_id, from_number, to_number, missing, after_round_id, before_round_id)
    values (${gapped.id}, 2, 4, 3, '1', '5')`;
  await sql`
    insert into notices (table_id, kind, text)
    values (${filled.id}, 'gap', '3 rounds are missing')`;
  const refresh = createNoticeRefresh();
  expect((await refresh(sql)).toSorted((a, b) => a - b)).toEqual(idsOf([disputed, gapped, filled]));
  expect(Object.keys(await openNotices(sql, disputed))).toEqual(["conflict"]);
  expect(Object.keys(await openNotices(sql, gapped))).toEqual(["gap"]);
  expect(await openNotices(sql, filled)).toEqual({});
  expect(await refresh(sql)).toEqual([]);
});

describe("the notice of a gap, when it closes", () => {
  interface MadeGap {
    from: number | null;
    to: number | null;
    filled: number | null;
    missing?: number;
    closedBy?: string;
    /** It was closed before the notice opened. */
    isOlder?: boolean;
  }

  /** Opens a notice of gaps, fills or gives up each, and returns the text of the notice when it is closed. */
  async function closedText(gaps: readonly MadeGap[]): Promise<unknown> {
    const [table] = await disputedTables(1);
    if (table === undefined) throw new Error("expected a table");
    await sql`delete from conflicts`;
    for (const [at, { from, to, missing }] of gaps.entries()) {
      await sql`
        insert into gaps (table_id, from_number, to_number, missing, after_round_id, before_round_id)
        values (${table.id}, ${from}, ${to}, ${missing ?? (from !== null && to !== null ? to - from + 1 : null)}, ${`a${at}`}, ${`b${at}`})`;
    }
    await refreshNotices(sql, [table.id]);
    for (const [at, { filled, closedBy, isOlder }] of gaps.entries()) {
      await sql`
        update gaps
        set
          state = ${filled === null ? "given_up" : "filled"},
          filled = ${filled ?? 0},
          reason = ${filled === null ? "the history is too short" : null},
          closed_at = clock_timestamp() - ${isOlder === true ? 3600 : 0} * interval '1 second',
          closed_by = ${closedBy ?? null}
        where before_round_id = ${`b${at}`}`;
    }
    if (gaps.some(({ filled }) => filled === null)) {
      await refreshNotices(sql, [table.id]);
      await sql`update notices set opened_at = opened_at - interval '25 hours'`;
      await sql`update gaps set opened_at = opened_at - interval '25 hours', closed_at = closed_at - interval '25 hours'`;
    }
    await refreshNotices(sql, [table.id]);
    const [closed] = await sql<{ text: string; isClosed: boolean }[]>`
      select text, closed_at is not null as "isClosed"
      from notices
      where kind = 'gap'`;
    expect(closed?.isClosed).toBe(true);
    return closed?.text.replace(/\d{4}-\d\d-\d\d \d\d:\d\d UTC/, "T");
  }

  it("states that all rounds were received, instead of that they are being fetched", async () => {
    expect(await closedText([{ from: 1347, to: 1401, filled: 55 }])).toBe(
      "55 rounds (1347 to 1401) were missing since T; all were received",
    );
  });

  it("states so too if an import stored them, which counts no filled rounds", async () => {
    expect(await closedText([{ from: 812, to: 812, filled: 0 }])).toBe(
      "1 round (812) was missing since T; it was received",
    );
  });

  it("states so of a gap of unknown size", async () => {
    expect(await closedText([{ from: null, to: null, filled: 4 }])).toBe(
      "an unknown number of rounds were missing since T; all were received",
    );
  });

  it("states that no round was missing, if so", async () => {
    expect(await closedText([{ from: null, to: null, filled: 0 }])).toBe("no round was missing");
    await sql`truncate gaps, notices cascade`;
    expect(await closedText([{ from: 813, to: 830, filled: 0, missing: 0 }])).toBe("no round was missing");
  });

  it("does not count what was closed before", async () => {
    expect(
      await closedText([
        { from: 700, to: 709, filled: 10, isOlder: true },
        { from: 812, to: 814, filled: 3 },
      ]),
    ).toBe("3 rounds (812 to 814) were missing since T; all were received");
  });

  it("does not count what staff gave up", async () => {
    expect(
      await closedText([
        { from: 812, to: 814, filled: 3 },
        { from: 1_000, to: 9_001_006, filled: null, closedBy: "ann" },
      ]),
    ).toBe("3 rounds (812 to 814) were missing since T; all were received");
  });

  it("keeps the reason if none was received", async () => {
    expect(await closedText([{ from: 812, to: 814, filled: null }])).toBe(
      "3 rounds (812 to 814) are missing since T; they could not be fetched: the history is too short",
    );
  });

  it("states that some were received if others were given up", async () => {
    expect(
      await closedText([
        { from: 812, to: 814, filled: 3 },
        { from: 820, to: 821, filled: null },
      ]),
    ).toBe("5 rounds in 2 gaps (812 to 821) were missing since T; some were received, the others could not be fetched");
  });
});

it("count up to a thousand causes of a kind, and state more as that", async () => {
  const [table] = await disputedTables(1);
  if (table === undefined) throw new Error("expected a table");
  const addCauses = async (count: number, from: number) => {
    const numbers = Array.from({ length: count }, (_, n) => from + 2 * n);
    await sql`
      insert into gaps (table_id, from_number, to_number, missing, after_round_id, before_round_id)
      select ${table.id}, n, n, 1, (n - 1)::text, (n + 1)::text
      from unnest(${numbers}::bigint[]) as n`;
    await sql`
      insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw)
      select ${table.id}, n::text, 187, 204, '2.04'
      from unnest(${numbers}::bigint[]) as n`;
    await sql`
      insert into quarantine (table_id, code, reason, round_id, item, item_sha256)
      select ${table.id}, code, 'wrong', n::text, '{}', n::text
      from unnest(${numbers}::bigint[]) as n
      cross join unnest(array['proof_mismatch', 'bad_id']) as code`;
    await refreshNotices(sql, [table.id]);
    return openNotices(sql, table);
  };
  expect(await addCauses(999, 1_000)).toMatchObject({
    gap: expect.stringMatching(/^999 rounds in 999 gaps \(1000 to 2996\) are missing since/),
    conflict: expect.stringMatching(/^1000 rounds were received twice with different results since/),
    proof: expect.stringMatching(/^999 rounds failed their fairness proof since/),
    quarantine: expect.stringMatching(/^999 items failed validation since/),
  });
  expect(await addCauses(2, 9_000)).toEqual({
    gap: "rounds in more than 1,000 places are missing; trying to fetch them",
    conflict: "rounds were received with more than 1,000 other results; the first of each is kept",
    proof: "more than 1,000 rounds failed their fairness proof; they are quarantined",
    quarantine: "more than 1,000 items failed validation; they are quarantined",
  });
  await sql`update gaps set state = 'given_up', reason = 'the house has no history', closed_at = clock_timestamp()`;
  await refreshNotices(sql, [table.id]);
  expect((await openNotices(sql, table))["gap"]).toBe(
    "rounds in more than 1,000 places are missing; they could not be fetched: the house has no history",
  );
});

describe("a conflict that the house lists again", () => {
  it("waits for no lock and moves no head, because its notice stays unchanged", async () => {
    const [table] = await disputedTables(1);
    if (table === undefined) throw new Error("expected a table");
    expect(await refreshNotices(sql, [table.id])).toEqual([table.id]);
    await sql`update conflicts set times = times + 1, last_seen_at = clock_timestamp()`;
    const { free } = await hold([table]);
    expect(await refreshNotices(sql, [table.id])).toEqual([]);
    await free();
    expect(await openNotices(sql, table)).toHaveProperty("conflict");
  });
});

describe("notices of many tables", () => {
  it("are written for all tables but a locked one, which is left for the next time", async () => {
    const tables = await disputedTables(25);
    const { free } = await hold(tables.slice(-2, -1));
    const refresh = async () => (await refreshNotices(sql, idsOf(tables))).toSorted((a, b) => a - b);
    expect(await refresh()).toEqual(idsOf([...tables.slice(0, -2), ...tables.slice(-1)]));
    await free();
    expect(await refresh()).toEqual(idsOf(tables.slice(-2, -1)));
  });

  it("close when their causes expire, also those of a disabled table; a locked table is left for the next time", async () => {
    const tables = await disputedTables(25);
    const refresh = createNoticeRefresh();
    await refresh(sql);
    await sql`update tables set enabled = false where id = any(${idsOf(tables.slice(-2))}::integer[])`;
    expect(await refresh(sql)).toEqual([]);
    await sql`update conflicts set last_seen_at = last_seen_at - interval '25 hours'`;
    const [first, ...rest] = tables;
    const { free } = await hold(tables.slice(0, 1));
    expect((await refresh(sql)).toSorted((a, b) => a - b)).toEqual(idsOf(rest));
    await free();
    expect(await refresh(sql)).toEqual([first?.id]);
    expect(await sql`select from notices where closed_at is null`).toEqual([]);
  });

  it("state what is left when the oldest of their causes expires", async () => {
    const [table] = await disputedTables(1);
    if (table === undefined) throw new Error("expected a table");
    await sql`update conflicts set last_seen_at = last_seen_at - interval '23 hours 50 minutes'`;
    await sql`
      insert into conflicts (table_id, round_id, kept_hundredths, other_hundredths, other_raw, payload_received_at)
      values (${table.id}, '813', 187, 204, '2.04', now())`;
    await refreshNotices(sql, [table.id]);
    expect((await openNotices(sql, table))["conflict"]).toMatch(/^2 rounds were received twice/);
    await sql`update conflicts set last_seen_at = last_seen_at - interval '11 minutes'`;
    expect(await createNoticeRefresh()(sql)).toEqual([table.id]);
    expect((await openNotices(sql, table))["conflict"]).toMatch(/^round 813 was received twice/);
  });

  it("that no round arrives are written for all tables of a house in one call, except a locked one", async () => {
    const tables = await disputedTables(45);
    await sql`update table_heads set last_polled_round_at = clock_timestamp() - interval '1 hour', version = version + 1`;
    const { free } = await hold(tables.slice(-1));
    expect((await refreshStalledNotices(sql, 300)).toSorted((a, b) => a - b)).toEqual(idsOf(tables.slice(0, -1)));
    await free();
    expect(await refreshStalledNotices(sql, 300)).toEqual(idsOf(tables.slice(-1)));
  });
});
