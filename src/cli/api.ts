import { Command } from "commander";
import { startApi } from "../api/server.ts";
import { loadSettings, type Settings } from "../config.ts";
import { connect } from "../db/client.ts";
import { createLog } from "../log.ts";
import { VERSION } from "../version.ts";
import { examples } from "./arguments.ts";
import { requireVariables } from "./deployment.ts";
import { type Life, live } from "./life.ts";
import { print, printJson } from "./output.ts";
import { readinessChecks } from "./readiness.ts";
import { requireDatabase } from "./session.ts";

/** `roundhouse api`: answers callers; any number may run on one database. */
export function apiCommand(): Command {
  return new Command("api")
    .description("answer callers from the database of DATABASE_URL; workers fill it")
    .option("--json", "print one line of JSON when it listens", false)
    .addHelpText("after", examples("api", "PORT=8080 HOST=0.0.0.0 roundhouse api").replace("roundhouse PORT", "PORT"))
    .action(async ({ json }: { json: boolean }) => {
      const settings = loadSettings();
      const { DATABASE_URL } = requireVariables(settings, ["DATABASE_URL"]);
      const log = createLog(settings.LOG_LEVEL, process.stderr.isTTY);
      await live(log, async (life) => {
        const url = await serve(life, settings, DATABASE_URL, log);
        await (json ? printJson({ event: "ready", url }) : print(url));
      });
    });
}

async function serve(life: Life, settings: Settings, databaseUrl: string, log: ReturnType<typeof createLog>) {
  const directUrl = settings.DATABASE_DIRECT_URL ?? databaseUrl;
  await requireDatabase(directUrl);
  const sql = connect(databaseUrl, { name: "api", pooled: settings.DATABASE_DIRECT_URL !== undefined });
  life.onStop("the connections to the database", () => sql.end({ timeout: 2 }));
  const checks = readinessChecks({ sql, directUrl, redisUrl: settings.REDIS_URL, workers: null });
  const { REDIS_URL: redisUrl } = settings;
  const api = await startApi({ sql, directUrl, redisUrl, settings, log, version: VERSION, checks });
  life.ending.addEventListener("abort", () => api.draining());
  life.onStop("the API", () => api.close());
  return api.url;
}
