import { LRUCache } from "lru-cache";
import type { Memory } from "../../published/memory.ts";
import type { Holding, Table } from "../../published/tables.ts";
import type { Sql } from "../../db/client.ts";
import { LEAST_FOR_SKILL } from "../../forecasts/accuracy/figures/verdict.ts";
import { PERIODS } from "../../forecasts/accuracy/periods.ts";
import { listHitRates } from "../../forecasts/accuracy/rates-store.ts";
import { reasonOf } from "../../errors.ts";
import type { Log } from "../../log.ts";
import { listTableModels, type TableModel } from "../../forecasts/model/models-store.ts";
import { byOf, periodLabel, ratesOf, share } from "../../frame/text/accuracy-format.ts";
import { within } from "../../within.ts";
import type { SitePage } from "../send-page.ts";
import { loaders, PART_TIMEOUT_MS } from "../loader.ts";
import { readBriefly } from "../site-store.ts";
import { fullWidth } from "../../charts/draw.ts";
import { ALL_FEATURES, chooseAccuracy, type AskedAccuracy, type Chosen } from "./selection.ts";
import { drawing, type Drawn } from "./drawings.ts";
import { lineOf, linesOfHouse, linesOfTable, type Measured } from "./lines.ts";
import { factsOf, referencesOf, reliabilityOf, skillsOf, type ToDraw } from "./plots.ts";
import { skillSentence } from "./skill.ts";

/** Lines per page: with its plots a page stays below 100 KB. */
const LINES_PER_PAGE = 25;
/** Skills in one plot. */
const SKILLS_SHOWN = 12;
/** More names than these are typed instead of chosen from a menu. */
const MOST_NAMES = 150;
/** The sums of a house are cached for this long: computing them over hundreds of tables takes milliseconds. */
const CACHED_MS = 10_000;
const MOST_KEPT = 200;

/** What the page needs. */
interface AccuracyParts {
  memory: Memory;
  sql: Sql;
  log: Log;
}

/** Makes the accuracy page of all tables, a house or a table from its parameters. */
export function accuracyPages({ memory, sql, log }: AccuracyParts): (params: URLSearchParams) => Promise<SitePage> {
  const kept = new LRUCache<string, ReturnType<typeof linesOf>, Chosen>({
    max: MOST_KEPT,
    ttl: CACHED_MS,
    memoMethod: (_, __, { context }) => linesOf(context),
  });
  const loadModels = loaders(
    "the models of a table",
    (id) => readBriefly(sql, (tx) => listTableModels(tx, Number(id))),
    { cachedMs: CACHED_MS, log, most: MOST_KEPT },
  );
  const draw = drawing(log);

  async function overTime(chosen: Chosen, { row, figures }: Measured): Promise<ToDraw | null> {
    const { model, feature, period, start, end } = row;
    const by = byOf({ period });
    const tableIds = chosen.tables.map(({ id }) => id);
    const read = readBriefly(sql, (tx) => listHitRates(tx, { tableIds, model, feature, start, end, by }));
    const { from, rates } = await within(PART_TIMEOUT_MS, "PostgreSQL", read);
    if (rates.every(({ n }) => n === 0n)) return null;
    const drawn = ratesOf(rates, by, figures.withheld !== null);
    return new Date(from) > new Date(start) ? beginningAt(from.slice(0, by === "day" ? 10 : 16), drawn) : drawn;
  }

  /** None if the database cannot be read: the page shows its figures without them. */
  async function modelsOf({ kind, tables: [table] }: Chosen): Promise<ListedModel[]> {
    const models = kind === "table" && table !== undefined ? await loadModels(String(table.id)) : null;
    return (models ?? []).map(listedModel);
  }

  async function plan(chosen: Chosen, found: ReturnType<typeof linesOf>, isAllowed: boolean) {
    const { detail } = found;
    if (detail === null) return { all: present([skillsOf(found.lines.slice(0, SKILLS_SHOWN))]), missing: "" };
    const all = present([reliabilityOf(detail), referencesOf(detail)]);
    if (!isAllowed || detail.figures.sample_size === 0) return { all, missing: "" };
    try {
      return { all: present([...all, await overTime(chosen, detail)]), missing: "" };
    } catch (error) {
      log.warn(`the accuracy over time is not shown: ${reasonOf(error)}`);
      return { all, missing: "The hit rate over time could not be loaded. Please try again shortly." };
    }
  }

  return async (params) => {
    const chosen = chooseAccuracy(params, memory.tables);
    const name = JSON.stringify(chosen.asked);
    const found = kept.memo(name, { context: chosen });
    const { of, feature, period } = chosen.asked;
    // the plots of a detail are those of every page of its lines
    const view = found.detail === null ? name : JSON.stringify({ of, feature, period });
    const drawn = await draw(view, async (isAllowed) => {
      const planned = await plan(chosen, found, isAllowed);
      return { ...planned, all: planned.all.map((one) => ({ ...one, plot: fullWidth(one.plot) })) };
    });
    return pageOf(chosen, found, { ...drawn, models: await modelsOf(chosen), names: namesOf(memory.tables) });
  };
}

