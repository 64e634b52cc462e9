import { WINDOW_ROUNDS_MAX, WINDOW_TARGETS } from "./features.ts";
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import type { Model } from "./model.ts";
import { valuesOf } from "./parameter-set.ts";

const HASH_DIGITS = 12;

/**
 * The name of a model: its parameter set, "-", and the first 12 hex digits of the sha256 over the JCS of everything its
 * forecasts depend on: a change of bands, edge, constants or windows gives another model. With bands from 2.00 and 10.00,
 * an edge of 1 % and the parameters k7@1 it is k7@1-7262526239ae.
 */
export function modelName({ thresholds, edge, parameters }: Pick<Model, "thresholds" | "edge" | "parameters">): string {
  const facts = {
    bands: thresholds,
    edge,
    parameters: valuesOf(parameters),
    windows: { targets: WINDOW_TARGETS, rounds: WINDOW_ROUNDS_MAX },
  };
  const hash = createHash("sha256")
    .update(canonicalize(facts) ?? "")
    .digest("hex");
  return `${parameters.name}-${hash.slice(0, HASH_DIGITS)}`;
}

/**
 * The name of a model's parameter set.
 *
 * @example
 * parameterSetOf("k7@1-0123456789ab"); // => "k7@1"
 */
export function parameterSetOf(model: string): string {
  return model.split("-", 1)[0] ?? model;
}
