import { expect, it } from "vitest";
import { openTestDatabase } from "../support/database.ts";

const { sql } = await openTestDatabase();

/** Tables that get rows with each round and never lose one. */
const GROWING = ["forecast_sets", "log_entries", "rounds", "score_sets"];

it("vacuums tables that only grow after a fixed number of new rows, not after a share of them", async () => {
  const rows = await sql<{ name: string }[]>`
    select relname as name
    from pg_class
    where relkind = 'r'
      and reloptions @> array['autovacuum_vacuum_insert_scale_factor=0', 'autovacuum_vacuum_insert_threshold=500000']
    order by name`;
  expect(rows.map(({ name }) => name)).toEqual(GROWING);
});

it("has no BRIN index without autosummarize: a search would read all rows since the last vacuum", async () => {
  const rows = await sql<{ name: string; summarizes: boolean }[]>`
    select c.relname as name, coalesce(c.reloptions @> array['autosummarize=on'], false) as summarizes
    from pg_class c
    join pg_am m on m.oid = c.relam
    where c.relkind = 'i'
      and m.amname = 'brin'
    order by name`;
  expect([...rows]).toEqual([{ name: "rounds_by_receipt", summarizes: true }]);
});
