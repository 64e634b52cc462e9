import { hash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { Queryable, Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses/apply-store.ts";
import { colorOf, type Color } from "../../src/rounds/colors.ts";
import { historyHash } from "../../src/rounds/history-hash.ts";
import { multiplierText, numberOf, type RoundSource } from "../../src/rounds/round.ts";
import { houseEntry, tableEntry } from "./houses.ts";

/** A table that was made, and its house. */
export interface MadeTable {
  id: number;
  name: string;
  house: string;
}

/** Puts one house in force, and gives its tables in their order; other houses are disabled by it. */
export async function makeHouse(sql: Sql, changed: Record<string, unknown> = {}): Promise<MadeTable[]> {
  const entry = houseEntry(changed);
  await applyHouses(sql, [entry]);
  return sql<MadeTable[]>`
    select id, house_id || '/' || game || '/' || market as name, house_id as house
    from tables
    where house_id = ${entry.settings.id}
    order by position`;
}

/** Puts a house with one table in force, and gives the table. */
export async function makeTable(
  sql: Sql,
  changed: Record<string, unknown> = {},
  house: Record<string, unknown> = {},
): Promise<MadeTable> {
  const [table] = await makeHouse(sql, { ...house, tables: [tableEntry(changed)] });
  if (table === undefined) throw new Error("the house has no table");
  return table;
}

/** An item of the answers that the default feed reads. */
export function makeItem(
  id: unknown,
  multiplier: unknown,
  changed: Record<string, unknown> = {},
): Record<string, unknown> {
  return { id, multiplier, ...changed };
}

/** An hour ago: the zero second of all made answers. */
const ZERO_MS = Date.now() - 3_600_000;

/** When something of a made answer was, from its second. */
export function atSecond(second: number): string {
  return new Date(ZERO_MS + second * 1000).toISOString();
}

/**
 * Stores an answer as a poll leaves it: unread, asked for at a second, arrived a tenth later. Give its items in the
 * order the house sends them, or the whole body.
 */
export async function makePayload(
  sql: Sql,
  table: { id: number },
  answer: { second: number; previous?: number | null; items?: readonly unknown[]; body?: string },
): Promise<bigint> {
  const { second, previous = second > 0 ? second - 1 : null, items = [] } = answer;
  const body = answer.body ?? JSON.stringify({ rounds: items });
  const sha256 = hash("sha256", body);
  const [row] = await sql<{ id: bigint }[]>`
    with stored as (
      insert into payloads (
        table_id, kind, requested_at, received_at, previous_requested_at, path, status, bytes, sha256, body
      )
      values (
        ${table.id}, 'poll', ${atSecond(second)}, ${atSecond(second + 0.1)},
        ${previous === null ? null : atSecond(previous)}, '/rounds', 200, ${Buffer.byteLength(body)}, ${sha256},
        ${gzipSync(body)}
      )
      returning id
    ),
    moved as (
      update feeds
      set
        last_sha256 = ${sha256},
        last_answer_at = ${atSecond(second)}
      where table_id = ${table.id}
    )
    select id
    from stored`;
  if (row === undefined) throw new Error("the answer was not stored");
  return row.id;
}

/** Stores a round right after the table's newest one, with its true place and hash in the chain. */
export async function makeRound(
  sql: Queryable,
  table: { id: number },
  changed: { roundId?: string; hundredths?: number; source?: RoundSource; late?: boolean; second?: number } = {},
): Promise<{ seq: bigint; roundId: string }> {
  const [head] = await sql<{ last_seq: bigint; history_hash: string; colors: Color[] }[]>`
    select last_seq, history_hash, colors
    from tables
    where id = ${table.id}`;
  if (head === undefined) throw new Error(`there is no table ${table.id}`);
  const seq = head.last_seq + 1n;
  const { roundId = String(seq), hundredths = 187, source = "poll", late = false, second = Number(seq) } = changed;
  const chained = historyHash(head.history_hash, { seq, roundId, hundredths });
  const number = numberOf(roundId);
  await sql`
    with added as (
      insert into rounds (
        table_id, seq, round_id, hundredths, raw_value, color, source, requested_at, received_at, after_gap, late,
        history_hash
      )
      values (
        ${table.id}, ${seq}, ${roundId}, ${hundredths}, ${multiplierText(hundredths)},
        ${colorOf(hundredths, head.colors)}, ${source}, ${atSecond(second)}, ${atSecond(second + 0.1)}, false, ${late},
        ${chained}
      )
    )
    update tables
    set
      last_seq = ${seq},
      history_hash = ${chained},
      rounds = rounds + 1,
      newest_round_id = case when ${late} then newest_round_id else ${roundId} end,
      newest_number = case when ${late} then newest_number else ${number === null ? null : String(number)}::bigint end,
      last_round_at = greatest(last_round_at, ${atSecond(second + 0.1)}),
      last_polled_round_at = case
        when ${source === "poll"} then greatest(last_polled_round_at, ${atSecond(second + 0.1)})
        else last_polled_round_at
      end
    where id = ${table.id}`;
  return { seq, roundId };
}

/** What is stored of a table's rounds, in seq order, as plain values. */
export async function storedRounds(
  sql: Sql,
  table: { id: number },
): Promise<{ id: string; x: number; late: boolean; gap: boolean; source: string; verified: boolean | null }[]> {
  return sql`
    select round_id as id, hundredths::float8 / 100 as x, late, after_gap as gap, source, verified
    from rounds
    where table_id = ${table.id}
    order by seq`;
}

/** Follows a table's chain of rounds from its beginning; throws at the first round that breaks it. */
export async function followChain(sql: Sql, table: { id: number }): Promise<number> {
  const rounds = await sql<{ seq: bigint; roundId: string; hundredths: bigint; chained: string }[]>`
    select seq, round_id as "roundId", hundredths, history_hash as chained
    from rounds
    where table_id = ${table.id}
    order by seq`;
  let head = "0".repeat(64);
  for (const [place, round] of rounds.entries()) {
    head = historyHash(head, round);
    if (round.seq !== BigInt(place + 1) || round.chained !== head) {
      throw new Error(`the chain breaks at seq ${round.seq}, round ${round.roundId}`);
    }
  }
  const [ours] = await sql<{ last_seq: bigint; history_hash: string; rounds: bigint }[]>`
    select last_seq, history_hash, rounds
    from tables
    where id = ${table.id}`;
  if (ours?.history_hash !== head || ours.last_seq !== BigInt(rounds.length) || ours.rounds !== ours.last_seq) {
    throw new Error("the head of the chain is not that of its rounds");
  }
  return rounds.length;
}

/** The open notices of a table, by kind. */
export async function openNotices(sql: Sql, table: { id: number }): Promise<Record<string, string>> {
  const rows = await sql<{ kind: string; text: string }[]>`
    select kind, text
    from notices
    where table_id = ${table.id}
      and closed_at is null`;
  return Object.fromEntries(rows.map(({ kind, text }) => [kind, text]));
}
