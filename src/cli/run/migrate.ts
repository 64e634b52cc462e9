import { Command } from "commander";
import { loadSettings } from "../../config/environment.ts";
import { migrate, schemaState } from "../../db/migrate.ts";
import { UsageError } from "../../errors.ts";
import { requireSession } from "../../db/connections/pooler.ts";
import { examples } from "../arguments.ts";
import { print, printJson, say } from "../output.ts";
import { requireVariables } from "./deployment.ts";
import { findDirectUrl, reaching } from "../session.ts";

/** `roundhouse migrate`: applies the newest schema, for deployments with separate api and worker processes. */
export function migrateCommand(): Command {
  return new Command("migrate")
    .description(
      "migrate the database of DATABASE_URL to the newest schema; if another migration runs, it waits up to a minute",
    )
    .option("--dry-run", "list the migrations that the database lacks, and change nothing", false)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("migrate", "migrate --dry-run", "migrate --json"))
    .action(async ({ dryRun, json }: { dryRun: boolean; json: boolean }) => {
      const settings = loadSettings();
      const { DATABASE_URL } = requireVariables(settings, ["DATABASE_URL"]);
      const url = await findDirectUrl(settings, DATABASE_URL, { needsPooler: false });
      await reaching(url, () => requireSession(url));
      const names = dryRun ? await listPending(url) : await migrate(url, say);
      if (json) return printJson(dryRun ? { pending: names } : { migrated: names });
      await print(dryRun && names.length > 0 ? names.join("\n") : "the schema is up to date");
    });
}

async function listPending(url: string): Promise<string[]> {
  const { pending, other } = await schemaState(url);
  if (other !== null) throw new UsageError(`${other.found}; ${other.advice}`);
  return pending;
}
