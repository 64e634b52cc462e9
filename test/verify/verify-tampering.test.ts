import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { verify } from "../../src/verify/verify.ts";
import type { Failure } from "../../src/verify/verify-table.ts";
import { fullWorld } from "../forecasts/full-world.ts";
import type { World } from "../forecasts/world.ts";

let world: World;
const cleanUps: (() => Promise<void>)[] = [];
beforeAll(async () => {
  world = await fullWorld({ whenDone: (cleanUp) => cleanUps.push(cleanUp) });
  // constraints would refuse some forgeries
  const constraints = await world.sql<{ relation: string; name: string }[]>`
    select conrelid::regclass::text as relation, conname as name
    from pg_constraint
    where contype in ('c', 'f')
      and conrelid = any(${Object.keys(RECORD)}::text[]::regclass[])`;
  for (const { relation, name } of constraints) {
    await world.sql.unsafe(`alter table ${relation} drop constraint "${name}" cascade`);
  }
});
afterAll(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

interface Tampered {
  /** The row that is changed, an SQL condition. */
  row: string;
  /** Columns from which nothing follows that anybody is shown. */
  free?: readonly string[];
  /** A deleted row is made again from the others. */
  isRemade?: boolean;
}

/** The tables of the record. */
const RECORD: Record<string, Tampered> = {
  rounds: { row: "round_id = '2040'" },
  forecast_sets: { row: "cutoff_round_id = '2040'" },
  score_sets: { row: "settled_seq = (select seq from rounds where table_id = ID and round_id = '2040')" },
  score_revisions: {
    row: "revision = (select min(revision) from score_revisions where table_id = ID)",
    free: ["revision"],
  },
  model_snapshots: { row: "true", free: ["model", "updated_at"], isRemade: true },
  house_audits: {
    row: "hour = (select min(hour) from house_audits where table_id = ID)",
    // settled items are deleted after a time, so that there may have been more
    free: ["updated_at", "proofs_failed"],
  },
  accuracy_hours: { row: "feature = 0 and hour < now() - interval '2 hours'" },
  accuracy_days: { row: "feature = 0" },
  accuracy_periods: {
    row: "feature = 4 and period = '7d'",
    // whether the log states the row again: as it was stated last it is compared with the sums
    free: ["version"],
  },
};

/** SQL for another value of a type; null becomes a value. */
function another(type: string, column: string): string {
  switch (type) {
    case "bytea":
      return `case when ${column} is null then '\\x00' else set_byte(${column}, length(${column}) / 2, get_byte(${column}, length(${column}) / 2) # 1) end`;
    case "boolean":
      return `${column} is not true`;
    case "text":
      return `'1' || coalesce(${column}, '')`;
    case "timestamp with time zone":
      return column === "hour"
        ? "hour - interval '1000 days'"
        : `coalesce(${column}, now()) + interval '1 microsecond'`;
    case "date":
      return `${column} - 1`;
    case "jsonb":
      return `${column} || '{"more": 1}'`;
    case "ARRAY":
      return `array_prepend(coalesce(${column}[1], 0) + 1, ${column}[2:])`;
    default:
      return `coalesce(${column}, 0) + 10000`; // no other row has it
  }
}

describe.each(Object.entries(RECORD))("in %s", (table, { row, free = [], isRemade = false }) => {
  test("one changed value in any column is found", async () => {
    const columns = await world.sql<{ name: string; type: string }[]>`
      select column_name as name, data_type as type
      from information_schema.columns
      where table_name = ${table}
        and table_schema = 'public'
        and column_name <> 'table_id'
      order by ordinal_position`;
    const missed: string[] = [];
    for (const { name, type } of columns) {
      if (free.includes(name)) continue;
      const failure = await failureWhile(
        `update ${table} set ${name} = ${another(type, name)} where ${row} and table_id = ID`,
      );
      if (failure === null) missed.push(name);
    }
    expect(missed).toEqual([]);
  });

  test.skipIf(isRemade)("a row that was taken out is missed", async () => {
    expect(await failureWhile(`delete from ${table} where ${row} and table_id = ID`)).not.toBeNull();
  });
});

describe("the row is named", () => {
  test.each<[string, string, object]>([
    ["rounds", "hundredths = hundredths + 1 where round_id = '2040'", { kind: "round", id: "TABLE 2040" }],
    ["rounds", "requested_at = requested_at + interval '1 hour' where round_id = '2040'", { kind: "round" }],
    ["forecast_sets", "p_ppm[1] = p_ppm[1] + 1 where cutoff_round_id = '2040'", { kind: "forecast" }],
    [
      "forecast_sets",
      "issued_at = absent_at + pause_ms * interval '1 ms' where cutoff_round_id = '2040'",
      { kind: "forecast", expected: expect.stringMatching(/^an issue within 600000 ms/) as string },
    ],
    [
      "score_sets",
      "outcomes[1] = 1 - outcomes[1] where outcomes[1] in (0, 1) and statuses[1] = 0 and settled_seq > 150",
      { kind: "score" },
    ],
    ["table_heads", "history_hash = sha256('') where true", { kind: "table", id: "TABLE" }],
    ["table_heads", "forecast_hash = sha256('') where true", { kind: "table", id: "TABLE" }],
    ["table_heads", "score_hash = sha256('') where true", { kind: "table", id: "TABLE" }],
    ["table_heads", "now_ppm[1] = 7 where true", { kind: "table", id: "TABLE" }],
    ["table_heads", "open_sets = '{}' where true", { kind: "table", id: "TABLE" }],
    [
      "table_heads",
      "palette = 999 where true",
      { kind: "table", id: "TABLE", expected: "a palette with the id 999", found: "none" },
    ],
    [
      "published_readings",
      "reading = jsonb_set(reading, '{rounds}', '7') where true",
      { kind: "published_reading", id: "TABLE", found: "rounds 7" },
    ],
    [
      "published_readings",
      "reading = jsonb_set(reading, '{seq}', '100000') where true",
      { kind: "published_reading", id: "TABLE", found: "seq 100000" },
    ],
    ["accuracy_periods", "sums = '\\x00' where feature = 0 and period = '7d'", { kind: "accuracy" }],
  ])("in %s: %s", async (table, change, named) => {
    const failure = await failureWhile(`update ${table} set ${change} and table_id = ID`);
    expect({ ...failure, id: failure?.id.replace(world.tableName, "TABLE") }).toMatchObject(named);
  });

  test("in a chain: a set that no round follows, and conflicts that no score knows", async () => {
    expect(
      await failureWhile("update score_sets set settled_seq = 100000 where settled_seq = 100 and table_id = ID"),
    ).toMatchObject({ kind: "score" });
    expect(await failureWhile("delete from conflicts where table_id = ID")).toMatchObject({ kind: "score" });
  });
});

class RolledBack extends Error {}

/** What verify says after a statement, in the same transaction, which is then rolled back. */
async function failureWhile(statement: string): Promise<Failure | null> {
  const { sql } = world;
  let failure: Failure | null = null;
  const tampering = sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    const { count } = await tx.unsafe(statement.replaceAll("ID", String(world.tableId)));
    if (count === 0) throw new Error(`expected a row that is changed by ${statement}, found none`);
    const inside = new Proxy(sql, {
      get: (target, name, receiver): unknown =>
        name === "begin"
          ? (_: string, check: (inner: typeof tx) => unknown) => check(tx)
          : Reflect.get(target, name, receiver),
    });
    const { ok, first_failure } = await verify(inside, { tableId: world.tableId });
    expect(ok).toBe(first_failure === null);
    failure = first_failure;
    throw new RolledBack();
  });
  await expect(tampering).rejects.toThrow(RolledBack);
  return failure;
}
