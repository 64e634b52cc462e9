import { readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { chainsOf, type Chain } from "../../../src/houses/fairness/chains.ts";
import type { PresetName } from "../../../src/houses/fairness/presets.ts";
import { fairnessSettings } from "../../../src/houses/fairness/settings.ts";

const place = z.object({ id: z.number(), hash: z.string() });

const fixture = z.object({
  chains: z.array(
    z.object({
      key: z.string().transform((key) => key as PresetName),
      chain_step: z.enum(["sha256_hex", "sha256_raw"]),
      outcome: z.enum(["A", "B", "B9", "S"]),
      instant_divisor: z.number().optional(),
      salt: z.string(),
      commitment: place.optional(),
      known: place,
      /** Newest first. */
      checkpoints: z.array(z.tuple([z.number(), z.string()])),
      vectors: z.array(z.tuple([z.number(), z.string(), z.number()])),
    }),
  ),
});

/** The chains that were computed by others: their public values, hashes every 250,000 rounds, and some multipliers. */
export const PUBLIC_CHAINS = fixture.parse(
  JSON.parse(readFileSync(path.join(import.meta.dirname, "../../fixtures/chains.json"), "utf8")),
).chains;

/** A chain as a houses file with these settings has it. */
export function chainFrom(settings: unknown): Chain {
  const [chain] = chainsOf(fairnessSettings.parse(settings));
  if (chain === undefined) throw new Error("expected a chain");
  return chain;
}

/** Places of a public chain whose hash is known, newest first, down to its end. */
export function knownPlaces({ known, checkpoints }: (typeof PUBLIC_CHAINS)[number], { end }: Chain) {
  return [known, ...checkpoints.map(([id, hash]) => ({ id, hash })), { id: Number(end.number), hash: end.hash }];
}
