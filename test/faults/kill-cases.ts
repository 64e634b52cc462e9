import { setTimeout as delay } from "node:timers/promises";
import { requestManualRun } from "../../src/calibration/manual-calibration.ts";
import { K7_1 } from "../../src/forecasts/model/parameters.ts";
import { Broken } from "../simulate/invariant-violation.ts";
import { ASKED, type FaultCase } from "./case.ts";
import { holdMeter, holdWriters, type Step } from "./locks.ts";
import type { World } from "./testbed.ts";

/** Processes that are killed, or asked to end, in the middle of what they do. */
export const KILL_CASES: readonly FaultCase[] = [
  {
    name: "kill -9 of one of two workers",
    askedSeconds: ASKED.workerKilled,
    from: "beginning",
    async run({ workers }) {
      const fromMs = Date.now();
      await workers[0]?.kill();
      return { fromMs };
    },
  },
  { ...killIn("payloads", "kill -9 mid-poll"), isShort: true },
  killIn("rounds", "kill -9 mid-ingest"),
  killIn("forecast_sets", "kill -9 mid-issue"),
  killIn("score_sets", "kill -9 mid-score"),
  {
    name: "kill -9 mid-calibration",
    askedSeconds: ASKED.workerKilled,
    from: "beginning",
    async run(world) {
      const run = await askForReplay(world);
      const fromMs = await killMeanwhile(world, "calibrations");
      await endOf(world, run, "done");
      const records = await world.sql`
        select
        from calibrations c
        join calibration_runs r on r.calibration_id = c.id
        where r.id = ${run}`;
      if (records.length !== 1) throw new Broken(`run ${run} was killed once and left ${records.length} records`);
      return { fromMs, seen: "the run went on and left one record" };
    },
  },
  {
    name: "a run that takes down every worker",
    askedSeconds: ASKED.workerKilled,
    from: "beginning",
    async run(world) {
      const run = await askForReplay(world);
      let fromMs = Date.now();
      let kills = 0;
      for (; kills < MOST_KILLS && (await statusOf(world, run)) !== "failed"; kills++) {
        const hold = await holdReplay(world, run);
        if (hold === null) continue;
        fromMs = Date.now();
        await Promise.all(world.workers.map((worker) => worker.kill()));
        await hold.release();
      }
      await endOf(world, run, "failed");
      return { fromMs, seen: `given up after ${kills} workers` };
    },
  },
  {
    name: "SIGTERM mid-score",
    askedSeconds: ASKED.workerKilled,
    from: "beginning",
    async run(world) {
      const hold = await holdWriters(world.sql, "score_sets");
      const fromMs = Date.now();
      const [first, ...others] = world.workers;
      const stopping = first?.stop();
      await delay(1_000);
      await hold.release();
      const code = await stopping;
      world.workers.splice(0, world.workers.length, ...others, await world.begin(`worker-${fromMs}`, ["worker"]));
      if (code !== 0) throw new Broken(`a worker that was asked to end left with exit code ${code}`);
      return { fromMs, seen: "left with exit code 0" };
    },
  },
  {
    name: "kill -9 of the API mid-batch",
    askedSeconds: null,
    from: "beginning",
    isShort: true,
    async run({ sql, api, caller }) {
      const hold = await holdMeter(sql, caller.email);
      const fromMs = Date.now();
      await api.kill();
      await hold.release();
      while (api.url() === null) await delay(50);
      return { fromMs, seen: `answers again after ${((Date.now() - fromMs) / 1_000).toFixed(1)} s` };
    },
  },
];

const MOST_KILLS = 8;
const RUN_PATIENCE_MS = 120_000;
/** A run whose worker is gone is taken up again once it was not heard of for a minute. */
const TAKEN_UP_WITHIN_MS = 180_000;

/** Every worker is killed while at least one of them is in the middle of a step. */
function killIn(step: Step, name: string): FaultCase {
  return {
    name,
    askedSeconds: ASKED.workerKilled,
    from: "beginning",
    run: async (world) => ({ fromMs: await killMeanwhile(world, step) }),
  };
}

async function killMeanwhile({ sql, workers }: World, step: Step): Promise<number> {
  const hold = await holdWriters(sql, step);
  const fromMs = Date.now();
  await Promise.all(workers.map((worker) => worker.kill()));
  await hold.release();
  return fromMs;
}

/** Asks, as a person at /ops does, for a replay of all that the first table has. */
async function askForReplay({ sql }: World): Promise<string> {
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
    order: { by: "faults", why: "to be killed", parent: null },
  });
}

/** Null where the run ended before anybody could be stopped in it. */
async function holdReplay(world: World, run: string) {
  const hold = await holdWriters(world.sql, "calibrations", {
    patienceMs: TAKEN_UP_WITHIN_MS,
    isOver: async () => (await statusOf(world, run)) === "failed",
  });
  if ((await statusOf(world, run)) === "running") return hold;
  await hold.release();
  return null;
}

async function statusOf({ sql }: World, run: string): Promise<string> {
  const [row] = await sql<{ status: string }[]>`select status from calibration_runs where id = ${run}`;
  return row?.status ?? "gone";
}

async function endOf(world: World, run: string, expected: string): Promise<void> {
  let status = "";
  for (const until = Date.now() + RUN_PATIENCE_MS; Date.now() < until; await delay(250)) {
    status = await statusOf(world, run);
    if (status === expected) return;
  }
  throw new Broken(`run ${run} should have ended as ${expected}, and is ${status}`);
}
