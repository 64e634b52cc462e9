import { Command, Option } from "commander";
import { type Reader, withReader } from "../db/reader.ts";
import { codeOf } from "../errors.ts";
import { csvField } from "../frame/csv.ts";
import { listForecastsForExport, type ExportedForecast } from "../forecasts/chain/export-store.ts";
import { listRoundsForExport, type ExportedRound } from "../rounds/export-store.ts";
import { examples } from "./arguments.ts";
import { proofCommand, rootsCommand } from "./export-anchors.ts";
import { print, say } from "./output.ts";
import { withDatabase } from "./session.ts";
import { findTableByName } from "./table-name.ts";

const ROUND_COLUMNS = [
  "seq",
  "round_id",
  "multiplier",
  "color",
  "occurred_at",
  "requested_at",
  "received_at",
  "source",
  "verified",
  "late",
  "after_gap",
  "history_hash",
] as const satisfies (keyof ExportedRound)[];

export const FORECAST_COLUMNS = [
  "seq",
  "forecast_id",
  "table",
  "model",
  "feature",
  "issued_at",
  "cutoff_round_id",
  "history_hash",
  "target_round_id",
  "horizon",
  "p_ppm",
  "base_ppm",
  "status",
  "outcome",
  "scored_at",
  "prev_hash",
  "hash",
] as const satisfies (keyof ExportedForecast)[];

/** Large enough that the database is asked seldom, small enough to be nothing in memory. */
const ROWS_PER_PAGE = 5_000;

/** `roundhouse export …`: all there is to check us with: the rounds and forecasts of a table, the roots of all hours, a proof. */
export function exportCommand(): Command {
  const command = new Command("export").description("write what is stored to stdout, for anyone's own check");
  addExport(command, "rounds", {
    description: "every round of a table in the order in which it was taken in (seq)",
    columns: ROUND_COLUMNS,
    list: listRoundsForExport,
  });
  addExport(command, "forecasts", {
    description: "every forecast of a table in the order of its chain, and what became of it",
    columns: FORECAST_COLUMNS,
    list: listForecastsForExport,
  });
  command.addCommand(rootsCommand());
  command.addCommand(proofCommand());
  return command;
}

/** What is exported: the columns, and where pages of them come from. */
interface Exported<Column extends string> {
  columns: readonly Column[];
  list: (
    read: Reader,
    tableId: number,
    page: { afterSeq: string; limit: number },
  ) => Promise<Record<Column | "seq", string>[]>;
}

function addExport<Column extends string>(
  command: Command,
  what: string,
  { description, ...exported }: Exported<Column> & { description: string },
): void {
  command
    .command(what)
    .description(description)
    .requiredOption("--table <house/game/market>", "the table")
    .addOption(new Option("--format <format>", "the format").choices(["csv"]).default("csv"))
    .addHelpText(
      "after",
      examples(
        `export ${what} --table bustabit/crash/global --format csv > ${what}.csv`,
        `export ${what} --table bustabit/crash/global | head -5`,
      ),
    )
    .action(async ({ table }: { table: string }) => {
      try {
        await exportTable(table, what, exported);
      } catch (error) {
        if (codeOf(error) !== "EPIPE") throw error; // whoever read has seen enough, as `| head` does
      }
    });
}

async function exportTable<Column extends string>(
  name: string,
  what: string,
  { columns, list }: Exported<Column>,
): Promise<void> {
  await withDatabase(async ({ sql, databaseUrl, settings }) => {
    const table = await findTableByName(sql, name);
    await print(columns.join(","));
    const rows = await withReader(settings.DATABASE_DIRECT_URL ?? databaseUrl, async (read) => {
      let afterSeq = "0";
      let written = 0;
      for (;;) {
        const page = await list(read, table.id, { afterSeq, limit: ROWS_PER_PAGE });
        const last = page.at(-1);
        if (last === undefined) return written;
        await print(page.map((row) => columns.map((column) => csvField(row[column])).join(",")).join("\n"));
        afterSeq = last.seq;
        written += page.length;
        if (page.length < ROWS_PER_PAGE) return written;
      }
    });
    say(`${rows} ${what} of ${name}`);
  });
}
