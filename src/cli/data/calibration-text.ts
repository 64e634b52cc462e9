import type { comparisonOf, Detail, Summary } from "../../calibration/calibration-view.ts";
import {
  compareWindows,
  fitRows,
  metricRows,
  WINDOW_COLUMNS,
  windowRows,
} from "../../frame/text/calibration-format.ts";
import type { Columns } from "../list-command.ts";
import { paint, print, printTexts, shortTime } from "../output.ts";
import { showHeights, showReliability } from "./reliability-text.ts";

/** The columns of a list of calibrations. */
export const LIST_COLUMNS: Columns<Summary> = [
  ["id", (row) => row.id],
  ["table", (row) => row.table],
  ["version", (row) => `${row.model} ${row.version}`],
  ["kind", (row) => row.kind],
  ["from", (row) => row.from],
  ["to", (row) => row.to],
  ["rounds", (row) => row.rounds],
  ["made", (row) => shortTime(row.created_at)],
  ["log loss", (row) => decimals(row.log_loss)],
  ["skill", (row) => percent(row.skill)],
  ["live state", metText],
  ["why", ({ promotion }) => (promotion === null ? "" : `${promotion.by}: ${promotion.reason}`)],
];

/** Prints one calibration in full. */
export async function showDetail(detail: Detail): Promise<void> {
  await print(headOf(detail));
  await printTexts(["Figure", "Value", "Note"], fitRows(detail));
  const live = detail.compared_with_live;
  if (live !== null) {
    await print(
      `\ncompared with the live record of that time, calibration ${live.calibration} (${live.model} version ${live.version}) over ` +
        `${live.rounds} rounds: log loss ${decimals(live.log_loss)}, Brier score ${decimals(live.brier)}, ` +
        (live.same_state ? "the same state" : "another state"),
    );
  }
  await print("");
  await printTexts(
    ["Expert", "Weight"],
    Object.entries(detail.weights).map(([expert, weight]) => [expert, weight.toFixed(6)]),
  );
  await print("");
  await printTexts(WINDOW_COLUMNS, windowRows(detail.windows));
  if (detail.waits !== null) {
    await print(
      `\n${detail.waits.waits} waits for the top color, by their stated length; a uniform distribution is right`,
    );
    await showHeights(detail.waits.heights);
  }
  await print("\nnext color, every color of every round: stated and observed frequency");
  await showReliability(detail.reliability);
}

/** Prints two calibrations side by side. */
export async function showComparison({ table, a, b, paired }: ReturnType<typeof comparisonOf>): Promise<void> {
  const name = (side: typeof a) => `${side.id}: ${side.model} ${side.version}, ${side.from} to ${side.to}`;
  await print(`${table}: backtests, no accuracy of issued forecasts`);
  const sides = [a, b].map((side) => ({ ...side, table }));
  const metrics = metricRows(sides).map(({ label, cells }) => [
    label,
    ...cells.map(({ text, difference }) => (difference === null ? text : `${text} (${difference})`)),
  ]);
  const scored = ["Scored rounds", ...sides.map((side) => String(side.sample_size))];
  await printTexts(["", ...sides.map(name)], [scored, ...metrics, ...compareWindows(sides)]);
  for (const side of [a, b]) {
    await print(`\n${name(side)}`);
    await showReliability(side.reliability);
  }
  const { rounds, difference, interval_95 } = paired;
  const interval = interval_95?.map((end) => (end * 1e5).toFixed(2)).join(" to ");
  await print(
    `\non the ${rounds} rounds both cover: ${a.id} ${decimals(paired.a_log_loss)}, ${b.id} ${decimals(paired.b_log_loss)}; ` +
      `difference ${(difference * 1e5).toFixed(2)} (95 %: ${interval ?? "-"}) in 1e-5 nats a round, ${verdict(a.id, b.id, interval_95)}`,
  );
}

function verdict(a: string, b: string, interval: [number, number] | null): string {
  if (interval === null || (interval[0] <= 0 && interval[1] >= 0)) return "which favors neither";
  return `${interval[1] < 0 ? a : b} is better`;
}

function headOf(detail: Detail): string {
  const { promotion } = detail;
  const decided =
    promotion === null
      ? ""
      : `\npromoted from calibration ${promotion.from} by ${promotion.by} at ${shortTime(promotion.at)}: ${promotion.reason}`;
  return (
    `calibration ${detail.id}: ${detail.table}, ${detail.model} version ${detail.version}, ${detail.kind}, made ${shortTime(detail.created_at)}\n` +
    `${detail.rounds} rounds from ${detail.from ?? "-"} to ${detail.to ?? "-"} ${orderText(detail)}; live state ${metText(detail)}` +
    `${decided}\nstate ${detail.state_hash}\n\n` +
    `a backtest of ${detail.sample_size} rounds: how well the model fits them, no accuracy of issued forecasts`
  );
}

function orderText({ order, begin_seq, to_seq, late_rounds }: Detail): string {
  return order === "taken" ? `(seq ${begin_seq} to ${to_seq})` : `by round id, ${late_rounds} of them late`;
}

function metText({ kind, met_live_state }: { kind: string; met_live_state: boolean | null }): string {
  if (met_live_state === null) return kind === "rolling" ? "not reached yet" : "not compared";
  if (met_live_state) return paint.green("met");
  // a manual run may end in another state: it began elsewhere
  return kind === "rolling" ? paint.red("different") : "another";
}

function decimals(value: number | null): string | null {
  return value === null ? null : value.toFixed(6);
}

function percent(value: number | null): string | null {
  return value === null ? null : `${(value * 100).toFixed(3)} %`;
}
