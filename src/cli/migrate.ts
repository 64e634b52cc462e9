import { Command } from "commander";
import { loadSettings } from "../config.ts";
import { migrate } from "../db/migrate.ts";
import { requireSession } from "../db/pooler.ts";
import { examples } from "./arguments.ts";
import { print, say } from "./output.ts";
import { requireVariables } from "./deployment.ts";
import { reaching } from "./session.ts";

/** `roundhouse migrate`: the newest schema, for deployments where api and worker are separate processes. */
export function migrateCommand(): Command {
  return new Command("migrate")
    .description("bring the database of DATABASE_URL to the newest schema; any number may run at once")
    .addHelpText("after", examples("migrate"))
    .action(async () => {
      const settings = loadSettings();
      const { DATABASE_URL } = requireVariables(settings, ["DATABASE_URL"]);
      const url = settings.DATABASE_DIRECT_URL ?? DATABASE_URL;
      await reaching(url, async () => {
        await requireSession(url);
        await migrate(url, say);
      });
      await print("the schema is up to date");
    });
}
