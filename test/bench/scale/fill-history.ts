import { encodeSums } from "../../../src/forecasts/accuracy/sum-vector.ts";
import { KEY } from "../../../src/forecasts/accuracy/keys.ts";
import type { Sql, Transaction } from "../../../src/db/client.ts";
import { emptyReferences } from "../../../src/forecasts/accuracy/figures/references.ts";
import { emptyState } from "../../../src/forecasts/model/k7.ts";
import { modelOf } from "../../../src/forecasts/model/table-model.ts";
import { emptyReading } from "../../../src/forecasts/readings/reading-memory.ts";
import { hashesOf } from "../../../src/pass/compute/issue.ts";
import { learnRounds, snapshotOf } from "../../../src/pass/compute/learn.ts";
import type { Selected } from "../../../src/pass/columns.ts";
import { FORECAST_SETS, type ForecastSetRow } from "../../../src/pass/compute/rows.ts";
import { bandOf } from "../../../src/pass/compute/settle.ts";
import type { Color } from "../../../src/rounds/colors.ts";
import { multiplierText } from "../../../src/rounds/round.ts";
import { hundredthsOf, LISTED, newestRound, publishedAtMs, type Load } from "../load-house.ts";

/** Rounds that the model of a table has learned; its state has the same size after any number. */
const SAMPLE_ROUNDS = 500;
/** Parallel statements, one per core of the usual machine. */
const CONCURRENT = 2;
/** Rounds of each table in one transaction. */
const SLICE = 500;
/** Rounds of a window: every forecast set has one window of this length. */
const SPAN = 9;

type Filled = { id: number; place: number; rounds: number; firstId: number };

/**
 * Stores past rounds of all tables, each with a forecast set and a score set, and their sums by hour, day and period: as
 * much data as after months, written by SQL in minutes. Results are random and hashes are not real, so `verify` would fail;
 * only the newest rounds are those that the house still lists. The past lasts `lastsMs`, or as long as the rounds take at
 * the pace of the load.
 */
export async function fillHistory(
  sql: Sql,
  load: Load,
  { history, lastsMs }: { history: number; lastsMs?: number },
): Promise<void> {
  const tables = await sql<{ id: number; place: number }[]>`
    select id, substr(house_id, 2)::integer * ${load.tablesPerHouse}::integer + substr(game, 2)::integer as place
    from tables
    order by id`;
  const rounds = Math.max(2 * SPAN, Math.floor(history / tables.length));
  const everyMs = lastsMs === undefined ? load.roundMs : lastsMs / rounds;
  const began = Date.now();
  const filled = tables.map(({ id, place }): Filled => {
    return { id, place, rounds, firstId: newestRound(load, place, began) - LISTED - rounds };
  });
  const waiting = Array.from({ length: Math.ceil(rounds / SLICE) }, (_, slice) => slice * SLICE);
  await Promise.all(
    Array.from({ length: CONCURRENT }, async () => {
      for (let from = waiting.shift(); from !== undefined; from = waiting.shift())
        await fillSlice(sql, everyMs, { filled, rounds, from: from + 1, to: Math.min(from + SLICE, rounds) });
    }),
  );
  await sql.begin((tx) => fillAccuracy(tx, rounds * everyMs));
  await addListed(sql, load, filled);
  await moveHeads(sql, rounds);
  await hashNewestSets(sql);
  await learnSample(sql, load);
  await sql`vacuum (analyze)`;
  await sql`checkpoint`;
}

