import type { Sql } from "../../src/db/client.ts";

/*
 * What each design came to, as lines that must be equal: probabilities as issued, in ppm, and scores in the integers
 * that are summed. Times and names differ and are left out.
 */

/** Rounds, forecasts and scores of ours up to round `upTo` of each table. */
export async function ourFacts(sql: Sql, upTo: number): Promise<string[]> {
  const rounds = await sql`
    select substr(t.game, 2)::integer as "table", r.seq::integer as seq, r.round_id, r.hundredths::integer as hundredths, r.color
    from rounds r
    join tables t on t.id = r.table_id
    where r.seq <= ${upTo}
      and not r.late
    order by 1, 2`;
  const forecasts = await sql`
    select
      substr(t.game, 2)::integer as "table", f.cutoff_seq::integer as cutoff, f.feature, f.horizon, f.p_ppm, f.base_ppm,
      s.status = 'scored' as scored, s.outcome, s.hit, s.brier::text, s.brier_base::text, s.rps::text, s.rps_base::text,
      s.ll::text, s.ll_base::text
    from forecasts f
    join tables t on t.id = f.table_id
    left join scores s on s.table_id = f.table_id and s.forecast_seq = f.seq and f.cutoff_seq + f.horizon <= ${upTo}
    where f.cutoff_seq <= ${upTo}
    order by 1, 2, 3`;
  return linesOf(rounds, forecasts);
}

/** The same of the straightforward design. */
export async function plainFacts(sql: Sql, upTo: number): Promise<string[]> {
  const rounds = await sql`
    select
      table_id as "table", seq::integer as seq, round_id::text as round_id, hundredths::integer as hundredths, color
    from rounds
    where seq <= ${upTo}
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
        and f.cutoff_seq + f.horizon <= ${upTo}
    ) s on true
    where f.cutoff_seq <= ${upTo}
    order by 1, 2, 3`;
  return linesOf(rounds, forecasts);
}

function linesOf(rounds: readonly object[], forecasts: readonly object[]): string[] {
  return [...rounds, ...forecasts].map((row) => JSON.stringify(row));
}
