import { listPlanSettings } from "../../callers/plan-store.ts";
import { usd } from "../../money.ts";
import { opsPage } from "../contract.ts";
import { planFields, differencesOf, type PlanFields } from "./fields.ts";
import { countBeyond, countHolders, listHolders } from "./holder-store.ts";
import { listHouseIds } from "./house-store.ts";

const HOLDERS_SHOWN = 50;

/** All plans, and how many have them. */
export const plansPage = opsPage({
  path: "/plans",
  nav: { label: "Plans", order: 34, group: "Money" },
  async show({ sql }) {
    const [plans, holders] = await Promise.all([listPlanSettings(sql), countHolders(sql)]);
    const rows = plans.map((plan) => ({ ...plan, holders: holders.get(plan.name) ?? { now: 0, later: 0 } }));
    return { template: "plans/plans", title: "Plans", data: { rows } };
  },
});

const crumbs = [{ label: "Plans", href: "/ops/plans" }];

/** One plan: who has it, and for an admin the form that changes it. */
export const planPage = opsPage({
  path: "/plans/:plan",
  async show({ sql }, { params }) {
    const name = params["plan"] ?? "";
    const plan = (await listPlanSettings(sql)).find((one) => one.name === name);
    if (plan === undefined) return null;
    const [houses, counted, holders] = await Promise.all([
      listHouseIds(sql),
      countHolders(sql),
      listHolders(sql, name, HOLDERS_SHOWN),
    ]);
    const data = { plan, houses, holders, counts: counted.get(name) ?? { now: 0, later: 0 } };
    return { template: "plans/plan", title: name, data, crumbs };
  },
});

/** The changes of a form and the accounts that they affect, before they are applied. */
export const planPreviewPage = opsPage({
  path: "/plans/:plan/preview",
  query: planFields,
  async show({ sql }, { params, query }) {
    const name = params["plan"] ?? "";
    const plan = (await listPlanSettings(sql)).find((one) => one.name === name);
    if (plan === undefined) return null;
    const [counted, beyond] = await Promise.all([countHolders(sql), countBeyond(sql, name, query)]);
    const data = {
      plan,
      differences: differencesOf(plan, query),
      isOutdated: BigInt(query.revision) !== plan.revision,
      counts: counted.get(name) ?? { now: 0, later: 0 },
      beyond,
      lost: lostHouses(plan.houses, query),
      fields: fieldsOf(query),
    };
    const here = [...crumbs, { label: name, href: `/ops/plans/${encodeURIComponent(name)}` }];
    return { template: "plans/preview", title: `Change ${name}?`, data, crumbs: here };
  },
});

/** Houses that holders would no longer see; null where they are all of those that are not named. */
function lostHouses(before: readonly string[] | null, { houses, house }: PlanFields): string[] | null {
  if (houses === "all") return [];
  return before === null ? null : before.filter((id) => !house.includes(id));
}

/** The form again, with the reason. */
function fieldsOf({ price, house, ...rest }: PlanFields): { name: string; value: string }[] {
  const texts = Object.entries({ ...rest, price: usd(price) }).map(([name, value]) => ({
    name,
    value: value === null ? "" : String(value),
  }));
  return [...texts, ...house.map((value) => ({ name: "house", value }))];
}
