/**
 * What `/accuracy` prints, derived from an accuracy row.
 *
 * The only place of this concept where floats may be: each figure is a ratio of exact integers, formed once. Names are
 * those of the API. A figure that has no sample is null, never 0.
 */
import { eValue } from "./e-value.ts";
import { rateBounds, skillInterval, wilsonInterval } from "./intervals.ts";
import { calibrationError, calibrationErrorFloor, reliabilityBins, type ReliabilityBin } from "./reliability.ts";
import type { Sums } from "./sums.ts";

/** Ppm in one, and ppm² in one. */
const PPM = 1e6;
const PPM2 = 1e12;

/** Micro-nats in one nat. */
const MICRO = 1e6;

type Interval = [low: number, high: number];

export type Figures = {
  sample_size: number;
  hits: number;
  hit_rate: number | null;
  interval_95: Interval | null;
  expected_rate: number | null;
  baseline_rate: number | null;
  coverage: number | null;
  not_issued: number | null;
  voids: { gap: number; house: number; quarantine: number; late: number };
  rate_bounds: Interval | null;
  pending: number;
  z: number | null;
  e_value: number | null;
  log_loss: number | null;
  baseline_log_loss: number | null;
  brier: number | null;
  baseline_brier: number | null;
  rps: number | null;
  baseline_rps: number | null;
  skill: number | null;
  skill_interval_95: Interval | null;
  calibration_error: number | null;
  calibration_error_floor: number | null;
  reliability: ReliabilityBin[];
};

/**
 * The figures of one feature over one period.
 *
 * - `z` = Σ(y − p) / √Σp(1 − p): how far the hits are from the stated probabilities, in standard deviations
 * - `log_loss` in nats; `brier` and `rps` summed over colors, not averaged
 * - `skill` = 1 − log_loss / baseline_log_loss: 0 says no better than the long-run shares
 * - `skill_interval_95` is that of the paired gain; `rate_bounds` are the hit rate had all voids missed, or hit
 * - `e_value`: 20 or more says off target, less says nothing; the calibration error says nothing without its floor
 * - `reliability`: the bins that hold anything; of `next_color` they count every color of every forecast
 * - `coverage` = 1 − not_issued / rounds on time; it and `not_issued` say nothing about windows and are null there
 *
 * @param feature `next_color` or `window:<color>:<target>`
 */
export function figuresOf(feature: string, sums: Sums): Figures {
  const { n } = sums;
  const isNextColor = feature === "next_color";
  const voids = {
    gap: Number(sums.voidGap),
    house: Number(sums.voidHouse),
    quarantine: Number(sums.voidQuarantine),
    late: Number(sums.voidLate),
  };
  return {
    sample_size: Number(n),
    hits: Number(sums.hits),
    hit_rate: ratio(sums.hits, n),
    interval_95: wilsonInterval(Number(sums.hits), Number(n)),
    expected_rate: ratio(sums.sumP, n, PPM),
    baseline_rate: ratio(sums.sumPBase, n, PPM),
    coverage: isNextColor ? ratio(sums.onTimeRounds - sums.notIssued, sums.onTimeRounds) : null,
    not_issued: isNextColor ? Number(sums.notIssued) : null,
    voids,
    rate_bounds: rateBounds(Number(sums.hits), Number(n), voids.gap + voids.house + voids.quarantine + voids.late),
    pending: Number(sums.pending),
    z: standardScore(sums),
    e_value: n === 0n ? null : eValue(sums.sumLnE).e,
    log_loss: ratio(sums.sumLl, n, MICRO),
    baseline_log_loss: ratio(sums.sumLlBase, n, MICRO),
    brier: ratio(sums.sumBrier, n, PPM2),
    baseline_brier: ratio(sums.sumBrierBase, n, PPM2),
    rps: ratio(sums.sumRps, n, PPM2),
    baseline_rps: ratio(sums.sumRpsBase, n, PPM2),
    // The difference is exact as an integer; 1 − a/b would lose the digits that matter when skill is near zero.
    skill: ratio(sums.sumLlBase - sums.sumLl, sums.sumLlBase),
    skill_interval_95: skillInterval(sums),
    calibration_error: calibrationError(sums.histograms),
    calibration_error_floor: calibrationErrorFloor(sums.histograms),
    reliability: reliabilityBins(sums.histograms),
  };
}

function standardScore({ hits, sumP, sumPq }: Sums): number | null {
  return sumPq === 0n ? null : Number(hits * BigInt(PPM) - sumP) / Math.sqrt(Number(sumPq));
}

/** part / (whole · unit), null where there is no whole. */
function ratio(part: bigint, whole: bigint, unit = 1): number | null {
  return whole === 0n ? null : Number(part) / (Number(whole) * unit);
}
