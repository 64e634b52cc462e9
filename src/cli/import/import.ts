import { Command } from "commander";
import type { Sql } from "../../db/client.ts";
import { UsageError } from "../../errors.ts";
import { createProver } from "../../houses/fairness/prove.ts";
import type { TableSettings } from "../../houses/settings/settings.ts";
import { createPlanner } from "../../import/plan.ts";
import { createRefusals, MOST_LISTED } from "../../import/refusals.ts";
import type { RowNumbers } from "../../import/row.ts";
import { openStagedRounds } from "../../import/staged-rounds.ts";
import { findNewestNumber, hasHouseRounds } from "../../import/store.ts";
import { type Imported, importRounds } from "../../import/import.ts";
import { announce } from "../announce.ts";
import { examples, readableFile, tableName } from "../arguments.ts";
import { appendCommandAudit } from "../audited.ts";
import { type FileFindings, readFileRows } from "./file.ts";
import { formatOptions } from "./flags.ts";
import { type FileFormat, type FormatFlags, readFormat } from "./format.ts";
import { notesOf, summaryLines, summaryOf } from "./report.ts";
import { dateShape, timesOf } from "./times.ts";
import { multiplierShape, multipliersOf } from "./values.ts";
import { listenForInterruption } from "../interruption.ts";
import { print, printJson, say } from "../output.ts";
import { progressBar } from "../progress.ts";
import { type Session, withDatabase } from "../session.ts";
import { findTableByName } from "../table-name.ts";
import { findTableSettings } from "../houses/table-settings.ts";

/** Refused lines in the text output. */
const SHOWN_REFUSALS = 20;

interface ImportArguments extends FormatFlags {
  table: string;
  file: string;
  dryRun: boolean;
  json: boolean;
}

/** `roundhouse import`: imports history from a file of any size; a repeated import adds nothing. */
export function importCommand(): Command {
  const command = new Command("import")
    .description("add rounds from a file, plain or gzip; importing the same file again adds nothing")
    .requiredOption("--table <house/game/market>", "the table", tableName)
    .requiredOption(
      "--file <path>",
      "CSV with the header round_id,multiplier[,occurred_at][,hash] in any order, or one JSON object per line",
      readableFile,
    )
    .option("--dry-run", "report what would be done, and store nothing", false)
    .option("--json", "print one JSON object", false);
  for (const option of formatOptions()) command.addOption(option);
  return command
    .addHelpText(
      "after",
      examples(
        "import --table bustabit/crash/global --file rounds.csv --dry-run",
        "import --table acme/crash/global --file rounds.csv.gz --round-id Game --multiplier Crash --decimal ,",
        "import --table acme/crash/global --file rounds.jsonl --map acme.yaml --zone Europe/Berlin --json",
      ),
    )
    .action(async (given: ImportArguments) => {
      const format = await readFormat(given);
      await withDatabase((session) => importFile(session, given, format), { patient: true });
    });
}

