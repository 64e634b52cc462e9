import type { Queryable, Transaction } from "../db/client.ts";
import { lockHeads } from "../pass/heads-store.ts";
import { refreshNotices } from "./notices-store.ts";
import type { Decision } from "./revision.ts";

/** The newest number of a table before and after a reset, or why nothing was done. */
export type ResetOutcome = { ok: true; table: string; before: bigint; after: bigint } | { ok: false; problem: string };

/**
 * Sets the newest number of a table back: the house once listed a number that was believed and wrong, so that every true
 * round since is late. Rounds that follow are on time again, and open gaps above the number are given up. What is stored
 * stays as it is, and `verify` knows of the reset. Waits for the table's lock.
 *
 * @param to the number of the newest true round; null: the highest one that came late since the newest on-time round
 */
export async function resetNewestNumber(
  tx: Transaction,
  tableId: number,
  { to, by, reason }: Decision & { to: bigint | null },
): Promise<ResetOutcome> {
  const [table] = await lockHeads(tx, [tableId]);
  if (table === undefined) return { ok: false, problem: "the table has no rounds yet" };
  const { newest, highestLate } = await findNumbers(tx, tableId);
  if (newest === null) return { ok: false, problem: `the rounds of ${table.name} have no numbers that count up` };
  const after = to ?? highestLate;
  if (after === null) {
    return {
      ok: false,
      problem: `no round of ${table.name} came late since ${newest}: say which number is the newest`,
    };
  }
  if (after >= newest) {
    return { ok: false, problem: `expected a number below the newest known, ${newest}, came ${after}` };
  }
  await saveReset(tx, tableId, { newest, after, by, reason });
  await refreshNotices(tx, [tableId]);
  return { ok: true, table: table.name, before: newest, after };
}

/** A reset as the audit log tells it. */
export function toldReset({ table, before, after }: Extract<ResetOutcome, { ok: true }>, reason: string) {
  const [from, to] = [before, after].map((number) => ({ newest_number: String(number) }));
  return { action: "table.reset-newest", target: `table ${table}`, before: from, after: to, reason };
}

async function findNumbers(sql: Queryable, tableId: number) {
  const [row] = await sql<{ newest: bigint | null; highestLate: bigint | null }[]>`
    select
      h.newest_number as newest,
      (
        select max(r.round_id::bigint)
        from rounds r
        where r.table_id = h.table_id
          and r.seq > h.newest_seq
          and r.source = 0
          and r.late
      ) as "highestLate"
    from table_heads h
    where h.table_id = ${tableId}`;
  return row ?? { newest: null, highestLate: null };
}

async function saveReset(
  tx: Transaction,
  tableId: number,
  { newest, after, by, reason }: Decision & { newest: bigint; after: bigint },
): Promise<void> {
  await tx`
    insert into number_resets (table_id, after_seq, from_number, to_number, reason, decided_by)
    select table_id, last_seq, ${newest}, ${after}, ${reason}, ${by}
    from table_heads
    where table_id = ${tableId}`;
  await tx`
    update table_heads
    set version = version + 1, changed_at = clock_timestamp(), newest_number = ${after}
    where table_id = ${tableId}`;
  await tx`
    update gaps
    set
      state = 'given_up',
      closed_at = clock_timestamp(),
      closed_by = ${by},
      lease_until = '-infinity',
      reason = ${`the newest number was reset to ${after}: ${reason}`}
    where table_id = ${tableId}
      and state = 'open'
      and to_number > ${after}`;
}
