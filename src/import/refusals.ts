/** A line that was refused, and why. */
export interface RefusedLine {
  line: number;
  reason: string;
}

/** Refused lines with one reason: their number, the first of them, and one reason in full. */
export interface RefusedKind {
  reason: string;
  count: number;
  lines: number[];
  example: string;
}

/** The refused lines of a file. */
export interface RefusedLines {
  /** By line; of each reason at most `MOST_LISTED`. */
  refused: RefusedLine[];
  /** All of them, listed or not. */
  refusedCount: number;
  /** The most frequent reason first; at most `MOST_KINDS`, and one for all others. */
  refusedKinds: RefusedKind[];
}

/** Collects refused lines in memory that does not grow with their number. */
export interface Refusals {
  add(line: number, reason: string): void;
  /** The lines that were added so far. */
  list(): RefusedLines;
}

/** Lines that are listed of each reason; 120 bytes each. */
export const MOST_LISTED = 10_000;
/** Kinds of reasons; if a reason varies from line to line, memory must not grow with them. */
const MOST_KINDS = 1_000;
const OTHERS = "other reasons";
/** Example lines of each reason. */
const MOST_EXAMPLES = 3;

/** Creates an empty collection. */
export function createRefusals(): Refusals {
  const kinds = new Map<string, { count: number; listed: RefusedLine[] }>();
  return {
    add(line, reason) {
      const own = kindOf(reason);
      const name = kinds.has(own) || kinds.size < MOST_KINDS ? own : OTHERS;
      const kind = kinds.get(name) ?? { count: 0, listed: [] };
      kinds.set(name, kind);
      kind.count += 1;
      if (kind.listed.length < MOST_LISTED) kind.listed.push({ line, reason });
    },
    list: () => ({
      refused: [...kinds.values()].flatMap(({ listed }) => listed).toSorted((a, b) => a.line - b.line),
      refusedCount: [...kinds.values()].reduce((sum, { count }) => sum + count, 0),
      refusedKinds: Array.from(kinds, ([reason, { count, listed }]) => ({
        reason,
        count,
        lines: listed.slice(0, MOST_EXAMPLES).map(({ line }) => line),
        example: listed[0]?.reason ?? reason,
      })).toSorted((a, b) => b.count - a.count),
    }),
  };
}

/** A reason without the found value, which differs from line to line. */
function kindOf(reason: string): string {
  const kind = reason.split(/, found /)[0] ?? reason;
  return kind.startsWith("the proof fails: ") ? "the proof fails" : kind;
}
