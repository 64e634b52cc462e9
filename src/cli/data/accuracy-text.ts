import type { Measured } from "../../forecasts/accuracy/measure.ts";
import { cellsOf, COLUMNS, curveOf, nameOf, sectionsOf } from "../../frame/text/accuracy-sections.ts";
import { paint, plainText, print, printTexts, shortTime } from "../output.ts";
import { showHeights, showReliability } from "./reliability-text.ts";

/** One line per feature of each table or house: the rate with its sample and interval, and the stated probability. */
export async function showList(measured: readonly Measured[]): Promise<void> {
  await printTexts(
    COLUMNS.map(([, label]) => label),
    measured.map((row) => {
      const cells = { ...cellsOf(row), verdict: colored(row.verdict) };
      return COLUMNS.map(([name]) => cells[name]);
    }),
  );
}

/** One feature of one table or house: its figures, reliability, CORP, references and waits. */
export async function showDetail(row: Measured): Promise<void> {
  const span = `${shortTime(row.period_start)} to ${shortTime(row.period_end)}`;
  await print(`${nameOf(row)} ${row.feature}, ${row.model}, ${row.period}: ${span}`);
  const { plot, ...curve } = curveOf(row);
  for (const { title, columns, rows } of [...sectionsOf(row), { title: plot.title, ...curve }]) {
    await print(`\n${plainText(title)}`);
    await printTexts(columns, rows);
  }
  await print("");
  await showReliability(row.reliability, row.withheld !== null);
  await showWaits(row);
}

async function showWaits({ pit }: Measured): Promise<void> {
  if (pit === null) return print("\nwaits for the top color in the newest calibration: none yet");
  await print(
    `\nPIT of ${pit.waits} waits for the top color in the newest calibration, a backtest; 1 is an even spread`,
  );
  await showHeights(pit.heights);
}

function colored(verdict: Measured["verdict"]): string {
  if (verdict === "on target") return paint.green(verdict);
  return verdict === "off target" ? paint.red(verdict) : paint.yellow(verdict);
}
