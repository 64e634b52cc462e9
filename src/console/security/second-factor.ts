import { factorChanged } from "../../accounts/letters.ts";
import { appendAudit } from "../../audit/store.ts";
import type { AddAccountForm } from "../../frame/sign-in/account-forms.ts";
import { addTwoFactor, FACTOR_ENTRIES } from "../../frame/sign-in/two-factor.ts";
import { queueMail } from "../../mail/outbox-store.ts";
import { holderEntry } from "../../accounts/holders/holder-entry.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";
import { requireSignedIn, type RouteParts } from "../signed-in.ts";
import { SECURITY } from "./path.ts";

/** Adds turning two-factor authentication on and off. The holder gets a mail about each change. */
export function addSecondFactor(
  addForm: AddAccountForm,
  { responder, parts }: RouteParts,
  { sql, identity }: SignInParts,
): void {
  addTwoFactor(addForm, {
    responder,
    sql,
    identity,
    page: { href: SECURITY, label: "Security" },
    mustHaveOne: false,
    async note(reply, change) {
      const { holder } = requireSignedIn(reply);
      await sql.begin(async (tx) => {
        const letter = factorChanged({ site: parts.site(), surface: "console", change });
        await queueMail(tx, { ...letter, recipient: holder.email });
        await appendAudit(tx, holderEntry(holder, FACTOR_ENTRIES[change]));
      });
    },
  });
}