/** Stores a slice of rounds of all tables in the order of time. */
async function fillSlice(
  sql: Sql,
  everyMs: number,
  { filled, rounds, from, to }: { filled: readonly Filled[]; rounds: number; from: number; to: number },
): Promise<void> {
  const drawn = sql`
    select
      t.id, t.first_id, h.palette, h.model, n,
      now() - (${rounds + LISTED}::integer - n) * ${everyMs}::float8 * interval '1 millisecond' as at
    from unnest(
      ${filled.map(({ id }) => id)}::integer[], ${filled.map(({ firstId }) => firstId)}::bigint[]
    ) as t (id, first_id)
    join table_heads h on h.table_id = t.id
    cross join generate_series(${from}::integer, ${to}::integer) as n
    order by n, t.id`;
  await sql.begin(async (tx) => {
    // without triggers, which would check each row
    await tx`set local session_replication_role = replica`;
    await tx`
      insert into rounds (
        table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
        absent_at, after_gap, late, history_hash
      )
      select
        id, n, n, (first_id + n - 1)::text, x, (x / 100.0)::numeric(20, 2)::text, palette,
        case when x < 200 then 0 when x < 1000 then 1 else 2 end, 0, at, at,
        at - interval '1 second', false, false, sha256((id || '|' || n)::bytea)
      from (
        select *, least(100000000, greatest(100, floor(99 / (1 - random()))))::bigint as x
        from (${drawn}) slots
      ) rolled`;
    await tx`
      insert into forecast_sets (
        table_id, cutoff_seq, cutoff_ordinal, first_seq, issued_at, absent_at, pause_ms, model, cutoff_round_id,
        target_round_id, history_hash, features, horizons, p_ppm, base_ppm, reference_ppm, ends, prev_hash, hashes
      )
      select
        id, n, n, 2 * n - 1, at, at - interval '1 second', 5000, model, (first_id + n - 1)::text,
        (first_id + n)::text, sha256((id || '|' || n)::bytea), array[0, 1 + n % 9], '{1,9}',
        array[505000 + n % 1000, 395000, 100000 - n % 1000, 811376 - n % 1000], '{505000,395000,100000,810000}',
        array_fill(333333 + n % 1000, array[12]), array_fill(n + ${SPAN}, array[9]), sha256((n - 1)::text::bytea),
        sha256((n || 'a')::bytea) || sha256(n::text::bytea)
      from (${drawn}) slots`;
    await tx`
      insert into score_sets (
        table_id, settled_seq, settled_ordinal, target_requested_at, scored_at, forecast_seqs, cutoff_seqs, features,
        statuses, reasons, outcomes, prev_hash, hashes
      )
      select
        id, n, n, at, at, array[2 * (n - ${SPAN}), 2 * n - 3], array[n - ${SPAN}, n - 1],
        array[1 + (n - ${SPAN}) % 9, 0], '{0,0}', '{0,0}', array[n % 2, n % 3], sha256((n - 1)::text::bytea),
        sha256((n || 'a')::bytea) || sha256(n::text::bytea)
      from (${drawn}) slots
      where n > ${SPAN}`;
  });
}

/** Stores equal sums for every hour, day and period of the past, of a realistic size. */
async function fillAccuracy(sql: Transaction, lastsMs: number): Promise<void> {
  const sums = new Map<number, bigint>();
  for (const key of Object.values(KEY)) sums.set(key, 1_234_567n);
  const bytes = Buffer.from(encodeSums(sums));
  const first = sql`date_trunc('hour', now() - ${lastsMs}::float8 * interval '1 millisecond', 'UTC')`;
  await sql`
    insert into accuracy_hours (table_id, hour, feature, model, sums)
    select table_id, hour, feature, model, ${bytes}
    from table_heads, generate_series(${first}, now(), interval '1 hour') as hour, generate_series(0, 9) as feature`;
  await sql`
    insert into accuracy_days (table_id, day, feature, model, sums)
    select table_id, day::date, feature, model, ${bytes}
    from table_heads, generate_series(${first}, now(), interval '1 day') as day, generate_series(0, 9) as feature`;
  await sql`
    insert into accuracy_periods (table_id, feature, model, period, sums)
    select table_id, feature, model, period, ${bytes}
    from table_heads, generate_series(0, 9) as feature, unnest('{24h,7d,30d,90d,all}'::text[]) as period`;
  await sql`
    insert into accuracy_models (table_id, model, palette, first_hour)
    select table_id, model, palette, ${first} from table_heads`;
}

/** Stores the rounds that a house still lists, up to now. */
async function addListed(sql: Sql, load: Load, filled: readonly Filled[]): Promise<void> {
  const { bands } = await modelNow(sql);
  const now = Date.now();
  for (let from = 0; from < filled.length; from += 500) {
    const rows = filled.slice(from, from + 500).flatMap(({ id, place, rounds, firstId }) => {
      const next = firstId + rounds;
      return Array.from({ length: newestRound(load, place, now) - next + 1 }, (_, n) => {
        const hundredths = hundredthsOf(load, place, next + n);
        return {
          table_id: id,
          seq: rounds + n + 1,
          round_id: String(next + n),
          hundredths,
          raw_value: multiplierText(hundredths),
          color: bandOf(hundredths, bands),
          at: new Date(publishedAtMs(load, place, next + n)).toISOString(),
        };
      });
    });
    await sql`
      insert into rounds (
        table_id, seq, ordinal, round_id, hundredths, raw_value, palette, color, source, requested_at, received_at,
        absent_at, after_gap, late, history_hash
      )
      select
        x.table_id, x.seq, x.seq, x.round_id, x.hundredths, x.raw_value, h.palette, x.color, 0, x.at, x.at,
        x.at - interval '1 second', false, false, sha256((x.table_id || '|' || x.seq)::bytea)
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as x (
        table_id integer, seq bigint, round_id text, hundredths bigint, raw_value text, color smallint, at timestamptz
      )
      join table_heads h on h.table_id = x.table_id`;
  }
}

