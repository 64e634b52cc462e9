import { beforeAll, describe, expect, it } from "vitest";
import { connect, type Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { houseEntry } from "../support/houses.ts";
import { givePasses } from "../support/passes.ts";
import { makeFolder, roundhouse } from "./world.ts";

let env: Record<string, string>;
let sql: Sql;
beforeAll(async () => {
  const database = await createDatabase();
  env = { DATABASE_URL: database.url, REDIS_URL: (await createRedis()).url };
  sql = connect(database.url, { name: "test", max: 2 });
  await applyHouses(sql, [houseEntry({ id: "acme" })]);
  await givePasses(sql, { id: 1 }, [150, 187, 1_200, 230]);
  return async () => {
    await sql.end();
    await database.drop();
  };
});

/** The checks, by name. */
async function checks(more: Record<string, string> = {}): Promise<Record<string, { status: string; found: string }>> {
  const { stdout } = await roundhouse(["doctor", "--json"], { env: { ...env, ...more, DATA_DIR: await makeFolder() } });
  const all = (JSON.parse(stdout) as { checks: { check: string; status: string; found: string }[] }).checks;
  return Object.fromEntries(all.map(({ check, status, found }) => [check, { status, found }]));
}

describe("doctor", () => {
  it("finds nothing wrong with what passes wrote", async () => {
    const { heads, payloads, partitions } = await checks();
    expect([heads, payloads, partitions].map((one) => one?.status)).toEqual(["ok", "ok", "ok"]);
  });

  it("states the size of the database, and of what is kept permanently", async () => {
    expect((await checks())["database size"]).toMatchObject({
      status: "ok",
      found: expect.stringMatching(/^0\.0[1-9] GB, 0\.00 of them rounds, forecasts, scores and the log/) as string,
    });
  });

  it("fails when DATABASE_DIRECT_URL leads to another database of the server", async () => {
    const other = await createDatabase();
    try {
      const { pooler } = await checks({ DATABASE_DIRECT_URL: other.url });
      expect(pooler).toMatchObject({ status: "fail" });
      expect(pooler?.found).toMatch(
        /^DATABASE_DIRECT_URL: expected the database of DATABASE_URL, \w+ of cluster \d+, found/,
      );
    } finally {
      await other.drop();
    }
  });

  it("fails when the rows of a table do not end at its head", async () => {
    await sql`delete from rounds where seq = 4`;
    const { heads } = await checks();
    expect(heads).toMatchObject({ status: "fail" });
    expect(heads?.found).toMatch(/^acme\/crash\/global: the head is at round 4, forecast \d+, its rows end at round 3/);
  });

  it("warns of unread payloads with an error, and not of those that only wait", async () => {
    await sql`update payloads set state = 'unread', read_at = null`;
    expect((await checks())["payloads"]).toMatchObject({ status: "ok" });
    await sql`
      update payloads
      set error = 'expected JSON, found HTML'
      where received_at = (select min(received_at) from payloads)`;
    const { payloads } = await checks();
    expect(payloads).toMatchObject({ status: "warn" });
    expect(payloads?.found).toMatch(/^acme\/crash\/global: 1 unread since .*Z \(expected JSON, found HTML\)$/);
  });

  it("warns of tables that backups leave out", async () => {
    expect((await checks())["foreign tables"]).toMatchObject({ status: "ok" });
    await sql`create table notes (id serial)`;
    expect((await checks())["foreign tables"]).toEqual({ status: "warn", found: "notes; notes_id_seq" });
    await sql`drop table notes`;
  });

  it("fails when tomorrow's partition is missing", async () => {
    const [row] = await sql<{ name: string }[]>`
      select 'polls_' || to_char((now() at time zone 'UTC')::date + 1, 'YYYYMMDD') as name`;
    await sql`drop table ${sql(row?.name ?? "")}`;
    expect((await checks())["partitions"]).toEqual({ status: "fail", found: `${row?.name} is missing` });
  });
});
