/**
 * The order in which the rows of a file were played, computed from 20 bytes per row: its line, its number and its time.
 */

/** Which end of a file is the newest. */
export type FileOrder = "newest_first" | "newest_last";

/** The playing order of a file's rows. */
export interface RowOrder {
  /** Lines of the file, the oldest round first. */
  lines: Int32Array;
  /** Left out: numbers too far above all others of the file and of the table, the highest of which is `above`. */
  far: { lines: Int32Array; above: bigint } | null;
  /** How the file lists its rounds; `mixed` if steps have both directions, `unknown` if there are too few steps. */
  listed: FileOrder | "mixed" | "unknown";
  decidedBy: "option" | "ids" | "times" | "nothing";
  /** What the order is computed from. */
  takenBy: "number" | "time" | "file";
  /** Equal times, or all rows, are taken from the end of the file. */
  isReversed: boolean;
  /** Numbers between the lowest and the highest that no row has; null if ids are opaque. */
  missing: bigint | null;
}

/** The options of {@link RowKeys.order}. */
export interface OrderOptions {
  roundIds: "consecutive" | "opaque";
  /** The option of the command; `auto` detects it. */
  order: FileOrder | "auto";
  /** Times may order the rows: false if ids are row numbers, or if a local clock showed some times twice. */
  byTime: boolean;
  /** The newest number of the table; null if it has no rounds. */
  newest: bigint | null;
}

/** Keys of rows, added in the order of the file. */
export interface RowKeys {
  add(line: number, number: bigint | null, ms: number | null): void;
  order(options: OrderOptions): RowOrder;
}

/** Fewer steps may have one direction by chance. */
const FEWEST_STEPS = 3;
/** A clock or a feed may step back now and then. */
const CLEAR_SHARE = 0.9;
const NO_NUMBER = -1n;
/** A number further above the ones before it is no round's, such as a time: a round per second makes it in four months. */
const FARTHEST = 10_000_000n;

/** Creates an empty collection of the keys of a file's rows. */
export function createRowKeys(): RowKeys {
  let count = 0;
  let lines = new Int32Array(1024);
  let numbers = new BigInt64Array(1024);
  let times = new Float64Array(1024);
  const byNumber = createSteps();
  const byTime = createSteps();
  let withTime = 0;
  return {
    add(line, number, ms) {
      if (count === lines.length) {
        lines = grown(lines, new Int32Array(count * 2));
        numbers = grown(numbers, new BigInt64Array(count * 2));
        times = grown(times, new Float64Array(count * 2));
      }
      lines[count] = line;
      numbers[count] = number ?? NO_NUMBER;
      times[count] = ms ?? NaN;
      if (number !== null) byNumber.add(number);
      if (ms !== null) byTime.add(ms);
      withTime += ms === null ? 0 : 1;
      count += 1;
    },
    order({ roundIds, order, byTime: mayUseTime, newest }) {
      const evidence: [RowOrder["decidedBy"], RowOrder["listed"]][] = [
        ["ids", byNumber.direction()],
        ["times", byTime.direction()],
      ];
      if (roundIds === "opaque") evidence.reverse();
      const [foundBy, found] = evidence.find(([, direction]) => direction !== "unknown") ?? ["nothing", "unknown"];
      const [decidedBy, listed] = order === "auto" ? [foundBy, found] : ["option" as const, order];
      const inFile = lines.subarray(0, count);
      if (roundIds === "consecutive") {
        const all = sorted(count, (a, b) => compare(numbers[a] ?? 0n, numbers[b] ?? 0n) || a - b);
        const { near, above } = nearPlaces(all, numbers, newest);
        const [places, rest] = [all.subarray(0, near), all.subarray(near)];
        const far = rest.length === 0 ? null : { lines: linesAt(rest, inFile), above };
        const missing = missingOf(places, numbers);
        const inOrder = linesAt(places, inFile);
        return { lines: inOrder, far, listed, decidedBy, takenBy: "number", isReversed: false, missing };
      }
      const isReversed = listed === "newest_first";
      if (order === "auto" && mayUseTime && withTime === count) {
        const places = sorted(count, (a, b) => (times[a] ?? 0) - (times[b] ?? 0) || (isReversed ? b - a : a - b));
        const inOrder = linesAt(places, inFile);
        return { lines: inOrder, far: null, listed, decidedBy, takenBy: "time", isReversed, missing: null };
      }
      const asListed = isReversed ? inFile.toReversed() : inFile.slice();
      return { lines: asListed, far: null, listed, decidedBy, takenBy: "file", isReversed, missing: null };
    },
  };
}

/** Counts the directions of the steps between neighboring rows. */
function createSteps() {
  let first: bigint | number | null = null;
  let before: bigint | number | null = null;
  let rises = 0;
  let falls = 0;
  return {
    add(value: bigint | number) {
      if (before !== null && value > before) rises += 1;
      if (before !== null && value < before) falls += 1;
      first ??= value;
      before = value;
    },
    /**
     * In a file of pages that are newest first, with the oldest page first, nearly all steps fall, but the end is newer
     * than the beginning.
     */
    direction(): RowOrder["listed"] {
      const steps = rises + falls;
      if (steps < FEWEST_STEPS || first === null || before === null) return "unknown";
      if (falls >= CLEAR_SHARE * steps && before < first) return "newest_first";
      if (rises >= CLEAR_SHARE * steps && before > first) return "newest_last";
      return "mixed";
    },
  };
}

function grown<Keys extends Int32Array | BigInt64Array | Float64Array>(from: Keys, to: Keys): Keys {
  if (from instanceof BigInt64Array && to instanceof BigInt64Array) to.set(from);
  else if (!(from instanceof BigInt64Array) && !(to instanceof BigInt64Array)) to.set(from);
  return to;
}

/** Places 0 to count − 1 in order; files are nearly always in order already, rising or falling. */
function sorted(count: number, compareAt: (a: number, b: number) => number): Uint32Array {
  const places = new Uint32Array(count).map((_, place) => place);
  const isInOrder = () => places.every((place, at) => at === 0 || compareAt(places[at - 1] ?? 0, place) <= 0);
  if (isInOrder()) return places;
  places.reverse();
  return isInOrder() ? places : places.toSorted(compareAt);
}

function linesAt(places: Uint32Array, lines: Int32Array): Int32Array {
  return new Int32Array(places.length).map((_, at) => lines[places[at] ?? 0] ?? 0);
}

/** How many places, by rising number, precede the first far one. Without rounds in the table, half of the rows are near. */
function nearPlaces(
  places: Uint32Array,
  numbers: BigInt64Array,
  newest: bigint | null,
): { near: number; above: bigint } {
  const numberAt = (at: number) => numbers[places[at] ?? 0] ?? 0n;
  let above = newest ?? numberAt(Math.floor((places.length - 1) / 2));
  for (let at = 0; at < places.length; at += 1) {
    const number = numberAt(at);
    if (number > above + FARTHEST) return { near: at, above };
    if (number > above) above = number;
  }
  return { near: places.length, above };
}

function missingOf(places: Uint32Array, numbers: BigInt64Array): bigint | null {
  let missing = 0n;
  places.forEach((place, at) => {
    const before = at === 0 ? undefined : numbers[places[at - 1] ?? 0];
    const step = before === undefined ? 1n : (numbers[place] ?? 0n) - before;
    if (step > 1n) missing += step - 1n;
  });
  return missing;
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
