/**
 * A hand-written parameter set: a small YAML file with the values that differ from K7.
 */
import { parse } from "yaml";
import { z } from "zod";
import { reasonOf, UsageError } from "../../errors.ts";
import { halfLifeDecay } from "./half-life.ts";
import { gapBinEnds, namedParameters } from "./parameter-set.ts";
import { EXPERTS, type Parameters } from "./parameters.ts";

/** The content of a file. */
export interface RequestedModel {
  parameters: Parameters;
  /** Lower ends of other bands than the table's, in hundredths; null for the table's bands. */
  thresholds: number[] | null;
}

const halfLife = z.int().min(1).max(10_000_000);
const rounds = z.number().positive().max(1e9);
const weight = z.number().positive().max(1e6);
const multiplier = z
  .number()
  .min(1.01)
  .max(1_000_000)
  .refine((value) => Math.abs(value * 100 - Math.round(value * 100)) < 1e-6, "expected at most two decimals");

const fileSchema = z
  .strictObject({
    long_run_prior: rounds,
    theory_prior: rounds,
    recent_prior: rounds,
    markov_prior: rounds,
    hazard_prior: rounds,
    theory_half_lives: z.tuple([halfLife, halfLife]),
    recent_half_life: halfLife,
    share: z.number().min(0).lt(1),
    prior_weights: z.strictObject({
      LR: weight,
      TH: weight,
      TH200: weight,
      TH2000: weight,
      D1000: weight,
      M1: weight,
      G: weight,
    } satisfies Record<(typeof EXPERTS)[number], typeof weight>),
    x0: multiplier.max(1000),
    assumed_edge: z.number().min(0).lt(1),
    gap_bin_ends: gapBinEnds,
    thresholds: z
      .array(multiplier)
      .min(1)
      .max(7)
      .refine((ends) => ends.every((end, i) => i === 0 || end > (ends[i - 1] ?? end)), "expected ascending numbers"),
  })
  .partial();

/**
 * Parses a file and applies its values to a base set.
 *
 * Priors and half-lives are in rounds, `x0` and `thresholds` are multipliers, `prior_weights` are relative and name
 * every expert. With `thresholds` the rounds are sorted into other bands than the table's: such a run can be viewed and
 * compared, but not promoted.
 *
 * @throws UsageError that lists every error of the file
 */
export function readParameterFile(text: string, base: Parameters): RequestedModel {
  const parsed = fileSchema.safeParse(yamlOf(text));
  if (!parsed.success) throw new UsageError("the parameters are not usable", parsed.error.issues.flatMap(problemsOf));
  const given = parsed.data;
  return {
    thresholds: given.thresholds?.map(hundredths) ?? null,
    parameters: namedParameters({
      longRunPrior: given.long_run_prior ?? base.longRunPrior,
      theoryPrior: given.theory_prior ?? base.theoryPrior,
      recentPrior: given.recent_prior ?? base.recentPrior,
      markovPrior: given.markov_prior ?? base.markovPrior,
      hazardPrior: given.hazard_prior ?? base.hazardPrior,
      theoryDecays: given.theory_half_lives === undefined ? base.theoryDecays : decays(given.theory_half_lives),
      recentDecay: given.recent_half_life === undefined ? base.recentDecay : halfLifeDecay(given.recent_half_life),
      share: given.share ?? base.share,
      priorWeights: given.prior_weights === undefined ? base.priorWeights : normalized(given.prior_weights),
      x0Hundredths: given.x0 === undefined ? base.x0Hundredths : hundredths(given.x0),
      assumedEdge: given.assumed_edge ?? base.assumedEdge,
      gapBinEnds: given.gap_bin_ends ?? base.gapBinEnds,
    }),
  };
}

function decays([first, second]: [number, number]): [number, number] {
  return [halfLifeDecay(first), halfLifeDecay(second)];
}

function normalized(weights: Record<(typeof EXPERTS)[number], number>): number[] {
  const total = EXPERTS.reduce((sum, expert) => sum + weights[expert], 0);
  return EXPERTS.map((expert) => weights[expert] / total);
}

function hundredths(value: number): number {
  return Math.round(value * 100);
}

/** An empty file means the base set. */
function yamlOf(text: string): unknown {
  try {
    return parse(text) ?? {};
  } catch (error) {
    throw new UsageError(`the parameters are not YAML: ${reasonOf(error)}`);
  }
}

function problemsOf(issue: z.core.$ZodIssue): { path: string; message: string }[] {
  if (issue.code !== "unrecognized_keys") return [{ path: issue.path.join(".") || "the file", message: issue.message }];
  const known = issue.path.length === 0 ? Object.keys(fileSchema.shape) : EXPERTS;
  return issue.keys.map((key) => ({
    path: [...issue.path, key].join("."),
    message: `there is no such parameter; there are ${known.join(", ")}`,
  }));
}
