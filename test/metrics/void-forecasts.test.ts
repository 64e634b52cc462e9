import { Registry } from "prom-client";
import { expect, it } from "vitest";
import scoreAccuracy from "../../jobs/score-accuracy.ts";
import { reviseRound } from "../../src/corrections/revision.ts";
import { measureJobs } from "../../src/metrics/job-metrics.ts";
import { createWorld, type World } from "../forecasts/world.ts";
import { timesFrom } from "../support/passes.ts";
import { testContext } from "../support/context.ts";
import { readScrape } from "./scraped.ts";

const REASONS = ["gap", "late", "conflict", "impossible", "operator"];

/** Runs score-accuracy and reports it to the metrics as a worker does. */
function createMeasured({ sql, house, tableId }: World) {
  const registry = new Registry();
  const ran = measureJobs(registry);
  const scrape = async () => readScrape(await registry.metrics());
  return {
    async scoreAccuracy() {
      await sql`update accuracy_marks set updated_at = updated_at - interval '10 seconds' where table_id = ${tableId}`;
      const counts = await scoreAccuracy.run({ house }, testContext(sql).context);
      ran({ queue: "score-accuracy", outcome: "done", seconds: 0.1, counts });
    },
    /** The metric by reason. */
    async voids(): Promise<Record<string, number | undefined>> {
      const { value } = await scrape();
      return Object.fromEntries(
        REASONS.map((reason) => [reason, value(`roundhouse_forecasts_void_total{reason="${reason}"}`)]),
      );
    },
    async results() {
      return [...(await scrape()).samples.keys()].filter((key) => key.startsWith("roundhouse_job_results_total"));
    },
  };
}

/** The void forecasts of a table by reason, as they are stored. */
async function storedVoids({ sql, tableId }: World): Promise<Record<string, number>> {
  const rows = await sql<{ reason: number; n: number }[]>`
    select reason, count(*)::integer as n
    from (
      select unnest(reasons) as reason
      from score_sets
      where table_id = ${tableId}
      union all
      select reason
      from score_revisions
      where table_id = ${tableId}
    ) scores
    where reason > 0
    group by reason`;
  return Object.fromEntries(
    REASONS.map((name, place) => [name, rows.find(({ reason }) => reason === place + 1)?.n ?? 0]),
  );
}

it("counts each forecast once that a gap, a late request, a second result or an operator voids", async () => {
  const world = await createWorld();
  const measured = createMeasured(world);
  const none = { gap: 0, late: 0, conflict: 0, impossible: 0, operator: 0 };
  expect(await measured.voids()).toEqual(none);

  for (const hundredths of [150, 230]) await world.play([hundredths]);
  await measured.scoreAccuracy();
  expect(await measured.voids()).toEqual(none);

  await world.play([{ hundredths: 1200, afterGap: true }]);
  await measured.scoreAccuracy();
  expect(await measured.voids()).toEqual({ ...none, gap: 10 });

  await world.play([150]);
  await world.play([{ roundId: "1005", hundredths: 1300 }]);
  await world.play([180]);
  await world.sql.begin((tx) =>
    reviseRound(tx, { tableId: world.tableId, roundId: "1006" }, { by: "ann", reason: "it was cancelled", to: null }),
  );
  // the second round is requested 5 ms before the forecast after the first is issued
  const [first, second] = [timesFrom(Date.now() + 1000, 1), timesFrom(Date.now() + 1055, 1)];
  await world.play([190], world.tableId, { times: first });
  await world.play([210], world.tableId, { times: second });
  await measured.scoreAccuracy();

  const voids = await measured.voids();
  expect(voids).toEqual(await storedVoids(world));
  expect(REASONS.filter((reason) => (voids[reason] ?? 0) > 0)).toEqual(["gap", "late", "conflict", "operator"]);

  await measured.scoreAccuracy();
  expect(await measured.voids()).toEqual(voids);
  expect((await measured.results()).filter((key) => key.includes("void_"))).toEqual([]);
});
