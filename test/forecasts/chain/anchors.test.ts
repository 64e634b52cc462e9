import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { connect } from "../../../src/db/client.ts";
import { anchorHours, proveForecast } from "../../../src/forecasts/chain/anchors.ts";
import { listAnchors, listHoursToAnchor, saveAnchor, type Anchor } from "../../../src/forecasts/chain/anchors-store.ts";
import { createAnchoredWorld, hashOf, TABLES, type AnchoredWorld, type Saved } from "../anchored.ts";
import { mth, rootByProof } from "../rfc6962.ts";

const EMPTY_ROOT = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const { signal } = new AbortController();
const at = (table: string, seq: number, hoursAgo: number): Saved => ({ table, seq, hoursAgo });

/** The root by definition, over forecasts in the order in which they are given. */
const rootOver = (forecasts: readonly Saved[]) =>
  mth(forecasts.map((forecast) => Buffer.from(hashOf(forecast), "hex"))).toString("hex");

/** Roots of the hours that are over in every minute of the one that runs. */
async function rootsOf(world: AnchoredWorld): Promise<Anchor[]> {
  return (await listAnchors(world.sql, null, 1000)).filter(({ hour }) => hour <= world.hourOf(2));
}

describe("an hour that is over", () => {
  test("has one root over the forecasts of all tables, by their names as text and then by seq", async () => {
    const world = await createAnchoredWorld();
    const hour = [
      at("a-b/crash/global", 9, 3),
      at("a-b/crash/global", 10, 3),
      at("a-b/crash/global", 11, 3),
      at("a/crash/eu", 1, 3),
      at("a/crash/eu-2", 1, 3),
      at("a/dice/global", 2, 3),
      at("b/crash/global", 100, 3),
    ];
    const next = [at("a/crash/eu", 2, 2), at("b/crash/global", 101, 2)];
    await world.save([...hour, ...next].toReversed());
    await anchorHours(world.sql, signal);
    expect(await rootsOf(world)).toEqual([
      { hour: world.hourOf(3), size: 7, root: rootOver(hour) },
      { hour: world.hourOf(2), size: 2, root: rootOver(next) },
    ]);
  });

  test("has the root of the empty tree where nothing was forecast, but only since the first forecast", async () => {
    const world = await createAnchoredWorld();
    expect(await anchorHours(world.sql, signal)).toBe(0);
    expect(await rootsOf(world)).toEqual([]);
    const [first, last] = [at("a/crash/eu", 1, 6), at("a/crash/eu", 2, 4)];
    await world.save([first, last]);
    await anchorHours(world.sql, signal);
    expect(await rootsOf(world)).toEqual([
      { hour: world.hourOf(6), size: 1, root: rootOver([first]) },
      { hour: world.hourOf(5), size: 0, root: EMPTY_ROOT },
      { hour: world.hourOf(4), size: 1, root: rootOver([last]) },
      { hour: world.hourOf(3), size: 0, root: EMPTY_ROOT },
      { hour: world.hourOf(2), size: 0, root: EMPTY_ROOT },
    ]);
  });

  test("gets its root once, however many make it at the same time or again", async () => {
    const world = await createAnchoredWorld();
    await world.save(Array.from({ length: 20 }, (_, index) => at("a/crash/eu", index + 1, 21 - index)));
    const pools = [1, 2, 3].map(() => connect(world.url, { name: "test", max: 1 }));
    try {
      const made = await Promise.all(pools.map((sql) => anchorHours(sql, signal)));
      const roots = await listAnchors(world.sql, null, 1000);
      expect(roots.length).toBeGreaterThanOrEqual(20);
      expect(made.reduce((sum, one) => sum + one, 0)).toBe(roots.length);
      const [before] = await world.sql`select max(made_at) as newest from anchors where hour <= ${world.hourOf(2)}`;
      await anchorHours(world.sql, signal);
      const [after] = await world.sql`select max(made_at) as newest from anchors where hour <= ${world.hourOf(2)}`;
      expect(after).toEqual(before);
    } finally {
      for (const pool of pools) await pool.end();
    }
  });

  test("keeps the root it has, whatever becomes of its forecasts", async () => {
    const world = await createAnchoredWorld();
    await world.save([at("a/crash/eu", 1, 3)]);
    const kept = { hour: world.hourOf(3), size: 5, root: "ab".repeat(32) };
    expect(await saveAnchor(world.sql, kept)).toBe(true);
    expect(await saveAnchor(world.sql, { ...kept, size: 6 })).toBe(false);
    await anchorHours(world.sql, signal);
    expect((await rootsOf(world))[0]).toEqual(kept);
  });

  test("gets it again where it was lost, by the next run that looks at all hours", async () => {
    const world = await createAnchoredWorld();
    await world.save([at("a/crash/eu", 1, 5), at("a/crash/eu", 2, 4)]);
    await anchorHours(world.sql, signal);
    const before = await rootsOf(world);
    await world.sql`delete from anchors where hour = ${world.hourOf(4)}`;
    expect(await listHoursToAnchor(world.sql, { limit: 9, onlyNew: true })).not.toContain(world.hourOf(4));
    expect(await listHoursToAnchor(world.sql, { limit: 9 })).toContain(world.hourOf(4));
    await anchorHours(world.sql, signal);
    expect(await rootsOf(world)).toEqual(before);
    await world.sql`delete from anchors where hour >= ${world.hourOf(3)}`;
    expect(await listHoursToAnchor(world.sql, { limit: 2, onlyNew: true })).toEqual([world.hourOf(3), world.hourOf(2)]);
  });

  test("gets it later where the work was cut off before", async () => {
    const world = await createAnchoredWorld();
    await world.save([at("a/crash/eu", 1, 5)]);
    await expect(anchorHours(world.sql, AbortSignal.abort(new Error("stopped")))).rejects.toThrow("stopped");
    await anchorHours(world.sql, signal);
    expect(await rootsOf(world)).toHaveLength(4);
  });

  test("whose hashes are damaged gets none and is named, and the others get theirs", async () => {
    const world = await createAnchoredWorld();
    await world.save([at("a/crash/eu", 1, 4), at("a/crash/eu", 2, 3), at("a/crash/eu", 3, 2)]);
    await world.sql`alter table forecast_sets drop constraint set_has_a_value_for_each_forecast`;
    await world.sql`update forecast_sets set hashes = '' where cutoff_seq = 2`;
    await expect(anchorHours(world.sql, signal)).rejects.toThrow(
      `the hour ${world.hourOf(3)} is damaged: expected 64 lower case hexadecimal digits as the hash of forecast 2 of a/crash/eu`,
    );
    expect((await rootsOf(world)).map(({ hour }) => hour)).toEqual([world.hourOf(4), world.hourOf(2)]);
  });

  test("in which a forecast stands twice gets none", async () => {
    const world = await createAnchoredWorld();
    await world.sql`alter table forecast_sets drop constraint forecast_sets_pkey`;
    await world.save([at("a/crash/eu", 7, 2), at("a/crash/eu", 7, 2)]);
    await expect(anchorHours(world.sql, signal)).rejects.toThrow("got 7 of a/crash/eu after 7 of a/crash/eu");
  });
});

