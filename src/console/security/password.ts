import { z } from "zod";
import { changePassword } from "../../accounts/holders/reset.ts";
import { CHANGED_MEANWHILE, passwordProblem } from "../../accounts/identity/password.ts";
import { findPasswordHash } from "../../accounts/operators/operator-store.ts";
import type { AddAccountForm } from "../../frame/sign-in/account-forms.ts";
import { requireSignedIn, type RouteParts } from "../signed-in.ts";
import { SECURITY } from "./path.ts";

const form = z.object({
  password: z.string().max(1_000),
  code: z.string().max(100).default(""),
  next: z.string().max(1_000),
  again: z.string().max(1_000),
});

/** Adds the form that changes the password. */
export function addPasswordForm(addForm: AddAccountForm, { responder, parts }: RouteParts): void {
  addForm("/password", form, async ({ reply, own, form: { next, again, ...proof }, refuse, mayChoose, isThem }) => {
    if (next !== again) return refuse("the new password and its repetition are not the same");
    if (!(await mayChoose())) return;
    const problem = await passwordProblem(next, own.email);
    if (problem !== null) return refuse(problem);
    const from = await findPasswordHash(parts.sql, own);
    if (!(await isThem(proof))) return;
    const { holder } = requireSignedIn(reply);
    const change = { ...own, from, password: next, site: parts.site(), by: holder };
    if (!(await changePassword(parts.sql, change))) return refuse(CHANGED_MEANWHILE, 409);
    responder.redirect(reply, SECURITY, "the password is changed, and your other sign-ins have ended");
  });
}
