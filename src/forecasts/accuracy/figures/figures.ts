/**
 * The figures of `/accuracy`, derived from an accuracy row.
 *
 * The only place with floats in accuracy: each figure is one ratio of exact integers. Names are those of the API. A figure
 * without a sample is null, never 0.
 */
import { eValue } from "./e-value.ts";
import { rateBounds, skillInterval, wilsonInterval } from "./intervals.ts";
import { calibrationError, calibrationErrorFloor, reliabilityBins } from "./reliability.ts";
import { mergeSums, type Sums, VOID_COUNT, type VoidKind, voidsOf } from "./sums.ts";

/** Ppm in one, and ppm² in one. */
const PPM = 1e6;
const PPM2 = 1e12;

/** Micro-nats in one nat. */
const MICRO = 1e6;

/** The figures of one feature over one period, in the order in which callers get them. */
export type Figures = ReturnType<typeof figuresOf>;

/**
 * The figures of one feature over one period.
 *
 * - `z` = Σ(y − p) / √Σp(1 − p): distance of the hits from the stated probabilities, in standard deviations
 * - `log_loss` in nats; `brier` and `rps` summed over colors, not averaged
 * - `skill` = 1 − log loss ÷ that of the best constant probabilities in hindsight, fitted table by table
 * - `skill_interval_95` is that of the paired gain; `rate_bounds` are the hit rate if all voids had missed, or hit
 * - `withheld`: more than 5 % are void or late, so the rest may be a selection: no interval, evidence or skill; a window
 *   is so by its own voids and the late rounds of its table
 * - `e_value`: 20 or more means off target, less is inconclusive; read the calibration error next to its floor
 * - `reliability`: the bins that are not empty; those of `next_color` count every color of every forecast
 * - `coverage` of next_color = 1 − not_issued ÷ received rounds, late ones too; of a window, issued ÷ due
 *
 * - `sealed`: the share of settled forecasts that a cosigned checkpoint of the public log covered in time
 *
 * @param feature `next_color` or `window:<color>:<target>`
 */
export function figuresOf(feature: string, sums: Sums) {
  const { n } = sums;
  const isNextColor = feature === "next_color";
  const voids = Object.fromEntries(
    Object.entries(VOID_COUNT).map(([kind, count]) => [kind, Number(sums[count])]),
  ) as Record<VoidKind, number>;
  const isWithheld = hasTooManyVoids(sums);
  const { bestLl, bestD2 } = bestOf(sums);
  return {
    ...hitFigures(sums),
    expected_rate: ratio(sums.sumP, n, PPM),
    baseline_rate: ratio(sums.sumPBase, n, PPM),
    coverage: isNextColor
      ? ratio(sums.receivedRounds - sums.notIssued, sums.receivedRounds)
      : ratio(sums.forecasts, sums.forecasts + sums.notIssued),
    not_issued: Number(sums.notIssued),
    late_rounds: isNextColor ? Number(sums.lateRounds) : null,
    voids,
    rate_bounds: rateBounds(Number(sums.hits), Number(n), Number(voidsOf(sums))),
    withheld: !isWithheld ? null : sums.nWithheld === 0n ? WITHHELD : POOL_WITHHELD,
    pending: Number(sums.pending),
    sealed: ratio(sums.sealed, n + voidsOf(sums)),
    z: isWithheld ? null : standardScore(sums),
    e_value: n === 0n || isWithheld ? null : eValue(sums.sumLnE).e,
    log_loss: ratio(sums.sumLl, n, MICRO),
    baseline_log_loss: ratio(sums.sumLlBase, n, MICRO),
    brier: ratio(sums.sumBrier, n, PPM2),
    baseline_brier: ratio(sums.sumBrierBase, n, PPM2),
    rps: ratio(sums.sumRps, n, PPM2),
    baseline_rps: ratio(sums.sumRpsBase, n, PPM2),
    // The difference is exact as an integer; 1 − a/b would lose the digits that matter when skill is near zero.
    skill: isWithheld ? null : ratio(bestLl - sums.sumLl, bestLl),
    skill_interval_95:
      isWithheld || bestD2 === null
        ? null
        : skillInterval({ n, sumD: bestLl - sums.sumLl, sumD2: bestD2, sumLlBase: bestLl }),
    calibration_error: calibrationError(sums.histograms),
    calibration_error_floor: calibrationErrorFloor(sums.histogramsByRow ?? [sums.histograms]),
    reliability: reliabilityBins(sums.histograms),
  };
}