describe("an hour is not closed", () => {
  test("while it runs, or within a minute after its end", async () => {
    const { sql, save, hourOf } = await createAnchoredWorld();
    await save([at("a/crash/eu", 1, 3), at("a/crash/eu", 2, 0)]);
    expect(await listHoursToAnchor(sql, { limit: 10 })).not.toContain(hourOf(0));
    const [end] = await sql<{ ms: number }[]>`
      select extract(epoch from clock_timestamp() - ${hourOf(2)}::timestamptz)::float8 * 1000 as ms`;
    const settled = (ms: number) => listHoursToAnchor(sql, { limit: 10, settlingMs: ms - 3_600_000 });
    expect(await settled((end?.ms ?? 0) - 1)).toEqual([hourOf(3), hourOf(2)]);
    expect(await settled((end?.ms ?? 0) + 60_000)).toEqual([hourOf(3)]);
  });

  test("while a transaction that was writing forecasts before its end may still commit", async () => {
    const { sql, save, hourOf, tableIds } = await createAnchoredWorld();
    await save([at("a/crash/eu", 1, 3), at("a/crash/eu", 2, 2)]);
    const list = (settlingMs: number) => listHoursToAnchor(sql, { limit: 10, settlingMs });
    // as if the hour had ended just now
    const justOver = async () => {
      const [margin] = await sql<{ ms: number }[]>`
        select extract(epoch from clock_timestamp() - ${hourOf(2)}::timestamptz - interval '1 hour')::float8 * 1000 as ms`;
      return list(margin?.ms ?? 0);
    };
    await sql.begin(async (frozen) => {
      await frozen`
        update forecast_sets
        set model = model
        where table_id = ${tableIds.get("a/crash/eu") ?? 0}
          and cutoff_seq = 2`;
      expect(await justOver()).toEqual([hourOf(3)]);
      // what is issued in a transaction that began after an hour's end is not of that hour
      expect(await list(0)).toEqual(expect.arrayContaining([hourOf(3), hourOf(2)]));
    });
    expect(await justOver()).toEqual([hourOf(3), hourOf(2)]);
  });
});

