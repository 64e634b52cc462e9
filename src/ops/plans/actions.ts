import { setPlan } from "../../callers/plan-store.ts";
import { nested } from "../../db/nested.ts";
import { auditedAction } from "../audited-action.ts";
import { reason } from "../payloads/listing.ts";
import { changesOf, planFields } from "./fields.ts";

const form = planFields.extend({ reason });

/** Changes a plan, for those who have it too. Refused where the form was made from another than what is stored. */
export const setPlanAction = auditedAction({
  name: "plan.set",
  title: "Set plan",
  path: "/plans/:plan",
  roles: [],
  isDangerous: true,
  form,
  async change(tx, { params, form: given }) {
    const done = await setPlan(nested(tx), params["plan"] ?? "", changesOf(given), BigInt(given.revision));
    if (!done.ok) return { ok: false, problem: done.reason };
    const { before, plan } = done;
    return {
      ok: true,
      target: `plan ${plan.name}`,
      before,
      after: plan,
      message: `${plan.name} is changed, for those who have it too, from their next call on`,
      location: `/ops/plans/${encodeURIComponent(plan.name)}`,
    };
  },
});
