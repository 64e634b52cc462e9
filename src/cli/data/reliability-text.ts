import { wilsonInterval } from "../../forecasts/accuracy/figures/intervals.ts";
import type { ReliabilityBin } from "../../forecasts/accuracy/figures/reliability.ts";
import { HEIGHT_COLUMNS, heightRows, reliabilityFigure } from "../../frame/text/accuracy-format.ts";
import { print, printTexts } from "../output.ts";

/** The columns from 0 to 100 %, in steps of two. */
const WIDTH = 51;

/**
 * Prints reliability, one line per bin: a scale from 0 to 100 % has the stated and the observed rate, with its interval
 * unless that is withheld.
 */
export async function showReliability(bins: readonly ReliabilityBin[], isWithheld = false): Promise<void> {
  await print(`reliability: | stated, o observed${isWithheld ? "" : " with its 95 % interval"}, * both`);
  const { columns, rows } = reliabilityFigure("Reliability", bins, isWithheld);
  await printTexts(
    [...columns, "0 %".padEnd(WIDTH - 5) + "100 %"],
    bins.map((bin, at) => [...(rows[at] ?? []), scaleOf(bin, isWithheld)]),
  );
}

/** Prints a histogram of heights around 1, one line each; a bar of full width is a height of 2 or more. */
export async function showHeights(heights: readonly number[]): Promise<void> {
  const barOf = (height: number) => "#".repeat(Math.min(WIDTH, Math.round((height * WIDTH) / 2)));
  const bars = heights.map(barOf);
  await printTexts(
    [...HEIGHT_COLUMNS, ""],
    heightRows(heights).map((row, at) => [...row, bars[at] ?? ""]),
  );
}

function scaleOf({ n, hits, mean_p }: ReliabilityBin, isWithheld: boolean): string {
  const at = (p: number) => Math.round(p * (WIDTH - 1));
  const line = Array.from({ length: WIDTH }, () => " ");
  const [low, high] = wilsonInterval(hits, n) ?? [0, 1];
  if (!isWithheld) line.fill("-", at(low), at(high) + 1);
  line[at(mean_p)] = "|";
  line[at(hits / n)] = at(hits / n) === at(mean_p) ? "*" : "o";
  return line.join("");
}
