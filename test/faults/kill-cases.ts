import { setTimeout as delay } from "node:timers/promises";
import { requestManualRun } from "../../src/calibration/manual-request.ts";
import { K7_1 } from "../../src/forecasts/model/parameters.ts";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import { blockMeter, blockWriters, type Step } from "./locks.ts";
import type { Testbed } from "./testbed.ts";

/** Processes that are killed or terminated in the middle of a step. */
export const KILL_CASES: readonly FaultCase[] = [
  {
    name: "kill -9 of one of two workers",
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "beginning",
    async run({ workers }) {
      const fromMs = Date.now();
      await workers[0]?.kill();
      return { fromMs };
    },
  },
  { ...killMidStep("payloads", "kill -9 mid-poll"), isShort: true },
  killMidStep("rounds", "kill -9 mid-ingest"),
  killMidStep("forecast_sets", "kill -9 mid-issue"),
  killMidStep("score_sets", "kill -9 mid-score"),
  {
    name: "kill -9 mid-calibration",
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "beginning",
    async run(testbed) {
      const run = await requestReplay(testbed);
      const fromMs = await killAllMidStep(testbed, "calibrations");
      await waitForStatus(testbed, run, "done");
      const records = await testbed.sql`
        select
        from calibrations c
        join calibration_runs r on r.calibration_id = c.id
        where r.id = ${run}`;
      if (records.length !== 1)
        throw new InvariantViolation(`run ${run} was killed once and left ${records.length} records`);
      return { fromMs, observed: "the run continued and left one record" };
    },
  },
  {
    name: "a run that kills every worker",
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "beginning",
    async run(testbed) {
      const run = await requestReplay(testbed);
      let fromMs = Date.now();
      let kills = 0;
      for (; kills < MAX_KILLS && (await statusOf(testbed, run)) !== "failed"; kills++) {
        const lock = await blockReplay(testbed, run);
        if (lock === null) continue;
        fromMs = Date.now();
        await Promise.all(testbed.workers.map((worker) => worker.kill()));
        await lock.release();
      }
      await waitForStatus(testbed, run, "failed");
      return { fromMs, observed: `given up after ${kills} kills` };
    },
  },
  {
    name: "SIGTERM mid-score",
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "beginning",
    async run(testbed) {
      const lock = await blockWriters(testbed.sql, "score_sets");
      const fromMs = Date.now();
      const [first, ...others] = testbed.workers;
      const stopping = first?.stop();
      await delay(1_000);
      await lock.release();
      const code = await stopping;
      testbed.workers.splice(0, testbed.workers.length, ...others, await testbed.begin(`worker-${fromMs}`, ["worker"]));
      if (code !== 0) throw new InvariantViolation(`a worker exited with code ${code} after SIGTERM, expected 0`);
      return { fromMs, observed: "exit code 0" };
    },
  },
  {
    name: "kill -9 of the API mid-batch",
    targetSeconds: null,
    from: "beginning",
    isShort: true,
    async run({ sql, api, caller }) {
      const lock = await blockMeter(sql, caller.email);
      const fromMs = Date.now();
      await api.kill();
      await lock.release();
      while (api.url() === null) await delay(50);
      return { fromMs, observed: `responds again after ${((Date.now() - fromMs) / 1_000).toFixed(1)} s` };
    },
  },
];

const MAX_KILLS = 8;
const RUN_TIMEOUT_MS = 120_000;
/** A run whose worker was killed is resumed after a minute without a heartbeat. */
const RESUMED_WITHIN_MS = 180_000;

/** Kills every worker while at least one of them is in the middle of a step. */
function killMidStep(step: Step, name: string): FaultCase {
  return {
    name,
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "beginning",
    run: async (testbed) => ({ fromMs: await killAllMidStep(testbed, step) }),
  };
}

async function killAllMidStep({ sql, workers }: Testbed, step: Step): Promise<number> {
  const lock = await blockWriters(sql, step);
  const fromMs = Date.now();
  await Promise.all(workers.map((worker) => worker.kill()));
  await lock.release();
  return fromMs;
}

/** Requests a replay of all rounds of the first table, as an operator does at /ops. */
async function requestReplay({ sql }: Testbed): Promise<string> {
  const [table] = await sql<{ id: number; name: string }[]>`
    select id, house_id || '/' || game || '/' || market as name
    from tables
    order by id
    limit 1`;
  if (table === undefined) throw new Error("expected a table to replay, found none");
  return requestManualRun(sql, {
    tableId: table.id,
    table: table.name,
    from: undefined,
    to: undefined,
    parameters: K7_1,
    thresholds: null,
    outFile: null,
    order: { by: "faults", why: "its worker will be killed", parent: null },
  });
}

/** Blocks the workers in a replay; null if the run ended before. */
async function blockReplay(testbed: Testbed, run: string) {
  const lock = await blockWriters(testbed.sql, "calibrations", {
    timeoutMs: RESUMED_WITHIN_MS,
    isOver: async () => (await statusOf(testbed, run)) === "failed",
  });
  if ((await statusOf(testbed, run)) === "running") return lock;
  await lock.release();
  return null;
}

async function statusOf({ sql }: Testbed, run: string): Promise<string> {
  const [row] = await sql<{ status: string }[]>`select status from calibration_runs where id = ${run}`;
  return row?.status ?? "missing";
}

async function waitForStatus(testbed: Testbed, run: string, expected: string): Promise<void> {
  let status = "";
  for (const until = Date.now() + RUN_TIMEOUT_MS; Date.now() < until; await delay(250)) {
    status = await statusOf(testbed, run);
    if (status === expected) return;
  }
  throw new InvariantViolation(`expected run ${run} to become ${expected}, found ${status}`);
}
