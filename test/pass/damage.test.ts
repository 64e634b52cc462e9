import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import normalizeRounds from "../../jobs/normalize-rounds.ts";
import pollHouse from "../../jobs/poll-house.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { addAccuracy } from "../../src/forecasts/accuracy/add-accuracy.ts";
import { verify } from "../../src/verify/verify.ts";
import type { HouseClient } from "../../src/houses/polling/client.ts";
import { createHouseClient } from "../../src/houses/polling/http.ts";
import { createPasses, loadStates, type Passes } from "../../src/pass/passes.ts";
import { repairTable } from "../../src/verify/repair.ts";
import { PAUSE_MS } from "../forecasts/world.ts";
import { respondWith, startBadHouse, type BadHouse } from "../support/bad-house.ts";
import { testContext } from "../support/context.ts";
import { openTestDatabase } from "../support/database.ts";
import { eventually } from "../support/eventually.ts";
import { feedEntry, forgetHouses, tableEntry } from "../support/houses.ts";
import { makeHouse, type MadeTable } from "../support/make.ts";
import { givePasses } from "../support/passes.ts";

const { sql, pipeline, url: databaseUrl } = await openTestDatabase({ max: 4 });
let http: HouseClient;
let house: BadHouse;
let damaged: MadeTable;
let healthy: MadeTable;
beforeEach(async () => {
  await forgetHouses(sql);
  await sql`delete from alerts`;
  house = await startBadHouse();
  http = createHouseClient({ version: "0.0.0" });
  const tables = [0, 1].map((n) =>
    tableEntry({ market: `m${n}`, pause_ms: PAUSE_MS, feed: feedEntry({ path: `/${n}` }) }),
  );
  const made = await makeHouse(sql, { base_url: house.url, tables });
  [damaged, healthy] = made as [MadeTable, MadeTable];
  const before = Array.from({ length: 76 }, (_, n) => ({ roundId: String(n + 1), hundredths: hundredthsOf(n + 1) }));
  await Promise.all(made.map((table) => givePasses(sql, table, before)));
  const passes = createPasses(pipeline);
  for (const newest of [77, 78, 79]) await poll(passes, newest);
});
afterEach(async () => {
  await http.close();
  await house.close();
});

function hundredthsOf(roundId: number): number {
  return 100 + ((roundId * 37) % 190);
}

/** A page of the three newest rounds, whose multipliers follow from their ids. */
function page(newest: number): string {
  const rounds = [newest, newest - 1, newest - 2].map((id) => ({ id, multiplier: hundredthsOf(id) / 100 }));
  return JSON.stringify({ rounds });
}

function contextOf(passes: Passes) {
  return testContext(sql, { passes, http, env: { ALLOW_PRIVATE_HOUSES: "1" } }).context;
}

async function poll(passes: Passes, newest: number): Promise<Record<string, number>> {
  for (const path of ["/0", "/1"]) house.on(path, respondWith(page(newest)));
  return pollHouse.run({ house: "alpha", shard: 0 }, contextOf(passes));
}

const headOf = async ({ id }: MadeTable) =>
  (
    await sql<
      { seq: bigint; set: bigint }[]
    >`select last_seq as seq, set_seq as set from table_heads where table_id = ${id}`
  )[0];

const kept = async () =>
  (
    await sql<{ n: number }[]>`
    select count(*)::integer as n from payloads where table_id = ${damaged.id} and state = 'unread'`
  )[0]?.n;

/** Writes past every guard, as a failing disk would. */
async function damage(change: (tx: Sql) => Promise<unknown>): Promise<void> {
  const broken = connect(databaseUrl, { name: "damage", max: 1 });
  try {
    await broken`set session_replication_role = replica`;
    await change(broken);
  } finally {
    await broken.end();
  }
}

const DAMAGES: [string, (tx: Sql) => Promise<unknown>][] = [
  ["a state", (tx) => tx`update model_snapshots set state = set_byte(state, 9, 255) where table_id = ${damaged.id}`],
  ["a reading", (tx) => tx`update model_snapshots set reading = '{}' where table_id = ${damaged.id}`],
  ["the references", (tx) => tx`update model_snapshots set refs = '[]' where table_id = ${damaged.id}`],
  ["a head that is ahead", (tx) => tx`update table_heads set last_seq = last_seq + 7 where table_id = ${damaged.id}`],
  [
    "a head that is behind",
    (tx) => tx`update table_heads set last_ordinal = last_ordinal - 2 where table_id = ${damaged.id}`,
  ],
];

