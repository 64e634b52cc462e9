import { setTimeout as delay } from "node:timers/promises";
import { Command } from "commander";
import { ENDPOINTS, startApi } from "../../serve/server.ts";
import { loadSettings, type Settings } from "../../config/environment.ts";
import type { Sql } from "../../db/client.ts";
import { createLog, type Log } from "../../log.ts";
import { createMetrics } from "../../metrics/metrics.ts";
import { startTelemetry } from "../../telemetry.ts";
import { VERSION } from "../../version.ts";
import { jobs } from "../../../jobs/index.ts";
import { startConsole } from "../../console/start.ts";
import { notifySurface } from "../../console/top-up/notify.ts";
import { startOps } from "../../ops/start.ts";
import { openQueues, type Queues } from "../../queue/queues.ts";
import { identityOf } from "../../db/facts.ts";
import { reasonOf, UsageError } from "../../errors.ts";
import { examples } from "../arguments.ts";
import { authSecret } from "../../config/auth-secret.ts";
import { carryOverSecret } from "./ops.ts";
import { requireVariables } from "./deployment.ts";
import { type Life, live } from "./life.ts";
import { print, printJson } from "../output.ts";
import { type PartUrls, urlsOf } from "./part.ts";
import { readinessChecks } from "./readiness.ts";
import { openServingConnections } from "./serving-connections.ts";
import { findDirectUrl, reaching, requireDatabase } from "../session.ts";

const REDIS_AGAIN_MS = 10_000;

/** `roundhouse api`: serves callers; any number may run on one database. */
export function apiCommand(): Command {
  return new Command("api")
    .description("serve callers from the database of DATABASE_URL, which workers fill")
    .option("--json", "print one line of JSON when it listens", false)
    .addHelpText("after", examples("api", "PORT=8080 HOST=0.0.0.0 roundhouse api").replace("roundhouse PORT", "PORT"))
    .action(async ({ json }: { json: boolean }) => {
      const settings = loadSettings();
      const { DATABASE_URL } = requireVariables(settings, ["DATABASE_URL"]);
      const log = createLog(settings.LOG_LEVEL, process.stderr.isTTY);
      await live(
        log,
        async (life) => {
          life.onStop(
            "telemetry",
            await startTelemetry(settings.OTEL_EXPORTER_OTLP_ENDPOINT, { part: "api", version: VERSION, log }),
          );
          const url = await serve(life, settings, DATABASE_URL, log);
          await (json ? printJson({ event: "ready", url }) : print(url));
        },
        { drainMs: settings.DRAIN_SECONDS * 1_000 },
      );
    });
}

async function serve(life: Life, settings: Settings, databaseUrl: string, log: ReturnType<typeof createLog>) {
  const directUrl = await findDirectUrl(settings, databaseUrl);
  await requireDatabase(directUrl);
  const [forApi, forOps, forConsole] = await Promise.all([
    urlsOf("api", databaseUrl, settings, log),
    urlsOf("ops", databaseUrl, settings, log),
    urlsOf("console", databaseUrl, settings, log),
  ]);
  const forReplica = await replicaUrls(settings, directUrl, log);
  const { sql, meter, opsSql, consoleSql, replica } = await openServingConnections(life, {
    forApi,
    forOps,
    forConsole,
    forReplica,
  });
  const checks = readinessChecks({ sql, directUrl, redisUrl: settings.REDIS_URL, workers: null });
  const { REDIS_URL: redisUrl } = settings;
  const queues = reachQueues(life, redisUrl, log);
  const metrics = createMetrics({ sql, queues }, { version: VERSION, endpoints: ENDPOINTS, log });
  await carryOverSecret([opsSql, consoleSql], settings, log);
  const ops = await openOps(life, { settings, sql: opsSql, directUrl: forOps.directUrl, queues, log });
  const secret = await authSecret(settings);
  const consoleSurface = startConsole({
    parts: { sql: consoleSql, settings, log },
    directUrl: forConsole.directUrl,
    secret,
  });
  life.onStop("the console", () => consoleSurface.close());
  const api = await startApi({
    sql,
    meter,
    replica: replica ?? undefined,
    directUrl: forApi.directUrl,
    redisUrl,
    settings,
    log,
    version: VERSION,
    checks,
    secret,
    metrics,
    surfaces: [ops, consoleSurface, notifySurface({ sql: consoleSql, settings, log: log })],
  });
  life.ending.addEventListener("abort", () => api.draining());
  life.onStop("the API", () => api.close());
  return api.url;
}

/**
 * The way to the replica of DATABASE_READ_URL; null if none is configured.
 * @throws UsageError if it is not a copy of the database of `primaryUrl`.
 */
async function replicaUrls(settings: Settings, primaryUrl: string, log: Log): Promise<PartUrls | null> {
  const { DATABASE_READ_URL: url } = settings;
  if (url === undefined) return null;
  const [ours, theirs] = await Promise.all([primaryUrl, url].map((one) => reaching(one, () => identityOf(one))));
  if (ours !== theirs) {
    throw new UsageError(
      `DATABASE_READ_URL: expected a replica of the database of DATABASE_URL, ${ours}, found ${theirs}; set it to one that replicates it, or to nothing`,
    );
  }
  return urlsOf("api", url, { ...settings, DATABASE_DIRECT_URL: undefined }, log);
}

/** The queues, read only: null until Redis is reachable. */
function reachQueues(life: Life, redisUrl: string | undefined, log: Log): () => Queues | null {
  let queues: Queues | null = null;
  if (redisUrl !== undefined) {
    void keepTrying(life, log, async () => {
      queues = await openQueues(jobs, redisUrl, log);
    });
  }
  life.onStop("the queues", async () => queues?.close());
  return () => queues;
}

/** Opens the operators' pages. */
async function openOps(
  life: Life,
  given: { settings: Settings; sql: Sql; directUrl: string; queues: () => Queues | null; log: Log },
) {
  const { settings, sql, directUrl, queues, log } = given;
  if (settings.AUTH_SECRET === undefined) {
    log.warn(
      "AUTH_SECRET is not set: sign-ins, second factors and ETags hold as long as the data folder, and in this process alone",
    );
  }
  const parts = {
    sql,
    get queues() {
      return queues();
    },
    liveWindowSeconds: settings.LIVE_WINDOW_SECONDS,
    settings,
    log,
  };
  const ops = startOps({ parts, directUrl, secret: await authSecret(settings), settings, printLink: null });
  life.onStop("the operators' view", () => ops.close());
  return ops;
}

async function keepTrying(life: Life, log: Log, work: () => Promise<void>): Promise<void> {
  while (!life.ending.aborted) {
    try {
      return await work();
    } catch (error) {
      log.warn(`/ops and /metrics show no queues until Redis is there: ${reasonOf(error)}`);
      // it rejects only when this process ends
      await delay(REDIS_AGAIN_MS, undefined, { signal: life.ending }).catch(() => undefined);
    }
  }
}
