import type { Measured } from "../../forecasts/accuracy/measure.ts";
import { showHeights, showReliability } from "./reliability-text.ts";
import { paint, print, printTable, shortTime } from "../output.ts";

/** One line per feature of each table or house: the rate with its sample and interval, and the stated probability. */
export async function showList(measured: readonly Measured[]): Promise<void> {
  await printTable(
    [
      "of",
      "feature",
      "n",
      "hit rate (95 %)",
      "stated",
      "baseline",
      "z",
      "e-value",
      "verdict",
      "log loss",
      "skill (95 %)",
      "ECE (floor)",
      "coverage",
      "voids",
      "bounds",
    ],
    measured.map((row) => [
      nameOf(row),
      row.feature,
      row.sample_size,
      withInterval(row.hit_rate, row.interval_95),
      share(row.expected_rate),
      share(row.baseline_rate),
      row.z?.toFixed(2),
      evidence(row.e_value),
      colored(row.verdict),
      row.log_loss?.toFixed(5),
      withHalfWidth(row),
      row.calibration_error === null
        ? null
        : `${digits(row.calibration_error)} (${digits(row.calibration_error_floor)})`,
      percent(row.coverage, 1),
      voidsOf(row),
      boundsOf(row),
    ]),
  );
}

/** One feature of one table or house: its figures, reliability, CORP, references and waits. */
export async function showDetail(row: Measured): Promise<void> {
  const span = `${shortTime(row.period_start)} to ${shortTime(row.period_end)}`;
  await print(`${nameOf(row)} ${row.feature}, ${row.model}, ${row.period}: ${span}\n`);
  await showList([row]);
  await print("");
  await showReliability(row.reliability, row.withheld !== null);
  await print(`\nCORP: Brier score = MCB (what recalibration would gain) − DSC (what telling cases apart gains) + UNC`);
  await printTable(
    ["color", "MCB", "DSC", "UNC", "curve: stated → observed"],
    row.corp.map(({ color, mcb, dsc, unc, curve }, place) => [
      color ?? `color ${place + 1}`,
      mcb.toFixed(6),
      dsc.toFixed(6),
      unc.toFixed(6),
      curve.map(stepText).join("  "),
    ]),
  );
  await print(`\nreferences, on the same ${row.sample_size} forecasts`);
  await printTable(
    ["", "stated", "hit rate", "z", "log loss", "Brier", "skill (95 %)"],
    [{ ...row, name: "ours" }, ...row.references.map((one) => ({ ...one, skill_interval_95: null }))].map((one) => [
      one.name,
      share(one.expected_rate),
      share(one.hit_rate),
      one.z?.toFixed(2),
      one.log_loss?.toFixed(5),
      one.brier?.toFixed(5),
      withHalfWidth(one),
    ]),
  );
  await showWaits(row);
}

async function showWaits({ pit }: Measured): Promise<void> {
  if (pit === null) return print("\nwaits for the top color in the newest calibration: none yet");
  await print(
    `\nPIT of ${pit.waits} waits for the top color in the newest calibration, a backtest; 1 is an even spread`,
  );
  await showHeights(pit.heights);
}

function stepText({ p_from, p_to, rate }: { p_from: number; p_to: number; rate: number }): string {
  const stated = p_from === p_to ? p_from.toFixed(3) : `${p_from.toFixed(3)}–${p_to.toFixed(3)}`;
  return `${stated} → ${rate.toFixed(3)}`;
}

function nameOf({ house, game, market }: Measured): string {
  return game === null ? house : `${house}/${game}/${market}`;
}

function colored(verdict: Measured["verdict"]): string {
  if (verdict === "on target") return paint.green(verdict);
  return verdict === "off target" ? paint.red(verdict) : paint.yellow(verdict);
}

/** A probability as a percentage. */
function share(p: number | null): string | null {
  return percent(p, 2);
}

function percent(value: number | null, decimals: number): string | null {
  return value === null ? null : `${(value * 100).toFixed(decimals)} %`;
}

function digits(value: number | null): string {
  return value === null ? "-" : value.toFixed(4);
}

function withInterval(rate: number | null, interval: readonly [number, number] | null): string | null {
  if (rate === null || interval === null) return null;
  return `${share(rate)} (${interval.map((end) => (end * 100).toFixed(2)).join("–")})`;
}

function withHalfWidth({ skill, skill_interval_95: interval }: Pick<Measured, "skill" | "skill_interval_95">) {
  if (skill === null) return null;
  const half = interval === null ? "" : ` ± ${(((interval[1] - interval[0]) / 2) * 100).toFixed(3)}`;
  return `${(skill * 100).toFixed(3)}${half} %`;
}

/** Formats evidence, which spans many powers of ten. */
function evidence(e: number | null): string | null {
  if (e === null) return null;
  return e >= 1e5 || (e > 0 && e < 1e-3) ? e.toExponential(1) : e.toPrecision(3);
}

/** The bounds of the hit rate if all voids had missed or hit; without voids, the rate itself. */
function boundsOf({ voids, rate_bounds: bounds }: Measured): string | null {
  if (bounds === null || Object.values(voids).every((n) => n === 0)) return null;
  return bounds.map((bound) => share(bound)).join("–");
}

function voidsOf({ voids }: Measured): string {
  const kinds = Object.entries(voids).filter(([, n]) => n > 0);
  return kinds.length === 0 ? "0" : kinds.map(([kind, n]) => `${n} ${kind}`).join(", ");
}