describe.each(DAMAGES)("%s that is damaged", (_, change) => {
  it("stops its table alone, which is named, stores its payloads, and resumes after a repair", async () => {
    await damage(change);
    const passes = createPasses(pipeline);
    const before = await headOf(healthy);
    for (const newest of [80, 81, 81, 82]) await poll(passes, newest);
    const after = await headOf(healthy);
    expect([after?.seq, after?.set]).toEqual([(before?.seq ?? 0n) + 3n, (before?.set ?? 0n) + 3n]);
    expect(await kept()).toBe(3);
    const alerts = await sql`select subject, text from alerts where closed_at is null`;
    expect(alerts).toEqual([
      { subject: damaged.name, text: expect.stringContaining(`roundhouse table repair ${damaged.name}`) },
    ]);
    expect(await sql.begin((tx) => repairTable(tx, damaged.id))).toMatchObject({ ok: true, rounds: 79n });
    await normalizeRounds.run({ house: "alpha" }, contextOf(passes));
    await poll(passes, 83);
    expect([(await headOf(damaged))?.seq, (await headOf(damaged))?.set]).toEqual([83n, 83n]);
    expect(await verify(sql)).toMatchObject({ first_failure: null });
  });
});

it("a damaged table that is locked, as by its repair, delays no other", async () => {
  await damage((tx) => tx`update model_snapshots set refs = '[]' where table_id = ${damaged.id}`);
  const passes = createPasses(pipeline);
  await poll(passes, 80);
  const before = await headOf(healthy);
  await sql.begin(async (tx) => {
    await tx`select from table_heads where table_id = ${damaged.id} for no key update`;
    expect(await poll(passes, 81)).toMatchObject({ rounds: 1, busy: 1 });
  });
  expect((await headOf(healthy))?.seq).toBe((before?.seq ?? 0n) + 1n);
  expect(await sql`select failures_in_row from poll_leases`).toEqual([{ failures_in_row: 0 }]);
});

it("a damaged table takes turns with the others where a poll may send one request", async () => {
  await damage((tx) => tx`update model_snapshots set refs = '[]' where table_id = ${damaged.id}`);
  await sql`update houses set settings = settings || '{"requests_per_minute": 1}', updated_at = clock_timestamp()`;
  const passes = createPasses(pipeline);
  const before = house.requests.length;
  for (let newest = 80; newest < 86; newest += 1) {
    await poll(passes, newest);
    await sql`delete from request_budgets`;
  }
  const paths = house.requests.slice(before).map(({ path }) => path);
  expect(paths.toSorted()).toEqual(["/0", "/0", "/0", "/1", "/1", "/1"]);
});

it("the response of a damaged table is dropped with its lease, as any other", async () => {
  await damage((tx) => tx`update model_snapshots set refs = '[]' where table_id = ${damaged.id}`);
  const passes = createPasses(pipeline);
  await poll(passes, 80);
  const before = await kept();
  let held: ServerResponse | undefined;
  house.on("/0", (_, response) => void (held = response));
  house.on("/1", respondWith(page(81)));
  const polled = pollHouse.run({ house: "alpha", shard: 0 }, contextOf(passes));
  await eventually(() => held !== undefined);
  await sql`update poll_leases set lease_epoch = lease_epoch + 1`;
  held?.end(page(81));
  expect(await polled).toEqual({ lost: 1 });
  expect(await kept()).toBe(before);
});

it("the response of a damaged table counts towards its daily limit when it is stored, not when it is repeated", async () => {
  await damage((tx) => tx`update model_snapshots set refs = '[]' where table_id = ${damaged.id}`);
  await sql`update poll_leases set bytes_today = 0`;
  const passes = createPasses(pipeline);
  for (let polls = 0; polls < 3; polls += 1) {
    await poll(passes, 80);
    const lengths = 2n * BigInt(page(80).length);
    expect(await sql`select bytes_today from poll_leases`).toEqual([{ bytes_today: lengths }]);
  }
});

