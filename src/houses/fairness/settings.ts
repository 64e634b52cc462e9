import { z } from "zod";
import { presets, type PresetName } from "./presets.ts";
import { schemes, type SchemeName } from "./schemes.ts";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, { error: "expected 64 lower case hexadecimal digits" });
const roundNumber = z.number().int().min(0);
/** The most eras of a table. */
export const MOST_ERAS = 50;

/** Fields of custom chains only; a known chain has its own values. */
const OWN_FIELDS = ["rule", "divisor", "step", "salt", "client_seed", "terminating_hash", "terminating_id"] as const;

/**
 * One era of a table's proofs: a known `chain`, or a `scheme` with its public values. `from` and `to` are the first and
 * last round of the era, if rounds are numbered.
 */
export const fairnessEra = z
  .strictObject({
    chain: z.enum(Object.keys(presets) as [PresetName, ...PresetName[]]).optional(),
    scheme: z.enum([...(Object.keys(schemes) as [SchemeName, ...SchemeName[]]), "custom"]).optional(),
    rule: z.enum(["A", "B", "B9", "S"]).optional(),
    divisor: z
      .number()
      .int()
      .min(2)
      .max(2 ** 20)
      .optional(),
    step: z.enum(["sha256_hex", "sha256_raw"]).optional(),
    salt: z.string().min(1).max(200).optional(),
    client_seed: z.string().min(1).max(200).optional(),
    terminating_hash: sha256.optional(),
    terminating_id: roundNumber.optional(),
    /** Rounds of the whole chain after its terminating hash. */
    length: z.number().int().min(1).max(1_000_000_000).optional(),
    from: roundNumber.optional(),
    to: roundNumber.optional(),
  })
  .superRefine((given, context) => {
    const problem = (path: string, message: string) => context.addIssue({ code: "custom", path: [path], message });
    if ((given.chain === undefined) === (given.scheme === undefined)) {
      return problem("chain", "expected either the name of a known `chain`, or a `scheme` with its public values");
    }
    if (given.from !== undefined && given.to !== undefined && given.to < given.from) {
      problem("to", `expected a round from ${given.from} on, where the era begins`);
    }
    if (given.chain !== undefined) {
      for (const field of OWN_FIELDS.filter((name) => given[name] !== undefined)) {
        problem(
          field,
          `the chain ${given.chain} has its own; remove the field, or name a \`scheme\` instead of a chain`,
        );
      }
      return;
    }
    if ((given.salt === undefined) === (given.client_seed === undefined)) {
      problem("salt", "expected either `salt` or `client_seed`, the public text that each hash is combined with");
    }
    if (given.terminating_hash === undefined) {
      problem("terminating_hash", "expected the published hash that the whole chain leads back to");
    }
    if (given.scheme !== "custom") {
      for (const field of (["rule", "divisor", "step"] as const).filter((name) => given[name] !== undefined)) {
        problem(field, `the scheme ${given.scheme} has its own; use \`scheme: custom\` to set it`);
      }
      return;
    }
    if (given.rule === undefined) problem("rule", "expected A, B, B9 or S");
    if (given.step === undefined) problem("step", "expected sha256_hex or sha256_raw");
    if ((given.rule === "A") !== (given.divisor !== undefined)) {
      problem("divisor", "expected with rule A and with no other rule: one round in this many is an instant crash");
    }
  });

const eras = z.array(fairnessEra).min(1).max(MOST_ERAS);

/** How a table's results are proven: one era, or a list of them, oldest first. */
export const fairnessSettings = z.unknown().transform((given, context) => {
  // not a union: its error would only state that neither variant fits
  const read = Array.isArray(given) ? eras.safeParse(given) : fairnessEra.safeParse(given);
  if (read.success) return read.data;
  for (const { path, message } of read.error.issues) context.addIssue({ code: "custom", path, message });
  return z.NEVER;
});

/** One era as the houses file has it. */
export type Era = z.infer<typeof fairnessEra>;
/** The settings of a table on how its results are proven. */
export type Fairness = z.infer<typeof fairnessSettings>;

/**
 * Why the table's rounds cannot be proven with these settings; null if they can.
 *
 * If rounds are numbered, the number of a round decides its era. Opaque ids give no position: the era is the one that a
 * hash leads to.
 */
export function fairnessProblem(
  fairness: Fairness,
  { roundIds, hasHash }: { roundIds: "consecutive" | "opaque"; hasHash: boolean },
): string | null {
  if (!hasHash) return "a proof needs the hash of each round: expected `feed.hash`";
  const list = Array.isArray(fairness) ? fairness : [fairness];
  if (roundIds === "opaque") {
    const isNumbered = list.some(({ from, to }) => from !== undefined || to !== undefined);
    return isNumbered ? "with `round_ids: opaque` the hashes of an era identify it: remove `from` and `to`" : null;
  }
  let before = -1;
  for (const [index, one] of list.entries()) {
    const first = firstOf(one);
    if (index > 0 && first <= before) {
      return `eras overlap or are not in order: expected number ${index + 1} to begin after round ${before}, found ${first}`;
    }
    before = one.to ?? first;
  }
  return null;
}

/** The first round of an era in a list: by default the one after its terminating round. */
function firstOf({ from, chain, terminating_id }: Era): number {
  return from ?? (chain === undefined ? (terminating_id ?? 0) + 1 : presets[chain].from);
}
