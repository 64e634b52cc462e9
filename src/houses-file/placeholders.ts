import type { Variables } from "../config/environment.ts";

const made = new WeakMap<Variables, Variables>();

/**
 * Variables for work that asks a house nothing, such as reading its stored payloads: tokens need not be there, and what is
 * not set is replaced by an address that leads nowhere. The same ones each time, so that houses can be cached by them.
 */
export function withPlaceholders(variables: Variables): Variables {
  const known = made.get(variables);
  if (known !== undefined) return known;
  const placed: Variables = (name) => variables(name) || "https://not-set.invalid";
  made.set(variables, placed);
  return placed;
}
