import { z } from "zod";
import {
  countMeasured,
  type DamagedRow,
  listMeasuredOrDamaged,
  type MeasuredRow,
} from "../../forecasts/accuracy/measured-store.ts";
import { PERIODS } from "../../forecasts/accuracy/periods.ts";
import { figuresOf, hasTooManyVoids } from "../../forecasts/accuracy/figures/figures.ts";
import { verdictOf } from "../../forecasts/accuracy/figures/verdict.ts";
import { opsPage, type OpsParts } from "../contract.ts";
import { csvText } from "../../csv.ts";
import { PageError } from "../../frame/errors.ts";
import type { Tone } from "../../frame/text/format.ts";
import { choose, PER_PAGE } from "../payloads/listing.ts";
import { periodLabel, TONES } from "../../frame/text/accuracy-format.ts";
import { type Cells, cellsOf, COLUMNS, nameOf } from "../../frame/text/accuracy-sections.ts";

/** Lines of a file: one feature of every table, where there are four times as many tables as we expect. */
const MOST_LINES = 2_000;
const FILE_DECIMALS = 4;

/** Any feature, or all that begin as it does before its star; empty for all. */
export const featureText = z
  .string()
  .trim()
  .max(60)
  .regex(/^(?:[a-z_]+(?::[a-z0-9_-]+){0,2}:?\*?)?$/, "expected next_color, window:<color>:<target>, or window:*");

const query = z.object({
  of: z.string().trim().max(200).default(""),
  feature: featureText.default("next_color"),
  period: z.enum(PERIODS).default("30d"),
  sort: z.enum(["table", "-table", "n", "-n", "rate", "-rate", "z", "-z", "skill", "-skill"]).default("table"),
  page: z.coerce.number().int().min(1).max(10_000).default(1),
});
type Query = z.infer<typeof query>;

/** What was measured of issued forecasts, a feature of a table on a line. */
export const accuracyPage = opsPage({
  path: "/accuracy",
  nav: { label: "Accuracy", order: 26, group: "Data" },
  query,
  async show(parts, { query: asked }) {
    const found = await read(parts, asked, { limit: PER_PAGE, offset: (asked.page - 1) * PER_PAGE });
    const data = { ...found, query: asked, periods: PERIODS, periodLabel, perPage: PER_PAGE };
    return { template: "accuracy/list", title: "Accuracy", data };
  },
});

/** The same list as a file: all of its pages, and more decimals for calculations. */
export const accuracyFile = opsPage({
  path: "/accuracy/list.csv",
  query,
  async show(parts, { query: asked }) {
    const { lines, total } = await read(parts, asked, { limit: MOST_LINES, offset: 0, decimals: FILE_DECIMALS });
    if (total > MOST_LINES) {
      throw new PageError(
        422,
        `expected at most ${MOST_LINES} lines in a file, found ${total}; choose a house or one feature`,
      );
    }
    const rows = lines.map(({ cells }) => COLUMNS.map(([name]) => cells[name]));
    const text = csvText([COLUMNS.map(([, label]) => label), ...rows]);
    return { file: `accuracy-${asked.period}.csv`, type: "text/csv", text };
  },
});

async function read(
  { sql }: OpsParts,
  { of, feature, period, sort }: Query,
  { limit, offset, decimals }: { limit: number; offset: number; decimals?: number },
) {
  const { tableIds, problem } = await choose(sql, of);
  const isOne = feature !== "" && !feature.endsWith("*");
  const scope = { tableIds: tableIds ?? undefined };
  const found = await listMeasuredOrDamaged(sql, { ...scope, period, feature: isOne ? feature : undefined });
  const shown = period === "all" ? await countMeasured(sql, scope) : 1;
  const begin = feature.replace(/\*$/, "");
  const rows = sorted(
    found.filter((row) => isOne || "damage" in row || row.feature.startsWith(begin)),
    sort,
  );
  return {
    lines: rows.slice(offset, offset + limit).map((row) => lineOf(row, shown, decimals)),
    total: rows.length,
    problem,
  };
}

/** Sort keys in addition to the table; NaN sorts last. */
const VALUES: Record<string, (sums: MeasuredRow["sums"]) => number> = {
  n: ({ n }) => Number(n),
  rate: ({ hits, n }) => Number(hits) / Number(n),
  z: (sums) => {
    const { hits, sumP, sumPq } = sums;
    return hasTooManyVoids(sums) ? Number.NaN : (Number(hits) * 1e6 - Number(sumP)) / Math.sqrt(Number(sumPq));
  },
  skill: (sums) => figuresOf("", sums).skill ?? Number.NaN,
};

/** Rows come by table; equal ones stay so. */
function sorted(rows: (MeasuredRow | DamagedRow)[], sort: Query["sort"]): (MeasuredRow | DamagedRow)[] {
  const isDown = sort.startsWith("-");
  const value = VALUES[sort.replace("-", "")];
  if (value === undefined) return isDown ? rows.toReversed() : rows;
  const valued = rows.map((row) => ({ row, value: "damage" in row ? Number.NaN : value(row.sums) }));
  const known = valued.filter((one) => !Number.isNaN(one.value));
  known.sort((a, b) => (isDown ? b.value - a.value : a.value - b.value));
  return [...known, ...valued.filter((one) => Number.isNaN(one.value))].map(({ row }) => row);
}

interface Line {
  cells: Cells;
  tone: Tone;
  /** What is wrong with the row; empty for nothing. */
  damage: string;
}

function lineOf(row: MeasuredRow | DamagedRow, shown: number, decimals?: number): Line {
  if ("damage" in row) return damagedLine(row);
  const verdict = verdictOf(row.sums, { period: row.period, shown });
  const cells = cellsOf({ ...row, ...figuresOf(row.feature, row.sums), verdict }, decimals);
  return { cells, tone: TONES[verdict], damage: "" };
}

/** A line for sums that cannot be read: what it is of, and that it is damaged. */
function damagedLine(row: DamagedRow): Line {
  const unknown = Object.fromEntries(COLUMNS.map(([name]) => [name, "–"])) as Cells;
  const cells = { ...unknown, of: nameOf(row), verdict: "damaged" };
  return { cells, tone: "bad", damage: row.damage };
}