/** The page of a selection, with its lines and what is loaded for it. */
function pageOf(
  chosen: Chosen,
  found: ReturnType<typeof linesOf>,
  loaded: Drawn & { models: ListedModel[]; names: ReturnType<typeof namesOf> },
): SitePage {
  const { asked, problem, kind } = chosen;
  const { detail } = found;
  return {
    path: "/accuracy",
    template: "accuracy/accuracy",
    header: {
      lead: "Every forecast is stored before its round can be known, and every issued forecast is counted. These are the current results.",
    },
    title: asked.of === "" ? "Measured accuracy" : `Measured accuracy: ${asked.of}`,
    description:
      "How accurate Roundhouse's forecasts of crash games have been: hit rates with sample size, period, 95 % interval and baseline, and the measured skill.",
    ...(problem === null ? {} : { status: problem.status }),
    data: {
      ...loaded,
      asked,
      kind,
      problem: problem?.text ?? null,
      features: featuresOf(chosen.tables, asked),
      periods: PERIODS,
      periodLabel,
      lines: found.lines.map((line) => lineOf(line, found.shown)),
      total: found.total,
      perPage: LINES_PER_PAGE,
      least: LEAST_FOR_SKILL,
      facts: detail && factsOf(detail),
      hasModels: new Set(found.lines.map(({ row }) => row.model)).size > 1,
      detail: detail && {
        ...lineOf(detail, found.shown),
        start: detail.row.start,
        end: detail.row.end,
        sentence: skillSentence(detail.figures),
      },
    },
  };
}

/** A model as the page shows it. */
type ListedModel = ReturnType<typeof listedModel>;

function listedModel({ model, since, edge, thresholds }: TableModel) {
  return {
    model,
    since,
    edge: edge === null ? "none" : share(edge),
    bands: thresholds.map((hundredths) => (hundredths / 100).toFixed(2)).join(", "),
  };
}

/**
 * Returns the lines of a page, and the one whose plots and figures are shown. Only the lines of this page are computed;
 * `shown` counts the rows of the tables, of every feature, so that a verdict does not depend on the chosen one.
 */
function linesOf({ asked, tables, kind }: Chosen): {
  lines: Measured[];
  total: number;
  shown: number;
  detail: Measured | null;
} {
  const first = (asked.page - 1) * LINES_PER_PAGE;
  const each = tables.flatMap((table) => linesOfTable(table, asked));
  const houses = kind === "table" ? [] : [...Map.groupBy(tables, ({ house }) => house.id).values()];
  // the line of a house with one table would repeat that table's line
  const pooled = houses.filter((own) => own.length > 1).flatMap((own) => linesOfHouse(own, asked));
  const all = [...pooled, ...each];
  const ofHouse = kind === "house" && tables.length === 1 ? linesOfHouse(tables, asked) : pooled;
  const own = kind === "all" ? [] : kind === "house" ? ofHouse : each;
  const feature = asked.feature === ALL_FEATURES ? "next_color" : asked.feature;
  return {
    lines: all.slice(first, first + LINES_PER_PAGE).map((line) => line.measure()),
    total: all.length,
    shown: asked.period === "all" ? countRows(tables) : 1,
    // the live model if there are several
    detail: own.findLast((line) => line.feature === feature)?.measure() ?? null,
  };
}

/** The number of rows over all time: the only period with a verdict, which is compared with them. */
function countRows(tables: readonly Table[]): number {
  let count = 0;
  for (const { accuracy } of tables) for (const row of accuracy) if (row.period === "all") count += 1;
  return count;
}

/** A plot with the time, in ISO 8601, from which on it has all points of its period. */
function beginningAt(time: string, drawn: ToDraw): ToDraw {
  const from = time.includes("T") ? `${time.replace("T", " ")} UTC` : time;
  const title = `${drawn.plot.title}, from ${from} on. All other figures cover the whole period.`;
  return { ...drawn, plot: { ...drawn.plot, title } };
}

/** The houses and tables for the menu; null if there are too many. */
function namesOf({ byHouse, tables: all }: Holding): { value: string; label: string }[] | null {
  if (byHouse.size + all.length > MOST_NAMES) return null;
  return [...byHouse].flatMap(([house, tables]) => [
    { value: house, label: `${house} (house)` },
    ...tables.map(({ game, market }) => ({
      value: `${house}/${game}/${market}`,
      label: `${house}/${game}/${market}`,
    })),
  ]);
}

function featuresOf(tables: readonly Table[], { feature, of }: AskedAccuracy): string[] {
  const found = tables.slice(0, MOST_NAMES).flatMap(({ accuracy }) => accuracy.map((row) => row.feature));
  const names = [...new Set([feature, "next_color", ...found])].filter((name) => name !== ALL_FEATURES).toSorted();
  return of === "" ? names : [...names, ALL_FEATURES];
}

function present<Value>(values: readonly (Value | null)[]): Value[] {
  return values.filter((value) => value !== null);
}
