import { connect } from "../../src/db/client.ts";
import { loadSettings } from "../../src/config.ts";
import { createLog } from "../../src/log.ts";
import { startWorkers } from "../../src/queue/worker.ts";
import { makeJob } from "./world.ts";

/** A worker process that says "running" when its one run has begun, and then waits to be killed. */
const [, , databaseUrl = "", redisUrl = ""] = process.argv;
await startWorkers({
  jobs: [
    makeJob({
      name: "doomed",
      timeoutMs: 60_000,
      async run() {
        process.stdout.write("running\n");
        return new Promise(() => undefined);
      },
    }),
  ],
  sql: connect(databaseUrl, { name: "doomed" }),
  directUrl: databaseUrl,
  redisUrl,
  settings: loadSettings({}),
  variables: () => undefined,
  http: { fetch: () => Promise.reject(new Error("no house is asked here")), close: () => Promise.resolve() },
  log: createLog("silent", false),
  version: "0.0.0",
  onFatal: (error) => {
    throw error;
  },
});
