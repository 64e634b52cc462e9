import type { Transaction } from "../../db/client.ts";

/** The id of the table with this name (`house/game/market`); null if there is none. */
export async function findPublicTable(tx: Transaction, name: string): Promise<number | null> {
  const [house = "", game = "", market = ""] = name.split("/");
  const [row] = await tx<{ id: number }[]>`
    select id
    from tables
    where (house_id, game, market) = (${house}, ${game}, ${market})`;
  return row?.id ?? null;
}

/** The seq up to which everything about a table is public: before the oldest cutoff with an open forecast. */
export async function findPublicEnd(tx: Transaction, tableId: number): Promise<string> {
  const [row] = await tx<{ seq: string }[]>`
    select coalesce(open_sets[1] - 1, last_seq)::text as seq
    from table_heads
    where table_id = ${tableId}`;
  return row?.seq ?? "0";
}
