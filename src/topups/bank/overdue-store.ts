import type { Wrong } from "../../alerts/store.ts";
import type { Queryable } from "../../db/client.ts";
import { thousands } from "../../money.ts";
import { lineName } from "./line.ts";
import { amountText } from "./statements/amount.ts";

/** Hours after which an alert opens for a transfer that needs a second person. */
const HOURS = 24;
/** Lines with an alert each; further ones are counted. */
const MOST_LINES = 100;

interface OverdueLine {
  id: bigint;
  bank: string;
  bankRef: string;
  currency: string;
  amountMinor: bigint;
  /** Whether its money is to be returned; otherwise it is to be credited. */
  isReturn: boolean;
  /** In the format of all JSON times. */
  since: string;
  /** The number of all overdue lines. */
  lines: number;
}

/**
 * Describes the bank lines whose match or return needs a second person for more than a day, the oldest first. The amount
 * of a line does not change, so an alert about it stays true while it is open.
 */
export async function findOverdue(sql: Queryable): Promise<Wrong[]> {
  const lines = await listOverdueLines(sql);
  const wrong = lines.map(({ id, bank, bankRef, currency, amountMinor, isReturn, since }) => {
    const amount = thousands(amountText(amountMinor, currency));
    const minute = `${since.slice(0, 16).replace("T", " ")} UTC`;
    const what = isReturn ? "the return" : "the credit";
    return {
      subject: `${amount} of bank line ${id}${isReturn ? ", return" : ""}`,
      text: `${what} of ${amount} of ${lineName({ id, bank, bankRef })} needs a second person since ${minute}: decide on it at /ops/bank/lines/${id}`,
    };
  });
  const rest = (lines[0]?.lines ?? 0) - lines.length;
  if (rest > 0) {
    wrong.push({
      subject: "more lines",
      text: `more than ${MOST_LINES} bank lines need a second person: see /ops/bank`,
    });
  }
  return wrong;
}

async function listOverdueLines(sql: Queryable): Promise<OverdueLine[]> {
  return sql<OverdueLine[]>`
    select
      l.id, l.bank, l.bank_ref as "bankRef", l.currency, l.amount_minor as "amountMinor", waiting.is_return as "isReturn",
      utc_text(waiting.since) as since, count(*) over ()::integer as lines
    from (
      select line_id, matched_at as since, false as is_return
      from bank_matches
      where ended_at is null
        and approved_at is null
      union all
      select line_id, asked_at, true
      from bank_returns
      where ended_at is null
        and approved_at is null
    ) waiting
    join bank_lines l on l.id = waiting.line_id
    where waiting.since < clock_timestamp() - make_interval(hours => ${HOURS})
    order by waiting.since, l.id
    limit ${MOST_LINES}`;
}
