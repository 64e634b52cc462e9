import type { Lease } from "./lease-store.ts";

/** Bytes of responses of a table in a UTC day, unpacked: nine times what a new list of 20 kB every 15 s comes to. */
const BYTES_OF_TABLE = 1 << 30;
const DAY_MS = 86_400_000;

/**
 * How long a shard of a house is left alone when its responses of today are too many to store; null when they are not.
 * Repeats have no body and cost nothing.
 */
export function waitForTomorrow(
  { bytesToday, tables, now }: Pick<Lease, "bytesToday" | "tables" | "now">,
  bytes: number,
): { waitMs: number; error: string } | null {
  const [spent, most] = [bytesToday + bytes, BYTES_OF_TABLE * tables.length];
  if (spent <= most) return null;
  const waitMs = DAY_MS - (Date.parse(now) % DAY_MS);
  const error = `its responses of today came to ${gigabytes(spent)}, and ${gigabytes(most)} are stored of ${tables.length} tables in a day; it is asked again at 00:00 UTC`;
  return { waitMs, error };
}

function gigabytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
