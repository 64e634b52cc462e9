/**
 * Parameter sets other than K7's defaults: their JSON in a saved state, and their unique name.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { z } from "zod";
import { EXPERTS, K7_1, type Parameters } from "./parameters.ts";

/** A set without its name, which follows from it. */
type ParameterValues = Omit<Parameters, "name">;

/** Hex digits of the hash in a name: two of a million sets would share one with a chance of 1 in 10,000 at 8. */
const HASH_DIGITS = 12;

const positive = z.number().finite().positive();
const decay = z.number().gt(0).lt(1);

/** Last gap of each hazard bin: ascending, few enough that every bin sees rounds. */
export const gapBinEnds = z
  .array(z.int().min(0).max(10_000))
  .min(1)
  .max(63)
  .refine((ends) => ends.every((end, i) => i === 0 || end > (ends[i - 1] ?? end)), "expected ascending numbers");

/** Schema of a parameter set, for input from outside. */
const parameterValues = z.strictObject({
  longRunPrior: positive,
  theoryPrior: positive,
  recentPrior: positive,
  markovPrior: positive,
  hazardPrior: positive,
  theoryDecays: z.tuple([decay, decay]),
  recentDecay: decay,
  share: z.number().min(0).lt(1),
  priorWeights: z.array(z.number().gt(0).lte(1)).length(EXPERTS.length),
  x0Hundredths: z.int().min(101).max(100_000),
  assumedEdge: z.number().min(0).lt(1),
  gapBinEnds,
}) satisfies z.ZodType<ParameterValues>;
const VALUE_NAMES = Object.keys(parameterValues.shape) as (keyof ParameterValues)[];

/**
 * A set with its name: `k7@1` for K7's defaults, else `k7@1+` and the first 12 hex digits of the sha256 over the JCS of all
 * values.
 */
export function namedParameters(values: ParameterValues): Parameters {
  const text = canonicalize(valuesOf(values)) ?? "";
  if (text === canonicalize(valuesOf(K7_1))) return K7_1;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, HASH_DIGITS);
  return { name: `${K7_1.name}+${hash}`, ...values };
}

/** The values, always in this order, so that equal sets are equal texts. */
export function valuesOf(parameters: ParameterValues): ParameterValues {
  return Object.fromEntries(VALUE_NAMES.map((name) => [name, parameters[name]])) as ParameterValues;
}

/**
 * Parses a set that was stored under a name.
 *
 * @throws Error if the values are not a valid set, or do not match the name
 */
export function storedParameters(name: string, json: unknown): Parameters {
  const parsed = parameterValues.safeParse(json);
  if (!parsed.success)
    throw new Error(
      `expected the parameters of ${name}, got ${z.prettifyError(parsed.error)}; start the run with its file again`,
    );
  const parameters = namedParameters(parsed.data);
  if (parameters.name !== name)
    throw new Error(
      `expected the parameters of ${name}, got those of ${parameters.name}; start the run with its file again`,
    );
  return parameters;
}
