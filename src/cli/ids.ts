import { InvalidArgumentError } from "commander";

/** Reads one id. */
export function oneId(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError("expected a number.");
}

/** Reads one id of several that are given one after another. */
export function manyIds(text: string, before: bigint[] | undefined): bigint[] {
  return [...(before ?? []), oneId(text)];
}
