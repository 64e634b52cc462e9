import { appendAudit } from "../../audit/store.ts";
import { setPlan } from "../../callers/plan-store.ts";
import { nested } from "../../db/nested.ts";
import { auditEntry } from "../audit-entry.ts";
import { opsAction } from "../contract.ts";
import { reason } from "../payloads/listing.ts";
import { changesOf, planFields } from "./fields.ts";

const form = planFields.extend({ reason });

/** Changes a plan, for those who have it too. Refused where the form was made from another than what is stored. */
export const setPlanAction = opsAction({
  name: "plan.set",
  title: "Set plan",
  path: "/plans/:plan",
  roles: [],
  isDangerous: true,
  form,
  async run({ sql }, { visitor, params, form: given }) {
    const name = params["plan"] ?? "";
    const outcome = await sql.begin(async (tx) => {
      const done = await setPlan(nested(tx), name, changesOf(given), BigInt(given.revision));
      if (!done.ok) return done;
      const { before, plan: after } = done;
      const entry = { action: "plan.set", target: `plan ${after.name}`, before, after, reason: given.reason };
      await appendAudit(tx, auditEntry(visitor, entry));
      return done;
    });
    if (!outcome.ok) return { ok: false, problem: outcome.reason };
    const { plan } = outcome;
    const message = `${plan.name} is changed, for those who have it too, from their next call on`;
    return { ok: true, message, location: `/ops/plans/${encodeURIComponent(plan.name)}` };
  },
});
