import { Command } from "commander";
import { startHealthServer } from "../../http/health-server.ts";
import { loadSettings, type Settings } from "../../config/environment.ts";
import { createLog, type Log } from "../../log.ts";
import { createMetrics } from "../../metrics/metrics.ts";
import type { Workers } from "../../queue/worker.ts";
import { startTelemetry } from "../../telemetry.ts";
import { VERSION } from "../../version.ts";
import { commaList, examples } from "../arguments.ts";
import { requireVariables } from "./deployment.ts";
import { type Life, live } from "./life.ts";
import { print, printJson } from "../output.ts";
import { urlsOf } from "./part.ts";
import { readinessChecks } from "./readiness.ts";
import { findDirectUrl, requireDatabase } from "../session.ts";
import { openWorkConnections, readHousesFile, startWork } from "./work.ts";

/** Runs that are active at SIGTERM have this long to finish; what is aborted then is returned to the queue. */
const RUNS_END_WITHIN_MS = 20_000;
/** Includes the time to abort runs and close connections; below the 30 s of Kubernetes and docker-compose.yml. */
const STOP_WITHIN_MS = 28_000;

/** `roundhouse worker`: works on the queues; any number may run on one database and one Redis. */
export function workerCommand(): Command {
  return new Command("worker")
    .description("poll houses and work on the queues, with the servers of DATABASE_URL and REDIS_URL")
    .option("--queues <names>", "work only on these, separated by commas; `queue list` lists all", commaList)
    .option("--json", "print one line of JSON when it works", false)
    .addHelpText("after", examples("worker", "worker --queues poll-house,normalize-rounds"))
    .action(async ({ queues, json }: { queues?: string[]; json: boolean }) => {
      const settings = loadSettings();
      const given = requireVariables(settings, ["DATABASE_URL", "REDIS_URL"]);
      const log = createLog(settings.LOG_LEVEL, process.stderr.isTTY);
      await live(
        log,
        async (life) => {
          life.onStop(
            "telemetry",
            await startTelemetry(settings.OTEL_EXPORTER_OTLP_ENDPOINT, { part: "worker", version: VERSION, log }),
          );
          const url = await work(life, settings, { ...given, queues, log });
          await (json ? printJson({ event: "ready", url }) : print(url));
        },
        { stopWithinMs: STOP_WITHIN_MS },
      );
    });
}

async function work(
  life: Life,
  settings: Settings,
  given: { DATABASE_URL: string; REDIS_URL: string; queues: string[] | undefined; log: Log },
): Promise<string> {
  const { DATABASE_URL, REDIS_URL: redisUrl, queues, log } = given;
  if (settings.SMTP_URL !== undefined && settings.AUTH_SECRET === undefined) {
    log.warn(
      "AUTH_SECRET is not set: mails with links are sent only if this worker shares the data folder of the process that wrote them",
    );
  }
  const houses = readHousesFile(settings, log);
  await requireDatabase(await findDirectUrl(settings, DATABASE_URL));
  const urls = await urlsOf("worker", DATABASE_URL, settings, log);
  const { directUrl } = urls;
  const connections = openWorkConnections(life, urls);
  const { polling: sql } = connections;
  let working: Workers | null = null;
  const looked = { sql, queues: () => working?.queues ?? null };
  const metrics = createMetrics(looked, { version: VERSION, endpoints: [], log });
  const { workers } = await startWork(life, {
    settings,
    houses,
    queues,
    connections,
    redisUrl,
    metrics,
    log,
    runsEndWithinMs: RUNS_END_WITHIN_MS,
  });
  working = workers;
  const checks = readinessChecks({ sql, directUrl, redisUrl, workers });
  const health = await startHealthServer({ settings, version: VERSION, checks, metrics, log });
  life.ending.addEventListener("abort", () => health.draining());
  life.onStop("the health checks", () => health.close());
  return health.url;
}
