import type { Accuracy, Forecasts } from "../src/index.ts";

type Forecast = Forecasts["forecasts"][number];

/** One line per table: the forecast of the next round, and what such forecasts have been worth so far. */
export function report({ forecasts }: Forecasts, { accuracy }: Accuracy): string {
  return forecasts
    .map((forecast) => `${nameOf(forecast)}: ${probabilities(forecast)}; ${measured(forecast, accuracy)}`)
    .join("\n");
}

function nameOf({ house, game, market }: Forecast): string {
  return `${house}/${game}/${market}`;
}

function probabilities({ state, next_color: next }: Forecast): string {
  if (next === null) return state;
  return Object.entries(next.probabilities)
    .map(([color, probability]) => `${color} ${percent(probability)} (long run ${percent(next.baseline[color])})`)
    .join(", ");
}

function measured({ house, game, market }: Forecast, accuracy: Accuracy["accuracy"]): string {
  const row = accuracy.find((one) => one.house === house && one.game === game && one.market === market);
  if (row?.hit_rate == null || row.interval_95 === null) return "nothing measured yet";
  const [low, high] = row.interval_95;
  const skill = row.skill === null ? "unknown" : percent(row.skill);
  return (
    `in ${row.period} ${percent(row.hit_rate)} of ${row.sample_size} had the likeliest color ` +
    `(95 %: ${percent(low)} to ${percent(high)}; stated ${percent(row.expected_rate)}), skill ${skill}`
  );
}

function percent(share: number | null | undefined): string {
  return share == null ? "unknown" : `${(share * 100).toFixed(1)} %`;
}
