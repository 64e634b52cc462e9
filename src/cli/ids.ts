import { InvalidArgumentError } from "commander";

/** Parses one id. */
export function oneId(text: string): bigint {
  if (/^\d{1,18}$/.test(text)) return BigInt(text);
  throw new InvalidArgumentError("expected a number.");
}

/** Parses one id of a variadic argument. */
export function manyIds(text: string, before: bigint[] | undefined): bigint[] {
  return [...(before ?? []), oneId(text)];
}
