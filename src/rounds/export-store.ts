import type { Queryable } from "../db/client.ts";
import type { Reader } from "../db/reader.ts";

/** A round as the export shows it: every field is the text of its column, empty where there is none. */
export interface ExportedRound {
  seq: string;
  round_id: string;
  multiplier: string;
  color: string;
  occurred_at: string;
  requested_at: string;
  received_at: string;
  source: string;
  verified: string;
  late: string;
  after_gap: string;
  history_hash: string;
}

/**
 * The rounds of a table with a seq from `afterSeq` on (exclusive), in seq order, at most `limit`.
 *
 * Pages instead of one long cursor: rounds are insert-only, so pages show the same rounds as one statement would, and a reader who takes
 * an hour holds neither a transaction nor a snapshot open.
 */
export async function listRoundsForExport(
  read: Reader,
  tableId: number,
  page: { afterSeq: string; limit: number },
): Promise<ExportedRound[]> {
  return read<ExportedRound[]>`
    select
      seq::text as seq,
      round_id,
      hundredths / 100 || '.' || lpad((hundredths % 100)::text, 2, '0') as multiplier,
      color,
      coalesce(utc_text(occurred_at), '') as occurred_at,
      coalesce(utc_text(requested_at), '') as requested_at,
      utc_text(received_at) as received_at,
      source,
      coalesce(verified::text, '') as verified,
      late::text,
      after_gap::text,
      history_hash
    from rounds r
    where table_id = ${tableId}
      and r.seq > ${page.afterSeq}
    order by r.seq -- the number: plain seq would be the text above
    limit ${page.limit}`;
}

/** Every table by its name, `house/game/market`, those of houses that left the file too: what they have can be exported. */
export async function listTableNames(sql: Queryable): Promise<{ id: number; name: string }[]> {
  return sql<{ id: number; name: string }[]>`
    select id, house_id || '/' || game || '/' || market as name
    from tables
    order by house_id, position, id`;
}
