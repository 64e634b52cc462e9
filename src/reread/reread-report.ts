import { readIsoTime } from "../iso-time.ts";
import type { RereadPlace } from "./reread-store.ts";

/** The result of reading a range of payloads again, or what it would be. */
export interface Reread {
  /** Payloads that were read again. */
  payloads: number;
  /** Payloads that had been refused and can be read now. */
  readable: number;
  /** Rounds that were not stored; they are late. */
  rounds: number;
  /** Items of stored rounds with the same result. */
  known: number;
  /** Other results for stored rounds that were not listed before. */
  conflicts: number;
  /** Items that are quarantined and were not before. */
  quarantined: number;
  /** Items that leave quarantine. */
  released: number;
  /** Payloads that cannot be read, by reason, the most frequent first. */
  refused: { reason: string; payloads: number }[];
  /** Where to continue; null at the end of the range. */
  next: RereadPlace | null;
}

/** Further reasons are counted together, because each broken payload may have its own. */
const MOST_REASONS = 50;
const OTHER_REASONS = "other reasons";

/** Before the first payload. */
export function emptyReread(): Reread {
  return {
    payloads: 0,
    readable: 0,
    rounds: 0,
    known: 0,
    conflicts: 0,
    quarantined: 0,
    released: 0,
    refused: [],
    next: null,
  };
}

/** Counts payloads that cannot be read, by reason. */
export function countRefusal(report: Reread, reason: string, payloads = 1): void {
  const name = report.refused.length < MOST_REASONS ? reason : OTHER_REASONS;
  const found =
    report.refused.find((one) => one.reason === reason) ?? report.refused.find((one) => one.reason === name);
  if (found === undefined) report.refused.push({ reason: name, payloads });
  else found.payloads += payloads;
  report.refused.sort((a, b) => b.payloads - a.payloads);
}

/** A place in a range as text for a URL or a command line, and back; null for an invalid text. */
export function placeText({ requestedAt, tableId }: RereadPlace): string {
  return `${requestedAt}~${tableId}`;
}

export function readPlace(text: string): RereadPlace | null {
  const found = /^(\d{4}-\d{2}-\d{2}T[\d:.]+Z)~(\d{1,9})$/.exec(text);
  const [, requestedAt = "", tableId] = found ?? [];
  return readIsoTime(requestedAt) === null ? null : { requestedAt, tableId: Number(tableId) };
}
