import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { InvariantViolation } from "../simulate/invariant-violation.ts";
import { TARGET_SECONDS, type FaultCase } from "./case.ts";
import type { Testbed } from "./testbed.ts";

const SKEW_MS = 60_000;
const PRELOAD = new URL("../simulate/preload-process.ts", import.meta.url).href;
const START = join(import.meta.dirname, "../../src/start.js");

/** Workers with a wrong clock, or without a leader. */
export const WORKER_CASES: readonly FaultCase[] = [
  {
    name: "the leader of two workers is deposed",
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "beginning",
    async run({ sql, servers }) {
      const fromMs = Date.now();
      await servers.deposeLeader();
      const seconds = await untilLed(sql, fromMs);
      return { fromMs, observed: `a new leader after ${seconds.toFixed(1)} s` };
    },
  },
  {
    name: "a worker that starts with its clock 60 s ahead",
    targetSeconds: TARGET_SECONDS.workerKilled,
    from: "beginning",
    async run(testbed) {
      const fromMs = Date.now();
      const { code, output } = await startAhead(testbed);
      if (code === 0 || code === null || !output.includes("clock")) {
        throw new InvariantViolation(
          `expected a worker whose clock is 60 s ahead to refuse to start, found exit code ${code}: ${output}`,
        );
      }
      return { fromMs, observed: `it refused with exit code ${code}` };
    },
  },
  {
    name: "a worker whose clock jumps 60 s ahead",
    targetSeconds: null,
    from: "end",
    async run(testbed) {
      const [worker] = testbed.workers;
      const beganMs = Date.now();
      worker?.setClock(SKEW_MS);
      try {
        for (; !(await isNoticed(testbed, worker?.pid() ?? 0)); await delay(250)) {
          if (Date.now() > beganMs + 90_000)
            throw new InvariantViolation("a clock that is 60 s ahead was not reported within 90 s");
        }
      } finally {
        worker?.setClock(0);
      }
      const noticedMs = Date.now();
      const silence = testbed.polls.longestSilence(beganMs, noticedMs, testbed.houses);
      const noticed = ((noticedMs - beganMs) / 1_000).toFixed(0);
      return {
        fromMs: noticedMs,
        observed: `reported after ${noticed} s; until then silent for ${silence.toFixed(1)} s at most`,
      };
    },
  },
];

/** Starts a worker whose clock is ahead, and waits until it exits. */
async function startAhead({ folder, env }: Testbed): Promise<{ code: number | null; output: string }> {
  const { PATH = "", HOME = "" } = process.env;
  const own = { DATA_DIR: join(folder, "ahead"), WORKER_PORT: "0", SIMULATED_CLOCK_MS: String(SKEW_MS) };
  const started = spawn(process.execPath, ["--import", PRELOAD, START, "worker"], {
    cwd: folder,
    env: { PATH, HOME, ...env, ...own },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  let output = "";
  started.stderr?.setEncoding("utf8").on("data", (text: string) => (output += text));
  const late = setTimeout(() => started.kill("SIGKILL"), 60_000);
  const [code] = (await once(started, "exit")) as [number | null];
  clearTimeout(late);
  return { code, output };
}

async function untilLed(sql: Testbed["sql"], fromMs: number): Promise<number> {
  for (const until = fromMs + 60_000; Date.now() < until; await delay(50)) {
    const [row] = await sql<{ at: number }[]>`
      select extract(epoch from at)::float8 * 1000 as at
      from heartbeats
      where name = 'reconcile'`;
    if (row !== undefined && row.at > fromMs) return (row.at - fromMs) / 1_000;
  }
  throw new InvariantViolation("60 s after the leader was deposed no worker leads");
}

async function isNoticed({ sql }: Testbed, pid: number): Promise<boolean> {
  const rows = await sql`
    select
    from workers
    where pid = ${pid}
      and clock_problem is not null`;
  return rows.length > 0;
}
