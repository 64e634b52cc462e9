/**
 * The baseline of `bench pipeline`: processes a round in sequential steps, with one statement per row. It is correct, and
 * every lookup has an index.
 *
 * Its rounds, forecasts and scores equal ours. It does not store payloads, prove results, chain hashes or compute readings,
 * and it increments its accuracy instead of recomputing it from scores.
 */
import type { Queryable, Sql } from "../../../src/db/client.ts";
import { NEXT_COLOR, isWindow } from "../../../src/forecasts/model/features.ts";
import { outcomeOf, windowsToIssue } from "../plain-windows.ts";
import { emptyState, learn as learnRound, type State } from "../../../src/forecasts/model/k7.ts";
import type { Model } from "../../../src/forecasts/model/model.ts";
import { scoreNextColor, scoreWindow } from "../../../src/forecasts/score/scoring.ts";
import { decodeState, encodeState } from "../../../src/forecasts/model/state.ts";
import { modelOf, nextColorOf, type Band } from "../../../src/forecasts/model/table-model.ts";
import { colorOf } from "../../../src/rounds/colors.ts";

/** The bands of all its tables. */
export const BANDS: readonly Band[] = [
  { name: "blue", below: 200 },
  { name: "purple", below: 1000 },
  { name: "pink", below: null },
];

/** The place of a color among a table's bands. */
export function colorIndex(bands: readonly Band[], color: string): number {
  const index = bands.findIndex((band) => band.name === color);
  if (index === -1) {
    throw new Error(
      `expected one of the table's colors ${bands.map((band) => band.name).join(", ")}, got ${color}; the round is damaged`,
    );
  }
  return index;
}

/** The payload of a round's job. */
export interface QueuedRound {
  table: number;
  roundId: number;
  multiplier: number;
  /** When it was requested, in epoch milliseconds. */
  requestedMs: number;
  /** Whether the next round cannot be known yet: this one is the newest, and earlier rounds were polled before it. */
  mayForecast: boolean;
}

const model: Model = modelOf(BANDS, null);

/** Creates its tables, with an index for each lookup. */
export async function makePlainTables(sql: Sql): Promise<void> {
  await sql.unsafe(`
    create table rounds (
      table_id integer not null,
      seq bigint not null,
      round_id bigint not null,
      hundredths bigint not null,
      color text not null,
      requested_at timestamptz not null,
      received_at timestamptz not null default clock_timestamp(),
      primary key (table_id, seq),
      unique (table_id, round_id)
    );
    create table model_states (
      table_id integer primary key,
      learned_seq bigint not null,
      state bytea not null
    );
    create table forecasts (
      id bigint generated always as identity primary key,
      table_id integer not null,
      feature text not null,
      color text,
      cutoff_seq bigint not null,
      horizon integer not null,
      p_ppm integer[] not null,
      base_ppm integer[] not null,
      issued_at timestamptz not null default clock_timestamp(),
      hit boolean not null default false,
      scored_at timestamptz,
      outcome integer,
      brier bigint,
      brier_base bigint,
      rps bigint,
      rps_base bigint,
      ll bigint,
      ll_base bigint,
      unique (table_id, feature, cutoff_seq)
    );
    create index forecasts_open on forecasts (table_id) where scored_at is null;
    create table accuracy (
      table_id integer not null,
      feature text not null,
      hour timestamptz not null,
      n bigint not null,
      hits bigint not null,
      brier bigint not null,
      brier_base bigint not null,
      ll bigint not null,
      ll_base bigint not null,
      primary key (table_id, feature, hour)
    );
    create table published (
      table_id integer primary key,
      cutoff_seq bigint not null,
      forecast jsonb not null,
      updated_at timestamptz not null default clock_timestamp()
    )`);
}

/** The newest stored round of a table; 0 if there is none. */
export async function newestRound(sql: Sql, table: number): Promise<number> {
  const [row] = await sql<{ newest: number }[]>`
    select coalesce(max(round_id), 0)::integer as newest
    from rounds
    where table_id = ${table}`;
  return row?.newest ?? 0;
}

interface OpenForecast {
  id: bigint;
  feature: string;
  cutoffSeq: bigint;
  horizon: number;
  pPpm: number[];
  basePpm: number[];
  hit: boolean;
  hour: string;
}

/**
 * Processes one round: stores it, learns it, scores the forecasts that it settles, issues new ones and publishes them. A
 * repeated round changes nothing. Rounds of a table must be processed in order.
 */
