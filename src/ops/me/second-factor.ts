import { factorChanged } from "../../accounts/letters.ts";
import { isLocalAddress } from "../../accounts/operators/local-operator.ts";
import { mailAdmins, noteOperatorChange } from "../../accounts/operators/operator-change-store.ts";
import { audited } from "../../audit/store.ts";
import type { AddAccountForm } from "../../frame/sign-in/account-forms.ts";
import { addTwoFactor, FACTOR_ENTRIES } from "../../frame/sign-in/two-factor.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { auditEntry } from "../audit-entry.ts";
import type { RouteParts } from "../routes.ts";
import { requireSignedIn } from "../signed-in.ts";
import type { StaffAccountParts } from "./account-routes.ts";

/**
 * Adds turning two-factor authentication of staff on and off. They get a mail about each change, and every admin one when it
 * is on or off. Only turning it off delays approvals: everyone has to turn it on before they can approve.
 */
export function addSecondFactor(
  addForm: AddAccountForm,
  { responder }: RouteParts,
  { mustHaveTwoFactor, ...parts }: StaffAccountParts,
  page: string,
): void {
  const { sql, site } = parts;
  addTwoFactor(addForm, {
    responder,
    ...parts,
    page: { href: page, label: "Your sign-in" },
    mustHaveOne: mustHaveTwoFactor,
    async note(reply, change) {
      const { visitor } = requireSignedIn(reply);
      const { operatorId: userId, email } = visitor;
      const entry = auditEntry(visitor, { ...FACTOR_ENTRIES[change], target: `operator ${email}` });
      await audited(sql, async (tx) => {
        if (change === "off") await noteOperatorChange(tx, { userId, email, what: "second-factor", by: email });
        if (change === "on") await mailAdmins(tx, { userId, email, what: { factor: "on" }, by: email });
        if (!isLocalAddress(email)) {
          await queueMail(tx, { ...factorChanged({ site: site(), surface: "ops", change }), recipient: email });
        }
        return { result: null, entry };
      });
    },
  });
}
