import type { Queryable } from "../../db/client.ts";
import type { Reader } from "../../db/reader.ts";

/** Columns of exported rounds, in order; `history_hash` covers the texts of all but multiplier and verified. */
export const ROUND_COLUMNS = [
  "seq",
  "round_id",
  "multiplier",
  "color",
  "occurred_at",
  "requested_at",
  "received_at",
  "source",
  "verified",
  "late",
  "after_gap",
  "hundredths",
  "absent_at",
  "history_hash",
] as const;

/** A round as it is exported: text in every column, empty for null. */
export type ExportedRound = Record<(typeof ROUND_COLUMNS)[number], string>;

const ROUNDS_PER_READ = 5_000;
const MOST = "9223372036854775807";

/** Which part of a chain is exported, by seq. */
export interface ExportRange {
  after?: string;
  upTo?: string;
}

/**
 * The rounds of a table in order of seq, a page at a time.
 *
 * Each page is a statement of its own: rounds are insert-only, so pages give what one statement would, and an export that
 * takes an hour holds no snapshot open.
 */
export async function* readRoundsForExport(
  read: Reader,
  tableId: number,
  { after = "0", upTo = MOST }: ExportRange = {},
): AsyncGenerator<ExportedRound[]> {
  let afterSeq = after;
  for (;;) {
    const page = await read<ExportedRound[]>`
      select
        r.seq::text as seq,
        round_id,
        hundredths / 100 || '.' || lpad((hundredths % 100)::text, 2, '0') as multiplier,
        hundredths::text as hundredths,
        color,
        coalesce(utc_text(occurred_at), '') as occurred_at,
        coalesce(utc_text(requested_at), '') as requested_at,
        utc_text(received_at) as received_at,
        coalesce(utc_text(absent_at), '') as absent_at,
        source,
        coalesce(verified::text, '') as verified,
        late::text as late,
        after_gap::text as after_gap,
        history_hash
      from named_rounds r
      where table_id = ${tableId}
        and r.seq > ${afterSeq}
        and r.seq <= ${upTo}
      order by r.seq -- the number: plain seq would be the text above
      limit ${ROUNDS_PER_READ}`;
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    afterSeq = last.seq;
  }
}

/** Every table by its name, `house/game/market`, those of houses that left the file too: what they have can be exported. */
export async function listTableNames(sql: Queryable): Promise<{ id: number; name: string }[]> {
  return sql<{ id: number; name: string }[]>`
    select id, house_id || '/' || game || '/' || market as name
    from tables
    order by house_id, position, id`;
}
