import { z } from "zod";
import { askNewAddress } from "../../accounts/holders/change-email.ts";
import { takeMail } from "../../accounts/holders/mail-limits.ts";
import { CHANGED_MEANWHILE } from "../../accounts/identity/password.ts";
import { tooMany } from "../../accounts/identity/tries.ts";
import { findPasswordHash } from "../../accounts/operators/operator-store.ts";
import { emailProblem } from "../../config/mail.ts";
import type { AddAccountForm } from "../../frame/sign-in/account-forms.ts";
import { typedEmail } from "../../frame/sign-in/public-forms.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";
import { requireSignedIn, type RouteParts } from "../signed-in.ts";
import { SECURITY } from "./path.ts";

const form = z.object({
  email: typedEmail,
  password: z.string().max(1_000),
  code: z.string().max(100).default(""),
});

/** Adds the form for a new e-mail address. The address changes when the mailed link is confirmed. */
export function addAddressForm(
  addForm: AddAccountForm,
  { responder, parts }: RouteParts,
  { sql, buckets }: SignInParts,
): void {
  addForm("/email", form, async ({ reply, own, form: { email: next, ...proof }, refuse, isThem }) => {
    const problem = emailProblem(next);
    if (problem !== null) return refuse(problem);
    if (next === own.email) return refuse("this is your address already");
    const from = await findPasswordHash(sql, own);
    if (!(await isThem(proof))) return;
    const wait = await takeMail(buckets, own.address, { purpose: "new-address", recipient: next });
    if (wait > 0) {
      reply.setHeader("Retry-After", wait);
      return refuse(tooMany(wait), 429);
    }
    const { holder } = requireSignedIn(reply);
    const isAsked = await askNewAddress(sql, {
      userId: own.userId,
      from,
      email: own.email,
      next,
      site: parts.site(),
      mailKey: parts.mailKey,
      by: holder,
    });
    if (!isAsked) return refuse(CHANGED_MEANWHILE, 409);
    responder.redirect(
      reply,
      SECURITY,
      `a mail is on its way to ${next}; open its link within a day, and the address changes`,
    );
  });
}
