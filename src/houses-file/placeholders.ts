import type { Variables } from "../config/environment.ts";

const made = new WeakMap<Variables, Variables>();

/**
 * Variables for work without requests to houses, such as reading stored payloads: missing tokens are replaced by an
 * address that does not exist. The result is the same each time, so that houses can be cached by it.
 */
export function withPlaceholders(variables: Variables): Variables {
  const known = made.get(variables);
  if (known !== undefined) return known;
  const placed: Variables = (name) => variables(name) || "https://not-set.invalid";
  made.set(variables, placed);
  return placed;
}
