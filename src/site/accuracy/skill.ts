import { LEAST_FOR_SKILL, skillText } from "../../frame/text/accuracy-format.ts";

/** A skill with its confidence interval. */
export interface Skill {
  sampleSize: number;
  skill: number | null;
  interval: readonly [low: number, high: number] | null;
}

/**
 * Scored forecasts before anything is stated about skill. The interval is a normal approximation, which needs about
 * fifty outcomes of the rarest color (one round in ten).
 */
export const LEAST = LEAST_FOR_SKILL;

/**
 * Describes a skill in plain words, including no skill and too few forecasts.
 *
 * @example
 * skillSentence({ sampleSize: 900, skill: 0.0001, interval: [-0.002, 0.0022] }); // => "Zero lies within the interval: no skill beyond constant probabilities is shown."
 * skillSentence({ sampleSize: 900, skill: -0.04, interval: [-0.06, -0.02] }); // => "The skill lies below zero: these statements were worse than the best constant probabilities in hindsight, by 4.0 %."
 * skillSentence({ sampleSize: 10, skill: 0.018, interval: [0.01, 0.026] }); // => "10 scored forecasts are too few for a verdict on skill; at least 500 are required."
 */
export function skillSentence({ sampleSize, skill, interval }: Skill): string {
  if (sampleSize === 0 || skill === null) return "No forecast was scored yet.";
  if (sampleSize < LEAST || interval === null)
    return `${sampleSize} scored ${sampleSize === 1 ? "forecast is" : "forecasts are"} too few for a verdict on skill; at least ${LEAST} are required.`;
  const [low, high] = interval;
  if (low > 0)
    return `The skill lies above zero: these statements were better than the best constant probabilities in hindsight, by ${skillText(skill, interval).skill}.`;
  if (high < 0)
    return `The skill lies below zero: these statements were worse than the best constant probabilities in hindsight, by ${skillText(-skill, interval).skill}.`;
  return "Zero lies within the interval: no skill beyond constant probabilities is shown.";
}
