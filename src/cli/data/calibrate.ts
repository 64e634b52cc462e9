import { readFile } from "node:fs/promises";
import { resolve as resolvePath } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import type { Sql } from "../../db/client.ts";
import { reasonOf, UsageError } from "../../errors.ts";
import { runManualCalibration } from "../../calibration/manual-calibration.ts";
import { type ManualResult } from "../../calibration/manual-result.ts";
import { findManualRun } from "../../calibration/runs/manual-run-store.ts";
import { MOST_STRETCHES, orderOf, type ReplayOrder } from "../../calibration/backtest/range-store.ts";
import {
  findRequestedModel,
  requestRuns,
  type NamedTable,
  type RequestedRun,
} from "../../calibration/runs/request-runs.ts";
import type { RequestedModel } from "../../forecasts/model/parameter-file.ts";
import { parameterSetOf } from "../../forecasts/model/model-name.ts";
import { K7_1 } from "../../forecasts/model/parameters.ts";
import { promoteCalibration, refuseLaterPromotion, PromotedMeanwhile } from "../../calibration/promote.ts";
import { findNewestPromotion } from "../../calibration/promotion-store.ts";
import { announce } from "../announce.ts";
import { appendCommandAudit } from "../audited.ts";
import { examples, readableFile, someText, tableName } from "../arguments.ts";
import { openBacktestFile } from "./backtest-file.ts";
import { listenForInterruption } from "../interruption.ts";
import { operator } from "../operator.ts";
import { promotionReport } from "../../calibration/promotion-report.ts";
import { print, printJson, say } from "../output.ts";
import { runProgress } from "../run-progress.ts";
import { withDatabase, type Session } from "../session.ts";
import { findTableByName } from "../table-name.ts";

interface CalibrateArguments {
  table: string[];
  order?: ReplayOrder;
  from?: string;
  to?: string;
  model?: string;
  params?: string;
  out?: string;
  promote: boolean;
  reason: string;
  resume?: string;
  json: boolean;
}

type Check = ReturnType<typeof refuseLaterPromotion>;

/** A run whose promotion is refused if another one was made since the command started. */
type CheckedRun = RequestedRun & { check: Check | undefined };

/** `roundhouse calibrate`: a manual replay, in this process alone. */
export function calibrateCommand(): Command {
  return new Command("calibrate")
    .description("replay a range of a table through a fresh model, and store the result")
    .requiredOption("--table <house/game/market...>", "the table; several run one after the other", tables)
    .option("--from <round id>", "the first round, or the time (UTC) at which it was stored", someText)
    .option("--to <round id>", "the last round, included, or a time", someText)
    .addOption(
      new Option(
        "--order <order>",
        "round: by the number of the round id, late rounds too; taken: on-time rounds as they were stored " +
          "(default: round if ids are consecutive, taken with --promote)",
      ).choices(["taken", "round"]),
    )
    .option("--model <name>", `a model; ${K7_1.name} without it`, someText)
    .option(
      "--params <file>",
      "a YAML file with what differs from the model: half-lives, share, priors, thresholds, …",
      readableFile,
    )
    .option("--out <file>", "write every forecast of the run as CSV, in the columns of `export forecasts`")
    .option("--promote", "make the result the table's live state", false)
    .option("--reason <text>", "why it is promoted", someText, "requested together with its run")
    .option("--resume <run>", "resume a run that was stopped", runId)
    .option("--json", "print one JSON object per table", false)
    .addHelpText(
      "after",
      examples(
        "calibrate --table bustabit/crash/global --from 1 --to 30000",
        "calibrate --table bustabit/crash/global --params slow.yaml --out slow.csv --json",
        "calibrate --table bustabit/crash/global --resume 12",
        "calibrate --table bustabit/crash/global --table hash/dice/eth --order taken",
      ),
    )
    .action((given: CalibrateArguments) => {
      const { table, resume, out } = given;
      if (table.length > 1 && (resume !== undefined || out !== undefined))
        throw new UsageError(
          `${resume === undefined ? "--out" : "--resume"} is for one --table; ${table.length} are given`,
        );
      return withDatabase((session) => calibrate(session, given), { patient: true });
    });
}