describe("a proof", () => {
  test("leads from every forecast of any hours and tables to the root of its hour, for anyone", async () => {
    const world = await createAnchoredWorld();
    const anyTable = fc.record({
      table: fc.constantFrom(...TABLES),
      hours: fc.array(fc.record({ hoursAgo: fc.integer({ min: 2, max: 5 }), count: fc.integer({ min: 1, max: 9 }) }), {
        minLength: 1,
        maxLength: 4,
      }),
    });
    const anyWorld = fc.uniqueArray(anyTable, { minLength: 1, maxLength: 5, selector: ({ table }) => table });
    await fc.assert(
      fc.asyncProperty(anyWorld, async (tables) => {
        await world.sql`delete from anchors`;
        await world.sql`delete from forecast_sets`;
        const forecasts = tables.flatMap(({ table, hours }) =>
          hours
            .toSorted((one, other) => other.hoursAgo - one.hoursAgo)
            .flatMap(({ hoursAgo, count }) => Array.from({ length: count }, () => hoursAgo))
            .map((hoursAgo, index) => at(table, index + 1, hoursAgo)),
        );
        await world.save(forecasts);
        await anchorHours(world.sql, signal);
        const roots = new Map((await rootsOf(world)).map((anchor) => [anchor.hour, anchor]));
        const places = new Set<string>();
        for (const forecast of forecasts) {
          const proof = await proveForecast(world.sql, world.idOf(forecast));
          const hour = world.hourOf(forecast.hoursAgo);
          const { size = 0, root = "" } = roots.get(hour) ?? {};
          expect(proof).toMatchObject({ forecast_id: world.idOf(forecast), hash: hashOf(forecast), hour, size, root });
          expect(rootByProof(proof)).toBe(root);
          expect(rootByProof({ ...proof, hash: hashOf({ table: "other", seq: 1 }) })).not.toBe(root);
          places.add(`${hour} ${proof.index}`);
        }
        expect(places.size).toBe(forecasts.length);
      }),
      { numRuns: 8 },
    );
  }, 120_000);

  test("is there for the forecast that was asked for, in the place it has", async () => {
    const world = await createAnchoredWorld();
    const hour = [at("a-b/crash/global", 1, 2), at("a/crash/eu", 7, 2), at("b/crash/global", 1, 2)];
    await world.save(hour);
    await anchorHours(world.sql, signal);
    const leaves = hour.map((one) => Buffer.from(hashOf(one), "hex"));
    expect(await proveForecast(world.sql, world.idOf({ table: "b/crash/global", seq: 1 }))).toEqual({
      forecast_id: world.idOf({ table: "b/crash/global", seq: 1 }),
      hash: hashOf({ table: "b/crash/global", seq: 1 }),
      hour: world.hourOf(2),
      index: 2,
      size: 3,
      proof: [mth(leaves.slice(0, 2)).toString("hex")],
      root: rootOver(hour),
    });
  });

  test("is refused for what is no forecast, and before the hour is closed or has its root", async () => {
    const world = await createAnchoredWorld();
    await world.save([at("a/crash/eu", 1, 3), at("a/crash/eu", 2, 0)]);
    for (const id of [
      "f1-99",
      "f999-1",
      "f01-1",
      "f999999999999-1",
      `f1-${"9".repeat(30)}`,
      "a/crash/eu",
      "",
      "'; drop table forecasts",
    ])
      await expect(proveForecast(world.sql, id)).rejects.toThrow(`there is no forecast ${JSON.stringify(id)}`);
    await expect(proveForecast(world.sql, world.idOf({ table: "a/crash/eu", seq: 2 }))).rejects.toThrow(
      `the hour ${world.hourOf(0)} of forecast ${world.idOf({ table: "a/crash/eu", seq: 2 })} is not closed yet; ` +
        `ask again after ${world.hourOf(-1).replace(":00:00.", ":01:00.")}`,
    );
    await expect(proveForecast(world.sql, world.idOf({ table: "a/crash/eu", seq: 1 }))).rejects.toThrow(
      "is over and has no root yet",
    );
  });

  test.each([
    [
      "another forecast of the hour was changed",
      "update forecast_sets set hashes = sha256(hashes) where cutoff_seq = 2",
    ],
    ["one was taken out", "delete from forecast_sets where cutoff_seq = 2"],
    ["one was slipped in", "update forecast_sets set issued_at = issued_at - interval '1 hour' where cutoff_seq = 3"],
    ["the root was changed", "update anchors set root = overlay(root placing 'abcd' from 9)"],
    ["the size was changed", "update anchors set size = size + 1"],
    ["a hash of the hour is none", "update forecast_sets set hashes = '' where cutoff_seq = 2"],
  ])("is refused once %s", async (_, change) => {
    const world = await createAnchoredWorld();
    await world.save([at("a/crash/eu", 1, 3), at("a/crash/eu", 2, 3), at("a/crash/eu", 3, 2)]);
    await anchorHours(world.sql, signal);
    await world.sql.begin(async (tx) => {
      await tx`set local session_replication_role = replica`;
      await tx`alter table forecast_sets drop constraint set_has_a_value_for_each_forecast`;
      await tx.unsafe(change);
    });
    await expect(proveForecast(world.sql, world.idOf({ table: "a/crash/eu", seq: 1 }))).rejects.toThrow(
      "run `roundhouse verify`",
    );
  });
});
