import { z } from "zod";
import { closeAccount } from "../../accounts/holders/close.ts";
import { requesterOf, passCookies } from "../../frame/requester.ts";
import type { AddAccountForm } from "../../frame/sign-in/account-forms.ts";
import type { SignInParts } from "../../frame/sign-in/guard.ts";
import { requireSignedIn, type RouteParts } from "../signed-in.ts";

const form = z.object({
  address: z.string().trim().toLowerCase().max(254).default(""),
  password: z.string().max(1_000),
  code: z.string().max(100).default(""),
});

/** Adds the form that closes an account. Closing is permanent, so the form requires the e-mail address and a fresh proof. */
export function addCloseForm(
  addForm: AddAccountForm,
  { responder, parts }: RouteParts,
  { identity }: SignInParts,
): void {
  addForm("/close", form, async ({ request, reply, own, form: { address, ...proof }, refuse, isThem }) => {
    if (address !== own.email) return refuse(`type ${own.email} into its field to close the account`);
    if (!(await isThem(proof))) return;
    const { holder } = requireSignedIn(reply);
    if (!(await closeAccount(parts.sql, { userId: own.userId, by: holder }))) return refuse("it is closed already");
    parts.log.info({ request_id: holder.requestId, account: String(holder.accountId) }, "an account was closed");
    const { cookies } = await identity.ask("/sign-out", {}, requesterOf(request));
    passCookies(reply, cookies);
    responder.redirect(
      reply,
      "/console/sign-in",
      `account ${holder.accountId} is closed, and your address is forgotten there`,
    );
  });
}
