import { createRowKeys, type FileOrder, type RowOrder } from "./order.ts";
import { createRefusals, type Refusals } from "./refusals.ts";
import { findRepeats, nextTurn, ROWS_AT_ONCE } from "./repeats.ts";
import { type FileRow, numberedId, readRow, type RowNumbers, type RowOptions } from "./row.ts";
import type { StagedRound, StagedRounds } from "./staged-rounds.ts";
import { countLine, countTime, emptySurvey, type Survey } from "./survey.ts";
import { numberOf } from "../rounds/round.ts";

/** What the comma or the point of a multiplier proves about the notation of its file. */
export type MultiplierShape = "clear" | "comma_decimals" | "comma_and_three" | "point_and_three";
/** What a date of a file proves about the order of day and month; `unclear` if AM or PM decides it. */
export type DateShape = "clear" | "day_first" | "unclear";

/** How a file is read and ordered. */
export interface PlanOptions extends RowOptions {
  /** How the file lists its rounds; if it is left out, ids and times decide. */
  order?: FileOrder | "auto";
  /** The newest number of the table, if its ids are numbers and it has rounds. */
  newest?: bigint | null;
  /** If no option names the decimal mark: what a multiplier proves about it. */
  multiplierShape?: (text: string) => MultiplierShape;
  /** If no option names the order of day and month: what a date proves about it. */
  dateShape?: (text: string) => DateShape;
}

/** Lines with two possible meanings, and the first line that proves the one that is not assumed. */
interface Evidence {
  unclear: number[];
  provenBy: number | null;
  /** Why an unclear line is refused. */
  reasonOf: (round: StagedRound, provenBy: number) => string;
}

/** The facts about a file before anything is stored. */
export interface ImportPlan {
  read: number;
  refusals: Refusals;
  /** Good lines in the order they are stored. */
  lines: Int32Array;
  /** The rounds of some of these lines, in their order. */
  list: (lines: Int32Array) => StagedRound[];
  /** Ids that several rows may have; null if equal ids are adjacent. */
  mayRepeat: Set<string> | null;
  survey: Survey;
}

/** Learns the rows of a file, in its order, stages their rounds, and then plans their import. */
export interface Planner {
  add: (row: FileRow) => void;
  /** `total` is the number of rows, including refused ones, which have numbers too if rows are numbered. */
  plan(total: number, signal: AbortSignal): Promise<ImportPlan>;
}

/**
 * Creates a planner, which refuses invalid rows, finds the playing order of the others, and surveys the file. `refusals`
 * may already have lines without a row.
 */
export function createPlanner(
  options: PlanOptions,
  staged: StagedRounds,
  refusals: Refusals = createRefusals(),
): Planner {
  const { settings, rowNumbers, order = "auto", newest = null, multiplierShape, dateShape } = options;
  const survey = emptySurvey();
  const keys = createRowKeys();
  const decimals: Evidence = { unclear: [], provenBy: null, reasonOf: multiplierReason };
  const dates: Evidence = { unclear: [], provenBy: null, reasonOf: dateReason };
  let read = 0;
  return {
    add(row) {
      read += 1;
      const date = row.occurredAt === null ? "clear" : (dateShape?.(row.occurredAt) ?? "clear");
      if (date === "day_first") dates.provenBy ??= row.line;
      const one = readRow(row, options);
      if (!one.ok) {
        refusals.add(row.line, one.reason);
        return;
      }
      const { round } = one;
      // if rows are numbered, ids are known when the order is
      staged.add(row.line, rowNumbers === undefined ? round : { ...round, roundId: row.roundId ?? "" });
      keys.add(row.line, rowNumbers === undefined ? numberOf(round.roundId) : null, one.ms);
      countTime(survey, round.occurredAt);
      if (one.clock !== undefined) countLine(survey.clock[one.clock], row.line);
      if (date === "unclear") dates.unclear.push(row.line);
      const shape = multiplierShape?.(round.rawValue) ?? "clear";
      if (shape === "comma_decimals") decimals.provenBy ??= row.line;
      if (shape === "comma_and_three") countLine(survey.thousands, row.line);
      if (shape === "comma_and_three" || shape === "point_and_three") decimals.unclear.push(row.line);
    },
    async plan(total, signal) {
      await nextTurn(signal);
      const roundIds = rowNumbers === undefined ? settings.round_ids : "opaque";
      const byTime = rowNumbers === undefined && survey.clock.twice.count === 0;
      const { lines: ordered, far, ...found } = keys.order({ roundIds, order, byTime, newest });
      refuseFar(far, refusals);
      if (decimals.provenBy !== null) survey.thousands = { count: 0, line: null };
      const clear = await refuseUnclear(staged, { lines: ordered, evidence: decimals, refusals }, signal);
      let lines = await refuseUnclear(staged, { lines: clear, evidence: dates, refusals }, signal);
      survey.order = found;
      const list =
        rowNumbers === undefined ? staged.list : listNumbered(staged, rowNumbers, found.isReversed ? total : null);
      const mayShareIds = found.takenBy !== "number" && rowNumbers === undefined;
      const { ids, later } = mayShareIds
        ? await findRepeats({ list, lines, signal })
        : { ids: new Set<string>(), later: [] };
      // if a file is read from its end, repeats are stored last, so that of several results the first in the file is kept
      const isMoved = found.isReversed && later.length > 0;
      if (isMoved) lines = without(lines, later);
      survey.ids = spanOf(list, lines, found.missing);
      if (isMoved) lines = withLast(lines, later);
      return { read, refusals, lines, list, mayRepeat: found.takenBy === "number" ? null : ids, survey };
    },
  };
}

