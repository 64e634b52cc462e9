import type { Sql } from "../../src/db/client.ts";
import { emptyState } from "../../src/forecasts/model/k7.ts";
import { emptyReading, readingHash, readRounds } from "../../src/forecasts/readings/reading-memory.ts";
import { readingToText } from "../../src/forecasts/readings/reading-json.ts";
import { encodeState, stateHash } from "../../src/forecasts/model/state.ts";
import { learnRounds, modelOf } from "../../src/forecasts/model/table-model.ts";
import { colorOf, type Color } from "../../src/rounds/colors.ts";
import { multiplierText } from "../../src/rounds/round.ts";
import { hundredthsOf, LISTED, newestRound, publishedAtMs, type Load } from "./load-house.ts";

/** Rounds that the model of a table with a history has learned: what it knows is of the same size after any number. */
const SAMPLE = 500;
/** Statements at once, as the machines that this is for have cores. */
const AT_ONCE = 2;

type Filled = { id: number; place: number; rounds: number; firstId: number };

/**
 * Stores so many rounds of the past for all tables together, learned and published: what there is to look through after
 * months, made by the database itself in minutes. Its results are drawn and its chain of hashes is none, so nothing may
 * be verified of it; only the newest rounds, which the house still lists, are the true ones.
 */
export async function fillHistory(sql: Sql, load: Load, history: number): Promise<void> {
  const tables = await sql<{ id: number; place: number }[]>`
    select id, substr(house_id, 2)::integer * ${load.tablesPerHouse}::integer + substr(game, 2)::integer as place
    from tables
    order by id`;
  const rounds = Math.max(1, Math.floor(history / tables.length));
  const began = Date.now();
  const filled = tables.map(({ id, place }): Filled => {
    return { id, place, rounds, firstId: newestRound(load, place, began) - LISTED - rounds };
  });
  const waiting = [...filled];
  await withoutIndexes(sql, history > 1_000_000, () =>
    Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (let table = waiting.shift(); table !== undefined; table = waiting.shift())
          await fillTable(sql, load, table);
      }),
    ),
  );
  await sql`vacuum (analyze) rounds`;
  await addListed(sql, load, filled);
  await learnSample(sql, load);
  await sql`vacuum (analyze)`;
  await sql`checkpoint`;
}

/** Half of what a row costs is its places in three indexes, and making those anew at the end is cheaper. */
async function withoutIndexes(sql: Sql, isWorthIt: boolean, work: () => Promise<unknown>): Promise<void> {
  const indexes = isWorthIt
    ? await sql<{ name: string; made: string }[]>`
        select indexname as name, indexdef as made
        from pg_indexes
        where tablename = 'rounds'
          and indexname in ('rounds_by_number', 'rounds_by_time', 'rounds_on_time')`
    : [];
  for (const { name } of indexes) await sql`drop index ${sql(name)}`;
  await work();
  for (const { made } of indexes) await sql.unsafe(made.replace(" ON ONLY ", " ON "));
}

async function fillTable(sql: Sql, { roundMs }: Load, { id, rounds, firstId }: Filled): Promise<void> {
  await sql.begin(async (tx) => {
    // whether the table is there is asked for each row otherwise
    await tx`set local session_replication_role = replica`;
    await tx`
      insert into rounds (
        table_id, seq, round_id, hundredths, raw_value, color, source, requested_at, received_at, absent_at, after_gap,
        late, history_hash
      )
      select
        ${id}, n, (${firstId}::bigint + n - 1)::text, x, (x / 100.0)::numeric(20, 2)::text,
        case when x < 200 then 'blue' when x < 1000 then 'purple' else 'pink' end, 'poll', at, at,
        at - interval '1 second', false, false, encode(sha256((${id} || '|' || n)::bytea), 'hex')
      from (
        select
          n,
          least(100000000, greatest(100, floor(99 / (1 - random()))))::bigint as x,
          now() - (${rounds + LISTED}::integer - n) * ${roundMs}::float8 * interval '1 millisecond' as at
        from generate_series(1, ${rounds}::integer) as n
      ) drawn`;
  });
}

