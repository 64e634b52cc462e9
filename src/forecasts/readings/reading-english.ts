import { NOTICE } from "../accuracy/present.ts";
import { numberFormats } from "./reading-numbers.ts";
import type { Sentences } from "./reading-sentences.ts";

const { whole, rough, percent, stated, chance, times } = numberFormats("en-US", {
  less: "less than",
  more: "more than",
});
const rounds = (n: number) => (n === 1 ? "1 round" : `${whole(n)} rounds`);
const every = (n: number) => (rough(n) === "1" ? "in every round" : `every ${rough(n)} rounds`);

/** Readings in English. */
export const english: Sentences = {
  notice: NOTICE,
  paused: "This table is paused. It has no reading until it is polled again.",
  silent: "No round of this table was received lately. It has no reading until the next one is.",
  nothingYet: "No round of this table is known yet.",
  tooFew: (n) => `Only ${rounds(n)} of this table ${n === 1 ? "is" : "are"} known, too few to describe it.`,
  waited: ({ color, gap, every: mean, chance: p }) =>
    `No ${color} for ${rounds(gap)} (on average it occurs ${every(mean)}; a wait this long or longer happens ${chance(p)} of the time).`,
  justCame: (color) => `The newest round was ${color}.`,
  waitUnknown: (color) =>
    `It is unknown how long ago ${color} last occurred: rounds are missing, and it has not occurred after them.`,
  streak: ({ color, length, chance: p }) =>
    `The newest ${rounds(length)} were ${color}; ${chance(p)} of ${color} streaks are that long.`,
  unchanged: ({ rounds: n, evidence, required, color, share }) =>
    `In ${rounds(n)} of this table the past has not changed the odds (evidence ${times(evidence)}×, we require ` +
    `${times(required)}×): ${color} occurred in ${percent(share)} of all rounds, and a wait makes it neither more nor less likely.`,
  changesOverTime: ({ weight }) =>
    `The evidence alone exceeds that mark, but the experts of past rounds hold ${percent(weight)} of the model's weight ` +
    `and we require half: odds that change over time look the same.`,
  changed: ({ rounds: n, evidence, required, weight }) =>
    `On this table the past has mattered: in ${rounds(n)} the odds differed by the rounds before (evidence ` +
    `${times(evidence)}×, we require ${times(required)}×; ${percent(weight)} of the model's weight, we require half). ` +
    `How much that is worth is measured under accuracy.`,
  mix: ({ rounds: n, shares, chance: p }) =>
    `Of the newest ${rounds(n)} ${listed(shares.map(([color, share]) => `${percent(share)} were ${color}`))}; ` +
    `${chance(p)} of random samples differ more from the rounds before.`,
  lively: ({ level, percentile }) =>
    `The multipliers of the newest 100 rounds are ${{ low: "low", usual: "as usual", high: "high" }[level]} ` +
    `for this table: ${chance(percentile)} of its own values were lower.`,
  steady: "There is no sign that the table has changed.",
  drifted: (e) => `The table seems to have changed: its newer rounds fit its long run badly (evidence ${times(e)}×).`,
  edgeKept: ({ declared, most, required }) =>
    `The rounds fit the declared edge of ${stated(declared)} (greatest evidence against it ${times(most)}×; from ${times(required)}× on we reject it).`,
  edgeDoubted: ({ declared, now, most, required }) =>
    `There is evidence against the declared edge of ${stated(declared)} (now ${times(now)}×, greatest ${times(most)}×), but up to ` +
    `one table in 20 reaches 20× by chance; with so many tables we reject it from ${times(required)}× on.`,
  edgeRejected: ({ declared, implied, now, most, required }) =>
    `The rounds do not fit the declared edge of ${stated(declared)}: they imply ${percent(implied)} ` +
    `(evidence against it now ${times(now)}×, greatest ${times(most)}×; from ${times(required)}× on we reject it).`,
};

function listed(parts: readonly string[]): string {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}
