import type { Decided, Refusal } from "../audit/decision.ts";
import type { Transaction } from "../db/client.ts";
import { lockHeads } from "../tables/heads-store.ts";
import { refreshNoticesWithin } from "../rounds/notices/notices-store.ts";
import { clearNewestTime, findNewest, saveReset } from "./reset-newest-store.ts";
import type { Decision } from "./revision.ts";

/** A reset of the newest number, or of the time of the newest round, which is then null. */
type ResetDecision = Decided<{ table: string } & ({ from: bigint; to: bigint } | { from: string; to: null })>;

/**
 * Corrects the newest round of a table after a wrong one was accepted, which made every real round since then late: sets
 * its number back, or forgets its time if ids are opaque. Later rounds are on time again. Gaps above the number are given
 * up, and one across it ends there. Stored rounds stay, and `verify` accounts for the reset. Waits for the table's lock.
 *
 * @param to the number of the newest real round; null: the highest one that arrived late since the newest on-time round
 */
export async function resetNewestNumber(
  tx: Transaction,
  tableId: number,
  { to, by, reason }: Decision & { to: bigint | null },
): Promise<ResetDecision> {
  const [table] = await lockHeads(tx, [tableId]);
  const newest = table === undefined ? null : await findNewest(tx, tableId);
  if (table === undefined || newest === null) return refused(`${table?.name ?? "the table"} has no rounds yet`);
  const { name } = table;
  if (newest.roundIds === "opaque") {
    if (to !== null)
      return refused(`expected no number, found ${to}: the round ids of ${name} are not consecutive numbers`);
    if (!newest.hasLate) return refused(`no round of ${name} was late since round ${newest.roundId}`);
    if (newest.occurredAt === null) return refused(`the newest rounds of ${name} have no time that could be wrong`);
    await clearNewestTime(tx, tableId);
    return {
      ok: true,
      target: `table ${name}`,
      before: { newest_occurred_at: newest.occurredAt },
      after: { newest_occurred_at: null },
      message: `the time of the newest round of ${name}, ${newest.occurredAt}, is no longer compared with those of later rounds`,
      table: name,
      from: newest.occurredAt,
      to: null,
    };
  }
  const { number, highestLate } = newest;
  if (number === null) return refused(`the round ids of ${name} were not consecutive numbers so far`);
  const after = to ?? highestLate;
  if (after === null) return refused(`no round of ${name} was late since ${number}: state the newest number`);
  if (after >= number) return refused(`expected a number below the newest known, ${number}, found ${after}`);
  await saveReset(tx, tableId, { newest: number, after, by, reason });
  await refreshNoticesWithin(tx, [tableId]);
  return {
    ok: true,
    target: `table ${name}`,
    before: { newest_number: String(number) },
    after: { newest_number: String(after) },
    message: `the newest number of ${name} is ${after}, it was ${number}`,
    table: name,
    from: number,
    to: after,
  };
}

function refused(problem: string): Refusal {
  return { ok: false, problem };
}
