import type { RowOrder } from "./order.ts";
import type { KnownRound } from "../rounds/round.ts";

/** A line whose round is there already, with another result. */
export interface ImportConflict {
  line: number;
  round_id: string;
  /** Hundredths that are kept, and those of this line. */
  kept: number;
  came: number;
}

/** How many of something, and the first line of it. */
export interface Counted {
  count: number;
  line: number | null;
}

/** What a file was found to hold, next to what was done with it. */
export interface Survey {
  /** Ids of the oldest and the newest round of the file. */
  ids: { from: string; to: string; missing: bigint | null } | null;
  times: { from: string; to: string } | null;
  withoutTime: number;
  order: Omit<RowOrder, "lines">;
  /** Identical repeats of other lines, and of rounds that were stored before. */
  repeats: { inFile: number; stored: number };
  /** Other results for rounds of other lines, and of rounds that were stored before; the first ones as examples. */
  conflicts: { inFile: number; stored: number; examples: ImportConflict[] };
  /** Local times that the clock showed twice, or never. */
  clock: { twice: Counted; never: Counted };
  /** Multipliers of one comma and three digits after it, read as thousands. */
  thousands: Counted;
}

const MOST_EXAMPLES = 20;

/** A survey before the first row. */
export function emptySurvey(): Survey {
  const none = (): Counted => ({ count: 0, line: null });
  return {
    ids: null,
    times: null,
    withoutTime: 0,
    order: { listed: "unknown", toldBy: "nothing", takenBy: "file", isReversed: false, missing: null },
    repeats: { inFile: 0, stored: 0 },
    conflicts: { inFile: 0, stored: 0, examples: [] },
    clock: { twice: none(), never: none() },
    thousands: none(),
  };
}

/** Counts one more, and keeps the first line. */
export function countLine(counted: Counted, line: number): void {
  counted.count += 1;
  counted.line ??= line;
}

/** Widens the span of times by a row's; ISO texts in UTC, which compare as texts up to their whole seconds. */
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
 * Counts the lines that name a round that is there: `known` holds those from before these lines. A round with a place up to
 * `storedSeq`, or one that this import did not receive, was stored by others.
 */
export function countRepeats(
  survey: Survey,
  rows: readonly { line: number; roundId: string; hundredths: number }[],
  { known, storedSeq, importedAt }: { known: ReadonlyMap<string, KnownRound>; storedSeq: bigint; importedAt: string },
): void {
  const firsts = new Map<string, number>();
  for (const { line, roundId, hundredths } of rows) {
    const stored = known.get(roundId);
    const kept = stored?.hundredths ?? firsts.get(roundId);
    if (kept === undefined) {
      firsts.set(roundId, hundredths);
      continue;
    }
    const isStored = stored !== undefined && (stored.seq <= storedSeq || stored.receivedAt !== importedAt);
    const kind = isStored ? "stored" : "inFile";
    if (kept === hundredths) survey.repeats[kind] += 1;
    else {
      survey.conflicts[kind] += 1;
      const { examples } = survey.conflicts;
      if (examples.length < MOST_EXAMPLES) examples.push({ line, round_id: roundId, kept, came: hundredths });
    }
  }
}
