import { beforeEach, describe, expect, it } from "vitest";
import { migrate, migrationNames, requireSchema, schemaState } from "../../src/db/migrate.ts";
import { UsageError } from "../../src/errors.ts";
import { openTestDatabase } from "../support/database.ts";

const { sql, url } = await openTestDatabase({ max: 1 });
beforeEach(() => applied(...migrationNames()));

/** Makes the database say that these migrations were applied to it. */
async function applied(...names: string[]): Promise<void> {
  await sql`delete from migrations`;
  for (const name of names) await sql`insert into migrations (name, run_on) values (${name}, now())`;
}

describe("a database with the schema of this version", () => {
  it("is left as it is by another migrate", async () => {
    const lines: string[] = [];
    await migrate(url, (line) => lines.push(line));
    expect(lines).toEqual([]);
    expect(await schemaState(url)).toEqual({ pending: [], other: null });
    await requireSchema(url);
  });
});

describe("a database of 0.1.0 or an earlier version", () => {
  const refusal =
    "expected a schema that begins with 0001_functions, found one of 0.1.0 or an earlier version that begins with 0001_schema; make a new database, and carry the rounds over with `export rounds` of the old version and `import` of this one";

  it("is refused by migrate and by every process in one sentence with advice", async () => {
    await applied("0001_schema", "0002_houses", "0003_heads");
    for (const start of [migrate, requireSchema]) {
      await expect(start(url)).rejects.toThrow(new UsageError(refusal));
    }
    expect(await sql`select from migrations`).toHaveLength(3);
  });
});

describe("a database of a newer version", () => {
  it("is refused by migrate and by every process", async () => {
    await applied(...migrationNames(), "0999_later");
    const refusal =
      "the database is newer than this version: it has 0999_later; start the version that made it, or a newer one";
    for (const start of [migrate, requireSchema]) {
      await expect(start(url)).rejects.toThrow(new UsageError(refusal));
    }
  });
});

describe("a database that lacks migrations", () => {
  it("is refused by every process but migrate", async () => {
    const [last = ""] = migrationNames().slice(-1);
    await applied(...migrationNames().slice(0, -1));
    await expect(requireSchema(url)).rejects.toThrow(
      new UsageError(`the database lacks ${last}; run \`roundhouse migrate\` first`),
    );
  });
});

it("makes room for readers and writers of a default partition while a backup reads it", async () => {
  const [{ partition } = { partition: "" }] = await sql<{ partition: string }[]>`
    select 'usage_facts_' || to_char((now() at time zone 'UTC')::date + 3, 'YYYYMMDD') as partition`;
  await sql`drop table ${sql(partition)}`;
  const [isRead, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const backup = sql.begin(async (tx) => {
    await tx`lock table usage_facts_default in access share mode`;
    isRead.resolve();
    await free.promise;
  });
  await isRead.promise;
  const lines: string[] = [];
  await migrate(url, (line) => {
    lines.push(line);
    free.resolve();
  });
  await backup;
  expect(lines).toEqual([expect.stringContaining("is in use: making room for those who wait")]);
  expect(await sql`select to_regclass(${partition}) is not null as "isMade"`).toEqual([{ isMade: true }]);
});

it("leaves the partitions of the next days to the workers when a backup reads a table for too long", async () => {
  const [{ partition } = { partition: "" }] = await sql<{ partition: string }[]>`
    select 'usage_facts_' || to_char((now() at time zone 'UTC')::date + 3, 'YYYYMMDD') as partition`;
  await sql`drop table ${sql(partition)}`;
  const lines: string[] = [];
  await sql.begin(async (tx) => {
    await tx`lock table usage_facts_default in access share mode`;
    await migrate(url, (line) => lines.push(line), { waitForTableMs: 0 });
  });
  expect(lines).toEqual([expect.stringContaining("are not made yet")]);
});

it("states that another migration is running when it has waited for it", async () => {
  await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(x'72680001'::bigint)`;
    await expect(migrate(url, undefined, { waitForOtherMs: 1 })).rejects.toThrow(
      "another migration is running; wait for it and try again",
    );
  });
});
