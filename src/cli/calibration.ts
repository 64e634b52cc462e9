import { Command, InvalidArgumentError } from "commander";
import { UsageError } from "../errors.ts";
import { listCalibrations, type CalibrationRow } from "../forecasts/calibration-store.ts";
import { figuresOf } from "../forecasts/figures.ts";
import { EXPERTS } from "../forecasts/parameters.ts";
import { sumsFromJson } from "../forecasts/sums.ts";
import { examples, wholeNumber } from "./arguments.ts";
import { paint, print, printJson, printTable, shortTime } from "./output.ts";
import { withDatabase } from "./session.ts";
import { findTableByName } from "./table-name.ts";

const SHOWN = 50;

/** `roundhouse calibration …`: what replays of the model came to. */
export function calibrationCommand(): Command {
  const command = new Command("calibration").description(
    "replays of each table's model: its state, and how well it fits",
  );
  command
    .command("list")
    .description("calibrations, newest first, and whether each replay met the live state")
    .option("--table <house/game/market>", "one table instead of all")
    .option("--limit <n>", "at most so many", wholeNumber(1, 10_000), SHOWN)
    .option("--json", "print a JSON array", false)
    .addHelpText("after", examples("calibration list", "calibration list --table bustabit/crash/global --json"))
    .action((given: { table?: string; limit: number; json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const table = given.table === undefined ? undefined : await findTableByName(sql, given.table);
        const rows = (await listCalibrations(sql, { tableId: table?.id, limit: given.limit })).map(summaryOf);
        await (given.json ? printJson(rows) : showList(rows));
      }),
    );
  command
    .command("show")
    .description("one calibration: the weights of its experts, its losses, and its reliability so far")
    .argument("<id>", "its id, as `calibration list` shows it", calibrationId)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", examples("calibration show 12", "calibration show 12 --json"))
    .action((id: string, { json }: { json: boolean }) =>
      withDatabase(async ({ sql }) => {
        const [row] = await listCalibrations(sql, { id, limit: 1 });
        if (row === undefined) throw new UsageError(`there is no calibration ${id}; \`calibration list\` shows them`);
        const detail = detailOf(row);
        await (json ? printJson(detail) : showDetail(detail));
      }),
    );
  return command;
}

function calibrationId(text: string): string {
  if (/^\d{1,18}$/.test(text)) return text;
  throw new InvalidArgumentError("expected a number.");
}

type Summary = ReturnType<typeof summaryOf>;

function summaryOf(row: CalibrationRow) {
  const { log_loss, baseline_log_loss, skill, brier } = figuresOf("next_color", sumsFromJson(row.sums));
  return {
    id: row.id,
    table: row.table,
    model: row.model,
    version: row.version,
    kind: row.kind,
    rounds: row.rounds,
    created_at: row.createdAt,
    state_hash: row.stateHash,
    live_state_hash: row.liveStateHash,
    /** Null where the replay only left a place to go on from. */
    met_live_state: row.liveStateHash === null ? null : row.liveStateHash === row.stateHash,
    log_loss,
    baseline_log_loss,
    skill,
    brier,
  };
}

function detailOf(row: CalibrationRow) {
  const { baseline_brier, sample_size, reliability } = figuresOf("next_color", sumsFromJson(row.sums));
  return {
    ...summaryOf(row),
    from_seq: row.fromSeq,
    to_seq: row.toSeq,
    sample_size,
    baseline_brier,
    // jsonb keeps its keys in an order of its own
    weights: Object.fromEntries(EXPERTS.map((expert) => [expert, row.weights[expert] ?? 0])),
    reliability,
  };
}

async function showList(rows: Summary[]): Promise<void> {
  await printTable(
    ["id", "table", "version", "kind", "rounds", "made", "log loss", "skill", "live state"],
    rows.map((row) => [
      row.id,
      row.table,
      `${row.model} ${row.version}`,
      row.kind,
      row.rounds,
      shortTime(row.created_at),
      decimals(row.log_loss),
      percent(row.skill),
      metText(row),
    ]),
  );
}

async function showDetail(detail: ReturnType<typeof detailOf>): Promise<void> {
  const { log_loss, baseline_log_loss, skill, brier, baseline_brier, weights, reliability } = detail;
  await print(
    `calibration ${detail.id}: ${detail.table}, ${detail.model} version ${detail.version}, ${detail.kind}, made ${shortTime(detail.created_at)}\n` +
      `${detail.rounds} rounds, of which seq ${detail.from_seq} to ${detail.to_seq} were replayed; live state ${metText(detail)}\n` +
      `state ${detail.state_hash}\n\n` +
      `a backtest of ${detail.sample_size} rounds: how well the model fits them, no accuracy of issued forecasts`,
  );
  await printTable(
    ["", "model", "baseline"],
    [
      ["log loss", decimals(log_loss), decimals(baseline_log_loss)],
      ["Brier score", decimals(brier), decimals(baseline_brier)],
      ["skill", percent(skill), null],
    ],
  );
  await print("");
  await printTable(
    ["expert", "weight"],
    Object.entries(weights).map(([expert, weight]) => [expert, weight.toFixed(6)]),
  );
  await print("");
  await printTable(
    ["said", "times", "mean", "came true"],
    reliability.map(({ p_from, p_to, n, mean_p, hits }) => [
      `${p_from.toFixed(1)} to ${p_to.toFixed(1)}`,
      n,
      mean_p.toFixed(4),
      n === 0 ? null : (hits / n).toFixed(4),
    ]),
  );
}

function metText({ met_live_state }: { met_live_state: boolean | null }): string {
  if (met_live_state === null) return "not reached yet";
  return met_live_state ? paint.green("met") : paint.red("different");
}

function decimals(value: number | null): string | null {
  return value === null ? null : value.toFixed(6);
}

function percent(value: number | null): string | null {
  return value === null ? null : `${(value * 100).toFixed(3)} %`;
}
