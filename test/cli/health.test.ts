import { beforeAll, expect, it } from "vitest";
import { connect } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { createDatabase, createRedis } from "../support/database.ts";
import { houseEntry, tableEntry } from "../support/houses.ts";
import { makeFolder, roundhouse } from "./world.ts";

let env: Record<string, string>;

/** A house of two shards: one does not respond, the other does; a table of it was imported and is silent. */
beforeAll(async () => {
  const database = await createDatabase();
  env = { DATABASE_URL: database.url, REDIS_URL: (await createRedis()).url };
  const sql = connect(database.url, { name: "test", max: 1 });
  const tables = Array.from({ length: 101 }, (_, n) => tableEntry({ market: `m${n}` }));
  await applyHouses(sql, [houseEntry({ id: "acme", tables })]);
  await sql`
    update table_heads
    set version = version + 1, last_round_at = now(), last_polled_round_at = now() - interval '2 hours'
    where table_id = (select id from tables where market = 'm0')`;
  await sql`
    update table_heads
    set version = version + 1, last_round_at = now(), last_polled_round_at = now()
    where table_id = (select id from tables where market = 'm1')`;
  await sql`
    update poll_leases
    set
      circuit = case shard when 0 then 'open' else 'closed' end,
      last_poll_at = now(),
      last_ok_at = case shard when 0 then null else now() end,
      last_error = case shard when 0 then 'm0: answered 404' else 'm100: timed out' end,
      last_error_at = now() - case shard when 0 then interval '2 minutes' else interval '1 minute' end`;
  await sql.end();
  return () => database.drop();
});

async function json<Row>(...args: string[]): Promise<Row> {
  const { code, stdout, stderr } = await roundhouse([...args, "--json"], { env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as Row;
}

it("a silent table keeps its lag after an import of newer rounds, in the list and in its own command", async () => {
  const [silent, live, other] = await json<{ lag_seconds: number | null }[]>("table", "list");
  expect(silent?.lag_seconds).toBeGreaterThanOrEqual(7_200);
  expect(live?.lag_seconds).toBeLessThan(7_200);
  expect(other?.lag_seconds).toBeNull();
  const shown = await json<{ lag_seconds: number | null }>("table", "show", "acme/crash/m0");
  expect(shown.lag_seconds).toBeGreaterThanOrEqual(7_200);
});

it("the last error of a house is that of its open circuit, which doctor reports although another shard responds", async () => {
  expect(await json("house", "list")).toMatchObject([
    { house: "acme", status: "live", circuit: "open", last_error: "m0: answered 404" },
  ]);
  const { stdout } = await roundhouse(["doctor"], { env: { ...env, DATA_DIR: await makeFolder() } });
  expect(stdout).toContain("1 of 1 failing: acme: m0: answered 404");
});
