import { NO_PASSES } from "../support/context.ts";
import { connect } from "../../src/db/client.ts";
import { loadSettings } from "../../src/config/environment.ts";
import { createLog } from "../../src/log.ts";
import type { Job } from "../../src/queue/job.ts";
import { startWorkers } from "../../src/queue/worker.ts";
import { makeJob, type Task } from "./world.ts";

const print = (line: string) => process.stdout.write(`${line}\n`);

/** Jobs a test gives to a worker process, by name. */
const JOBS: Record<string, Job<Task>> = {
  /** Prints "running" when its run has begun, and never ends. */
  doomed: makeJob({
    name: "doomed",
    timeoutMs: 60_000,
    async run() {
      print("running");
      return new Promise(() => undefined);
    },
  }),
  tick: makeJob({
    name: "tick",
    retry: { attempts: 1, firstMs: 0, maxMs: 0 },
    schedule: async () => [{ payload: { house: "alpha" }, everyMs: 100, offsetMs: 30 }],
  }),
};

/**
 * A worker process with one job of {@link JOBS}, for tests that kill or stop it. It prints "leads" and "does not lead"
 * when that changes.
 */
const [, , databaseUrl = "", redisUrl = "", name = ""] = process.argv;
const job = JOBS[name];
if (job === undefined) throw new Error(`expected one of ${Object.keys(JOBS).join(", ")} as the job, got ${name}`);
const workers = await startWorkers({
  jobs: [job],
  sql: connect(databaseUrl, { name: "child" }),
  passes: NO_PASSES,
  redisUrl,
  settings: loadSettings({}),
  variables: () => undefined,
  http: { fetch: () => Promise.reject(new Error("no house is asked here")), close: () => Promise.resolve() },
  log: createLog("silent", false),
  version: "0.0.0",
  onFatal: (error) => {
    throw error;
  },
  tickMs: 100,
});

let wasLeading = false;
setInterval(() => {
  const { leading } = workers.health();
  if (leading !== wasLeading) print(leading ? "leads" : "does not lead");
  wasLeading = leading;
}, 20);