/** Collects a repeatable option. */
function tables(text: string, before: string[] = []): string[] {
  if (before.includes(text)) throw new InvalidArgumentError(`${text} is given twice.`);
  return [...before, tableName(text)];
}

/** Parses the number of a run. */
function runId(text: string): string {
  if (/^\d{1,18}$/.test(text)) return text;
  throw new InvalidArgumentError("expected the number of a run.");
}

async function calibrate({ sql, settings }: Session, given: CalibrateArguments): Promise<void> {
  const found: NamedTable[] = [];
  const checks = new Map<string, Check>();
  for (const name of given.table) {
    const table = await findTableByName(sql, name);
    const newest = await findNewestPromotion(sql, table.id);
    found.push(table);
    checks.set(table.name, refuseLaterPromotion(table, newest?.id ?? null));
  }
  const requested = await (given.resume === undefined
    ? request(sql, found, given)
    : queueAgain(sql, given.resume, found[0], given));
  const runs = requested.map((run) => ({ ...run, check: checks.get(run.table) }));
  for (const [at] of runs.entries()) await replay(sql, settings.LOG_LEVEL, runs.slice(at), given);
}

async function queueAgain(
  sql: Sql,
  run: string,
  table: NamedTable | undefined,
  given: CalibrateArguments,
): Promise<RequestedRun[]> {
  if (table === undefined) return [];
  await requireSame(sql, run, table, given);
  await sql.begin((tx) =>
    appendCommandAudit(tx, { action: "calibration.resume", target: `run ${run} of ${table.name}` }),
  );
  return [{ run, table: table.name }];
}

/** Executes the runs in order; if one stops, prints the command that resumes each of the rest. */
async function replay(sql: Sql, level: string, left: readonly CheckedRun[], given: CalibrateArguments): Promise<void> {
  const { run = "", check } = left[0] ?? {};
  const interruption = listenForInterruption("interrupted");
  const progress = runProgress(`run ${run}`);
  try {
    const result = await runManualCalibration(sql, run, {
      signal: interruption.signal,
      progress: progress.show,
      openFile: openBacktestFile,
    });
    progress.end();
    await (given.json ? printJson(result) : print(sentence(result)));
    if (given.promote) await promote(sql, level, result, { reason: given.reason, check, signal: interruption.signal });
  } catch (error) {
    progress.end();
    if (error instanceof UsageError) throw error;
    const isStored = error instanceof PromotedMeanwhile; // with the same command it would be promoted after all
    const commands = left.slice(isStored ? 1 : 0).map((one) => resumeText(one, given));
    const resumption = commands.length === 0 ? "" : `; resume with: ${commands.join("; ")}`;
    const reason = isStored ? `run ${run} is stored: ${error.message}` : `run ${run} stopped (${reasonOf(error)})`;
    throw new Error(`${reason}${resumption}`, { cause: error });
  } finally {
    interruption.end();
  }
}

async function promote(
  sql: Sql,
  level: string,
  result: ManualResult,
  { reason, check, signal }: { reason: string; check: Check | undefined; signal: AbortSignal },
): Promise<void> {
  signal.throwIfAborted(); // a run that is stopped at its end must not publish its result
  const promoted = await promoteCalibration(
    sql,
    result.calibration_id,
    { by: operator(), reason },
    { signal, check, also: (tx, done) => appendCommandAudit(tx, promotionReport(done)) },
  );
  say(`calibration ${promoted.calibration_id} is live on ${promoted.table}, up to seq ${promoted.to_seq}`);
  await announce(sql, level);
}

