import { hash } from "node:crypto";
import { gzipSync } from "node:zlib";
import type { Queryable, Sql } from "../../src/db/client.ts";
import { applyHouses } from "../../src/houses-file/apply-store.ts";
import { colorOf, type Color } from "../../src/rounds/colors.ts";
import { SOURCES } from "../../src/pass/compute/rows.ts";
import { sevenDigits } from "../../src/pass/compute/times.ts";
import { FIRST_PREVIOUS_HASH, historyHash, historyStrings } from "../../src/record/hashes.ts";
import { multiplierText, numberOf } from "../../src/rounds/round.ts";
import { houseEntry, tableEntry } from "./houses.ts";

/** A table of a test, and its house. */
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

/** An item of a payload of the default feed. */
export function makeItem(
  id: unknown,
  multiplier: unknown,
  changed: Record<string, unknown> = {},
): Record<string, unknown> {
  return { id, multiplier, ...changed };
}

/** An hour ago: the zero second of all made payloads. */
const ZERO_MS = Date.now() - 3_600_000;

/** The time of a second of the made payloads. */
export function atSecond(second: number): string {
  return new Date(ZERO_MS + second * 1000).toISOString();
}

/**
 * Stores a payload as a poll leaves it that could not normalize it: unread, requested at a second, received a tenth of a second
 * later. Takes its items in the order of the house, or the whole body. Returns when it was received.
 */
export async function makePayload(
  sql: Sql,
  table: { id: number },
  payload: { second: number; previous?: number | null; items?: readonly unknown[]; body?: string },
): Promise<string> {
  const { second, previous = second > 0 ? second - 1 : null, items = [] } = payload;
  const body = payload.body ?? JSON.stringify({ rounds: items });
  const sha256 = hash("sha256", body, "buffer");
  const receivedAt = sevenDigits(atSecond(second + 0.1));
  await sql`
    with stored as (
      insert into payloads (
        table_id, kind, requested_at, received_at, previous_requested_at, path, status, bytes, sha256, body
      )
      values (
        ${table.id}, 'poll', ${atSecond(second)}, ${receivedAt},
        ${previous === null ? null : atSecond(previous)}, '/rounds', 200, ${Buffer.byteLength(body)}, ${sha256},
        ${gzipSync(body)}
      )
    )
    update table_heads
    set
      version = version + 1,
      payload_sha256 = ${sha256},
      payload_path = '/rounds',
      responded_at = ${atSecond(second)}
    where table_id = ${table.id}`;
  return receivedAt;
}

/** Stores a round right after the table's newest one, with its true place and hash in the chain; the model does not learn it. */
export async function makeRound(
  sql: Queryable,
  table: { id: number },
  changed: {
    roundId?: string;
    hundredths?: number;
    source?: (typeof SOURCES)[number];
    late?: boolean;
    second?: number;
  } = {},
): Promise<{ seq: bigint; roundId: string }> {
  const [head] = await sql<
    { last_seq: bigint; last_ordinal: bigint; history_hash: string; palette: number; bands: Color[] }[]
  >`
    select h.last_seq, h.last_ordinal, encode(h.history_hash, 'hex') as history_hash, h.palette, p.bands
    from table_heads h
    join palettes p on p.id = h.palette
    where h.table_id = ${table.id}`;
  if (head === undefined) throw new Error(`there is no table ${table.id}`);
  const seq = head.last_seq + 1n;
  const { roundId = String(seq), hundredths = 187, source = "poll", late = false, second = Number(seq) } = changed;
  const ordinal = head.last_ordinal + (late ? 0n : 1n);
  const color = colorOf(hundredths, head.bands);
  const [requestedAt, receivedAt] = [sevenDigits(atSecond(second)), sevenDigits(atSecond(second + 0.1))];
  const chained = historyHash(
    head.history_hash,
    historyStrings({
      seq,
      roundId,
      hundredths,
      color,
      source,
      requestedAt,
      receivedAt,
      occurredAt: null,
      absentAt: null,
      late,
      afterGap: false,
    }),
  );
  const number = numberOf(roundId);
  await sql`
    with added as (
      insert into rounds (
        table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
        after_gap, late, history_hash
      )
      values (
        ${table.id}, ${seq}, ${late ? null : ordinal}, ${roundId}, ${hundredths}, ${multiplierText(hundredths)},
        ${head.palette}, ${head.bands.findIndex(({ name }) => name === color)}, ${SOURCES.indexOf(source)},
        ${requestedAt}, ${receivedAt}, false, ${late}, ${Buffer.from(chained, "hex")}
      )
    )
    update table_heads
    set
      version = version + 1,
      changed_at = clock_timestamp(),
      last_seq = ${seq},
      last_ordinal = ${ordinal},
      history_hash = ${Buffer.from(chained, "hex")},
      newest_seq = case when ${late} then newest_seq else ${seq} end,
      newest_round_id = case when ${late} then newest_round_id else ${roundId} end,
      newest_number = case when ${late} then newest_number else ${number === null ? null : String(number)}::bigint end,
      last_round_at = greatest(last_round_at, ${receivedAt}),
      last_polled_round_at = case
        when ${source === "poll"} then greatest(last_polled_round_at, ${receivedAt})
        else last_polled_round_at
      end
    where table_id = ${table.id}`;
  return { seq, roundId };
}

/** What is stored of a table's rounds, in seq order, as plain values. */
export async function storedRounds(
  sql: Sql,
  table: { id: number },
): Promise<{ id: string; x: number; late: boolean; gap: boolean; source: string; verified: boolean | null }[]> {
  return sql`
    select round_id as id, hundredths::float8 / 100 as x, late, after_gap as gap, source, verified
    from named_rounds
    where table_id = ${table.id}
    order by seq`;
}

/** Follows a table's chain of rounds from its beginning; throws at the first round that breaks it. */
export async function followChain(sql: Sql, table: { id: number }): Promise<number> {
  const rounds = await sql<(Parameters<typeof historyStrings>[0] & { chained: string })[]>`
    select
      seq,
      round_id as "roundId",
      hundredths,
      color,
      source,
      utc_text(occurred_at) as "occurredAt",
      utc_text(requested_at) as "requestedAt",
      utc_text(received_at) as "receivedAt",
      utc_text(absent_at) as "absentAt",
      late,
      after_gap as "afterGap",
      history_hash as chained
    from named_rounds
    where table_id = ${table.id}
    order by seq`;
  let head = FIRST_PREVIOUS_HASH;
  for (const [place, round] of rounds.entries()) {
    head = historyHash(head, historyStrings(round));
    if (round.seq !== BigInt(place + 1) || round.chained !== head) {
      throw new Error(`the chain breaks at seq ${round.seq}, round ${round.roundId}`);
    }
  }
  const [ours] = await sql<{ last_seq: bigint; history_hash: string }[]>`
    select last_seq, encode(history_hash, 'hex') as history_hash
    from table_heads
    where table_id = ${table.id}`;
  if (ours?.history_hash !== head || ours.last_seq !== BigInt(rounds.length)) {
    throw new Error("the head of the chain is not that of its rounds");
  }
  return rounds.length;
}

/** A gap of a table from one number to another, as a poll opens it. */
export async function makeGap(sql: Sql, table: { id: number }, from: bigint, to: bigint): Promise<void> {
  await sql`
    insert into gaps (table_id, from_number, to_number, missing, after_round_id, before_round_id)
    values (${table.id}, ${from}, ${to}, ${to - from + 1n}, ${String(from - 1n)}, ${String(to + 1n)})`;
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
