import { listPlanSettings } from "../../callers/plan-store.ts";
import { readBuyer } from "../../purchases/state-store.ts";
import { consolePage } from "../contract.ts";
import { listHousesNow } from "./house-store.ts";
import { planView } from "./plan-view.ts";

/** All plans with their limits and the holder's price. Plans that are off sale appear only if the account has them. */
export const plansPage = consolePage({
  path: "/plans",
  nav: { label: "Plans", order: 31, group: "Billing" },
  async show({ sql }, { holder: { accountId, isSuspended } }) {
    const [buyer, listed, houses] = await Promise.all([
      readBuyer(sql, accountId),
      listPlanSettings(sql),
      listHousesNow(sql),
    ]);
    if (buyer === null) return null;
    const plans = listed.flatMap((plan) => {
      const view = planView(buyer, plan.name);
      return view === null || (!plan.on_sale && !view.isHeld) ? [] : [{ ...view, limits: plan }];
    });
    const nameOf = new Map(houses.map(({ id, name }) => [id, name]));
    const held = buyer.held.map(({ plan, startsAt, endsAt }) => ({
      plan,
      isRunning: startsAt <= buyer.now,
      startsAt: new Date(Number(startsAt / 1_000n)),
      endsAt: endsAt === null ? null : new Date(Number(endsAt / 1_000n)),
    }));
    const data = {
      plans,
      held,
      isSuspended,
      balance: buyer.balanceMicros,
      allHouses: houses.map(({ name }) => name),
      namesOf: (ids: readonly string[]) => ids.map((id) => nameOf.get(id) ?? id),
    };
    return { template: "plans/plans", title: "Plans", data };
  },
});
