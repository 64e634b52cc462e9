import type { Allowance } from "../callers/caller-store.ts";
import { ApiError } from "../http/errors.ts";
import type { Filters } from "./params.ts";
import type { Holding, Table } from "../published/tables.ts";

/** The parts of a plan that decide which tables a caller sees. */
export type PlanOfTables = Pick<Allowance, "name" | "houses">;

/**
 * Returns the tables that a request selects, in list order. Filters are combined with AND: no filter selects every
 * table of the plan, and known ids without a common table select none. The cost depends on the selection, not on the
 * number of tables.
 * @throws ApiError `table_not_found` if a filter names something unknown, `table_not_in_plan` if it names something
 * outside the plan.
 */
export function selectTables(holding: Holding, plan: PlanOfTables, filters: Filters): readonly Table[] {
  // callers repeat the same query, and readParams then returns the same object
  const chosen = selections.get(filters) ?? new WeakMap<object, Selection>();
  selections.set(filters, chosen);
  const of = plan.houses ?? holding;
  const found = chosen.get(of);
  if (found?.listing === holding.listing) return found.tables;
  const tables = select(holding, plan, filters);
  chosen.set(of, { listing: holding.listing, tables });
  return tables;
}

interface Selection {
  listing: object;
  tables: readonly Table[];
}

/** Cached selections by filters, then by the houses of the plan. */
const selections = new WeakMap<Filters, WeakMap<object, Selection>>();

function select(holding: Holding, plan: PlanOfTables, { house, game, market }: Filters): readonly Table[] {
  const asked = [
    { name: "house", ids: house, tablesBy: holding.byHouse },
    { name: "game", ids: game, tablesBy: holding.byGame },
    { name: "market", ids: market, tablesBy: holding.byMarket },
  ].flatMap(({ name, ids, tablesBy }) =>
    ids === undefined ? [] : [...new Set(ids)].map((id) => ({ name, id, tables: tablesBy.get(id) })),
  );
  const isIncluded = (table: Table) => plan.houses === null || plan.houses.has(table.house.id);
  for (const { name, id, tables } of asked) {
    if (tables === undefined) {
      throw new ApiError("table_not_found", { message: `there is no ${name} ${id}`, details: { [name]: id } });
    }
  }
  for (const { name, id, tables } of asked) {
    if (tables?.some(isIncluded) !== true) {
      const message = `the plan ${plan.name} does not include the ${name} ${id}; choose one that /api/v1/games lists, or a plan that includes it at /console/plans`;
      throw new ApiError("table_not_in_plan", { message, details: { [name]: id } });
    }
  }
  const [fewest] = [...Map.groupBy(asked, ({ name }) => name).values()]
    .map((group) => group.flatMap(({ tables }) => tables ?? []))
    .toSorted((a, b) => a.length - b.length);
  if (fewest === undefined) return holding.tables.filter(isIncluded);
  return fewest
    .filter(
      (table) =>
        isIncluded(table) &&
        (house?.includes(table.house.id) ?? true) &&
        (game?.includes(table.game) ?? true) &&
        (market?.includes(table.market) ?? true),
    )
    .toSorted((a, b) => a.place - b.place);
}
