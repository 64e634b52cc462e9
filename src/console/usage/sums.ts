import type { KeyDay } from "../../usage/by-key-store.ts";

/** Calls with one key, or to one endpoint, over all days that were asked for. */
export interface UsageSum {
  name: string;
  requests: bigint;
}

/** Calls by endpoint, the most called first. */
export function sumByEndpoint(rows: readonly KeyDay[]): UsageSum[] {
  return sums(rows, ({ endpoint }) => endpoint);
}

/** Calls by key, the most used first; a key is named by its name and its last four characters. */
export function sumByKey(rows: readonly KeyDay[]): UsageSum[] {
  const named = new Map(rows.map(({ keyId, keyName, last4 }) => [String(keyId), `${keyName} (…${last4})`]));
  return sums(rows, ({ keyId }) => String(keyId)).map(({ name, requests }) => ({
    name: named.get(name) ?? name,
    requests,
  }));
}

/**
 * All of them together.
 *
 * @example
 * total([{ name: "a", requests: 2n }, { name: "b", requests: 3n }]); // => 5n
 */
export function total(parts: readonly Pick<UsageSum, "requests">[]): bigint {
  return parts.reduce((sum, { requests }) => sum + requests, 0n);
}

function sums(rows: readonly KeyDay[], nameOf: (row: KeyDay) => string): UsageSum[] {
  return [...Map.groupBy(rows, nameOf)]
    .map(([name, own]) => ({ name, requests: total(own) }))
    .toSorted((a, b) => (a.requests === b.requests ? a.name.localeCompare(b.name) : a.requests < b.requests ? 1 : -1));
}
