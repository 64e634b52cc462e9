import type { Sql } from "../../../src/db/client.ts";
import { isWindow } from "../../../src/forecasts/model/features.ts";
import { scoreNextColor, scoreWindow } from "../../../src/forecasts/score/scoring.ts";

/*
 * The results of each design as lines that must be equal: issued probabilities in ppm, and scores as the integers that are
 * summed. Times and names differ and are omitted.
 */

/** Rounds, forecasts and scores of Roundhouse up to a round of each table; figures are computed from outcomes. */
export async function ourResults(sql: Sql, upTo: readonly number[]): Promise<string[]> {
  const ends = upTo.map(String);
  const rounds = await sql`
    select
      substr(t.game, 2)::integer as "table", r.seq::integer as seq, r.round_id, r.hundredths::integer as hundredths,
      p.bands -> r.color ->> 'name' as color
    from rounds r
    join tables t on t.id = r.table_id
    join palettes p on p.id = r.palette
    where r.seq <= (${ends}::integer[])[substr(t.game, 2)::integer + 1]
      and not r.late
    order by 1, 2`;
  const forecasts = await sql<IssuedForecast[]>`
    select
      substr(t.game, 2)::integer as "table", f.cutoff_seq::integer as cutoff, f.feature, f.horizon, f.p_ppm, f.base_ppm,
      s.outcome
    from forecasts f
    join tables t on t.id = f.table_id
    cross join lateral (select (${ends}::integer[])[substr(t.game, 2)::integer + 1] as seq) last
    left join scores s on s.table_id = f.table_id and s.forecast_seq = f.seq and f.cutoff_seq + f.horizon <= last.seq
    where f.cutoff_seq <= last.seq
    order by 1, 2, 3`;
  return linesOf(rounds, forecasts.map(withFigures));
}

interface IssuedForecast {
  table: number;
  cutoff: number;
  feature: string;
  horizon: number;
  p_ppm: number[];
  base_ppm: number[];
  /** Null if it is not scored. */
  outcome: number | null;
}

function withFigures({ outcome, ...forecast }: IssuedForecast): object {
  if (outcome === null) return { ...forecast, ...NOT_SCORED };
  const { p_ppm: p, base_ppm: base, feature } = forecast;
  const { hit, brier, brierBase, rps, rpsBase, ll, llBase } = isWindow(feature)
    ? scoreWindow(p[0] ?? 0, base[0] ?? 0, outcome === 1)
    : scoreNextColor(p, base, outcome);
  const figures = { brier, brier_base: brierBase, rps, rps_base: rpsBase, ll, ll_base: llBase };
  const texts = Object.entries(figures).map(([name, value]) => [name, String(value)] as const);
  return { ...forecast, scored: true, outcome, hit, ...Object.fromEntries(texts) };
}

const NOT_SCORED = {
  scored: null,
  outcome: null,
  hit: null,
  brier: null,
  brier_base: null,
  rps: null,
  rps_base: null,
  ll: null,
  ll_base: null,
};

/** The same of the straightforward design. */
export async function plainResults(sql: Sql, upTo: readonly number[]): Promise<string[]> {
  const ends = upTo.map(String);
  const rounds = await sql`
    select
      table_id as "table", seq::integer as seq, round_id::text as round_id, hundredths::integer as hundredths, color
    from rounds
    where seq <= (${ends}::integer[])[table_id + 1]
    order by 1, 2`;
  const forecasts = await sql`
    select
      f.table_id as "table", f.cutoff_seq::integer as cutoff, f.feature, f.horizon, f.p_ppm, f.base_ppm,
      s.scored, s.outcome, s.hit, s.brier::text, s.brier_base::text, s.rps::text, s.rps_base::text, s.ll::text,
      s.ll_base::text
    from forecasts f
    left join lateral (
      select
        true as scored, f.outcome, f.hit, f.brier, f.brier_base, f.rps, f.rps_base, f.ll, f.ll_base
      where f.scored_at is not null
        and f.cutoff_seq + f.horizon <= (${ends}::integer[])[f.table_id + 1]
    ) s on true
    where f.cutoff_seq <= (${ends}::integer[])[f.table_id + 1]
    order by 1, 2, 3`;
  return linesOf(rounds, forecasts);
}

function linesOf(rounds: readonly object[], forecasts: readonly object[]): string[] {
  return [...rounds, ...forecasts].map((row) => JSON.stringify(row));
}
