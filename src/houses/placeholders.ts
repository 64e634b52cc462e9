import type { Variables } from "../config.ts";

/**
 * Variables for work that asks a house nothing, such as reading its stored answers: tokens need not be there, and what is
 * not set is replaced by an address that leads nowhere.
 */
export function withPlaceholders(variables: Variables): Variables {
  return (name) => variables(name) || "https://not-set.invalid";
}
