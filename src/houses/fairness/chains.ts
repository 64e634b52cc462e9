import { hash } from "node:crypto";
import { presets, type Preset } from "./presets.ts";
import { schemes, type Scheme } from "./schemes.ts";
import type { Era, Fairness } from "./settings.ts";

/** A round whose hash is known to lead back to the published end of the chain. */
export interface ProvenPoint {
  number: bigint;
  hash: string;
}

/** One chain of hashes of a table: how it is computed, where it ends, and which rounds belong to it. */
export interface Chain extends Scheme {
  /** Identifies the values below: what was proven with other values proves nothing here. */
  id: string;
  /** The display name: the known chain's, or the scheme's. */
  name: string;
  salt: string;
  end: ProvenPoint;
  /** Rounds of the whole chain after its end; null if unknown. */
  length: bigint | null;
  /** First and last round; `to` is null while the chain is in use. */
  from: bigint;
  to: bigint | null;
}

const made = new WeakMap<Fairness, readonly Chain[]>();

/** The chains of a table, oldest first, with defaults for what the houses file omits. */
export function chainsOf(fairness: Fairness): readonly Chain[] {
  const before = made.get(fairness);
  if (before !== undefined) return before;
  const eras = Array.isArray(fairness) ? fairness : [fairness];
  const chains = eras.map((era) => chainOf(era, eras.length === 1));
  chains.forEach((chain, index) => {
    const next = chains[index + 1];
    if (next !== undefined && (chain.to === null || chain.to >= next.from)) chain.to = next.from - 1n;
  });
  made.set(fairness, chains);
  return chains;
}

/** The chain of the round with this number; null if no era covers it, so that it cannot be proven. */
export function chainAt(chains: readonly Chain[], number: bigint): Chain | null {
  return chains.find(({ from, to }) => number >= from && (to === null || number <= to)) ?? null;
}

function chainOf(era: Era, isAlone: boolean): Chain {
  const preset: Preset | null = era.chain === undefined ? null : presets[era.chain];
  const salt = preset?.salt ?? era.salt ?? era.client_seed;
  const terminatingHash = preset?.end.hash ?? era.terminating_hash;
  if (salt === undefined || terminatingHash === undefined) throw new Error("expected parsed fairness settings");
  const { rule, divisor, step } = schemeOf(era, preset);
  const end = { number: BigInt(preset?.end.id ?? era.terminating_id ?? 0), hash: terminatingHash };
  const from = era.from ?? preset?.from;
  const to = era.to ?? preset?.to ?? null;
  const length = era.length ?? preset?.length ?? null;
  return {
    id: hash("sha256", JSON.stringify([rule, divisor, step, salt, end.hash, String(end.number)])),
    name: era.chain ?? era.scheme ?? "",
    rule,
    divisor,
    step,
    salt,
    end,
    length: length === null ? null : BigInt(length),
    // a single chain covers every round: rounds before its end are refused, not just unproven
    from: from === undefined ? (isAlone ? 0n : end.number + 1n) : BigInt(from),
    to: to === null ? null : BigInt(to),
  };
}

function schemeOf(era: Era, preset: Preset | null): Scheme {
  const name = preset?.scheme ?? era.scheme;
  if (name !== undefined && name !== "custom") return schemes[name];
  const { rule, divisor = null, step } = era;
  if (rule === undefined || step === undefined) throw new Error("expected parsed fairness settings");
  return { rule, divisor, step };
}