it("a damaged table is named also if it was loaded several times before its first poll ended", async () => {
  await damage((tx) => tx`update model_snapshots set refs = '[]' where table_id = ${damaged.id}`);
  const passes = createPasses(pipeline);
  for (let loads = 0; loads < 2; loads += 1) await loadStates(passes, [damaged.id]);
  await poll(passes, 80);
  expect(await sql`select subject from alerts where closed_at is null`).toEqual([{ subject: damaged.name }]);
});

const RECORDS: [string, (tx: Sql) => Promise<unknown>][] = [
  [
    "the newest forecast set",
    (tx) =>
      tx`update forecast_sets set features = array_replace(features, features[2], 99::smallint) where table_id = ${damaged.id} and cutoff_seq = 79`,
  ],
  [
    "an open forecast set, in a probability alone",
    (tx) =>
      tx`
        update forecast_sets s
        set p_ppm = array_replace(s.p_ppm, s.p_ppm[cardinality(s.p_ppm)], s.p_ppm[cardinality(s.p_ppm)] / 2)
        from table_heads h
        where h.table_id = s.table_id
          and s.table_id = ${damaged.id}
          and s.cutoff_seq = h.open_sets[1]`,
  ],
  [
    "a score set of an open forecast set",
    (tx) =>
      tx`
        update score_sets s
        set forecast_seqs = array(select seq + 1000000 from unnest(s.forecast_seqs) as seq)
        from table_heads h
        where h.table_id = s.table_id
          and s.table_id = ${damaged.id}
          and s.cutoff_seqs && h.open_sets`,
  ],
];

describe.each(RECORDS)("%s that is damaged", (_, change) => {
  it("stops its table alone, which is named, and no repair rebuilds it", async () => {
    await damage(change);
    const passes = createPasses(pipeline);
    const before = await headOf(damaged);
    for (const newest of [80, 81]) await poll(passes, newest);
    expect((await headOf(healthy))?.set).toBe(81n);
    expect(await headOf(damaged)).toEqual(before);
    expect(await sql`select subject from alerts where closed_at is null`).toEqual([{ subject: damaged.name }]);
    expect(await sql.begin((tx) => repairTable(tx, damaged.id))).toEqual({
      ok: false,
      problem: expect.stringMatching(/is damaged: .*; restore it from a backup$/s),
    });
  });
});

describe("accuracy that was computed from a damaged row", () => {
  it("is named by verify, and is right after the row is restored and its table repaired", async () => {
    const { signal } = new AbortController();
    const halve = (tx: Sql) => tx`
      update forecast_sets
      set p_ppm = array_replace(p_ppm, p_ppm[1], p_ppm[1] / 2)
      where table_id = ${damaged.id}
        and cutoff_seq = 70`;
    const [before] = await sql<{ p: number[] }[]>`
      select p_ppm as p from forecast_sets where table_id = ${damaged.id} and cutoff_seq = 70`;
    await damage(halve);
    await addAccuracy(sql, [damaged.id, healthy.id], signal);
    await damage(
      (tx) => tx`
        update forecast_sets
        set p_ppm = ${before?.p ?? []}::integer[]
        where table_id = ${damaged.id}
          and cutoff_seq = 70`,
    );
    await damage((tx) => tx`update accuracy_marks set round_seq = round_seq + 5 where table_id = ${damaged.id}`);
    expect(await verify(sql)).toMatchObject({ first_failure: { kind: "accuracy" } });
    const repair = () => sql.begin((tx) => repairTable(tx, damaged.id));
    expect(await repair()).toMatchObject({ ok: true, isAccuracyRebuilt: true });
    expect(await repair()).toMatchObject({ ok: true, isAccuracyRebuilt: false });
    const passes = createPasses(pipeline);
    for (const newest of [80, 81]) await poll(passes, newest);
    await addAccuracy(sql, [damaged.id, healthy.id], signal);
    expect(await verify(sql)).toMatchObject({ first_failure: null });
  });
});
