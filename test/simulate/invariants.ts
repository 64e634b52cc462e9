import type { Sql } from "../../src/db/client.ts";
import type { Caller } from "./callers.ts";
import { everTold, heldUntil, isLost, playUntil, type TrueTable, type Truth } from "./truth.ts";

/** Something that must never be so, and is. */
export class Broken extends Error {
  override name = "Broken";
}

/** What is stored of a table's rounds and claims. */
interface Stored {
  rounds: { id: number; hundredths: number; late: boolean; seq: number }[];
  forecasts: { cutoff: number; issuedAtMs: number; feature: string }[];
}

async function readTable(sql: Sql, { house, game }: TrueTable): Promise<Stored> {
  const [table] = await sql<{ id: number }[]>`
    select id
    from tables
    where house_id = ${house} and game = ${game}`;
  if (table === undefined) throw new Error(`the table ${house}/${game} is not stored`);
  const rounds = await sql<Stored["rounds"]>`
    select round_number::float8 as id, hundredths::float8 as hundredths, late, seq::float8 as seq
    from rounds
    where table_id = ${table.id}
    order by rounds.seq`;
  const forecasts = await sql<Stored["forecasts"]>`
    select cutoff_round_id::float8 as cutoff, extract(epoch from issued_at)::float8 * 1000 as "issuedAtMs", feature
    from forecasts
    where table_id = ${table.id}
      and feature = 'next_color'`;
  return { rounds, forecasts };
}

/**
 * What must hold at any moment: no round twice or other than its house told it, those on time in order, every forecast
 * issued before its round was over, none scored twice, no quota exceeded. Gives how many rounds and forecasts it saw.
 * @throws Broken at the first that does not
 */
export async function checkAlways(sql: Sql, truth: Truth): Promise<{ rounds: number; forecasts: number }> {
  const seen = { rounds: 0, forecasts: 0 };
  for (const table of truth.tables) {
    const name = `${table.house}/${table.game}`;
    const { rounds, forecasts } = await readTable(sql, table);
    playUntil(truth, table, Date.now());
    const known = new Map(table.rounds.map((round) => [round.id, round]));
    const stored = new Set<number>();
    let newest = 0;
    for (const { id, hundredths, late, seq } of rounds) {
      const round = known.get(id);
      if (round === undefined) throw new Broken(`${name} has a round ${id} that was never played`);
      if (stored.has(id)) throw new Broken(`${name} has round ${id} twice`);
      stored.add(id);
      const told = everTold(truth, table, round);
      if (!told.includes(hundredths)) {
        throw new Broken(`round ${id} of ${name} is stored with ${hundredths}; its house told ${told.join(" or ")}`);
      }
      if (late) continue;
      if (id <= newest) throw new Broken(`round ${id} of ${name} is on time at seq ${seq}, after round ${newest}`);
      newest = id;
    }
    for (const { cutoff, issuedAtMs } of forecasts) {
      const [after, target] = [known.get(cutoff), known.get(cutoff + 1)];
      // of a round that its house held back nobody can know when the next one began
      if (after === undefined || target === undefined || heldUntil(truth, table, after) !== null) continue;
      if (issuedAtMs >= target.endsAtMs) {
        throw new Broken(
          `the forecast after round ${cutoff} of ${name} was issued ${(issuedAtMs - target.endsAtMs).toFixed(0)} ms after round ${target.id} had ended`,
        );
      }
    }
    seen.rounds += rounds.length;
    seen.forecasts += forecasts.length;
  }
  const twice = await sql`
    select forecast_seq
    from scores
    group by table_id, forecast_seq, rev
    having count(*) > 1
    limit 1`;
  if (twice.length > 0) throw new Broken("a forecast is scored twice under the same revision");
  const over = await sql<{ email: string; used: bigint; most: bigint }[]>`
    select a.email, q.used, p.day_limit as most
    from quotas q
    join accounts a on a.id = q.account_id
    join entitlements e on e.account_id = a.id
    join plans p on p.name = e.plan
    where length(q.period) = 10
      and q.used > p.day_limit`;
  for (const { email, used, most } of over) throw new Broken(`${email} used ${used} calls of ${most} a day`);
  return seen;
}

/**
 * What must hold once all is quiet: every round that a house still lists is stored, from the first one of its table on.
 * Gives what is missing, in words; empty where nothing is.
 */
export async function listMissing(sql: Sql, truth: Truth, untilMs: number): Promise<string[]> {
  const missing: string[] = [];
  for (const table of truth.tables) {
    const { rounds } = await readTable(sql, table);
    const stored = new Set(rounds.map(({ id }) => id));
    const first = rounds[0]?.id ?? Number.POSITIVE_INFINITY;
    if (rounds.length === 0) missing.push(`${table.house}/${table.game} has no rounds`);
    for (const round of table.rounds) {
      if (round.id < first || round.endsAtMs > untilMs || isLost(truth, table, round) || stored.has(round.id)) continue;
      missing.push(`round ${round.id} of ${table.house}/${table.game}`);
    }
  }
  return missing;
}

/**
 * Calls are counted exactly: what was answered 200 is counted, and at most what got no answer besides.
 * @throws Broken where they are not
 */
export async function checkCounts(sql: Sql, callers: readonly Caller[]): Promise<void> {
  for (const { email, answered, unanswered, refused } of callers) {
    // one that could not be counted in time is refused, and may have been counted all the same
    const uncertain = unanswered + (refused.get("temporarily_unavailable") ?? 0);
    const [row] = await sql<{ quota: number; facts: number }[]>`
      select
        (
          select coalesce(sum(q.used), 0)::float8
          from quotas q
          where q.account_id = a.id and length(q.period) = 7
        ) as quota,
        (select coalesce(sum(f.n), 0)::float8 from usage_facts f where f.account_id = a.id) as facts
      from accounts a
      where a.email = ${email}`;
    const { quota = 0, facts = 0 } = row ?? {};
    if (quota !== facts)
      throw new Broken(`${email} used ${quota} calls by its quota and ${facts} by the meter's facts`);
    if (quota < answered || quota > answered + uncertain) {
      throw new Broken(
        `${email} got ${answered} answers, ${uncertain} calls were cut off or refused with 503, and ${quota} calls are counted`,
      );
    }
  }
}
