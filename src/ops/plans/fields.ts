import { z } from "zod";
import type { PlanChanges, PlanSettings } from "../../callers/plan-store.ts";
import { number } from "../../frame/text/format.ts";
import { parseUsd, usd } from "../../money.ts";

const whole = (what: string) =>
  z
    .string()
    .trim()
    .regex(/^\d{1,12}$/, `expected ${what} as a whole number`)
    .transform(Number);
const wholeOrNone = (what: string) =>
  z
    .string()
    .trim()
    .regex(/^\d{0,12}$/, `expected ${what} as a whole number, or nothing for no limit`)
    .transform((text) => (text === "" ? null : Number(text)));
const slug = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, "expected the id of a house");

/** A plan as a form has it: all of it, and the revision that it was made from. */
export const planFields = z.object({
  revision: z.string().regex(/^\d{1,18}$/, "expected the form as it was shown; open the plan again"),
  day: wholeOrNone("calls a day"),
  month: wholeOrNone("calls a month"),
  ceiling: wholeOrNone("the ceiling"),
  rps: whole("calls a second"),
  burst: whole("calls in a burst"),
  price: z
    .string()
    .max(40)
    .transform((text, context): bigint => {
      const micros = parseUsd(text);
      if (micros !== null) return micros;
      context.addIssue("expected an amount in USD such as 29 or 29.90");
      return z.NEVER;
    }),
  days: whole("days"),
  on_sale: z.enum(["yes", "no"]),
  houses: z.enum(["all", "some"]),
  house: z
    .union([slug, z.array(slug).max(1_000)])
    .default([])
    .transform((given) => [given].flat()),
});
export type PlanFields = z.infer<typeof planFields>;

/** What a form asks for. */
export function changesOf(form: PlanFields): PlanChanges {
  const { day, month, ceiling, rps, burst, days, price: priceMicros, on_sale, houses, house } = form;
  return {
    day,
    month,
    ceiling,
    rps,
    burst,
    days,
    priceMicros,
    onSale: on_sale === "yes",
    houses: houses === "all" ? "all" : house,
  };
}

/** One thing that a form changes, as texts. */
export interface Difference {
  label: string;
  before: string;
  after: string;
}

/** What a form changes of a plan. */
export function differencesOf(plan: PlanSettings, form: PlanFields): Difference[] {
  const limit = (calls: number | bigint | null) => (calls === null ? "no limit" : number(calls));
  const houses = (ids: readonly string[] | null) => (ids === null ? "all" : ids.toSorted().join(", ") || "none");
  const rows: [string, string, string][] = [
    ["Calls per UTC day", limit(plan.day_limit), limit(form.day)],
    ["Calls per UTC month", limit(plan.month_limit), limit(form.month)],
    ["Unpublished ceiling per UTC day", limit(plan.day_ceiling), limit(form.ceiling)],
    ["Calls per second", number(plan.burst_per_second), number(form.rps)],
    ["Burst", number(plan.burst), number(form.burst)],
    ["Price, USD", plan.price, usd(form.price)],
    ["Days", number(plan.days), number(form.days)],
    ["On sale", plan.on_sale ? "yes" : "no", form.on_sale],
    ["Houses", houses(plan.houses), houses(form.houses === "all" ? null : form.house)],
  ];
  return rows.flatMap(([label, before, after]) => (before === after ? [] : [{ label, before, after }]));
}
