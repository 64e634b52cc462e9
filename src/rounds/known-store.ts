import type { Queryable } from "../db/client.ts";
import { listKnownRows } from "../pass/load-store.ts";
import type { KnownRound } from "./round.ts";
import type { HeldBack } from "./take-in.ts";

/** What is stored of rounds of a table, and which of them have a quarantined item, by round id. */
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

/** Which rounds have an item in quarantine; `stuck` if a stuck feed is why, `released` if an operator released it. */
async function listHeldBack(
  sql: Queryable,
  tableId: number,
  roundIds: readonly string[],
): Promise<Map<string, HeldBack>> {
  const rows = await sql<{ round_id: string; stuck: boolean; released: boolean }[]>`
    select
      round_id,
      bool_or(code = 'stuck_feed') as stuck,
      bool_or(code = 'stuck_feed' and state = 'released') as released
    from quarantine
    where table_id = ${tableId}
      and round_id = any(${[...roundIds]}::text[])
    group by round_id`;
  return new Map(rows.map(({ round_id, stuck, released }) => [round_id, { stuck, released }]));
}
