import type { Queryable } from "../../db/client.ts";
import { asHeld, heldColumns, listKnownRows, type StoredHeld } from "./load-store.ts";
import type { KnownRound } from "../../rounds/round.ts";
import type { HeldBack } from "../../rounds/intake.ts";

/** The stored part of these rounds, and those with a quarantined item, by round id. */
export async function listStored(
  sql: Queryable,
  tableId: number,
  roundIds: readonly string[],
): Promise<{ known: Map<string, KnownRound>; heldBack: Map<string, HeldBack> }> {
  const rounds = await listKnownRows(sql, tableId, roundIds);
  return {
    known: new Map(rounds.map(({ roundId, ...round }): [string, KnownRound] => [roundId, round])),
    heldBack: await listHeldBack(sql, tableId, roundIds),
  };
}

/** Which rounds have an item in quarantine, and why. */
async function listHeldBack(
  sql: Queryable,
  tableId: number,
  roundIds: readonly string[],
): Promise<Map<string, HeldBack>> {
  const rows = await sql<StoredHeld[]>`
    select q.table_id, q.round_id, ${heldColumns(sql)}
    from quarantine q
    where table_id = ${tableId}
      and round_id = any(${[...roundIds]}::text[])
    group by q.table_id, q.round_id`;
  return new Map(rows.map((row) => [row.round_id, asHeld(row)]));
}
