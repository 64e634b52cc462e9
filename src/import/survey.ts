import type { RowOrder } from "./order.ts";
import { type KnownRound, multiplierText } from "../rounds/round.ts";

/** A count, and the first line that was counted. */
export interface Counted {
  count: number;
  line: number | null;
}

/** What a file contains, and what the import did with it. */
export interface Survey {
  /** Ids of the oldest and the newest round of the file. */
  ids: { from: string; to: string; missing: bigint | null } | null;
  times: { from: string; to: string } | null;
  withoutTime: number;
  order: Omit<RowOrder, "lines" | "far">;
  /** Identical repeats of other lines, and of rounds stored before. */
  repeats: { inFile: number; stored: number };
  /** Local times that the clock showed twice, or never. */
  clock: { twice: Counted; never: Counted };
  /** Multipliers with one comma and three digits after it, read as thousands. */
  thousands: Counted;
}

/** A survey before the first row. */
export function emptySurvey(): Survey {
  const none = (): Counted => ({ count: 0, line: null });
  return {
    ids: null,
    times: null,
    withoutTime: 0,
    order: { listed: "unknown", decidedBy: "nothing", takenBy: "file", isReversed: false, missing: null },
    repeats: { inFile: 0, stored: 0 },
    clock: { twice: none(), never: none() },
    thousands: none(),
  };
}

/** Counts one more, and keeps the first line. */
export function countLine(counted: Counted, line: number): void {
  counted.count += 1;
  counted.line ??= line;
}

/** Extends the range of times by a row's time: ISO texts in UTC, which sort as texts up to their whole seconds. */
export function countTime(survey: Survey, iso: string | null): void {
  if (iso === null) {
    survey.withoutTime += 1;
    return;
  }
  const { times } = survey;
  survey.times = {
    from: times === null || iso < times.from ? iso : times.from,
    to: times === null || iso > times.to ? iso : times.to,
  };
}

/**
 * Counts the lines that repeat known rounds, and returns those with another result than a known round or an earlier line, each
 * with the reason to refuse it. `known` are the rounds from before these lines. A round with a seq up to `storedSeq`, or one
 * that this import did not receive, was stored before.
 */
export function findContradictions(
  survey: Survey,
  rows: readonly { line: number; roundId: string; hundredths: number }[],
  { known, storedSeq, importedAt }: { known: ReadonlyMap<string, KnownRound>; storedSeq: bigint; importedAt: string },
): Map<number, string> {
  const contradictions = new Map<number, string>();
  const firsts = new Map<string, number>();
  for (const { line, roundId, hundredths } of rows) {
    const stored = known.get(roundId);
    const kept = stored?.hundredths ?? firsts.get(roundId);
    if (kept === undefined) {
      firsts.set(roundId, hundredths);
      continue;
    }
    const isStored = stored !== undefined && (stored.seq <= storedSeq || stored.receivedAt !== importedAt);
    if (kept === hundredths) {
      survey.repeats[isStored ? "stored" : "inFile"] += 1;
      continue;
    }
    const expected = isStored ? "the stored result of the round" : "one result per round";
    const other = `${isStored ? "is stored" : "another line has"} with ${multiplierText(kept)}`;
    contradictions.set(
      line,
      `expected ${expected}, found ${multiplierText(hundredths)} for round ${roundId}, which ${other}`,
    );
  }
  return contradictions;
}