async function request(
  sql: Sql,
  chosen: readonly NamedTable[],
  { from, to, order, out, model, params, promote: isPromoted }: CalibrateArguments,
): Promise<RequestedRun[]> {
  const { parameters, thresholds } = await requestedModel(sql, model ?? K7_1.name, params);
  const outFile = out === undefined ? null : resolvePath(out);
  const replayOrder = order ?? (isPromoted ? "taken" : undefined);
  return sql.begin(async (tx) => {
    const runs = await requestRuns(tx, chosen, { from, to, replayOrder, model, parameters, thresholds, outFile });
    for (const { run, table } of runs) {
      await appendCommandAudit(tx, {
        action: "calibration.start",
        target: `run ${run} of ${table}`,
        after: { model: parameters.name, from, to, order, out: outFile },
      });
    }
    return runs;
  });
}

async function requestedModel(sql: Sql, name: string, file: string | undefined): Promise<RequestedModel> {
  let changes: string | null = null;
  try {
    if (file !== undefined) changes = await readFile(file, "utf8");
  } catch (error) {
    throw new UsageError(`--params: ${file} cannot be read: ${reasonOf(error)}`);
  }
  return findRequestedModel(sql, name, { option: "--model", changes });
}

/** A resumed run keeps its original options; any option that is given again must be the same. */
async function requireSame(
  sql: Sql,
  id: string,
  table: { id: number; name: string },
  given: CalibrateArguments,
): Promise<void> {
  const run = await findManualRun(sql, id);
  if (run === null) throw new UsageError(`--resume: there is no manual run ${id}`);
  const asked = given.params === undefined ? null : await requestedModel(sql, given.model ?? K7_1.name, given.params);
  const model = asked?.parameters.name ?? given.model ?? run.model;
  const hasHash = parameterSetOf(model) !== model;
  const differing: [path: string, now: string | null, then: string | null][] = [
    ["--table", table.name, run.table],
    ["--model", model, hasHash ? run.model : parameterSetOf(run.model)],
    ["--from", given.from ?? run.fromRoundId, run.fromRoundId],
    ["--to", given.to ?? run.toRoundId, run.toRoundId],
    ["--order", given.order ?? orderOf(run), orderOf(run)],
    ["--out", given.out === undefined ? run.outFile : resolvePath(given.out), run.outFile],
  ];
  const problems = differing
    .filter(([, now, then]) => now !== then)
    .map(([path, now, then]) => ({ path, message: `expected ${then ?? "nothing"}, got ${now ?? "nothing"}` }));
  if (problems.length > 0) throw new UsageError(`run ${id} was requested with other options`, problems);
}

function resumeText({ table, run }: RequestedRun, { promote: isPromoted, reason }: CalibrateArguments): string {
  const promoted = isPromoted ? ` --promote --reason ${JSON.stringify(reason)}` : "";
  return `roundhouse calibrate --table ${table} --resume ${run}${promoted}`;
}

/** Prints the result of a run in four lines. */
function sentence({ run_id, calibration_id, table, model, from, to, order, rounds, ...result }: ManualResult): string {
  const { late_rounds, late, log_loss, baseline_log_loss, brier, state_hash } = result;
  const figure = (value: number | null) => value?.toFixed(6) ?? "-";
  return (
    `run ${run_id}: ${table} from ${from} to ${to}, ${rounds} rounds through ${model}, ${order === "taken" ? "in the order taken" : "by round id"}\n` +
    (late_rounds === 0 ? "" : `${late_rounds} of them late: ${lateText(late)}\n`) +
    `state ${state_hash}\n` +
    `log loss ${figure(log_loss)} (baseline ${figure(baseline_log_loss)}), Brier score ${figure(brier)}: ` +
    `a backtest, no accuracy of issued forecasts\n` +
    `kept as calibration ${calibration_id}; \`roundhouse calibration show ${calibration_id}\` has the rest`
  );
}

/** Prints the stretches of late rounds; a result stores the first twenty. */
function lateText(late: ManualResult["late"]): string {
  const stretches = late.map(({ from, to }) => (from === to ? from : `${from} to ${to}`));
  return stretches.join(", ") + (late.length < MOST_STRETCHES ? "" : ", …");
}
