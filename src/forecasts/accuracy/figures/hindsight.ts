/**
 * The best constant probabilities in hindsight: the baseline of skill. They are fitted, not chosen, and no forecast is
 * expected to beat them on a fair table.
 */

/** Forecasts with one outcome: a color of next_color, or a horizon of a window with whether it hit. */
export interface OutcomeSums {
  /** Index of the color that occurred; null for windows. */
  color: number | null;
  /** Rounds of the window and whether its color occurred; null for next_color. */
  window: { horizon: number; isHit: boolean } | null;
  n: bigint;
  /** Log loss in micro-nats, and its squares. */
  sumLl: bigint;
  sumLl2: bigint;
}

/** The log loss of the best constant, and Σ d² of d = its log loss minus that of the forecast; micro-nats. */
export interface Hindsight {
  bestLl: bigint;
  bestD2: bigint;
}

const MICRO = 1e6;
/** Steps of the bisection for the per-round chance: more than the precision of a double. */
const HALVINGS = 200;
/** θ = −ln(1 − b) from a chance of one in 10^12 to 1 − 10^−17. */
const THETA = { least: 1e-12, most: 40 };

/**
 * The best constant of one table and model. For next_color it is the observed share of each color; for a window one
 * chance b per round, which maximizes the likelihood under 1 − (1 − b)^horizon.
 *
 * @example
 * const color = (color, n) => ({ color, window: null, n, sumLl: n * 700000n, sumLl2: n * 490000000000n });
 * hindsightOf([color(0, 3n), color(1, 1n)]); // => { bestLl: 2249341n, bestD2: 981018170238n }
 */
export function hindsightOf(outcomes: readonly OutcomeSums[]): Hindsight {
  const lossOf = outcomes.some(({ window }) => window !== null) ? windowLoss(outcomes) : colorLoss(outcomes);
  let [ll, d2] = [0, 0];
  for (const outcome of outcomes) {
    const [n, loss] = [Number(outcome.n), lossOf(outcome) * MICRO];
    if (n === 0) continue;
    ll += n * loss;
    d2 += n * loss * loss - 2 * loss * Number(outcome.sumLl) + Number(outcome.sumLl2);
  }
  return { bestLl: BigInt(Math.round(ll)), bestD2: BigInt(Math.round(Math.max(0, d2))) };
}

type Loss = (outcome: OutcomeSums) => number;

function colorLoss(outcomes: readonly OutcomeSums[]): Loss {
  const total = outcomes.reduce((sum, { n }) => sum + Number(n), 0);
  return ({ n }) => Math.log(total / Number(n));
}

/** The log likelihood is concave in θ = −ln(1 − b), so bisection finds the zero of its slope. */
function windowLoss(outcomes: readonly OutcomeSums[]): Loss {
  const slope = (theta: number) =>
    outcomes.reduce((sum, { n, window }) => {
      const { horizon, isHit } = window ?? { horizon: 0, isHit: false };
      return sum + Number(n) * (isHit ? horizon / Math.expm1(horizon * theta) : -horizon);
    }, 0);
  let [low, high] = [THETA.least, THETA.most];
  for (let step = 0; step < HALVINGS; step++) {
    const middle = (low + high) / 2;
    if (slope(middle) > 0) low = middle;
    else high = middle;
  }
  const theta = (low + high) / 2;
  return ({ window }) => {
    const { horizon, isHit } = window ?? { horizon: 0, isHit: false };
    return isHit ? -Math.log(-Math.expm1(-horizon * theta)) : horizon * theta;
  };
}
