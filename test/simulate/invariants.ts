import type { Sql } from "../../src/db/client.ts";
import { LARGEST_GAP } from "../../src/backfill/gap-plan.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import { readTables, type Stored, type StoredRound } from "./read-tables.ts";
import {
  reportedResults,
  withheldUntil,
  isLost,
  PAUSE_MS,
  generateRounds,
  reportedEndMs,
  type TrueTable,
  type Truth,
} from "./truth.ts";

/** Two clocks of one machine are read, and times are rounded. */
const ROUNDED_MS = 2;
/** What the guard near the commit leaves open: the flush of the log to the disk, and a group of passes before it. */
const FLUSHED_MS = 250;

/** How much was looked at. */
export interface CheckedCounts {
  rounds: number;
  sets: number;
}

/**
 * What must hold at any moment: of rounds that none is twice or other than its house told it and that those on time are
 * in order; of forecast sets that each was issued and committed while its round could not be under way, and that no
 * forecast is scored twice; of calls that no quota is exceeded, and that each is counted once in both ways that calls are
 * counted.
 * @throws Broken at the first that does not
 */
export async function checkInvariants(sql: Sql, truth: Truth): Promise<CheckedCounts> {
  const seen = { rounds: 0, sets: 0 };
  const stored = await readTables(sql, truth);
  for (const table of truth.tables) {
    generateRounds(truth, table, Date.now());
    const own = stored.get(table);
    if (own === undefined) throw new Error(`the table ${table.house}/${table.game} is not stored`);
    checkRounds(truth, table, own.rounds);
    checkSets(truth, table, own);
    seen.rounds += own.rounds.length;
    seen.sets += own.sets.length;
  }
  await checkScores(sql);
  await checkQuotas(sql);
  return seen;
}

function checkRounds(truth: Truth, table: TrueTable, rounds: readonly StoredRound[]): void {
  const { house, game } = table;
  const name = `${house}/${game}`;
  const known = new Map(table.rounds.map((round) => [round.id, round]));
  const stored = new Set<number>();
  let newest = 0;
  for (const [at, { id, hundredths, late, seq, occurredAtMs }] of rounds.entries()) {
    const where = { house, game, round: id };
    const round = known.get(id);
    if (round === undefined) throw new InvariantViolation(`${name} has a round ${id} that was never played`, where);
    if (stored.has(id)) throw new InvariantViolation(`${name} has round ${id} twice`, where);
    stored.add(id);
    if (seq !== at + 1)
      throw new InvariantViolation(`round ${id} of ${name} has seq ${seq} and is its ${at + 1}th round`, where);
    const told = reportedResults(truth, table, round);
    if (!told.includes(hundredths)) {
      const message = `round ${id} of ${name} is stored with ${hundredths}; its house told ${told.join(" or ")}`;
      throw new InvariantViolation(message, where);
    }
    const toldMs = reportedEndMs(truth, table, round);
    if (occurredAtMs !== toldMs) {
      throw new InvariantViolation(
        `round ${id} of ${name} is stored as of ${occurredAtMs}; its house told ${toldMs}`,
        where,
      );
    }
    if (late) continue;
    if (id <= newest)
      throw new InvariantViolation(`round ${id} of ${name} is on time at seq ${seq}, after round ${newest}`, where);
    newest = id;
  }
}

function checkSets(truth: Truth, table: TrueTable, { sets }: Stored): void {
  const { house, game } = table;
  const known = new Map(table.rounds.map((round) => [round.id, round]));
  for (const { cutoff, issuedAtMs, committedAtMs } of sets) {
    const after = known.get(cutoff);
    // of a round that its house held back nobody can know when the next one began
    if (after === undefined || withheldUntil(truth, table, after) !== null) continue;
    const beginsMs = after.endsAtMs + PAUSE_MS;
    const isRestored = truth.restoredToMs !== null && issuedAtMs < truth.restoredToMs;
    const late = [
      { what: "issued", ms: issuedAtMs - beginsMs, allowedMs: ROUNDED_MS },
      { what: "committed", ms: isRestored ? 0 : committedAtMs - beginsMs, allowedMs: ROUNDED_MS + FLUSHED_MS },
    ].find(({ ms, allowedMs }) => ms > allowedMs);
    if (late === undefined) continue;
    throw new InvariantViolation(
      `the forecasts after round ${cutoff} of ${house}/${game} were ${late.what} ${late.ms.toFixed(0)} ms after the next round had begun`,
      { house, game, round: cutoff },
    );
  }
}

