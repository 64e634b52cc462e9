import type { Lease } from "./lease-store.ts";

/** Stored bytes of responses per table and UTC day, decompressed: nine times a new list of 20 kB every 15 s. */
export const BYTES_OF_TABLE = 1 << 30;
/** Of these, pages of history may be stored while fewer are spent: the other half is for polls alone. */
export const HISTORY_BYTES_OF_TABLE = BYTES_OF_TABLE / 2;
const DAY_MS = 86_400_000;

/**
 * The milliseconds until a shard of a house may be polled if its responses of today are too many to store; null if they are
 * not. A repeat is not stored and costs nothing.
 */
export function waitForTomorrow(
  { bytesToday, tables, now }: Pick<Lease, "bytesToday" | "tables" | "now">,
  bytes: number,
): { waitMs: number; error: string } | null {
  const [spent, most] = [bytesToday + bytes, BYTES_OF_TABLE * tables.length];
  if (spent <= most) return null;
  const waitMs = DAY_MS - (Date.parse(now) % DAY_MS);
  const error = `its responses of today total ${gigabytes(spent)}, above the limit of ${gigabytes(most)} a day for ${tables.length} tables; it is polled again at 00:00 UTC`;
  return { waitMs, error };
}

function gigabytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
