import { Command, Option } from "commander";
import { type Reader, withReader } from "../../db/reader.ts";
import { csvField, spreadsheetField } from "../../csv.ts";
import {
  FORECAST_COLUMNS,
  readForecastsForExport,
  readScoresForExport,
  SCORE_COLUMNS,
} from "../../forecasts/chain/export-store.ts";
import { readRoundsForExport, ROUND_COLUMNS } from "../../rounds/lists/export-store.ts";
import { examples, tableName } from "../arguments.ts";
import { proofCommand } from "./export-proof.ts";
import { print, say } from "../output.ts";
import { withDatabase } from "../session.ts";
import { findTableByName } from "../table-name.ts";

/** `roundhouse export …`: rounds, forecasts and scores of a table as CSV, and the proof of a forecast. */
export function exportCommand(): Command {
  const command = new Command("export")
    .description("write stored rows to stdout, so that anyone can check them")
    .addHelpText("after", examples("export rounds --table bustabit/crash/global > rounds.csv", "export proof f1-345"));
  addExport(command, "rounds", {
    description: "every round of a table in the order of its chain (seq)",
    columns: ROUND_COLUMNS,
    read: readRoundsForExport,
  });
  addExport(command, "forecasts", {
    description: "every forecast of a table in the order of its chain, with its newest score",
    columns: FORECAST_COLUMNS,
    read: readForecastsForExport,
  });
  addExport(command, "scores", {
    description: "every score and revision of a table in the order of its chain",
    columns: SCORE_COLUMNS,
    read: readScoresForExport,
  });
  command.addCommand(proofCommand());
  return command;
}

type Format = "csv" | "jsonl";

/** An export: its columns, and its rows by page. */
interface Exported<Column extends string> {
  columns: readonly Column[];
  read: (read: Reader, tableId: number) => AsyncIterable<Record<Column, string>[]>;
}

function addExport<Column extends string>(
  command: Command,
  what: string,
  { description, ...exported }: Exported<Column> & { description: string },
): void {
  command
    .command(what)
    .description(description)
    .requiredOption("--table <house/game/market>", "the table", tableName)
    .addOption(
      new Option("--format <format>", "CSV, or one JSON object per line").choices(["csv", "jsonl"]).default("csv"),
    )
    .addOption(new Option("--json", "the same as --format jsonl").implies({ format: "jsonl" }))
    .option("--raw", "in CSV, put no apostrophe before texts that a spreadsheet would run as formulas", false)
    .addHelpText(
      "after",
      examples(
        `export ${what} --table bustabit/crash/global --format csv > ${what}.csv`,
        `export ${what} --table bustabit/crash/global | head -5`,
      ),
    )
    .action(({ table, format, raw }: { table: string; format: Format; raw: boolean }) =>
      exportTable(table, what, { format, raw }, exported),
    );
}

async function exportTable<Column extends string>(
  name: string,
  what: string,
  { format, raw }: { format: Format; raw: boolean },
  { columns, read }: Exported<Column>,
): Promise<void> {
  const fieldOf = raw ? csvField : spreadsheetField;
  const lineOf = {
    csv: (row: Record<Column, string>) => columns.map((column) => fieldOf(row[column])).join(","),
    jsonl: (row: Record<Column, string>) => JSON.stringify(row, [...columns]),
  }[format];
  await withDatabase(async ({ sql, databaseUrl, settings }) => {
    const table = await findTableByName(sql, name);
    if (format === "csv") await print(columns.join(","));
    const rows = await withReader(settings.DATABASE_DIRECT_URL ?? databaseUrl, async (reader) => {
      let written = 0;
      for await (const page of read(reader, table.id)) {
        await print(page.map(lineOf).join("\n"));
        written += page.length;
      }
      return written;
    });
    say(`${rows} ${what} of ${name}`);
  });
}
