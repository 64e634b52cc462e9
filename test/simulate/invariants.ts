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

/** Tolerance for two reads of the clock and for rounding. */
const ROUNDED_MS = 2;
/** The time from the last guard to the end of the commit: the flush of the WAL, after other passes of a group. */
const FLUSHED_MS = 250;

/** How much was checked. */
export interface CheckedCounts {
  rounds: number;
  sets: number;
}

/**
 * Checks the invariants that hold at any time: no round is stored twice or differs from what its house reported, and
 * on-time rounds are in order; each forecast set was issued and committed before its round could begin, and no forecast is
 * scored twice; no quota is exceeded, and quotas equal the meter's facts.
 * @throws InvariantViolation at the first that does not hold
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
    const reference = { house, game, round: id };
    const round = known.get(id);
    if (round === undefined) throw new InvariantViolation(`${name} has a round ${id} that was never played`, reference);
    if (stored.has(id)) throw new InvariantViolation(`${name} has round ${id} twice`, reference);
    stored.add(id);
    if (seq !== at + 1)
      throw new InvariantViolation(`round ${id} of ${name} has seq ${seq}, expected ${at + 1}`, reference);
    const reported = reportedResults(truth, table, round);
    if (!reported.includes(hundredths)) {
      const message = `round ${id} of ${name} is stored with ${hundredths}; its house reported ${reported.join(" or ")}`;
      throw new InvariantViolation(message, reference);
    }
    const reportedMs = reportedEndMs(truth, table, round);
    if (occurredAtMs !== reportedMs) {
      throw new InvariantViolation(
        `round ${id} of ${name} is stored as of ${occurredAtMs}; its house reported ${reportedMs}`,
        reference,
      );
    }
    if (late) continue;
    if (id <= newest)
      throw new InvariantViolation(`round ${id} of ${name} is on time at seq ${seq}, after round ${newest}`, reference);
    newest = id;
  }
}

function checkSets(truth: Truth, table: TrueTable, { sets }: Stored): void {
  const { house, game } = table;
  const known = new Map(table.rounds.map((round) => [round.id, round]));
  for (const { cutoff, issuedAtMs, committedAtMs } of sets) {
    const after = known.get(cutoff);
    // after a round that was listed late the start of the next one is unknown
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
  const [over] = await sql<{ email: string; used: bigint; allowed: bigint; period: string }[]>`
    select
      a.email,
      q.used,
      q.period,
      case length(q.period) when 10 then coalesce(p.day_limit, p.day_ceiling) else p.month_limit end as allowed
    from quotas q
    join accounts a on a.id = q.account_id
    join entitlements e on e.account_id = a.id
    join plans p on p.name = e.plan
    where q.used > case length(q.period) when 10 then coalesce(p.day_limit, p.day_ceiling) else p.month_limit end
    limit 1`;
  if (over !== undefined)
    throw new InvariantViolation(`${over.email} used ${over.used} calls of ${over.allowed} in ${over.period}`);
  // one statement writes both, so they are equal at any time
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
 * Lists the rounds that a house still lists and that are not stored, from the first stored round of each table. Excludes
 * rounds within a jump of ids: so large a gap is given up and reported, since it is not fetched without an operator.
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
    const reportedJumps = jumps.filter((jump) => jump.house === house && jump.game === game);
    if (rounds.length === 0) missing.push(new InvariantViolation(`${house}/${game} has no rounds`));
    for (const round of table.rounds) {
      if (round.id < first || round.endsAtMs > untilMs || isLost(truth, table, round) || stored.has(round.id)) continue;
      if (reportedJumps.some(({ first: from, last }) => from <= round.id && round.id <= last)) continue;
      missing.push(new InvariantViolation(`round ${round.id} of ${house}/${game}`, { house, game, round: round.id }));
    }
  }
  return missing;
}