/** The rounds that a house still lists, as it lists them, up to now. */
async function addListed(sql: Sql, load: Load, filled: readonly Filled[]): Promise<void> {
  const colors = await colorsOf(sql);
  const now = Date.now();
  for (let from = 0; from < filled.length; from += 500) {
    const rows = filled.slice(from, from + 500).flatMap(({ id, place, rounds, firstId }) => {
      const next = firstId + rounds;
      return Array.from({ length: newestRound(load, place, now) - next + 1 }, (_, n) => {
        const hundredths = hundredthsOf(load, place, next + n);
        const at = new Date(publishedAtMs(load, place, next + n)).toISOString();
        return {
          table_id: id,
          seq: rounds + n + 1,
          round_id: String(next + n),
          hundredths,
          raw_value: multiplierText(hundredths),
          color: colorOf(hundredths, colors),
          at,
        };
      });
    });
    await sql`
      with added as (
        insert into rounds (
          table_id, seq, round_id, hundredths, raw_value, color, source, requested_at, received_at, absent_at, after_gap,
          late, history_hash
        )
        select
          table_id, seq, round_id, hundredths, raw_value, color, 'poll', at, at, at - interval '1 second', false, false,
          encode(sha256((table_id || '|' || seq)::bytea), 'hex')
        from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as x (
          table_id integer, seq bigint, round_id text, hundredths bigint, raw_value text, color text, at timestamptz
        )
        returning table_id, seq, round_id, history_hash, received_at
      ),
      newest as (
        select distinct on (table_id) *
        from added
        order by table_id, seq desc
      ),
      shown as (
        update published_now p
        set
          last_seq = n.seq,
          last_round_at = n.received_at,
          last_polled_round_at = n.received_at,
          updated_at = clock_timestamp()
        from newest n
        where p.table_id = n.table_id
      )
      update tables t
      set
        last_seq = n.seq,
        rounds = n.seq,
        history_hash = n.history_hash,
        newest_round_id = n.round_id,
        newest_number = n.round_id::bigint,
        last_round_at = n.received_at,
        last_polled_round_at = n.received_at
      from newest n
      where t.id = n.table_id`;
  }
}

/** Gives every table the memory of some rounds as that of all of its rounds. */
async function learnSample(sql: Sql, load: Load): Promise<void> {
  const colors = await colorsOf(sql);
  const [named] = await sql<{ model: string }[]>`select model from tables limit 1`;
  const model = modelOf(colors, null);
  const state = emptyState(model);
  const reading = emptyReading(model, { consecutive: true });
  const sample = Array.from({ length: SAMPLE }, (_, n) => {
    const hundredths = hundredthsOf(load, 0, n);
    const receivedHour = "2026-01-01T00:00:00.0000000Z";
    const facts = { seq: BigInt(n + 1), roundId: String(n + 1), late: false, verified: null, receivedHour };
    return { ...facts, hundredths, color: colorOf(hundredths, colors), afterGap: false };
  });
  learnRounds(model, state, colors, sample);
  readRounds(reading, sample);
  const [bytes, text] = [encodeState(model, state), readingToText(reading)];
  await sql`
    insert into model_states (table_id, model, learned_seq, state, state_hash)
    select id, ${named?.model ?? ""}, last_seq, ${bytes}, ${stateHash(bytes)}
    from tables`;
  await sql`
    insert into reading_memories (table_id, learned_seq, memory, memory_hash)
    select id, last_seq, ${text}, ${readingHash(text)}
    from tables`;
}

async function colorsOf(sql: Sql): Promise<Color[]> {
  const [row] = await sql<{ colors: Color[] }[]>`select colors from tables limit 1`;
  if (row === undefined) throw new Error("there is no table to fill");
  return row.colors;
}
