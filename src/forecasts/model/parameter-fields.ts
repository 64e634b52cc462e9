import { UsageError } from "../../errors.ts";
import { EXPERTS } from "./parameters.ts";

/** A parameter of K7 as a form asks for it: one number, or several with commas between them. */
export interface ParameterField {
  /** Its name in a parameter file. */
  name: string;
  label: string;
  /** What it means, its bounds, and its unit. */
  meaning: string;
  /** The value of k7@1; empty if it has none. */
  standard: string;
}

const COUNTED = "Above 0, to a billion.";

/** The fields of a form for another parameter set, in the order of a parameter file. */
export const PARAMETER_FIELDS = [
  {
    name: "long_run_prior",
    label: "Long-run prior, rounds",
    meaning: `What the theory counts for in the long-run shares. ${COUNTED}`,
    standard: "20",
  },
  {
    name: "theory_prior",
    label: "Theory prior, rounds",
    meaning: `What the declared edge counts for in the theory experts. ${COUNTED}`,
    standard: "50",
  },
  {
    name: "recent_prior",
    label: "Recent prior, rounds",
    meaning: `What the long-run shares count for in the discounted color counts. ${COUNTED}`,
    standard: "25",
  },
  {
    name: "markov_prior",
    label: "Markov prior, rounds",
    meaning: `What the long-run shares count for after each color. ${COUNTED}`,
    standard: "100",
  },
  {
    name: "hazard_prior",
    label: "Hazard prior, rounds",
    meaning: `What the long-run shares count for in each bin of gaps. ${COUNTED}`,
    standard: "100",
  },
  {
    name: "theory_half_lives",
    label: "Theory half-lives, rounds",
    meaning:
      "After how many rounds a round counts half in the two discounted theory experts. Two whole numbers from 1.",
    standard: "200, 2000",
  },
  {
    name: "recent_half_life",
    label: "Recent half-life, rounds",
    meaning: "After how many rounds a round counts half in the discounted color counts. A whole number from 1.",
    standard: "1000",
  },
  {
    name: "share",
    label: "Share",
    meaning: "The part of the experts' weight that returns to the prior each round. From 0, below 1.",
    standard: "0.00001",
  },
  {
    name: "prior_weights",
    label: "Prior weights",
    meaning: `Relative weights of ${EXPERTS.join(", ")} at the beginning. Seven numbers above 0.`,
    standard: "3, 3, 1, 1, 1, 1, 1",
  },
  {
    name: "x0",
    label: "x0, multiplier",
    meaning: "The multiplier whose survival determines the edge of a house. 1.01 to 1000, two decimals.",
    standard: "1.1",
  },
  {
    name: "assumed_edge",
    label: "Assumed edge",
    meaning: "The edge of a table that declares none. From 0, below 1.",
    standard: "0.03",
  },
  {
    name: "gap_bin_ends",
    label: "Ends of gap bins, rounds",
    meaning: "The last gap of each hazard bin; one more bin is open above. Up to 63 ascending whole numbers from 0.",
    standard: "0, 2, 4, 7, 11, 17, 27, 44",
  },
  {
    name: "thresholds",
    label: "Thresholds, multipliers",
    meaning:
      "Lower ends of other bands than the table's; such a run cannot be promoted. 1 to 7 ascending multipliers from 1.01.",
    standard: "",
  },
] as const satisfies readonly ParameterField[];

/** The name of a parameter. */
export type ParameterName = (typeof PARAMETER_FIELDS)[number]["name"];

const LISTS = new Set<ParameterName>(["theory_half_lives", "gap_bin_ends", "thresholds"]);

/**
 * The parameter file of what was typed into these fields; null if all are empty. Bounds are checked when it is read.
 *
 * @throws UsageError that names the field, for a value that is not numbers with commas or spaces between them
 */
export function parameterFileOf(typed: Readonly<Partial<Record<ParameterName, string>>>): string | null {
  const lines = PARAMETER_FIELDS.flatMap(({ name, standard }) => {
    const numbers = (typed[name] ?? "").split(/[\s,]+/).filter((text) => text !== "");
    if (numbers.length === 0) return [];
    if (!numbers.every((text) => Number.isFinite(Number(text)) && /^[\d.e+-]+$/i.test(text)))
      throw new UsageError(`${name}: expected numbers such as ${standard || "2, 10"}, found ${typed[name]}`);
    return [`${name}: ${valueOf(name, numbers.map(Number))}`];
  });
  return lines.length === 0 ? null : lines.join("\n");
}

function valueOf(name: ParameterName, numbers: readonly number[]): string {
  if (name === "prior_weights") {
    if (numbers.length !== EXPERTS.length)
      throw new UsageError(`${name}: expected ${EXPERTS.length} numbers, found ${numbers.length}`);
    return JSON.stringify(Object.fromEntries(EXPERTS.map((expert, n) => [expert, numbers[n]])));
  }
  return JSON.stringify(LISTS.has(name) || numbers.length > 1 ? numbers : numbers[0]);
}
