import type { Queryable } from "../../db/client.ts";
import type { Reader } from "../../db/reader.ts";

/** The columns of exported rounds, in order; `history_hash` covers the texts of all but multiplier and verified. */
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

/** An exported round: text in every column, empty for null. */
export type ExportedRound = Record<(typeof ROUND_COLUMNS)[number], string>;

const ROUNDS_PER_READ = 5_000;
const MOST = "9223372036854775807";

/** The part of a chain that is exported, by seq. */
export interface ExportRange {
  after?: string;
  upTo?: string;
}

/**
 * Yields the rounds of a table in order of seq, one page at a time.
 *
 * Each page is its own statement. Rounds are insert-only, so the pages equal the result of one statement, and an
 * export of an hour holds no snapshot open.
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
      order by r.seq -- the number; plain seq would be the text above
      limit ${ROUNDS_PER_READ}`;
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    afterSeq = last.seq;
  }
}

/** Every table by its name, `house/game/market`, including tables of houses that were removed from the houses file. */
export async function listTableNames(sql: Queryable): Promise<{ id: number; name: string }[]> {
  return sql<{ id: number; name: string }[]>`
    select id, house_id || '/' || game || '/' || market as name
    from tables
    order by house_id, position, id`;
}
