import type { RereadPlace } from "./reread-store.ts";

/** What reading a range of answers again came to, or would come to. */
export interface Reread {
  /** Answers that were read again. */
  payloads: number;
  /** Answers that had been refused and can be read now. */
  readable: number;
  /** Rounds we did not have; they are late. */
  rounds: number;
  /** Items of rounds that we have with the same result. */
  known: number;
  /** Other results for rounds we have that were not listed before. */
  conflicts: number;
  /** Items that are quarantined and were not before. */
  quarantined: number;
  /** Items that leave quarantine. */
  released: number;
  /** Answers that cannot be read, by reason, the most frequent first. */
  refused: { reason: string; payloads: number }[];
  /** Where to continue; null at the end of the range. */
  next: RereadPlace | null;
}

/** Reasons beyond these are counted together: each broken answer may give its own. */
const MOST_REASONS = 50;
const OTHER_REASONS = "other reasons";

/** Before the first answer. */
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

/** Counts answers that cannot be read under their reason. */
export function noteRefusal(report: Reread, reason: string, payloads = 1): void {
  const name = report.refused.length < MOST_REASONS ? reason : OTHER_REASONS;
  const found =
    report.refused.find((one) => one.reason === reason) ?? report.refused.find((one) => one.reason === name);
  if (found === undefined) report.refused.push({ reason: name, payloads });
  else found.payloads += payloads;
  report.refused.sort((a, b) => b.payloads - a.payloads);
}

/** A place in a range as text for a URL or a command line, and back; null for a text that is none. */
export function placeText({ requestedAt, tableId }: RereadPlace): string {
  return `${requestedAt}~${tableId}`;
}

export function readPlace(text: string): RereadPlace | null {
  const found = /^(\d{4}-\d{2}-\d{2}T[\d:.]+Z)~(\d{1,9})$/.exec(text);
  return found === null ? null : { requestedAt: found[1] ?? "", tableId: Number(found[2]) };
}
