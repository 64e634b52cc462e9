import { z } from "zod";
import { fullWidth } from "../../charts/draw.ts";
import type { Sql } from "../../db/client.ts";
import { PERIODS } from "../../forecasts/accuracy/periods.ts";
import { listHitRates, type RateSums } from "../../forecasts/accuracy/rates-store.ts";
import { type Measured, measure } from "../../forecasts/accuracy/measure.ts";
import { findTablesOf } from "../../rounds/lists/table-filter-store.ts";
import type { Log } from "../../log.ts";
import { opsPage } from "../contract.ts";
import { csvText } from "../../csv.ts";
import { type Figure, figureOf } from "../../frame/figure.ts";
import { featureText } from "./list.ts";
import { byOf, periodLabel, TONES } from "../../frame/text/accuracy-format.ts";
import { figuresOf, nameOf, sectionsOf } from "../../frame/text/accuracy-sections.ts";

const query = z.object({
  of: z.string().trim().min(1, "expected a house, or house/game/market").max(200),
  feature: featureText.refine((text) => text !== "" && !text.endsWith("*"), "expected one feature"),
  period: z.enum(PERIODS).default("30d"),
  model: z.string().trim().max(80).default(""),
});
type Query = z.infer<typeof query>;

/** All that is known of one feature of a table, or of the tables of a house together. */
export const accuracyDetailPage = opsPage({
  path: "/accuracy/detail",
  query,
  async show(parts, { query: asked }) {
    const found = await read(parts.sql, asked);
    if (found === null) return null;
    const { row, models, rates, from, pooled } = found;
    const sections = sectionsOf(row);
    const figures = row === null ? [] : await drawnOf(parts, row, rates);
    const data = {
      query: asked,
      periods: PERIODS,
      periodLabel,
      row,
      models,
      sections,
      figures,
      from,
      pooled,
      tone: row && TONES[row.verdict],
    };
    const title = `${asked.of}: ${asked.feature}`;
    const crumbs = [{ label: "Accuracy", href: `/ops/accuracy?period=${asked.period}` }];
    return { template: "accuracy/detail", title, data, crumbs };
  },
});

/** The same as a file: one line for each number on the page, formatted as on the page. */
export const accuracyDetailFile = opsPage({
  path: "/accuracy/detail.csv",
  query,
  async show({ sql }, { query: asked }) {
    const found = await read(sql, asked);
    if (found === null) return null;
    const { row, rates } = found;
    const plots =
      row === null
        ? []
        : figuresOf(row, rates).map(({ plot, columns, rows }) => ({ title: plot.title, columns, rows }));
    const lines = [...sectionsOf(row), ...plots].flatMap(({ title, columns, rows }) =>
      rows.flatMap((cells) => cells.slice(1).map((text, i) => [title, cells[0] ?? "", columns[i + 1] ?? "", text])),
    );
    const head = ["of", "feature", "model", "period", "section", "row", "column", "value"];
    const same = row === null ? [] : [nameOf(row), row.feature, row.model, row.period];
    const text = csvText([head, ...lines.map((line) => [...same, ...line])]);
    return { file: `accuracy-${asked.of}-${asked.feature}-${asked.period}.csv`, type: "text/csv", text };
  },
});

async function read(sql: Sql, { of, feature, period, model }: Query) {
  const chosen = await findTablesOf(sql, of);
  if (chosen === null) return null;
  const isHouse = !of.includes("/");
  const scope = isHouse ? { house: chosen.house } : { tableId: chosen.ids[0] };
  const measured = await measure(sql, { ...scope, feature, period });
  const pooled = isHouse ? chosen.ids.length : null;
  const models = measured.map((row) => row.model);
  const row = (model === "" ? measured.at(-1) : measured.find((one) => one.model === model)) ?? null;
  if (row === null) return { row, models, rates: [], from: null, pooled };
  const { rates, from } = await listHitRates(sql, {
    tableIds: chosen.ids,
    model: row.model,
    feature,
    start: row.period_start,
    end: row.period_end,
    by: byOf(row),
  });
  return { row, models, rates, pooled, from: new Date(from) > new Date(row.period_start) ? from : null };
}

async function drawnOf({ log }: { log: Log }, row: Measured, rates: readonly RateSums[]): Promise<Figure[]> {
  return Promise.all(
    figuresOf(row, rates).map(({ plot, columns, rows }) => figureOf(log, fullWidth(plot), { columns, rows })),
  );
}
