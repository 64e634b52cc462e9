import type { Queryable } from "../db/client.ts";
import type { Topup } from "./contract.ts";
import { topupColumns } from "./topup-store.ts";

/** A top-up as staff see it. */
export interface TopupDetail extends Topup {
  email: string;
  /** The lines of bank statements that were matched with it, and are not unmatched. */
  lines: { id: bigint; name: string }[];
  /** The deposits on a chain that it consists of. */
  deposits: { txHash: string; micros: bigint; state: string }[];
}

/** Returns a top-up; null if there is none. */
export async function findTopupDetail(sql: Queryable, id: bigint): Promise<TopupDetail | null> {
  const [found] = await sql<Omit<TopupDetail, "lines" | "deposits">[]>`
    select ${topupColumns(sql)}, a.email
    from topups t
    join accounts a on a.id = t.account_id
    where t.id = ${id}`;
  if (found === undefined) return null;
  const lines = await sql<TopupDetail["lines"]>`
    select l.id, l.bank || ' ' || l.bank_ref as name
    from bank_matches m
    join bank_lines l on l.id = m.line_id
    where m.topup_id = ${id}
      and m.ended_at is null
    limit 10`;
  const deposits = await sql<TopupDetail["deposits"]>`
    select tx_hash as "txHash", micros, state
    from chain_deposits
    where topup_id = ${id}
    order by id
    limit 100`;
  return { ...found, lines, deposits };
}
