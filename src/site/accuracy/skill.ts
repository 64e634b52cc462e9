import type { Figures } from "../../forecasts/accuracy/figures/figures.ts";
import { LEAST_FOR_SKILL } from "../../forecasts/accuracy/figures/verdict.ts";
import { skillText } from "../../frame/text/accuracy-format.ts";

/**
 * Describes a skill in plain words, including no skill, too few forecasts, and a skill that is withheld.
 *
 * @example
 * const figures = { sample_size: 900, withheld: null, skill: 0.0001, skill_interval_95: [-0.002, 0.0022] };
 * skillSentence(figures); // => "Zero lies within the interval: no skill beyond constant probabilities is shown."
 * skillSentence({ ...figures, skill: -0.04, skill_interval_95: [-0.06, -0.02] }); // => "The skill lies below zero: these statements were worse than the best constant probabilities in hindsight, by 4.0 %."
 * skillSentence({ ...figures, sample_size: 10 }); // => "10 scored forecasts are too few for a verdict on skill; at least 500 are required."
 */
export function skillSentence({
  sample_size: sampleSize,
  withheld,
  skill,
  skill_interval_95: interval,
}: Pick<Figures, "sample_size" | "withheld" | "skill" | "skill_interval_95">): string {
  if (sampleSize === 0) return "No forecast was scored yet.";
  if (withheld !== null) return `Skill and intervals are withheld: ${withheld}.`;
  if (sampleSize < LEAST_FOR_SKILL || skill === null || interval === null)
    return `${sampleSize} scored ${sampleSize === 1 ? "forecast is" : "forecasts are"} too few for a verdict on skill; at least ${LEAST_FOR_SKILL} are required.`;
  const [low, high] = interval;
  if (low > 0)
    return `The skill lies above zero: these statements were better than the best constant probabilities in hindsight, by ${skillText(skill, interval).skill}.`;
  if (high < 0)
    return `The skill lies below zero: these statements were worse than the best constant probabilities in hindsight, by ${skillText(-skill, interval).skill}.`;
  return "Zero lies within the interval: no skill beyond constant probabilities is shown.";
}
