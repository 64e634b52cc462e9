import type { Wrong } from "../../alerts/store.ts";
import type { Queryable } from "../../db/client.ts";
import { usd } from "../../money.ts";
import { lineName } from "./line.ts";

/** Lines with an alert each; further ones are counted. */
const MOST_LINES = 100;

interface HeldLine {
  id: bigint;
  bank: string;
  bankRef: string;
  micros: bigint;
  heldBy: bigint;
  /** The reversed transaction that had moved the money out of suspense; null if none had. */
  reversed: bigint | null;
  /** The number of all lines with money in suspense and without a pending match. */
  lines: number;
}

/**
 * Describes the money in suspense: each bank line that holds some and is not matched, and money that no line explains.
 * The amount of a line does not change, so an alert about it stays true while it is open.
 */
export async function findSuspense(sql: Queryable): Promise<Wrong[]> {
  const [lines, unexplained] = await Promise.all([listHeldLines(sql), unexplainedMicros(sql)]);
  const wrong = lines.map(({ micros, heldBy, reversed, ...line }) => {
    const wait = `${usd(micros)} USD of ${lineName(line)} wait in suspense`;
    if (reversed === null) {
      const text = `${wait}: someone paid and has no balance yet; match or return the money at /ops/bank/lines/${line.id}`;
      return { subject: `bank line ${line.id}`, text };
    }
    const text = `${wait}, since transaction ${reversed} was reversed: reverse transaction ${heldBy}, which holds them, too, and enter the line again`;
    return { subject: `bank line ${line.id}, reversed`, text };
  });
  const rest = (lines[0]?.lines ?? 0) - lines.length;
  if (rest > 0) {
    wrong.push({
      subject: "more lines",
      text: `money of more than ${MOST_LINES} bank lines waits in suspense: see /ops/bank`,
    });
  }
  if (unexplained !== 0n) {
    const subject = `${usd(unexplained)} USD without a bank line`;
    wrong.push({
      subject,
      text: `suspense differs by ${usd(unexplained)} USD from the bank lines in it; see \`roundhouse ledger check\``,
    });
  }
  return wrong;
}

async function listHeldLines(sql: Queryable): Promise<HeldLine[]> {
  return sql<HeldLine[]>`
    select
      l.id, l.bank, l.bank_ref as "bankRef", l.suspense_micros as micros, l.suspense_transaction_id as "heldBy",
      coalesce(l.credit_transaction_id, l.return_transaction_id) as reversed,
      count(*) over ()::integer as lines
    from bank_lines l
    where ${isHeld(sql)}
      and l.state <> 'matched'
    order by l.id
    limit ${MOST_LINES}`;
}

/** The balance of suspense without what lines hold; one statement, so that a posting in between makes no difference. */
async function unexplainedMicros(sql: Queryable): Promise<bigint> {
  const [found] = await sql<{ micros: bigint }[]>`
    select (
      coalesce((select balance from ledger_accounts where kind = 'suspense'), 0)
      - coalesce((select sum(l.suspense_micros) from bank_lines l where ${isHeld(sql)}), 0)
    )::bigint as micros`;
  return found?.micros ?? 0n;
}

/** Whether the money of a line is in suspense: posted and not reversed, and neither placed nor returned. */
function isHeld(sql: Queryable) {
  return sql`
    l.suspense_transaction_id is not null
    and not exists (select from ledger_transactions t where t.reverses = l.suspense_transaction_id)
    and (
      coalesce(l.credit_transaction_id, l.return_transaction_id) is null
      or exists (
        select
        from ledger_transactions t
        where t.reverses = coalesce(l.credit_transaction_id, l.return_transaction_id)
      )
    )`;
}