/** Lists rounds whose staged id is the number of their row; `total` is given if the last row has the first number. */
function listNumbered(staged: StagedRounds, rowNumbers: RowNumbers, total: number | null): StagedRounds["list"] {
  const idOf = (number: bigint) => numberedId(rowNumbers, total === null ? number - 1n : BigInt(total) - number);
  return (lines) => staged.list(lines).map((round) => ({ ...round, roundId: idOf(BigInt(round.roundId)) }));
}

/** Refuses unclear lines if a line proves that they may mean something else. Returns the others, in their order. */
async function refuseUnclear(
  staged: StagedRounds,
  { lines, evidence, refusals }: { lines: Int32Array; evidence: Evidence; refusals: Refusals },
  signal: AbortSignal,
): Promise<Int32Array> {
  const { unclear, provenBy, reasonOf } = evidence;
  if (provenBy === null || unclear.length === 0) return lines;
  const left = new Set(unclear);
  const refused = lines.filter((line) => left.has(line)).toSorted();
  for (let from = 0; from < refused.length; from += ROWS_AT_ONCE) {
    await nextTurn(signal);
    for (const round of staged.list(refused.subarray(from, from + ROWS_AT_ONCE))) {
      refusals.add(round.line, reasonOf(round, provenBy));
    }
  }
  return lines.filter((line) => !left.has(line));
}

function refuseFar(far: RowOrder["far"], refusals: Refusals): void {
  if (far === null) return;
  const reason = `expected an id near the others, found one more than 10,000,000 above the highest before it, ${far.above}`;
  for (const line of far.lines) refusals.add(line, reason);
}

function multiplierReason({ rawValue }: StagedRound, provenBy: number): string {
  return (
    `expected a multiplier with one meaning, found ${JSON.stringify(rawValue)}: line ${provenBy} has a ` +
    "decimal comma, so this may be thousands or three decimals; state the decimal mark"
  );
}

function dateReason({ occurredAt }: StagedRound, provenBy: number): string {
  return (
    `expected a date with one meaning, found ${occurredAt}, read with the month first: line ${provenBy} has the day ` +
    "first; state --dates day_first"
  );
}

function spanOf(list: StagedRounds["list"], lines: Int32Array, missing: bigint | null): Survey["ids"] {
  const [first, last] = [lines.at(0), lines.at(-1)];
  if (first === undefined || last === undefined) return null;
  const idOf = (line: number) => list(Int32Array.of(line))[0]?.roundId ?? "";
  return { from: idOf(first), to: idOf(last), missing };
}

/** Lines, and then those others. */
function withLast(lines: Int32Array, later: readonly number[]): Int32Array {
  const all = new Int32Array(lines.length + later.length);
  all.set(lines);
  all.set(later, lines.length);
  return all;
}

function without(lines: Int32Array, left: readonly number[]): Int32Array {
  const out = new Set(left);
  return lines.filter((line) => !out.has(line));
}
