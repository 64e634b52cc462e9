import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import { lockRows } from "./locks.ts";
import { PROXIED_HOUSE } from "./testbed.ts";

const LASTS_SECONDS = 60;

/** While an idle psql transaction locks rows of one house, the other houses must be polled as before. */
export const ROW_LOCK_CASES: readonly FaultCase[] = (["houses", "tables", "feeds", "table_heads"] as const).map(
  (table) => ({
    name: `a transaction holds a house's rows of ${table}`,
    targetSeconds: TARGET_SECONDS.stillPresent,
    from: "beginning",
    watchSeconds: LASTS_SECONDS,
    houses: ({ houses }) => houses.filter((house) => house !== PROXIED_HOUSE),
    async run({ sql, servers }) {
      const fromMs = Date.now();
      const lock = await lockRows(servers.databaseUrl, table, PROXIED_HOUSE);
      const rows = await sql`
      select
      from pg_stat_activity
      where application_name = 'psql'
        and state = 'idle in transaction'`;
      if (rows.length !== 1) throw new Error(`expected 1 idle transaction of psql, found ${rows.length}`);
      return { fromMs, observed: `held for ${LASTS_SECONDS} s`, end: () => lock.release() };
    },
  }),
);
