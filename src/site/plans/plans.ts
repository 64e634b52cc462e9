import type { ListedPlan } from "../../callers/plan-store.ts";
import { thousands } from "../../money.ts";
import type { SitePage } from "../send-page.ts";

/** Houses that are named per plan; `/api/v1/games` lists all. */
const HOUSES_NAMED = 40;

/** The page about plans; null if they could not be loaded. */
export function plansPage(plans: readonly ListedPlan[] | null): SitePage {
  return {
    path: "/plans",
    template: "plans/plans",
    title: "Plans",
    header: {
      lead: "A plan gives access to the API for a number of days. All plans have the same paths and the same data; they differ in how many calls they allow and in the houses they include.",
    },
    description:
      "What each plan of Roundhouse costs, how long it lasts, and every limit it has: calls a day, a month and a second.",
    data: { plans: shownPlans(plans) },
  };
}

/** The plans on sale, formatted; null if they could not be loaded. */
export function shownPlans(plans: readonly ListedPlan[] | null) {
  return plans && plans.filter(({ on_sale }) => on_sale).map(shownPlan);
}

/** The price and duration of the cheapest plan; null if there is none, or they could not be loaded. */
export function cheapestOf(plans: readonly ListedPlan[] | null): { price: string; days: string } | null {
  const [first] = (plans ?? []).filter(({ on_sale }) => on_sale).toSorted((a, b) => Number(a.price) - Number(b.price));
  return first === undefined ? null : shownPlan(first);
}

/** A ceiling that protects the service is no promise, so its number is not shown. */
function shownPlan({ name, price, days, day_limit, month_limit, burst_per_second, burst, houses }: ListedPlan) {
  return {
    name,
    price: `${thousands(price)} USD`,
    days: `${days} days`,
    day: calls(day_limit),
    month: calls(month_limit),
    second: String(burst_per_second),
    burst: String(burst),
    houses: houses === null ? "all" : named(houses),
  };
}

function calls(limit: bigint | null): string {
  return limit === null ? "no fixed number" : limit.toLocaleString("en-US");
}

function named(houses: readonly string[]): string {
  if (houses.length === 0) return "none yet";
  const left = houses.length - HOUSES_NAMED;
  return houses.slice(0, HOUSES_NAMED).join(", ") + (left > 0 ? ` and ${left} more` : "");
}