/** Moves the heads to the newest rounds, and the accuracy marks to what is summed. */
async function moveHeads(sql: Sql, rounds: number): Promise<void> {
  await sql`
    update table_heads h
    set
      version = h.version + 1,
      last_seq = r.seq,
      last_ordinal = r.seq,
      newest_seq = r.seq,
      newest_round_id = r.round_id,
      newest_number = r.round_id::bigint,
      history_hash = r.history_hash,
      last_round_at = r.received_at,
      last_polled_round_at = r.received_at,
      forecast_seq = ${2 * rounds},
      forecast_hash = sha256(${String(rounds)}::text::bytea),
      first_forecast_at = (select issued_at from forecast_sets where table_id = h.table_id and cutoff_seq = 1),
      first_forecast_ordinal = 1,
      set_seq = ${rounds}
    from (select distinct on (table_id) * from rounds where seq > ${rounds} order by table_id, seq desc) r
    where r.table_id = h.table_id`;
  await sql`
    insert into accuracy_marks (table_id, set_seq, settled_seq, round_seq, hour)
    select table_id, ${rounds}, ${rounds}, last_seq, date_trunc('hour', now(), 'UTC')
    from table_heads`;
}

/** Stores real hashes in the newest set of each table, since a state is not loaded from a damaged set. */
async function hashNewestSets(sql: Sql): Promise<void> {
  const sets = await sql<(Selected<ForecastSetRow> & { tableId: number; name: string; bands: Color[] })[]>`
    select
      s.table_id as "tableId", ${FORECAST_SETS.selectFrom("s")},
      t.house_id || '/' || t.game || '/' || t.market as name, p.bands
    from table_heads h
    join tables t on t.id = h.table_id
    join palettes p on p.id = h.palette
    join forecast_sets s on s.table_id = h.table_id and s.cutoff_seq = h.set_seq`;
  const hashes = sets.map((set) => hashesOf(set, FORECAST_SETS.parse(set)));
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      with hashed as (
        select * from unnest(${sets.map((set) => set.tableId)}::integer[], ${hashes}::text[]) as n (table_id, hashes)
      ),
      heads as (
        update table_heads h
        set forecast_hash = decode(right(n.hashes, 64), 'hex')
        from hashed n
        where h.table_id = n.table_id
        returning h.table_id, h.set_seq
      )
      update forecast_sets s
      set hashes = decode(n.hashes, 'hex')
      from hashed n
      join heads h on h.table_id = n.table_id
      where s.table_id = n.table_id
        and s.cutoff_seq = h.set_seq`;
  });
}

/** Stores the same model state, learned from sample rounds, for every table. */
async function learnSample(sql: Sql, load: Load): Promise<void> {
  const { bands, name } = await modelNow(sql);
  const model = modelOf(bands, null);
  const memories = {
    k7: emptyState(model),
    references: emptyReferences(bands.length),
    reading: emptyReading(model, { consecutive: true }),
  };
  const sample = Array.from({ length: SAMPLE_ROUNDS }, (_, n) => ({
    seq: BigInt(n + 1),
    roundId: String(n + 1),
    hundredths: hundredthsOf(load, 0, n),
    late: false,
    afterGap: false,
    verified: null,
    receivedAt: "2026-01-01T00:00:00.0000000Z",
  }));
  learnRounds(memories, model, { bands, resets: [] }, sample);
  const { state, stateHash, reading, readingHash, refs } = snapshotOf(
    model,
    { model: name, lastOrdinal: 0n, lastSeq: 0n },
    memories,
  );
  await sql`
    insert into model_snapshots (table_id, model, ordinal, seq, state, state_hash, reading, reading_hash, refs)
    select
      table_id, model, last_ordinal, last_seq, ${state}, decode(${stateHash}, 'hex'), ${reading},
      decode(${readingHash}, 'hex'), ${JSON.stringify(refs)}::text::jsonb
    from table_heads`;
}

async function modelNow(sql: Sql): Promise<{ bands: Color[]; name: string }> {
  const [row] = await sql<{ bands: Color[]; name: string }[]>`
    select p.bands, h.model as name from table_heads h join palettes p on p.id = h.palette limit 1`;
  if (row === undefined) throw new Error("expected a table to fill, found none");
  return row;
}
