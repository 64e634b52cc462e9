import type { Queryable } from "../db/client.ts";
import { AFTER_GAP, REACHED_X0 } from "./backtest.ts";

/** How a replay sees the rounds of a table. */
export interface RoundView {
  tableId: number;
  /** Names of the colors, lowest band first. */
  colors: readonly string[];
  /** Lower ends of other bands than the table's; null where a round's color is the one it was stored with. */
  thresholds: readonly number[] | null;
  x0Hundredths: number;
}

/** A stretch of a table's on-time rounds, one byte each, oldest first. */
export interface PackedRounds {
  rounds: Uint8Array;
  /** Seq of the newest of them; null for none. */
  lastSeq: bigint | null;
  /** Ids and history hashes, where they were asked for. */
  roundIds: string[];
  historyHashes: string[];
}

/**
 * The first `limit` on-time rounds of a table after one seq and up to another, as `advance` takes them.
 *
 * One row with a letter a round: a row for each would cost more to read than the model to learn. Ids and hashes only
 * where asked for.
 *
 * @throws Error on a round whose color is none of the table's
 */
export async function readPackedRounds(
  sql: Queryable,
  view: RoundView,
  { afterSeq, upToSeq, limit, named }: { afterSeq: bigint; upToSeq: bigint; limit: number; named: boolean },
): Promise<PackedRounds> {
  const color =
    view.thresholds === null
      ? sql`array_position(${[...view.colors]}::text[], color) - 1`
      : sql`width_bucket(hundredths, ${view.thresholds.map(String)}::bigint[])`;
  const names = named
    ? sql`, array_agg(round_id order by seq) as ids, array_agg(history_hash order by seq) as hashes`
    : sql``;
  const [row] = await sql<
    { letters: string | null; lastSeq: bigint | null; ids?: string[] | null; hashes?: string[] | null }[]
  >`
    select
      string_agg(
        coalesce(
          chr(
            ${FIRST_LETTER} + ${color}
              + case when hundredths >= ${view.x0Hundredths} then ${REACHED_X0} else 0 end
              + case when after_gap then ${AFTER_GAP} else 0 end
          ),
          '!'
        ),
        '' order by seq
      ) as letters,
      max(seq) as "lastSeq"
      ${names}
    from (
      select seq, round_id, hundredths, color, after_gap, history_hash
      from rounds
      where table_id = ${view.tableId}
        and seq > ${afterSeq}
        and seq <= ${upToSeq}
        and not late
      order by seq
      limit ${limit}
    ) r`;
  const rounds = Buffer.from(row?.letters ?? "", "latin1");
  if (rounds.includes("!")) {
    throw new Error(
      `expected rounds in the colors ${view.colors.join(", ")}, got another after seq ${afterSeq}; a round is damaged`,
    );
  }
  for (let i = 0; i < rounds.length; i++) rounds[i]! -= FIRST_LETTER;
  return { rounds, lastSeq: row?.lastSeq ?? null, roundIds: row?.ids ?? [], historyHashes: row?.hashes ?? [] };
}

/** The letters from @ on are one byte in every encoding. */
const FIRST_LETTER = 64;
