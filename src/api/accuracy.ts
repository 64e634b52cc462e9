import { z } from "zod";
import { PERIODS } from "../forecasts/accuracy/periods.ts";
import { mergePeriods, NOTICE, showAccuracy, type PeriodSums } from "../forecasts/accuracy/present.ts";
import { listContent, type Fragment } from "./fragments.ts";
import { etagOf } from "../http/etag.ts";
import { type Asked, operation } from "./operation.ts";
import { filters } from "./params.ts";
import { selectTables } from "./select.ts";
import type { House, Table } from "../published/tables.ts";

const SCOPES = ["table", "house"] as const;
const oneOf = (names: readonly string[]) => ({ error: `expected one of ${names.join(", ")}` });

/** The scores per feature and period: of each table, or of each house over its tables in the plan. */
export const accuracy = operation({
  path: "/api/v1/accuracy",
  params: z.strictObject({
    ...filters,
    feature: z
      .string()
      .regex(/^(?:next_color|window:[a-z0-9][a-z0-9_-]{0,31}:(?:50|80|90))$/, {
        error: "expected next_color or window:<color>:<50, 80 or 90>",
      })
      .optional()
      .meta({
        description: "Only this feature: `next_color` or `window:<color>:<target>`.",
        examples: ["next_color"],
      }),
    period: z
      .enum(PERIODS, oneOf(PERIODS))
      .default("30d")
      .meta({
        description:
          "`24h` is the current UTC hour and the 23 before it; `7d`, `30d` and `90d` are whole UTC days and include today. A replaced model has a row in `all`, and in the others while they include forecasts of it.",
        examples: ["30d"],
      }),
    scope: z
      .enum(SCOPES, oneOf(SCOPES))
      .default("table")
      .meta({
        description: "Figures of each table, or of each house over its tables in your plan.",
        examples: ["table"],
      }),
  }),
  compose(chosen, { memory, plan }: Asked<"tables">) {
    const { feature, period, scope } = chosen;
    const tables = selectTables(memory.tables, plan, chosen);
    const isWanted = (row: PeriodSums) => row.period === period && (feature === undefined || row.feature === feature);
    const fragments =
      scope === "table"
        ? tables.flatMap((table) => table.accuracy.filter(isWanted).map((row) => accuracyOf(table, row)))
        : [...Map.groupBy(tables, ({ house }) => house)].flatMap(([house, own]) => {
            const rows = own.flatMap(({ accuracy: all }) => all.filter(isWanted));
            return rows.length === 0 ? [] : [accuracyOfHouse(house, `${period} ${feature ?? ""}`, rows)];
          });
    const content = listContent(plan.name, "accuracy", fragments, { notice: NOTICE });
    content.behindSinceMs = behindSince(tables);
    return content;
  },
});

/** The earliest change of a table whose sums do not cover its newest rounds; null if all are current. */
function behindSince(tables: readonly Table[]): number | null {
  let since: number | null = null;
  for (const {
    lastSeq,
    accuracy: [row],
  } of tables) {
    if (row !== undefined && row.asOfSeq < lastSeq) since = Math.min(since ?? row.changedMs, row.changedMs);
  }
  return since;
}

const ofRows = new WeakMap<PeriodSums, Fragment>();

/** The figures of a row take 0.04 ms, and a row is replaced when its sums change, so each is shown once. */
function accuracyOf({ house, game, market }: Table, row: PeriodSums): Fragment {
  const known = ofRows.get(row);
  if (known !== undefined) return known;
  const fragment = fragmentOf([row], { house: house.id, game, market });
  ofRows.set(row, fragment);
  return fragment;
}

const ofHouses = new WeakMap<House, Map<string, { rows: readonly PeriodSums[]; fragment: Fragment }>>();

/** Merging hundreds of tables takes milliseconds, so it is repeated only if one of the rows changed. */
function accuracyOfHouse(house: House, variant: string, rows: readonly PeriodSums[]): Fragment {
  const kept = ofHouses.get(house) ?? new Map<string, { rows: readonly PeriodSums[]; fragment: Fragment }>();
  ofHouses.set(house, kept);
  const found = kept.get(variant);
  if (found?.rows.length === rows.length && found.rows.every((row, at) => row === rows[at])) return found.fragment;
  const fragment = fragmentOf(mergePeriods(rows), { house: house.id, game: null, market: null });
  kept.set(variant, { rows, fragment });
  return fragment;
}

function fragmentOf(
  rows: readonly PeriodSums[],
  of: { house: string; game: string | null; market: string | null },
): Fragment {
  const json = rows.map((row) => JSON.stringify(showAccuracy(of, row))).join(",");
  return { json, etag: etagOf([json]) };
}
