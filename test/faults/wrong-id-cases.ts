import { setTimeout as delay } from "node:timers/promises";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import { generateRounds, type TrueTable } from "../simulate/truth.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import { NotReached } from "./locks.ts";
import type { Testbed } from "./testbed.ts";

const LASTS_MS = 40_000;
const MAX_LATE = 3;
/** A round may end between the response of the API and the comparison, and another one may not be polled yet. */
const MAX_BEHIND = 2;
const HOUSE = "h1";

/** After one response with an id 9,000,000 ahead, the true rounds must still be shown as the newest. */
export const WRONG_ID_CASES: readonly FaultCase[] = [
  {
    name: "one wrong id, 9,000,000 ahead",
    targetSeconds: TARGET_SECONDS.stillPresent,
    from: "beginning",
    async run(testbed) {
      const { truth, sql } = testbed;
      const fromMs = Date.now();
      truth.houseFaults.set(HOUSE, [{ kind: "ahead", number: fromMs, fromMs, toMs: fromMs + LASTS_MS }]);
      await delay(LASTS_MS);
      truth.houseFaults.set(HOUSE, []);
      const [quarantined] = await sql<{ n: number }[]>`
        select count(distinct q.table_id)::integer as n
        from quarantine q
        join tables t on t.id = q.table_id
        where t.house_id = ${HOUSE}
          and q.code = 'far_ahead'
          and q.first_seen_at > to_timestamp(${fromMs / 1_000}::float8)`;
      const tables = truth.tables.filter(({ house }) => house === HOUSE);
      const count = quarantined?.n ?? 0;
      if (count === 0) throw new InvariantViolation("no table quarantined a wrong id");
      if (count < tables.length) throw new NotReached(`${count} of ${tables.length} tables quarantined a wrong id`);
      const late = await countLate(testbed, fromMs);
      if (late > MAX_LATE) throw new InvariantViolation(`${late} rounds of a table were late after one wrong id`);
      for (const table of tables) await checkShown(testbed, table);
      return { fromMs, observed: `${late} rounds late at most; the newest true rounds and the next id are shown` };
    },
  },
];

/** The largest number of late rounds of a table of the house since `fromMs`. */
async function countLate({ sql }: Testbed, fromMs: number): Promise<number> {
  const [row] = await sql<{ most: number }[]>`
    select coalesce(max(n), 0)::integer as most
    from (
      select count(*) as n
      from rounds r
      join tables t on t.id = r.table_id
      where t.house_id = ${HOUSE}
        and r.late
        and r.received_at > to_timestamp(${fromMs / 1_000}::float8)
      group by r.table_id
    ) of_tables`;
  return row?.most ?? 0;
}

/** Compares what the API shows of a table with the rounds that were played. */
async function checkShown(testbed: Testbed, table: TrueTable): Promise<void> {
  const { house, game } = table;
  const isOfTable = (one: { house: string; game: string }) => one.house === house && one.game === game;
  const rounds = (await testbed.request<RoundsResponse>("rounds?limit=5")).tables.find(isOfTable);
  const forecast =
    (await testbed.request<ForecastsResponse>("forecasts")).forecasts.find(isOfTable)?.next_color ?? null;
  generateRounds(testbed.truth, table, Date.now());
  const newest = table.rounds.at(-1)?.id ?? 0;
  const shown = Number(rounds?.rounds[0]?.round_id);
  if (!(shown <= newest && shown >= newest - MAX_BEHIND)) {
    throw new InvariantViolation(`/rounds shows ${shown} as the newest round of ${house}/${game}, but ${newest} is`, {
      house,
      game,
      round: newest,
    });
  }
  if (forecast === null) return; // its round has begun
  const [after, target] = [Number(forecast.after_round_id), Number(forecast.target_round_id)];
  if (target !== after + 1 || after < newest - MAX_BEHIND || after > newest) {
    throw new InvariantViolation(
      `the forecast after round ${after} of ${house}/${game} is of round ${target}; ${newest} is the newest`,
    );
  }
}

interface RoundsResponse {
  tables: { house: string; game: string; rounds: { round_id: string }[] }[];
}

interface ForecastsResponse {
  forecasts: {
    house: string;
    game: string;
    next_color: { after_round_id: string; target_round_id: string | null } | null;
  }[];
}
