import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Sql } from "../../src/db/client.ts";

const COLUMNS = [
  "table_id",
  "seq",
  "ordinal",
  "round_id",
  "hundredths",
  "raw_value",
  "palette",
  "color",
  "source",
  "requested_at",
  "received_at",
  "occurred_at",
  "absent_at",
  "after_gap",
  "late",
  "proof_hash",
  "verified",
  "history_hash",
];

/**
 * Copies the rounds of a table into an empty table with the same columns, checks and indexes. Returns how many and how
 * long it took. `rounds` has no trigger and no foreign key, so the baseline does all the work of storing a round.
 */
export async function copyRounds(sql: Sql, tableId: number): Promise<{ copied: number; ms: number }> {
  const lines: Buffer[] = [];
  const rows = await sql`
    copy (
      select ${sql(COLUMNS)}
      from rounds
      where table_id = ${sql.unsafe(String(tableId))}
      order by seq
    ) to stdout`.readable();
  for await (const piece of rows) lines.push(piece as Buffer);
  await sql`create table rounds_copied (like rounds including all)`;
  const ms = await timed(async () =>
    pipeline(Readable.from(lines), await sql`copy rounds_copied (${sql(COLUMNS)}) from stdin`.writable()),
  );
  const [row] = await sql<{ n: number }[]>`select count(*)::integer as n from rounds_copied`;
  return { copied: row?.n ?? 0, ms };
}

/** The duration of some work in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
