import { Command } from "commander";
import { readCoverage } from "../accuracy/measured-store.ts";
import { type ListedTable, listTables } from "../rounds/listed-table-store.ts";
import { examples } from "./arguments.ts";
import { coloredStatus, printJson, printTable, shortTime } from "./output.ts";
import { withDatabase } from "./session.ts";

/** `roundhouse table …`: every table and how it is doing. */
export function tableCommand(): Command {
  const command = new Command("table").description("the tables: one house, game and market each");
  command
    .command("list")
    .description("each table: its status, newest round, rounds, unfilled gaps and the share of rounds with a forecast")
    .option("--json", "print a JSON array", false)
    .addHelpText("after", examples("table list", "table list --json"))
    .action(({ json }: { json: boolean }) =>
      withDatabase(async ({ sql, settings }) => {
        const coverage = await readCoverage(sql);
        const tables = (await listTables(sql, settings.LIVE_WINDOW_SECONDS)).map((table) => ({
          ...table,
          coverage: coverage.get(table.table) ?? null,
        }));
        return json ? printJson(tables) : showTables(tables);
      }),
    );
  return command;
}

async function showTables(tables: (ListedTable & { coverage: number | null })[]): Promise<void> {
  await printTable(
    ["table", "status", "newest round", "lag", "rounds", "gaps", "coverage"],
    tables.map((table) => [
      table.simulated ? `${table.table} (simulated)` : table.table,
      coloredStatus(table.status),
      shortTime(table.last_round_at),
      table.lag_seconds === null ? null : `${table.lag_seconds} s`,
      table.rounds,
      table.gaps,
      table.coverage === null ? null : `${(table.coverage * 100).toFixed(1)} %`,
    ]),
  );
}
