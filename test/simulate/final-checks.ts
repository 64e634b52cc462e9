import { setTimeout as delay } from "node:timers/promises";
import { verifyAudit } from "../../src/audit/verify.ts";
import { connect, type Sql } from "../../src/db/client.ts";
import { verify } from "../../src/verify/verify.ts";
import { checkLedger } from "../../src/ledger/check.ts";
import { PATHS } from "./check-responses.ts";
import { InvariantViolation } from "./invariant-violation.ts";
import type { Caller } from "./callers.ts";
import type { ManagedProcess } from "./processes.ts";
import { listMissing } from "./invariants.ts";
import { readTables } from "./read-tables.ts";
import type { Truth } from "./truth.ts";

const CHECK_EVERY_MS = 1_000;
/** APIs may need this long to show the newest stored rounds. */
const AGREE_WITHIN_MS = 30_000;

/**
 * Waits until every round that a house still lists is stored and every open gap has had its first attempt.
 * @throws InvariantViolation if rounds are still missing after the timeout
 */
export async function waitForMissingRounds(sql: Sql, truth: Truth, timeoutMs: number): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  let missing: InvariantViolation[] = [];
  do {
    await delay(CHECK_EVERY_MS);
    missing = await listMissing(sql, truth, truth.endMs);
    const [open] = await sql<{ n: number }[]>`
      select count(*)::integer as n
      from gaps
      where state = 'open'
        and attempts = 0`;
    if (missing.length === 0 && open?.n === 0) return;
  } while (Date.now() < deadline);
  const shown = missing.slice(0, 5).map(({ message }) => message);
  if (missing.length === 0) throw new InvariantViolation("an open gap had no attempt, although no round is missing");
  throw new InvariantViolation(
    `${missing.length} rounds that their house still lists are not stored: ${shown.join(", ")}`,
    missing[0]?.reference,
  );
}

/**
 * Checks the audit log and the ledger, and recomputes accuracy, scores and chains as `roundhouse verify` does. Returns
 * the number of scores.
 * @throws InvariantViolation at the first difference
 */