async function checkScores(sql: Sql): Promise<void> {
  const [twice] = await sql<{ house: string; game: string; cutoff: string; seq: string; n: number }[]>`
    select
      t.house_id as house,
      t.game,
      f.cutoff_round_id as cutoff,
      s.forecast_seq::text as seq,
      s.n
    from (
      select table_id, forecast_seq, count(*)::integer as n
      from scores
      where status = 'scored'
      group by table_id, forecast_seq
      having count(*) > 1
      limit 1
    ) s
    join forecasts f on f.table_id = s.table_id and f.seq = s.forecast_seq
    join tables t on t.id = s.table_id`;
  if (twice === undefined) return;
  const { house, game, cutoff, seq, n } = twice;
  throw new InvariantViolation(`forecast ${seq} of ${house}/${game} is scored ${n} times`, {
    house,
    game,
    round: Number(cutoff),
  });
}

async function checkQuotas(sql: Sql): Promise<void> {
  const [over] = await sql<{ email: string; used: bigint; most: bigint; period: string }[]>`
    select
      a.email,
      q.used,
      q.period,
      case length(q.period) when 10 then least(p.day_limit, p.day_ceiling) else p.month_limit end as most
    from quotas q
    join accounts a on a.id = q.account_id
    join entitlements e on e.account_id = a.id
    join plans p on p.name = e.plan
    where q.used > case length(q.period) when 10 then least(p.day_limit, p.day_ceiling) else p.month_limit end
    limit 1`;
  if (over !== undefined)
    throw new InvariantViolation(`${over.email} used ${over.used} calls of ${over.most} in ${over.period}`);
  // both are written by one statement, so that no moment lies between them
  const [other] = await sql<{ email: string; quota: bigint; facts: bigint }[]>`
    select a.email, q.used as quota, coalesce(f.n, 0)::bigint as facts
    from quotas q
    join accounts a on a.id = q.account_id
    left join lateral (
      select sum(n) as n
      from usage_facts
      where account_id = q.account_id
        and to_char(minute at time zone 'UTC', 'YYYY-MM-DD') = q.period
    ) f on true
    where length(q.period) = 10
      and q.used <> coalesce(f.n, 0)
    limit 1`;
  if (other !== undefined) {
    throw new InvariantViolation(
      `${other.email} used ${other.quota} calls by the quota and ${other.facts} by the meter's facts`,
    );
  }
}

/**
 * What must hold once all is quiet: every round that a house still lists is stored, from the first one of its table on, but
 * for one that was missed beside a jump of its ids: between them are more than is fetched unasked, and operators are told.
 * Gives what is missing; empty where nothing is.
 */
export async function listMissing(sql: Sql, truth: Truth, untilMs: number): Promise<InvariantViolation[]> {
  const missing: InvariantViolation[] = [];
  const jumps = await sql<{ house: string; game: string; first: number; last: number }[]>`
    select t.house_id as house, t.game, g.from_number::float8 as first, g.to_number::float8 as last
    from gaps g
    join tables t on t.id = g.table_id
    where g.state = 'given_up'
      and g.missing > ${String(LARGEST_GAP)}`;
  for (const [table, { rounds }] of await readTables(sql, truth)) {
    const { house, game } = table;
    const stored = new Set(rounds.map(({ id }) => id));
    const first = rounds[0]?.id ?? Number.POSITIVE_INFINITY;
    const told = jumps.filter((jump) => jump.house === house && jump.game === game);
    if (rounds.length === 0) missing.push(new InvariantViolation(`${house}/${game} has no rounds`));
    for (const round of table.rounds) {
      if (round.id < first || round.endsAtMs > untilMs || isLost(truth, table, round) || stored.has(round.id)) continue;
      if (told.some(({ first: from, last }) => from <= round.id && round.id <= last)) continue;
      missing.push(new InvariantViolation(`round ${round.id} of ${house}/${game}`, { house, game, round: round.id }));
    }
  }
  return missing;
}
