import { pipeline } from "node:stream/promises";
import { Readable } from "node:stream";
import { Command } from "commander";
import { type Variables, variablesOf } from "../config.ts";
import type { Sql } from "../db/client.ts";
import { createNotifier } from "../db/notifier.ts";
import { UsageError } from "../errors.ts";
import { createProver } from "../houses/fairness/prove.ts";
import { settingsOf } from "../houses/house.ts";
import type { TableSettings } from "../houses/settings.ts";
import { loadHouse } from "../houses/store.ts";
import { createLog } from "../log.ts";
import { copyToStaging, createStaging, dropStaging } from "../rounds/import-store.ts";
import { type Imported, importRounds } from "../rounds/import.ts";
import { examples } from "./arguments.ts";
import { type FileFindings, stagedText } from "./import-file.ts";
import { listenForInterruption } from "./interruption.ts";
import { print, printJson, say } from "./output.ts";
import { type Progress, progressBar } from "./progress.ts";
import { type Session, withDatabase } from "./session.ts";
import { findTableByName } from "./table-name.ts";
import { readTimesIn, zoneName } from "./zone.ts";

/** Refused lines shown to people; `--json` lists them all. */
const SHOWN_REFUSALS = 20;

interface ImportArguments {
  table: string;
  file: string;
  dryRun: boolean;
  zone?: string;
  json: boolean;
}

/** `roundhouse import`: history from a CSV file of any size; a second time it adds nothing. */
export function importCommand(): Command {
  return new Command("import")
    .description("add rounds from a CSV file, plain or gzip; importing the same file again adds nothing")
    .requiredOption("--table <house/game/market>", "the table")
    .requiredOption("--file <path>", "a CSV file with the header round_id,multiplier[,occurred_at][,hash] in any order")
    .option("--dry-run", "work everything out and store nothing", false)
    .option("--zone <name>", "the zone of times that name none, such as Europe/Berlin; UTC without it", zoneName)
    .option("--json", "print one JSON object", false)
    .addHelpText(
      "after",
      examples(
        "import --table bustabit/crash/global --file rounds.csv --dry-run",
        "import --table acme/crash/global --file rounds.csv.gz --zone Europe/Berlin --json",
      ),
    )
    .action((given: ImportArguments) => withDatabase((session) => importFile(session, given), { patient: true }));
}

async function importFile({ sql, settings }: Session, given: ImportArguments): Promise<void> {
  const table = await findTableByName(sql, given.table);
  const tableSettings = await findSettings(sql, table.name);
  // ends between two statements, so that the staging table goes too
  const interruption = listenForInterruption(
    "interrupted; what is stored stays, and importing again adds what is missing",
  );
  const progress = progressBar();
  const staging = await createStaging(sql);
  try {
    const findings = await stage(sql, staging, given.file, { progress, signal: interruption.signal });
    if (findings.ignored.length > 0) say(`columns that are ignored: ${findings.ignored.join(", ")}`);
    const imported = await importRounds(sql, table.id, staging, {
      settings: tableSettings,
      prover: createProver(),
      dryRun: given.dryRun,
      signal: interruption.signal,
      now: Date.now(),
      progress: (done, of) => progress.show("storing", done, of),
      ...(given.zone === undefined ? {} : { readTime: readTimesIn(given.zone) }),
    });
    progress.end();
    if (imported.inserted > 0 && !given.dryRun) await announce(sql, settings.LOG_LEVEL);
    await report(withFindings(imported, findings), given);
  } finally {
    progress.end();
    await dropStaging(sql, staging);
    interruption.end();
  }
}

async function stage(
  sql: Sql,
  staging: string,
  file: string,
  { progress, signal }: { progress: Progress; signal: AbortSignal },
): Promise<FileFindings> {
  const findings: FileFindings = { ignored: [], refused: [] };
  const text = stagedText(file, findings, (done, of) => progress.show("reading", done, of));
  try {
    // Each text is a thousand lines: the stream's own buffer of sixteen would only cost memory.
    await pipeline(Readable.from(text, { highWaterMark: 1 }), await copyToStaging(sql, staging), { signal });
  } catch (error) {
    signal.throwIfAborted(); // its reason says more than that a stream was cut
    throw error;
  }
  return findings;
}

async function findSettings(sql: Sql, name: string): Promise<TableSettings> {
  const [houseId = "", game = "", market = ""] = name.split("/");
  const house = await loadHouse(sql, anyVariables(), houseId);
  const settings = house === null ? null : settingsOf(house, { game, market });
  if (settings !== null) return settings;
  throw new UsageError(`${name} left the houses file; put it back, with \`enabled: false\` if it is not to be polled`);
}

/** Tokens for asking a house are not needed to import, so whoever imports need not have them. */
function anyVariables(): Variables {
  const variables = variablesOf();
  return (name) => variables(name) || "https://not-set.invalid";
}

async function announce(sql: Sql, level: string): Promise<void> {
  const notifier = createNotifier(sql, createLog(level, process.stderr.isTTY));
  notifier.published();
  await notifier.close();
}

function withFindings(imported: Imported, { refused }: FileFindings): Imported {
  return {
    ...imported,
    read: imported.read + refused.length,
    refused: [...imported.refused, ...refused].toSorted((a, b) => a.line - b.line),
  };
}

async function report(imported: Imported, { file, table, dryRun, json }: ImportArguments): Promise<void> {
  const { read, inserted, skipped, conflicts, refused } = imported;
  if (json) return printJson({ read, inserted, skipped, conflicts, refused });
  const would = dryRun ? " (dry run: nothing was stored)" : "";
  await print(
    `${file} into ${table}: read ${read}, inserted ${inserted}, skipped ${skipped} that were there, ` +
      `${conflicts} conflicts, refused ${refused.length}${would}`,
  );
  for (const { line, reason } of refused.slice(0, SHOWN_REFUSALS)) await print(`  line ${line}: ${reason}`);
  const more = refused.length - SHOWN_REFUSALS;
  if (more > 0) await print(`  and ${more} more; --json lists them all`);
}