export async function verifyRecord(databaseUrl: string): Promise<number> {
  const sql = connect(databaseUrl, { name: "verify", max: 2, use: "bulk" });
  try {
    const audit = await verifyAudit(sql);
    if (audit.failure !== null) throw new InvariantViolation(`the audit log: ${JSON.stringify(audit.failure)}`);
    const ledger = await checkLedger(sql);
    if (!ledger.ok) throw new InvariantViolation(`the ledger: ${JSON.stringify(ledger.differences)}`);
    // rounds still arrive, so a score may not be stored yet
    for (let attempt = 0; ; attempt++) {
      const { ok, checked, first_failure: failure } = await verify(sql, {});
      if (ok) return checked.scores;
      if (attempt === 3) throw new InvariantViolation(`verify: ${JSON.stringify(failure)}`);
      await delay(2_000);
    }
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/**
 * Scores every forecast of a next color again, from the rounds that the houses played: it is settled by the first on-time
 * round after its cutoff, and its outcome is the color of that round.
 * @throws InvariantViolation at the first score that differs
 */
export async function checkOutcomes(sql: Sql, truth: Truth): Promise<void> {
  // scores are read first, so that every round that settled one is among the rounds read afterwards
  const scores = await sql<{ house: string; game: string; cutoff: number; settled: number; outcome: number }[]>`
    select
      t.house_id as house,
      t.game,
      f.cutoff_seq::float8 as cutoff,
      s.settled_seq::float8 as settled,
      s.outcome
    from scores s
    join forecasts f on f.table_id = s.table_id and f.seq = s.forecast_seq
    join tables t on t.id = s.table_id
    where s.status = 'scored'
      and s.feature_code = 0`;
  const stored = await readTables(sql, truth);
  for (const [{ house, game }, { rounds }] of stored) {
    for (const { cutoff, settled, outcome } of scores.filter((one) => one.house === house && one.game === game)) {
      const target = rounds.find(({ seq, late }) => seq > cutoff && !late);
      const reference = { house, game, round: target?.id ?? 0 };
      if (target?.seq !== settled) {
        const message = `the forecast of ${house}/${game} after seq ${cutoff} is settled by seq ${settled}; the next on-time round has seq ${target?.seq}`;
        throw new InvariantViolation(message, reference);
      }
      const color = target.hundredths < 200 ? 0 : target.hundredths < 1_000 ? 1 : 2;
      if (outcome === color) continue;
      throw new InvariantViolation(
        `round ${target.id} of ${house}/${game} is in band ${color} but scored as ${outcome}`,
        reference,
      );
    }
  }
}

/**
 * Checks that each call with status 200 is counted once, and that besides only calls with an unknown result may be.
 * @throws InvariantViolation for a caller whose count is wrong
 */
export async function checkCounts(sql: Sql, callers: readonly Caller[]): Promise<void> {
  for (const { email, served, cutOff, refused } of callers) {
    // a call whose count timed out is refused with 503, but may still have been counted
    const uncertain = cutOff + (refused.get("temporarily_unavailable") ?? 0);
    const [row] = await sql<{ used: number }[]>`
      select coalesce(sum(q.used), 0)::float8 as used
      from quotas q
      join accounts a on a.id = q.account_id
      where a.email = ${email}
        and length(q.period) = 7`;
    const used = row?.used ?? 0;
    if (used < served || used > served + uncertain) {
      throw new InvariantViolation(
        `${email} got ${served} responses, ${uncertain} calls were cut off or refused with 503, and ${used} calls are counted`,
      );
    }
  }
}

/**
 * Checks that the calls by key, endpoint and UTC day are the sums of the meter's facts.
 * @throws InvariantViolation at the first that is not
 */
export async function checkUsageCounts(sql: Sql): Promise<void> {
  const [wrong] = await sql<{ day: string; endpoint: string; facts: number; counts: number }[]>`
    with facts as (
      select account_id, (minute at time zone 'UTC')::date as day, key_id, endpoint, sum(n) as n
      from usage_facts
      group by 1, 2, 3, 4
    )
    select day::text, endpoint, coalesce(f.n, 0)::float8 as facts, coalesce(c.n, 0)::float8 as counts
    from facts f
    full join usage_counts c using (account_id, day, key_id, endpoint)
    where f.n is distinct from c.n
    limit 1`;
  if (wrong === undefined) return;
  const { day, endpoint, facts, counts } = wrong;
  throw new InvariantViolation(
    `calls of ${endpoint} on ${day} are counted as ${counts}, and the meter's facts are ${facts}`,
  );
}

/**
 * Checks that all APIs return the same, with the newest stored rounds, once no more rounds end.
 * @throws InvariantViolation if they do not agree within 30 s
 */
export async function checkApisAgree(
  sql: Sql,
  truth: Truth,
  { apis, caller: { key } }: { apis: readonly ManagedProcess[]; caller: Caller },
): Promise<void> {
  const deadline = Date.now() + AGREE_WITHIN_MS;
  for (;;) {
    const difference = await findDifference();
    if (difference === null) return;
    if (Date.now() > deadline) throw new InvariantViolation(difference);
    await delay(CHECK_EVERY_MS);
  }

  async function findDifference(): Promise<string | null> {
    const urls = apis.map((api) => api.url() ?? "");
    const missing = urls.indexOf("");
    if (missing !== -1) return `${apis[missing]?.name} is not ready`;
    for (const path of PATHS) {
      const responses = await Promise.all(urls.map((url) => request(url, path)));
      const [first] = responses;
      const other = responses.findIndex((one) => one !== first);
      if (first === undefined || other === -1) continue;
      const at = [...first].findIndex((letter, place) => letter !== responses[other]?.[place]);
      const [one, two] = [first, responses[other] ?? ""].map((text) => text.slice(Math.max(0, at - 60), at + 60));
      return `${apis[0]?.name} and ${apis[other]?.name} respond to /${path} differently: ${one} and ${two}`;
    }
    const newest = newestShown(await request(urls[0] ?? "", "rounds?limit=20"));
    for (const [{ house, game }, { rounds }] of await readTables(sql, truth)) {
      const id = Math.max(...rounds.map((round) => round.id));
      const shown = newest.get(`${house}/${game}`);
      if (shown !== id) return `/rounds shows ${shown} as the newest round of ${house}/${game}, but ${id} is stored`;
    }
    return null;
  }

  async function request(url: string, path: string): Promise<string> {
    const response = await fetch(`${url}/api/v1/${path}`, { headers: { "x-api-key": key } });
    return response.text();
  }
}

function newestShown(text: string): Map<string, number> {
  const { tables = [] } = JSON.parse(text) as {
    tables?: { house: string; game: string; rounds: { round_id: string }[] }[];
  };
  return new Map(tables.map(({ house, game, rounds: [first] }) => [`${house}/${game}`, Number(first?.round_id)]));
}
