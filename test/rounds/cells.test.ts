import { expect, it, onTestFinished } from "vitest";
import { connect } from "../../src/db/client.ts";
import { createCellSums } from "../../src/rounds/gaps/cells-store.ts";
import { createDatabase } from "../support/database.ts";

it("sums half as long a span after each failure, down to ten minutes, and a whole hour again after successes", async () => {
  const database = await createDatabase();
  const sql = connect(database.url, { name: "test", max: 2 });
  onTestFinished(async () => {
    await sql.end();
    await database.drop();
  });
  await sql`
    insert into heartbeats (name, at)
    values ('round-cells', date_trunc('hour', clock_timestamp(), 'UTC') - interval '10 hours')`;
  const sumRounds = createCellSums();
  const ended = AbortSignal.abort();
  const advanced = async (): Promise<number> => {
    const minutes = () => sql<{ n: number }[]>`
      select extract(epoch from at)::float8 / 60 as n
      from heartbeats
      where name = 'round-cells'`;
    const [before] = await minutes();
    await sumRounds(sql);
    const [after] = await minutes();
    return after!.n - before!.n + 5; // each run begins five minutes before the mark
  };
  for (let failures = 0; failures < 4; failures += 1) await expect(sumRounds(sql.until(ended))).rejects.toThrow();
  expect([await advanced(), await advanced(), await advanced(), await advanced(), await advanced()]).toEqual([
    10, 20, 40, 60, 60,
  ]);
});