export async function processRound(sql: Queryable, round: QueuedRound): Promise<void> {
  const { table, multiplier } = round;
  const hundredths = Math.round(multiplier * 100);
  const color = colorOf(
    hundredths,
    BANDS.map(({ name, below }) => ({ name, below })),
  );
  const [stored] = await sql<{ seq: bigint }[]>`
    insert into rounds (table_id, seq, round_id, hundredths, color, requested_at)
    select
      ${table}, coalesce(max(seq), 0) + 1, ${round.roundId}, ${hundredths}, ${color},
      to_timestamp(${round.requestedMs}::float8 / 1000)
    from rounds
    where table_id = ${table}
    on conflict do nothing
    returning seq`;
  if (stored === undefined) return;
  const { seq } = stored;
  const state = await learn(sql, table, seq, { hundredths, color });
  const open = await score(sql, table, seq, color);
  if (!round.mayForecast) return;
  const issued = [
    { feature: NEXT_COLOR, horizon: 1, ...nextColorOf(model, state) },
    ...windowsToIssue(model, state, BANDS, open).map(({ feature, rounds: horizon, pPpm, basePpm }) => ({
      feature,
      horizon,
      pPpm: [pPpm],
      basePpm: [basePpm],
    })),
  ];
  for (const { feature, horizon, pPpm, basePpm } of issued) {
    await sql`
      insert into forecasts (table_id, feature, color, cutoff_seq, horizon, p_ppm, base_ppm)
      values (
        ${table}, ${feature}, ${isWindow(feature) ? (feature.split(":")[1] ?? null) : null}, ${seq}, ${horizon},
        ${pPpm}, ${basePpm}
      )`;
  }
  const shown = sql.json({
    next_color: issued[0] ?? null,
    windows: [...open.values(), ...issued.slice(1)].map(shownOf),
  });
  await sql`
    insert into published (table_id, cutoff_seq, forecast)
    values (${table}, ${seq}, ${shown})
    on conflict (table_id) do update
    set
      cutoff_seq = excluded.cutoff_seq,
      forecast = excluded.forecast,
      updated_at = clock_timestamp()`;
}

async function learn(
  sql: Queryable,
  table: number,
  seq: bigint,
  round: { hundredths: number; color: string },
): Promise<State> {
  const [known] = await sql<{ state: Buffer }[]>`
    select state
    from model_states
    where table_id = ${table}`;
  const state = known === undefined ? emptyState(model) : decodeState(model, known.state);
  learnRound(model, state, colorIndex(BANDS, round.color), round.hundredths >= model.x0Hundredths);
  await sql`
    insert into model_states (table_id, learned_seq, state)
    values (${table}, ${seq}, ${encodeState(model, state)})
    on conflict (table_id) do update
    set
      learned_seq = excluded.learned_seq,
      state = excluded.state`;
  return state;
}

/** Scores the forecasts that this round settles. Returns those that are still open. */
async function score(
  sql: Queryable,
  table: number,
  seq: bigint,
  color: string,
): Promise<Map<string, Pick<OpenForecast, "feature" | "horizon" | "pPpm">>> {
  await sql`
    update forecasts
    set hit = true
    where table_id = ${table}
      and scored_at is null
      and color = ${color}
      and not hit`;
  const waiting = await sql<OpenForecast[]>`
    select
      id, feature, cutoff_seq as "cutoffSeq", horizon, p_ppm as "pPpm", base_ppm as "basePpm", hit,
      date_trunc('hour', issued_at, 'UTC')::text as hour
    from forecasts
    where table_id = ${table}
      and scored_at is null
    order by id`;
  const open = new Map(waiting.map((forecast) => [forecast.feature, forecast]));
  for (const { id, feature, cutoffSeq, horizon, pPpm, basePpm, hit, hour } of waiting) {
    if (seq < cutoffSeq + BigInt(horizon)) continue;
    open.delete(feature);
    const scored = isWindow(feature)
      ? scoreWindow(pPpm[0] ?? 0, basePpm[0] ?? 0, hit)
      : scoreNextColor(pPpm, basePpm, colorIndex(BANDS, color));
    await sql`
      update forecasts
      set
        scored_at = clock_timestamp(),
        outcome = ${outcomeOf(scored)},
        hit = ${scored.hit},
        brier = ${scored.brier},
        brier_base = ${scored.brierBase},
        rps = ${scored.rps},
        rps_base = ${scored.rpsBase},
        ll = ${scored.ll},
        ll_base = ${scored.llBase}
      where id = ${id}`;
    await sql`
      insert into accuracy as a (table_id, feature, hour, n, hits, brier, brier_base, ll, ll_base)
      values (
        ${table}, ${feature}, ${hour}::text::timestamptz, 1, ${Number(scored.hit)}, ${scored.brier},
        ${scored.brierBase}, ${scored.ll}, ${scored.llBase}
      )
      on conflict (table_id, feature, hour) do update
      set
        n = a.n + 1,
        hits = a.hits + excluded.hits,
        brier = a.brier + excluded.brier,
        brier_base = a.brier_base + excluded.brier_base,
        ll = a.ll + excluded.ll,
        ll_base = a.ll_base + excluded.ll_base`;
  }
  return open;
}

/** A window in the published forecast of a table. */
export function shownOf({ feature, horizon, pPpm }: { feature: string; horizon: number; pPpm: readonly number[] }) {
  return { feature, rounds: horizon, p_ppm: pPpm[0] ?? 0 };
}
