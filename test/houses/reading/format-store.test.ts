import { beforeEach, describe, expect, it } from "vitest";
import { applyHouses } from "../../../src/houses-file/apply-store.ts";
import { syncFormatCircuit } from "../../../src/houses/reading/format-store.ts";
import { openTestDatabase } from "../../support/database.ts";
import { forgetHouses, houseEntry, tableEntry } from "../../support/houses.ts";
import { lockWaits } from "../../support/lock-waits.ts";

const { sql } = await openTestDatabase({ max: 4 });
beforeEach(() => forgetHouses(sql));

describe("the circuit of a house with another format", () => {
  it.each([
    ["is opened", "closed", false],
    ["is closed", "open", true],
  ])("%s for all shards while passes of them begin, without a deadlock", async (_, circuit, isRecovered) => {
    await applyHouses(sql, [houseEntry({ tables: [tableEntry(), tableEntry({ market: "eu" })] })]);
    await sql`update tables set shard = 1 where market = 'eu'`;
    await sql`update feeds set format_since = now()`;
    await sql`delete from poll_leases`;
    // the second shard before the first, as an update of the first leaves it
    await sql`insert into poll_leases (house_id, shard, circuit) values ('alpha', 1, ${circuit}), ('alpha', 0, ${circuit})`;
    const tables = await sql<{ id: number }[]>`select id from tables order by id`;
    const { both } = await sql.begin(async (tx) => {
      await tx`select from poll_leases where shard = 0 for no key update`;
      const locked = sql`select lock_passes('{alpha,alpha}', '{0,1}', '{0,0}', '{}', '{}')`.then((rows) => rows);
      await lockWaits(sql, 1);
      const synced = syncFormatCircuit(sql, "alpha", isRecovered ? tables.map(({ id }) => id) : []);
      await lockWaits(sql, 2);
      return { both: Promise.allSettled([locked, synced]) };
    });
    expect((await both).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
    const after = isRecovered ? "closed" : "open";
    expect(await sql`select circuit from poll_leases`).toEqual([{ circuit: after }, { circuit: after }]);
  });
});
