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
  location: ({ params: { plan = "" } }) => `/ops/plans/${encodeURIComponent(plan)}`,
  change: (tx, { params: { plan = "" }, form: given }) =>
    setPlan(nested(tx), plan, changesOf(given), BigInt(given.revision)),
});
