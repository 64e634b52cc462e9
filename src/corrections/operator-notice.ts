import type { Decided } from "../audit/decision.ts";
import type { Transaction } from "../db/client.ts";
import { lockHeads, touchHeads } from "../tables/heads-store.ts";
import { endOperatorNotices, findOperatorNotice, saveOperatorNotice } from "./operator-notice-store.ts";

/** The longest notice; callers receive it with every table. */
export const LONGEST_NOTICE = 300;

/**
 * Publishes an operator's notice on tables, first in their `continuity_text`; an open one is replaced.
 * Waits for the locks of the tables.
 */
export async function writeNotice(
  tx: Transaction,
  tableIds: readonly number[],
  { text, by }: { text: string; by: string },
): Promise<Decided<{ tables: string[] }>> {
  const sentence = text.replaceAll(/\s+/g, " ").trim().replace(/\.+$/, "");
  if (sentence === "" || sentence.length > LONGEST_NOTICE) {
    return { ok: false, problem: `expected a notice of 1 to ${LONGEST_NOTICE} characters, found ${sentence.length}` };
  }
  const tables = await lockHeads(tx, tableIds);
  if (tables.length === 0) return { ok: false, problem: "expected at least one table, found none" };
  const before: (string | null)[] = [];
  for (const { id } of tables) {
    before.push(await findOperatorNotice(tx, id));
    await saveOperatorNotice(tx, { tableId: id, text: sentence, by });
  }
  await touchHeads(
    tx,
    tables.map(({ id }) => id),
  );
  const names = tables.map(({ name }) => name);
  const [house = ""] = names[0]?.split("/") ?? [];
  const message = `published for ${names.length === 1 ? names[0] : `${names.length} tables of ${house}`}`;
  return { ok: true, target: names.join(", "), before, after: sentence, message, tables: names };
}

/** Closes an operator's open notice of a table. Other notices close when their cause ends. */
export async function endNotice(
  tx: Transaction,
  tableId: number,
  { by }: { by: string },
): Promise<Decided<{ before: string }>> {
  const [table] = await lockHeads(tx, [tableId]);
  if (table === undefined) return { ok: false, problem: `there is no table ${tableId}` };
  const before = await findOperatorNotice(tx, tableId);
  if (before === null) {
    return {
      ok: false,
      problem: `no operator's notice of ${table.name} is open; other notices close when their cause ends`,
    };
  }
  await endOperatorNotices(tx, tableId, by);
  await touchHeads(tx, [tableId]);
  return { ok: true, target: table.name, before, message: `the notice of ${table.name} is closed` };
}
