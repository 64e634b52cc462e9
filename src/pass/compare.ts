import { closeAlert, listOpenSubjects, openAlert } from "../alerts/store.ts";
import type { Sql } from "../db/client.ts";
import type { House } from "../houses/house.ts";
import type { Log } from "../log.ts";
import { loadStates, type Passes } from "./passes.ts";
import { findReadPayload, findReadPayloadAt, listListed, type ListedRound } from "./stores/payload-store.ts";
import { readPayload } from "./unread-payloads.ts";
import { sevenDigits } from "./compute/times.ts";

const KIND = "payload_differs";

/**
 * Reads a random payload of a table's last hour again and compares its rounds with the stored ones. A difference
 * raises an alert: the parser, a cached state or a row is wrong. While such an alert is open, its payload is compared
 * instead, which is kept beyond its day; the alert closes when it no longer differs, or when it was read again.
 */
export async function comparePayload(
  sql: Sql,
  passes: Passes,
  { house, log, signal }: { house: House; log: Log; signal: AbortSignal },
): Promise<{ compared: number; differences: number }> {
  const open = (await listOpenSubjects(sql, KIND)).find((subject) => subject.startsWith(`${house.id}/`));
  const [table = "", at = ""] = open?.split(" ") ?? [];
  const payload = open === undefined ? await findReadPayload(sql, house.id) : await findReadPayloadAt(sql, table, at);
  if (payload === null && open !== undefined) await closeAlert(sql, log, { kind: KIND, subject: open });
  if (payload === null) return { compared: 0, differences: 0 };
  const { tableId } = payload;
  // the one in memory will do: the rounds are compared with stored rows (a load each was 170 statements/s of 1,000 houses)
  const state = passes.states.get(tableId) ?? (await loadStates(passes, [tableId])).get(tableId);
  if (state === undefined) return { compared: 0, differences: 0 };
  const read = await readPayload({ sql: passes.pipeline, prover: passes.prover }, house, state, payload, { signal });
  const { receivedAt } = payload;
  const differences = read.ok ? await compare(sql, state.table.tableId, read.items, receivedAt) : [read.reason];
  const [first] = differences;
  const { name } = state.table;
  const text =
    `${name}: the payload of ${receivedAt} is read differently from the stored rounds (${first}); ` +
    "run `roundhouse verify` for the table and read the payload again";
  const alert = { kind: KIND, subject: `${name} ${receivedAt}` };
  if (first !== undefined) await openAlert(sql, log, { ...alert, text });
  else if (open !== undefined) await closeAlert(sql, log, alert);
  return { compared: 1, differences: differences.length };
}

type Item = {
  ok: boolean;
  round?: { roundId: string; hundredths: number; rawValue: string; occurredAt: string | null };
};

async function compare(sql: Sql, tableId: number, items: readonly Item[], receivedAt: string): Promise<string[]> {
  const listed = items.flatMap(({ round }) => round ?? []);
  const roundIds = listed.map(({ roundId }) => roundId);
  const { rounds, kept } = await listListed(sql, tableId, { roundIds, receivedAt });
  return listed.flatMap((item) => {
    if (kept.has(item.roundId)) return [];
    return differenceOf(item, rounds.get(item.roundId)) ?? [];
  });
}

function differenceOf(item: NonNullable<Item["round"]>, stored: ListedRound | undefined): string | null {
  if (stored === undefined) return `round ${item.roundId} is not stored`;
  if (stored.hundredths !== item.hundredths)
    return `round ${item.roundId}: expected ${stored.hundredths} hundredths, found ${item.hundredths}`;
  if (!stored.isFromHere) return null;
  if (stored.rawValue !== item.rawValue)
    return `round ${item.roundId}: expected ${JSON.stringify(stored.rawValue)}, found ${JSON.stringify(item.rawValue)}`;
  const occurredAt = item.occurredAt === null ? null : sevenDigits(item.occurredAt);
  if (stored.occurredAt !== occurredAt)
    return `round ${item.roundId}: expected its time to be ${stored.occurredAt}, found ${occurredAt}`;
  return null;
}