async function importFile({ sql, settings }: Session, given: ImportArguments, format: FileFormat): Promise<void> {
  const table = await findTableByName(sql, given.table);
  const tableSettings = await findTableSettings(sql, table.name);
  if (format.row_numbers !== null) await requireNoHouseRounds(sql, table);
  const numbers = format.row_numbers === null ? null : firstId(format.row_numbers, tableSettings);
  const staged = await openStagedRounds(settings.DATA_DIR);
  const interruption = listenForInterruption(
    "interrupted; what is stored stays, and importing again adds what is missing",
  );
  const progress = progressBar();
  const read = {
    settings: tableSettings,
    now: Date.now(),
    readTime: timesOf(format),
    readMultiplier: multipliersOf({ ...format, instant: [...tableSettings.feed.instant, ...format.instant] }),
    order: format.order,
    newest: await findNewestNumber(sql, table.id),
    ...(format.decimal === "auto" ? { multiplierShape } : {}),
    ...(format.dates === "auto" ? { dateShape } : {}),
    ...(numbers === null ? {} : { rowNumbers: numbers }),
  };
  const findings: FileFindings = { ignored: [], refusals: createRefusals(), total: 0 };
  try {
    const { signal } = interruption;
    const planner = createPlanner(read, staged, findings.refusals);
    const show = (done: number, of: number) => progress.show("reading", done, of);
    await readFileRows(given.file, format, findings, { onRow: planner.add, progress: show, signal });
    const plan = await planner.plan(findings.total, signal);
    if (findings.ignored.length > 0) say(`columns that are ignored: ${findings.ignored.join(", ")}`);
    const entry = { target: `table ${table.name}`, before: null };
    // an import takes many transactions: its beginning is written to the audit log first, its result last
    if (!given.dryRun) {
      await sql.begin((tx) =>
        appendCommandAudit(tx, { ...entry, action: "import.begin", after: { file: given.file } }),
      );
    }
    const imported = await importRounds(sql, table.id, plan, {
      settings: tableSettings,
      prover: createProver(),
      dryRun: given.dryRun,
      signal,
      progress: (done, of) => progress.show(given.dryRun ? "checking" : "storing", done, of),
    });
    progress.end();
    if (!given.dryRun) {
      const { inserted, skipped } = imported;
      const after = { file: given.file, inserted, skipped, refused: imported.refusedCount };
      await sql.begin((tx) => appendCommandAudit(tx, { ...entry, action: "import.end", after }));
    }
    if (imported.inserted > 0 && !given.dryRun) await announce(sql, settings.LOG_LEVEL);
    await report({ ...imported, read: findings.total }, given, format);
  } finally {
    progress.end();
    staged.close();
    interruption.end();
  }
}

/** Row numbers mixed with a house's ids would import the same rounds twice. */
async function requireNoHouseRounds(sql: Sql, table: { id: number; name: string }): Promise<void> {
  if (!(await hasHouseRounds(sql, table.id))) return;
  throw new UsageError(
    `--row-numbers: ${table.name} has rounds with the house's own ids, and numbered rows could be the same ` +
      "rounds twice; import the file into another table, such as another market of a house that is not polled",
  );
}

/** The id of the oldest row, split into prefix and number; by default 1 if ids count up, else row-1. */
function firstId(text: string, { round_ids: roundIds }: TableSettings): RowNumbers {
  const usual = roundIds === "consecutive" ? "1" : "row-1";
  const [, prefix = "", digits] = /^(?=.{1,64}$)(.*?)(0|[1-9]\d{0,16})$/.exec(text === "" ? usual : text) ?? [];
  if (digits !== undefined && (roundIds === "opaque" || prefix === "")) return { prefix, first: BigInt(digits) };
  const expected =
    roundIds === "consecutive"
      ? "a number such as 1, since this table's ids count up"
      : "an id such as row-1 of at most 64 characters";
  throw new UsageError(`--row-numbers: expected ${expected}, found ${JSON.stringify(text)}`);
}

function lateText(isLate: boolean): string {
  return isLate
    ? "late: the table had rounds; these are shown, and never used for the live model, a forecast or a score"
    : "on time: the table was empty, and its live model learns them";
}

async function report(
  imported: Imported,
  { file, table, dryRun, json }: ImportArguments,
  { row_numbers: rowNumbers, zone }: FileFormat,
): Promise<void> {
  const { late, read, inserted, skipped, refused, refusedCount } = imported;
  for (const note of notesOf(imported, { numbered: rowNumbers !== null, zone })) say(note);
  if (json) {
    const counts = { late, read, inserted, skipped, refused, refused_count: refusedCount };
    return printJson(dryRun ? { ...counts, summary: summaryOf(imported) } : counts);
  }
  const would = dryRun ? " (dry run: nothing was stored)" : "";
  await print(
    `${file} into ${table}: read ${read}, inserted ${inserted}, skipped ${skipped} that were there, ` +
      `refused ${refusedCount}${would}`,
  );
  await print(lateText(late));
  if (dryRun) for (const line of summaryLines(imported)) await print(line);
  for (const { line, reason } of refused.slice(0, SHOWN_REFUSALS)) await print(`  line ${line}: ${reason}`);
  const more = refusedCount - SHOWN_REFUSALS;
  if (more > 0) await print(`  and ${more} more; --json lists up to ${MOST_LISTED} of each reason`);
}
