import { z } from "zod";
import { PERIODS } from "../../forecasts/accuracy/accuracy-store.ts";
import { figuresOf } from "../../forecasts/accuracy/figures.ts";
import { type DamagedRow, listMeasuredPage, type MeasuredSort } from "../../forecasts/accuracy/measured-desk-store.ts";
import type { MeasuredRow } from "../../forecasts/accuracy/measured-store.ts";
import { verdictOf } from "../../forecasts/accuracy/verdict.ts";
import type { OpsPage, OpsParts } from "../contract.ts";
import { csvText } from "../../frame/csv.ts";
import { PageError } from "../../frame/errors.ts";
import type { Tone } from "../../frame/format.ts";
import { choose, PER_PAGE } from "../payloads/listing.ts";
import { between, digits, share, TONES } from "../../frame/measured.ts";
import { evidence, nameOf, voidsText } from "./words.ts";

/** Lines of a file: one feature of every table, where there are four times as many tables as we expect. */
const MOST_LINES = 2_000;
/** Lines that are read for a file at once. */
const AT_ONCE = 200;

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
export const accuracyPage: OpsPage<Query> = {
  path: "/accuracy",
  nav: { label: "Accuracy", order: 50 },
  query,
  async show(parts, { query: asked }) {
    const found = await read(parts, asked, { limit: PER_PAGE, offset: (asked.page - 1) * PER_PAGE });
    const data = { ...found, query: asked, periods: PERIODS, perPage: PER_PAGE };
    return { template: "accuracy/list", title: "Accuracy", data };
  },
};

/** The same list as a file: all of its pages, as they are shown. */
export const accuracyFile: OpsPage<Query> = {
  path: "/accuracy/list.csv",
  query,
  async show(parts, { query: asked }) {
    const { lines, total } = await read(parts, asked, { limit: AT_ONCE, offset: 0 });
    if (total > MOST_LINES) {
      throw new PageError(422, `expected at most ${MOST_LINES} lines in a file, found ${total}; ask for one feature`);
    }
    // a few at a time: this process has callers to answer between them
    for (let offset = AT_ONCE; offset < total; offset += AT_ONCE) {
      lines.push(...(await read(parts, asked, { limit: AT_ONCE, offset })).lines);
    }
    const rows = lines.map(({ cells }) => COLUMNS.map(([name]) => cells[name]));
    const text = csvText([COLUMNS.map(([, label]) => label), ...rows]);
    return { file: `accuracy-${asked.period}.csv`, type: "text/csv", text };
  },
};

/** What a line says, in the order of the page. */
const COLUMNS = [
  ["of", "table"],
  ["feature", "feature"],
  ["model", "model"],
  ["n", "n"],
  ["rate", "hit rate"],
  ["interval", "95 % interval"],
  ["stated", "stated"],
  ["baseline", "baseline"],
  ["z", "z"],
  ["e", "e-value"],
  ["verdict", "verdict"],
  ["logLoss", "log loss"],
  ["skill", "skill"],
  ["coverage", "coverage"],
  ["voids", "voids"],
  ["bounds", "bounds"],
] as const;

async function read(
  { sql }: OpsParts,
  { of, feature, period, sort }: Query,
  { limit, offset }: { limit: number; offset: number },
) {
  const { tableIds, problem } = await choose(sql, of);
  const { rows, total } = await listMeasuredPage(
    sql,
    { period, tableIds, feature: feature === "" ? null : feature },
    {
      sort: sort.replace(/^-/, "") as MeasuredSort,
      isDown: sort.startsWith("-"),
      limit,
      offset,
    },
  );
  return { lines: rows.map(lineOf), total, problem };
}

type Cells = Record<(typeof COLUMNS)[number][0], string>;

interface Line {
  cells: Cells;
  tone: Tone;
  /** What is wrong with the row; empty for nothing. */
  damage: string;
}

function lineOf(row: MeasuredRow | DamagedRow): Line {
  if ("damage" in row) return damagedLine(row);
  const figures = figuresOf(row.feature, row.sums);
  const verdict = verdictOf(row.sums);
  const cells: Cells = {
    of: nameOf(row),
    feature: row.feature,
    model: row.model,
    n: String(figures.sample_size),
    rate: share(figures.hit_rate),
    interval: between(figures.interval_95),
    stated: share(figures.expected_rate),
    baseline: share(figures.baseline_rate),
    z: digits(figures.z, 2),
    e: evidence(figures.e_value),
    verdict,
    logLoss: digits(figures.log_loss),
    skill: share(figures.skill, 3),
    coverage: share(figures.coverage, 1),
    voids: voidsText(figures.voids),
    bounds: between(figures.rate_bounds),
  };
  return { cells, tone: TONES[verdict], damage: "" };
}

/** A line for sums that cannot be read: what it is of, and that it is damaged. */
function damagedLine(row: DamagedRow): Line {
  const unknown = Object.fromEntries(COLUMNS.map(([name]) => [name, "–"])) as Cells;
  const cells = { ...unknown, of: nameOf(row), feature: row.feature, model: row.model, verdict: "damaged" };
  return { cells, tone: "bad", damage: row.damage };
}
