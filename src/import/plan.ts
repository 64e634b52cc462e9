import type { Sql } from "../db/client.ts";
import { createRowKeys, type FileOrder, type RowOrder } from "./order.ts";
import { createRefusals, type Refusals } from "./refusals.ts";
import { readRow, type RowOptions } from "./row.ts";
import { listRepeats, listStagedLines, type StagedRow } from "./store.ts";
import { countLine, countTime, emptySurvey, type Survey } from "./survey.ts";
import { numberOf } from "../rounds/round.ts";

/** What the comma or the point of a multiplier proves about the notation of its file. */
export type MultiplierShape = "clear" | "comma_decimals" | "comma_and_three" | "point_and_three";

/** How a file is read and ordered. */
export interface PlanOptions extends RowOptions {
  /** How the file lists its rounds; if it is left out, ids and times decide. */
  order?: FileOrder | "auto";
  /** If no option names the decimal mark: what a multiplier proves about it. */
  multiplierShape?: (text: string) => MultiplierShape;
}

/** Rows per batch: a tenth of a second each, and little memory whatever the file's size. */
export const ROWS_AT_ONCE = 5_000;

/** The facts about a file before anything is stored. */
export interface ImportPlan {
  read: number;
  refusals: Refusals;
  /** Good lines in the order they are stored. */
  lines: Int32Array;
  isReversed: boolean;
  survey: Survey;
}

/** Learns the rows of a file while they are staged, in the order of the file, and then plans their import. */
export interface Planner {
  add: (row: StagedRow) => void;
  /** `options` are those of the rows, now with their total if rows are numbered. */
  plan(sql: Sql, staging: string, options: PlanOptions): Promise<ImportPlan>;
}

/**
 * Creates a planner, which refuses invalid rows, finds the playing order of the others, and surveys the file. `refusals`
 * may already have lines without a row.
 */
export function createPlanner(options: PlanOptions, refusals: Refusals = createRefusals()): Planner {
  const { settings, rowNumbers, order = "auto", multiplierShape } = options;
  const survey = emptySurvey();
  const keys = createRowKeys();
  /** Lines whose comma or point has two possible meanings. */
  const unclear: number[] = [];
  let commaDecimals: number | null = null;
  let read = 0;
  return {
    add(row) {
      read += 1;
      const one = readRow(row, options);
      if (!one.ok) {
        refusals.add(row.line, one.reason);
        return;
      }
      keys.add(row.line, rowNumbers === undefined ? numberOf(one.round.roundId) : null, one.ms);
      countTime(survey, one.round.occurredAt);
      if (one.clock !== undefined) countLine(survey.clock[one.clock], row.line);
      const shape = multiplierShape?.(one.round.rawValue) ?? "clear";
      if (shape === "comma_decimals") commaDecimals ??= row.line;
      if (shape === "comma_and_three") countLine(survey.thousands, row.line);
      if (shape === "comma_and_three" || shape === "point_and_three") unclear.push(row.line);
    },
    async plan(sql, staging, withTotal) {
      const roundIds = rowNumbers === undefined ? settings.round_ids : "opaque";
      const byTime = rowNumbers === undefined && survey.clock.twice.count === 0;
      const { lines: ordered, ...found } = keys.order({ roundIds, order, byTime });
      let lines = ordered;
      if (commaDecimals !== null && unclear.length > 0) {
        lines = without(lines, unclear);
        await refuseUnclear(sql, staging, { unclear, commaDecimals, refusals });
        survey.thousands = { count: 0, line: null };
      }
      survey.order = found;
      let repeats: number[] = [];
      if (found.isReversed && rowNumbers === undefined) repeats = await listLaterLines(sql, staging, lines);
      if (repeats.length > 0) lines = without(lines, repeats);
      survey.ids = await spanOf(sql, staging, lines, { options: withTotal, found });
      if (repeats.length > 0) lines = Int32Array.from([...lines, ...repeats]);
      return { read, refusals, lines, isReversed: found.isReversed, survey };
    },
  };
}

async function refuseUnclear(
  sql: Sql,
  staging: string,
  { unclear, commaDecimals, refusals }: { unclear: number[]; commaDecimals: number; refusals: Refusals },
): Promise<void> {
  for (let from = 0; from < unclear.length; from += ROWS_AT_ONCE) {
    const rows = await listStagedLines(sql, staging, Int32Array.from(unclear.slice(from, from + ROWS_AT_ONCE)));
    for (const { line, multiplier } of rows) refusals.add(line, unclearReason(multiplier, commaDecimals));
  }
}

function unclearReason(text: string | null, commaDecimals: number): string {
  return (
    `expected a multiplier with one meaning, found ${JSON.stringify(text)}: line ${commaDecimals} has a ` +
    "decimal comma, so this may be thousands or three decimals; state the decimal mark"
  );
}

/**
 * Lines of rounds that an earlier line of the file has, in file order. If a file is read from its end they are stored
 * last, so that of several results the first in the file is kept there too.
 */
async function listLaterLines(sql: Sql, staging: string, lines: Int32Array): Promise<number[]> {
  const good = lines.toSorted();
  const later: number[] = [];
  let kept: string | null = null;
  for await (const rows of listRepeats(sql, staging)) {
    for (const { line, round_id: roundId } of rows) {
      if (!has(good, line)) continue;
      if (roundId === kept) later.push(line);
      kept = roundId;
    }
  }
  return later.toSorted((a, b) => a - b);
}

async function spanOf(
  sql: Sql,
  staging: string,
  lines: Int32Array,
  { options, found }: { options: PlanOptions; found: Omit<RowOrder, "lines"> },
): Promise<Survey["ids"]> {
  const [first, last] = [lines.at(0), lines.at(-1)];
  if (first === undefined || last === undefined) return null;
  const ids = (await listStagedLines(sql, staging, Int32Array.of(first, last))).map((row) => {
    const read = readRow(row, options, found.isReversed);
    return read.ok ? read.round.roundId : "";
  });
  return { from: ids[0] ?? "", to: ids[1] ?? "", missing: found.missing };
}

function without(lines: Int32Array, left: readonly number[]): Int32Array {
  const out = new Set(left);
  return lines.filter((line) => !out.has(line));
}

/** Whether a line is among these rising ones. */
function has(lines: Int32Array, line: number): boolean {
  let [from, to] = [0, lines.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((lines[middle] ?? 0) < line) from = middle + 1;
    else to = middle;
  }
  return lines[from] === line;
}