/** The figures of hits alone, in the order of {@link figuresOf}. */
export function hitFigures(sums: Sums) {
  const { n, hits } = sums;
  return {
    sample_size: Number(n),
    hits: Number(hits),
    hit_rate: ratio(hits, n),
    interval_95: hasTooManyVoids(sums) ? null : wilsonInterval(Number(hits), Number(n)),
  };
}

/** More voids and late rounds than this could be a selection of what is counted. */
const VOIDS_MAX_PERCENT = 5n;
const WITHHELD = "more than 5 % of the rounds are void or late";
const POOL_WITHHELD = "more than 5 % of the rounds are void, late, or of tables whose own figures are withheld";

/** The sums from which {@link hasTooManyVoids} follows. */
export type LossSums = Pick<Sums, "n" | "lateRounds" | (typeof VOID_COUNT)[VoidKind]> &
  Partial<Pick<Sums, "settledRounds" | "nWithheld">>;

/**
 * Whether too much of a row is void or late to publish skill, interval or verdict. A window covers several rounds, so late
 * rounds count there as their share of the rounds, not of the windows. Of several tables, those whose own row is withheld
 * are lost as a whole.
 */
export function hasTooManyVoids(sums: LossSums): boolean {
  const { n, lateRounds, settledRounds = 0n, nWithheld = 0n } = sums;
  const voids = voidsOf(sums);
  const [ended, rounds] = settledRounds === 0n ? [1n, 1n] : [n + voids, settledRounds];
  const lost = (voids + nWithheld) * rounds + lateRounds * ended;
  return lost * 100n > ((n - nWithheld) * rounds + lost) * VOIDS_MAX_PERCENT;
}

/** The sums of several tables together, each given by its own row; a row alone stays as it is. */
export function poolSums(rows: readonly Sums[]): Sums {
  const isLost = (sums: Sums) => rows.length > 1 && hasTooManyVoids(sums);
  return mergeSums(rows.map((sums) => ({ ...sums, nWithheld: isLost(sums) ? sums.n : 0n })));
}

/** The best constant. A backtest stores no outcome sums: then only next_color has one, without its squares. */
function bestOf({ n, bestLl, bestD2, confusion }: Sums): { bestLl: bigint; bestD2: bigint | null } {
  if (bestLl !== 0n || bestD2 !== 0n || n === 0n) return { bestLl, bestD2 };
  const loss = confusion.reduce(
    (sum, count) => (count === 0n ? sum : sum + Number(count) * Math.log(Number(n) / Number(count))),
    0,
  );
  return { bestLl: BigInt(Math.round(loss * MICRO)), bestD2: null };
}

function standardScore({ hits, sumP, sumPq }: Sums): number | null {
  return sumPq === 0n ? null : Number(hits * BigInt(PPM) - sumP) / Math.sqrt(Number(sumPq));
}

/** part / (whole · unit), null if the whole is 0. */
function ratio(part: bigint, whole: bigint, unit = 1): number | null {
  return whole === 0n ? null : Number(part) / (Number(whole) * unit);
}

/** Mean log loss of the best constant in hindsight, in nats; null without a score or when too much is void or late. */
export function bestLogLoss(sums: Sums): number | null {
  return hasTooManyVoids(sums) ? null : ratio(bestOf(sums).bestLl, sums.n, MICRO);
}
